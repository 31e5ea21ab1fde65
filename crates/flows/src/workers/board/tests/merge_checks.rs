//! Tests that a machine believes that an item is merged only if the target branch, on a real remote, contains it.

use super::super::fleet::tests::git;
use super::*;
use crate::workers::target::PlanOnTarget;
use crate::workers::unchecked_item::is_stage_of_unchecked_item;
use plimsoll_domain::git_names::{BranchName, RepoPath};
use plimsoll_launcher::remote_repository::Remote;
use plimsoll_store::{Durability, disk};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const TWO_ITEMS: &[&str] = &["one", "two (after: 1)"];

/// A fleet whose target is a branch of a bare repository. The machine under test is "a".
struct FleetWithRemote {
    memory: MemoryConnection,
    board: FleetBoard,
    target: RemoteTarget,
    /// A commit from before the fleet began, and the one at which it began.
    early_commit: String,
    start_commit: String,
    folder: tempfile::TempDir,
}

impl FleetWithRemote {
    fn new(items: &[&str], grace_period: Duration) -> FleetWithRemote {
        NOW.set(1_000);
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        git(folder.path(), &["init", "-q", "-b", "main", "clone"]);
        let clone = folder.path().join("clone");
        git(&clone, &["remote", "add", "origin", "../remote.git"]);
        let [early_commit, start_commit] = ["early", "start"].map(|name| commit(&clone, name));
        git(&clone, &["push", "-q", "origin", "main"]);
        let remote = Remote::open(&clone, "origin", &folder.path().join("own.git")).unwrap();
        let plan = PlanOnTarget {
            file: RepoPath::parse("plan.md").unwrap(),
            item_texts: items.iter().map(|text| (*text).to_owned()).collect(),
        };
        let target = RemoteTarget::new(remote, "night", "1", &BranchName::parse("main").unwrap())
            .with_plan(Some(plan));
        let memory = memory_connection(&plan_items(items));
        let board = fleet_board(folder.path(), "a", &memory, &target).with_replica_grace_period(grace_period);
        board
            .workers_file()
            .update_and_write_file(|workers| {
                workers.target_branch_name = "main".to_owned();
                workers.start_commit_id.clone_from(&start_commit);
                workers.fleet_member.as_mut().unwrap().fleet = "night".to_owned();
            })
            .unwrap();
        let fleet = FleetWithRemote { memory, board, target, early_commit, start_commit, folder };
        fleet.board.refresh_from_board().unwrap();
        fleet
    }

    fn clone_folder(&self) -> std::path::PathBuf {
        self.folder.path().join("clone")
    }

    /// Makes a commit that is not on the remote yet.
    fn commit(&self, name: &str) -> String {
        commit(&self.clone_folder(), name)
    }

    /// Commits and pushes the plan on the target.
    fn push_plan(&self, plan: &str) -> String {
        let plan_path = self.clone_folder().join("plan.md");
        disk::replace(&plan_path, plan.as_bytes(), Durability::Lazy).unwrap();
        git(&self.clone_folder(), &["add", "plan.md"]);
        let commit = self.commit("plan");
        self.push();
        commit
    }

    fn push(&self) {
        git(&self.clone_folder(), &["push", "-q", "origin", "main"]);
    }

    /// Records in the database that an item is merged with these commits.
    fn record_as_merged(&self, item: usize, commits: &[&str]) {
        self.memory.update(|fleet| {
            fleet.state.items[item].stage = ItemStage::Merged;
            fleet.state.items[item].attempted_merge_commits =
                commits.iter().map(|commit| (*commit).to_owned()).collect();
        });
    }

    /// Another machine merges the first item, and this machine does not read the board. Returns the commits between which the earlier
    /// work on the second item is.
    fn merge_first_item_without_refresh(&self) -> (String, String) {
        let landed = self.commit("landed");
        self.push();
        self.record_as_merged(0, &[&landed]);
        let start_and_base = (commit_id(5), commit_id(6));
        self.memory.update(|fleet| fleet.start_and_base_commits[1] = start_and_base.clone());
        start_and_base
    }

    fn refresh_and_check(&self) {
        self.board.refresh_from_board().unwrap();
        self.board.check_items_listed_as_merged(NEVER_GIVE_UP);
    }

    fn stage(&self, item: usize) -> ItemStage {
        self.board.workers_file().workers_state().board.items[item].stage.clone()
    }

    fn is_undecided(&self, item: usize) -> bool {
        is_stage_of_unchecked_item(&self.stage(item))
    }

    fn is_unconfirmed(&self, item: usize) -> bool {
        matches!(
            self.stage(item),
            ItemStage::SetAside { reason: SetAsideReason::RunEnded(reason) }
                if reason == "the fleet's database says that it is merged, but the branch main does not contain it; see plimsoll doctor --fleet night"
        )
    }

    fn claim(&self) -> Option<Claim> {
        self.board.claim_next_item(1, &[], &|_| false).unwrap()
    }

    fn user_message(&self) -> Option<String> {
        self.board.scheduler_orders(None).user_message
    }

    fn reports(&self) -> Vec<usize> {
        self.memory.rows.lock().unwrap().unconfirmed_merge_reports.clone()
    }

    fn end_report_count(&self) -> usize {
        self.memory.rows.lock().unwrap().end_report_count
    }
}

fn commit(folder: &Path, name: &str) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(folder, &[&identity[..], &["commit", "-q", "--allow-empty", "-m", name]].concat());
    plimsoll_launcher::git::head_commit(folder).expect("a commit").into()
}

#[test]
fn a_merge_that_the_target_lacks_is_not_believed() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    fleet.record_as_merged(0, &[&commit_id(7)]);
    fleet.board.refresh_from_board().unwrap();
    // Before the check, and after the first one, because a replica may lag behind.
    for _ in 0..2 {
        assert!(fleet.is_undecided(0));
        assert_eq!(board_progress(&fleet.board), BoardProgress::InProgress);
        assert!(!fleet.board.can_claim_item(&[]) && fleet.board.items_to_merge(true).is_empty());
        assert!(fleet.board.claims_to_recover().is_empty());
        assert_eq!((fleet.claim(), fleet.user_message()), (None, None));
        fleet.refresh_and_check();
    }
    assert!(fleet.is_unconfirmed(0), "{:?}", fleet.stage(0));
    for _ in 0..2 {
        fleet.refresh_and_check();
        assert_eq!(board_progress(&fleet.board), BoardProgress::Blocked);
        assert!(!fleet.board.can_claim_item(&[]));
        assert_eq!(fleet.claim(), None);
    }
    assert_eq!(fleet.memory.board_state().items[1].epoch, 0, "the board gave out nothing");
    assert!(fleet.board.should_wait_for_delivery(None, true), "the user does not know it");
    let message = fleet.user_message().unwrap();
    assert!(message.starts_with("item 1 \"one\": the fleet's database says"), "{message}");
    assert_eq!(fleet.user_message(), None);
    assert!(!fleet.board.should_wait_for_delivery(None, true));
    assert_eq!(fleet.reports(), [0]);
    fleet.board.leave_fleet(&[], NEVER_GIVE_UP);
    assert_eq!(fleet.end_report_count(), 0);
}

#[test]
fn only_commits_since_the_start_of_the_fleet_count() {
    let fleet = FleetWithRemote::new(&["a", "b", "c", "d", "e", "f"], Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.commit("later");
    fleet.push();
    let unpushed = fleet.commit("unpushed");
    let (early, start) = (fleet.early_commit.clone(), fleet.start_commit.clone());
    let cases: [&[&str]; 6] =
        [&[], &[&landed], &[&start], &[&early], &[&unpushed], &["--all", &early, &unpushed, &landed]];
    for (item, commits) in cases.iter().enumerate() {
        fleet.record_as_merged(item, commits);
    }
    fleet.refresh_and_check();
    fleet.refresh_and_check();
    let is_merged = [0, 1, 2, 3, 4, 5].map(|item| fleet.stage(item) == ItemStage::Merged);
    // An item without commits was done when the fleet was created, and one that needed no change is merged with the
    // commit that was the end of the target.
    assert_eq!(is_merged, [true, true, true, false, false, true]);
    assert!(fleet.is_unconfirmed(3) && fleet.is_unconfirmed(4));
    assert_eq!(fleet.reports(), [3, 4]);
}

#[test]
fn a_merge_by_another_machine_is_believed_after_the_check() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.push();
    fleet.record_as_merged(0, &[&commit_id(7), &landed]);
    fleet.board.refresh_from_board().unwrap();
    assert!(fleet.is_undecided(0));
    fleet.board.check_items_listed_as_merged(NEVER_GIVE_UP);
    assert_eq!(fleet.stage(0), ItemStage::Merged);
    fleet.board.refresh_from_board().unwrap();
    assert_eq!(fleet.stage(0), ItemStage::Merged, "a refresh does not forget it");
    assert!(fleet.board.can_claim_item(&[]));
    assert_eq!(fleet.claim(), Some(Claim { item_index: 1, epoch: 1 }));
    fleet.record_as_merged(1, &[&landed]);
    fleet.refresh_and_check();
    assert_eq!(board_progress(&fleet.board), BoardProgress::Done);
    fleet.board.leave_fleet(&[], NEVER_GIVE_UP);
    assert_eq!((fleet.end_report_count(), fleet.reports()), (1, Vec::new()));
}

#[test]
fn a_claim_that_depends_on_an_unchecked_merge_is_given_back() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let start_and_base = fleet.merge_first_item_without_refresh();
    assert_eq!(fleet.claim(), None);
    let board_item = fleet.memory.board_state().items[1].clone();
    assert_eq!((board_item.stage, board_item.epoch, board_item.failed_merge_count), (ItemStage::Open, 1, 0));
    assert_eq!(fleet.memory.rows.lock().unwrap().start_and_base_commits[1], start_and_base);
    assert_eq!(fleet.board.claims_to_recover(), []);
    fleet.refresh_and_check();
    assert_eq!(fleet.claim(), Some(Claim { item_index: 1, epoch: 2 }));
}

#[test]
fn a_claim_with_a_lost_response_is_given_back_if_a_dependency_is_unchecked() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let start_and_base = fleet.merge_first_item_without_refresh();
    fleet.memory.of_member("a").claim_item(1, &[]).unwrap().expect("the database believes it");
    fleet.board.refresh_from_board().unwrap();
    assert_eq!(fleet.board.claims_to_recover(), [], "a resumed run does not begin it, either");
    assert_eq!(fleet.claim(), None);
    assert_eq!(fleet.memory.board_state().items[1].stage, ItemStage::Open);
    assert_eq!(fleet.memory.rows.lock().unwrap().start_and_base_commits[1], start_and_base);
    assert_eq!(fleet.stage(1), ItemStage::Open, "it is not found as a lost claim again");
    fleet.refresh_and_check();
    assert_eq!(fleet.claim(), Some(Claim { item_index: 1, epoch: 2 }));
}

#[test]
fn a_claim_that_cannot_be_given_back_is_not_begun() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    fleet.record_as_merged(0, &[&commit_id(7)]);
    fleet.memory.of_member("a").claim_item(1, &[]).unwrap().expect("the database believes it");
    fleet.board.refresh_from_board().unwrap();
    fleet.memory.update(|fleet| fleet.returned_error = Some(BoardError::Unreachable("away".to_owned())));
    assert_eq!(fleet.claim(), None);
    fleet.memory.update(|fleet| fleet.returned_error = None);
    assert_eq!(fleet.claim(), None);
    assert_eq!(fleet.memory.board_state().items[1].stage, ItemStage::Open);
}

#[test]
fn a_reopened_item_is_forgotten() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    fleet.record_as_merged(0, &[&commit_id(7)]);
    fleet.refresh_and_check();
    fleet.refresh_and_check();
    assert!(fleet.is_unconfirmed(0) && fleet.user_message().is_some());
    fleet.memory.update(|fleet| fleet.state.items[0].stage = ItemStage::Open);
    fleet.board.refresh_from_board().unwrap();
    assert_eq!(fleet.stage(0), ItemStage::Open);
    assert_eq!(fleet.claim(), Some(Claim { item_index: 0, epoch: 1 }));
    // If it is recorded as merged again, all is checked and reported again.
    fleet.record_as_merged(0, &[&commit_id(8)]);
    fleet.refresh_and_check();
    assert!(fleet.is_undecided(0));
    fleet.refresh_and_check();
    assert!(fleet.is_unconfirmed(0) && fleet.user_message().is_some());
    assert_eq!(fleet.reports(), [0, 0]);
}

#[test]
fn a_confirmed_item_that_was_reopened_is_checked_again() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.push();
    fleet.record_as_merged(0, &[&landed]);
    fleet.refresh_and_check();
    assert_eq!(fleet.stage(0), ItemStage::Merged);
    fleet.memory.update(|fleet| fleet.state.items[0].stage = ItemStage::Open);
    fleet.board.refresh_from_board().unwrap();
    fleet.record_as_merged(0, &[&commit_id(8)]);
    fleet.refresh_and_check();
    assert!(fleet.is_undecided(0));
}

#[test]
fn a_replica_that_lags_behind_is_tolerated() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::from_secs(600));
    let landed = fleet.commit("landed");
    fleet.record_as_merged(0, &[&landed]);
    for _ in 0..3 {
        fleet.refresh_and_check();
        assert!(fleet.is_undecided(0));
    }
    fleet.push();
    fleet.refresh_and_check();
    assert_eq!(
        (fleet.stage(0), fleet.user_message(), fleet.reports()),
        (ItemStage::Merged, None, Vec::new())
    );
}

#[test]
fn an_unconfirmed_item_becomes_confirmed_when_the_target_has_it() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.record_as_merged(0, &[&landed]);
    fleet.refresh_and_check();
    fleet.refresh_and_check();
    assert!(fleet.is_unconfirmed(0));
    fleet.push();
    fleet.refresh_and_check();
    assert_eq!(fleet.stage(0), ItemStage::Merged);
    assert_eq!(fleet.user_message(), None, "what was not announced yet is wrong by now");
    assert_eq!(fleet.claim().map(|claim| claim.item_index), Some(1));
}

#[test]
fn a_fleet_that_is_recorded_as_done_with_a_false_merge_does_not_complete() {
    let fleet = FleetWithRemote::new(&["one", "two"], Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.push();
    fleet.record_as_merged(0, &[&landed]);
    fleet.record_as_merged(1, &[&commit_id(7)]);
    fleet.memory.update(|fleet| fleet.fleet_end = Some(FleetEnd::AllMerged));
    fleet.board.refresh_from_board().unwrap();
    for _ in 0..2 {
        assert_eq!(board_progress(&fleet.board), BoardProgress::InProgress);
        assert_eq!(fleet.board.closing_reason_if_drained(), None);
        fleet.refresh_and_check();
    }
    assert_eq!(board_progress(&fleet.board), BoardProgress::Blocked);
    let Some(ClosingReason::Stop(RunStatus::CircuitBreaker, reason)) =
        fleet.board.closing_reason_if_drained()
    else {
        panic!("{:?}", fleet.board.closing_reason_if_drained());
    };
    assert!(
        reason.starts_with("the fleet is recorded as done: 1 of 2 items merged; item 2 \"two\": the fleet's"),
        "{reason}"
    );
    fleet.board.leave_fleet(&[], NEVER_GIVE_UP);
    assert_eq!(fleet.end_report_count(), 0);
}

#[test]
fn a_draining_fleet_with_a_false_merge_does_not_complete() {
    let fleet = FleetWithRemote::new(&["one", "two"], Duration::ZERO);
    fleet.record_as_merged(0, &[&commit_id(7)]);
    fleet.memory.update(|fleet| fleet.is_draining = true);
    fleet.refresh_and_check();
    assert_eq!(fleet.board.closing_reason_if_drained(), None, "it is not decided yet");
    fleet.refresh_and_check();
    let closing_reason = fleet.board.closing_reason_if_drained();
    let Some(ClosingReason::Stop(RunStatus::CircuitBreaker, reason)) = closing_reason else {
        panic!("{closing_reason:?}");
    };
    assert!(reason.starts_with("the fleet drains: 0 of 2 items merged; item 1 \"one\":"), "{reason}");
}

#[test]
fn while_the_remote_or_the_board_is_unreachable_items_stay_unchecked() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.push();
    fleet.record_as_merged(0, &[&landed]);
    let (remote, hidden) = (fleet.folder.path().join("remote.git"), fleet.folder.path().join("hidden.git"));
    disk::rename(&remote, &hidden).unwrap();
    for _ in 0..3 {
        fleet.refresh_and_check();
        assert!(fleet.is_undecided(0) && fleet.target.outage().is_some());
    }
    disk::rename(&hidden, &remote).unwrap();
    fleet.memory.update(|fleet| fleet.returned_error = Some(BoardError::Unreachable("away".to_owned())));
    fleet.board.check_items_listed_as_merged(NEVER_GIVE_UP);
    assert!(fleet.is_undecided(0));
    fleet.memory.update(|fleet| fleet.returned_error = None);
    fleet.refresh_and_check();
    assert!(fleet.stage(0) == ItemStage::Merged && fleet.target.outage().is_none());
}

/// The connection returns nothing about an item that it does not list as open, for example because its row is gone.
#[test]
fn an_item_about_which_the_board_knows_nothing_is_not_believed() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    fleet.record_as_merged(0, &[]);
    fleet.board.refresh_from_board().unwrap();
    fleet.memory.update(|fleet| fleet.state.items[0].stage = ItemStage::Open);
    for _ in 0..2 {
        assert!(fleet.is_undecided(0));
        fleet.board.check_items_listed_as_merged(NEVER_GIVE_UP);
    }
    assert!(fleet.is_unconfirmed(0));
}

#[test]
fn the_merger_confirms_what_it_finds_in_the_target_without_changing_the_board() {
    let fleet = FleetWithRemote::new(&["a", "b", "c", "d", "e"], Duration::ZERO);
    fleet.record_as_merged(0, &[&commit_id(7)]);
    fleet.record_as_merged(1, &[&commit_id(7), &commit_id(9)]);
    fleet.record_as_merged(2, &[]);
    fleet.record_as_merged(3, &[&commit_id(7)]);
    fleet.board.refresh_from_board().unwrap();
    let before = fleet.memory.board_state();
    // The first item has a commit that is recorded beside the branch, and not in the database.
    let found = [(0, parse_commit(&commit_id(8)))];
    let is_in_target = |_: usize, commit: &str| commit == commit_id(9);
    fleet.board.mark_items_in_target_as_merged(&is_in_target, &found, NEVER_GIVE_UP).unwrap();
    for _ in 0..2 {
        let is_merged = [0, 1, 2, 3, 4].map(|item| fleet.stage(item) == ItemStage::Merged);
        assert_eq!(is_merged, [true, true, false, false, false]);
        assert!(fleet.is_undecided(2) && fleet.is_undecided(3) && fleet.stage(4) == ItemStage::Open);
        fleet.board.refresh_from_board().unwrap();
    }
    assert_eq!(fleet.memory.board_state(), before);
}

#[test]
fn a_result_for_an_item_that_is_recorded_as_merged_changes_nothing() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let claim = fleet.claim().unwrap();
    // The result is queued, and its branch is on its way.
    fleet.board.mark_work_ready_to_merge(claim, &commit_id(5)).unwrap();
    assert_eq!(fleet.stage(0), ItemStage::ReadyToMerge { commit: commit_id(5) });
    fleet.record_as_merged(0, &[&commit_id(7)]);
    fleet.board.refresh_from_board().unwrap();
    assert!(fleet.is_undecided(0));
    // The run of the item ends only now.
    fleet.board.mark_work_ready_to_merge(claim, &commit_id(6)).unwrap();
    fleet.board.record_failed_attempt(claim, "stuck", None).unwrap();
    fleet.board.release_claim(claim, &LeftoverWork(1)).unwrap();
    assert!(fleet.is_undecided(0));
}

/// Otherwise a round of merging could begin before the work is in the repository in which it is merged.
#[test]
fn work_is_merged_only_after_it_is_delivered() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let claim = fleet.claim().unwrap();
    fleet.board.mark_work_ready_to_merge(claim, &commit_id(5)).unwrap();
    fleet.board.refresh_from_board().unwrap();
    assert_eq!(fleet.stage(0), ItemStage::ReadyToMerge { commit: commit_id(5) });
    assert!(fleet.board.items_to_merge(true).is_empty());
    report_queued_results(&fleet.board);
    assert_eq!(fleet.board.items_to_merge(false), [0]);
}

#[test]
fn the_commit_of_another_item_is_not_believed() {
    let fleet = FleetWithRemote::new(TWO_ITEMS, Duration::ZERO);
    let landed = fleet.push_plan("- [x] one\n- [ ] two (after: 1)\n");
    fleet.record_as_merged(0, &[&landed]);
    fleet.record_as_merged(1, &[&fleet.start_commit, &landed]);
    for _ in 0..2 {
        fleet.refresh_and_check();
    }
    assert_eq!(fleet.stage(0), ItemStage::Merged);
    assert!(fleet.is_unconfirmed(1), "{:?}", fleet.stage(1));
    // The plan is read anew each time.
    fleet.push_plan("- [x] one\n- [x] two (after: 1)\n");
    fleet.refresh_and_check();
    assert_eq!(fleet.stage(1), ItemStage::Merged);
}

#[test]
fn the_delivery_thread_checks_merged_items() {
    let fleet = FleetWithRemote::new(&["one", "two", "three"], Duration::ZERO);
    let landed = fleet.commit("landed");
    fleet.push();
    fleet.record_as_merged(0, &[&landed]);
    fleet.record_as_merged(1, &[&commit_id(7)]);
    fleet.board.refresh_from_board().unwrap();
    // A result that cannot be delivered does not delay the checks.
    fleet.memory.update(|fleet| fleet.is_reporting_results_impossible = true);
    let claim = fleet.claim().unwrap();
    fleet.board.mark_work_ready_to_merge(claim, &commit_id(5)).unwrap();
    let should_stop = AtomicBool::new(false);
    let (board, should_cancel) = (&fleet.board, || should_stop.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        scope.spawn(|| board.run_result_delivery(&should_stop, &should_cancel, &|_| Vec::new()));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !(fleet.stage(0) == ItemStage::Merged && fleet.is_unconfirmed(1)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        should_stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fleet.stage(0), ItemStage::Merged);
    assert!(fleet.is_unconfirmed(1));
    assert_eq!(fleet.reports(), [1]);
    assert!(fleet.board.should_wait_for_delivery(None, false), "the result is still queued");
}
