//! Runs the same steps on both boards: first fixed steps, then random orders as in the tests of the policy.
//! The fleet's rows are in memory here. The tests of `plimsoll-fleet` check the same rules on rows in a
//! database.

#[path = "../../../../policy/tests/interleavings/suite.rs"]
mod interleavings;
mod merge_checks;

use super::fleet::tests::{
    check_merged_items_against, renew_leases, report_queued_results, repository_with_branch,
    unreachable_remote_target,
};
use super::*;
use crate::workers::connection::{
    BoardConnection, BoardSnapshot, ExhaustedLimit, FleetEnd, Reservation, SharedItem,
};
use crate::workers::error::BoardError;
use crate::workers::target::RemoteTarget;
use interleavings::BoardUnderTest;
use plimsoll_domain::RunStatus;
use plimsoll_domain::board::{BoardItem, BoardState, ItemStage, Lease, SetAsideReason};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{FleetMember, ItemOutcome, ItemProgress, ItemResult, WorkersState};
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::{self as rules, BoardProgress, StaleEpoch};
use plimsoll_store::Project;
use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

thread_local! {
    /// The clock of a test.
    static NOW: Cell<BoardMillis> = const { Cell::new(0) };
}

fn now() -> BoardMillis {
    NOW.get()
}

fn commit_id(number: usize) -> String {
    format!("{number:040x}")
}

#[derive(Default)]
struct FleetRows {
    state: BoardState,
    /// The commit at which the next attempt at each item begins, and the commit after which its own commits
    /// begin.
    start_and_base_commits: Vec<(String, String)>,
    passed_commands: Vec<String>,
    is_draining: bool,
    exhausted_limit: Option<ExhaustedLimit>,
    fleet_end: Option<FleetEnd>,
    /// The last question about any item, with its answer.
    answered_question: Option<(String, String)>,
    /// The error that every operation returns, if any.
    returned_error: Option<BoardError>,
    /// True while no result of an item can be reported.
    is_reporting_results_impossible: bool,
    /// The items that members do not find in the target, one entry for each report.
    unconfirmed_merge_reports: Vec<usize>,
    /// How often a member has reported that everything is merged.
    end_report_count: usize,
}

/// A connection of one member to rows in memory.
#[derive(Clone)]
struct MemoryConnection {
    rows: Arc<Mutex<FleetRows>>,
    member_name: String,
}

impl MemoryConnection {
    fn run_operation<T>(
        &self,
        operation: impl FnOnce(&mut FleetRows) -> Result<T, StaleEpoch>,
    ) -> Result<T, BoardError> {
        let mut fleet = self.rows.lock().unwrap();
        if let Some(error) = &fleet.returned_error {
            return Err(error.clone());
        }
        operation(&mut fleet).map_err(|StaleEpoch| BoardError::StaleEpoch)
    }

    fn update(&self, update: impl FnOnce(&mut FleetRows)) {
        update(&mut self.rows.lock().unwrap());
    }

    fn board_state(&self) -> BoardState {
        self.rows.lock().unwrap().state.clone()
    }

    /// Returns a connection of this member to the same rows.
    fn of_member(&self, member_name: &str) -> MemoryConnection {
        MemoryConnection { rows: Arc::clone(&self.rows), member_name: member_name.to_owned() }
    }
}

impl FleetRows {
    fn shared_item(&self, index: usize) -> SharedItem {
        let (start, base_commit_id) = self.start_and_base_commits[index].clone();
        let board_item = BoardItem {
            text: String::new(),
            attempted_merge_commits: Vec::new(),
            ..self.state.items[index].clone()
        };
        SharedItem {
            board_item,
            start_commit_id: start,
            base_commit_id,
            answered_question: self.answered_question.clone(),
        }
    }
}

impl BoardConnection for MemoryConnection {
    fn read_board(&mut self) -> Result<BoardSnapshot, BoardError> {
        self.run_operation(|fleet| {
            let is_open = |index: &usize| fleet.state.items[*index].stage != ItemStage::Merged;
            let places = (0..fleet.state.items.len()).filter(is_open);
            Ok(BoardSnapshot {
                board_time: now(),
                board_state: BoardState { items: Vec::new(), ..fleet.state.clone() },
                open_items: places.map(|index| (index, fleet.shared_item(index))).collect(),
                passed_commands: fleet.passed_commands.clone(),
                is_draining: fleet.is_draining,
                exhausted_limit: fleet.exhausted_limit,
                fleet_end: fleet.fleet_end,
            })
        })
    }
    fn claim_item(
        &mut self,
        worker_number: usize,
        unconfirmed_items: &[usize],
    ) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        let worker_name = format!("{}/{worker_number}", self.member_name);
        self.run_operation(|fleet| {
            let mut visible_state = fleet.state.clone();
            for item in unconfirmed_items {
                let reason = SetAsideReason::RunEnded("unconfirmed".to_owned());
                visible_state.items[*item].stage = ItemStage::SetAside { reason };
            }
            let claim = rules::claim_next_item(&mut visible_state, &worker_name, now());
            Ok(claim.map(|claim| {
                let index = claim.item_index;
                fleet.state.items[index] = visible_state.items[index].clone();
                (claim, fleet.shared_item(index))
            }))
        })
    }
    fn renew_claim(&mut self, claim: Claim) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            rules::renew_claim_unless_expired_and_area_taken(&mut fleet.state, claim, now())
        })
    }
    fn report_item_result(&mut self, item_result: &ItemResult) -> Result<(), BoardError> {
        if self.rows.lock().unwrap().is_reporting_results_impossible {
            return Err(BoardError::Unreachable("away".to_owned()));
        }
        self.run_operation(|fleet| {
            let claim = Claim { item_index: item_result.item, epoch: item_result.epoch };
            let board = &mut fleet.state;
            match &item_result.outcome {
                ItemOutcome::Offered => {
                    rules::mark_claimed_item_ready_to_merge(board, claim, &item_result.start_commit_id)?;
                }
                ItemOutcome::Failed(reason) => {
                    rules::reopen_or_set_aside_after_failed_attempt(board, claim, reason)?;
                }
                ItemOutcome::WaitsForAnswer(question) => {
                    rules::set_claimed_item_aside(board, claim, SetAsideReason::Question(question.clone()))?;
                }
                ItemOutcome::Released => rules::reopen_claimed_item(board, claim)?,
                ItemOutcome::TakenByOther => return Ok(()),
            }
            fleet.start_and_base_commits[item_result.item] =
                (item_result.start_commit_id.clone(), item_result.base_commit_id.clone());
            Ok(())
        })
    }
    fn pause_all_workers(&mut self, duration: Duration) -> Result<(), BoardError> {
        let until = now() + u64::try_from(duration.as_millis()).unwrap();
        self.run_operation(|fleet| {
            rules::pause_claims_at_least_until(&mut fleet.state, until);
            Ok(())
        })
    }
    fn acquire_or_renew_merger_lease(&mut self) -> Result<Option<u64>, BoardError> {
        self.run_operation(|fleet| {
            Ok(rules::acquire_or_renew_merger_lease(&mut fleet.state, &self.member_name, now()))
        })
    }
    fn renew_merger_lease(&mut self, merger: u64) -> Result<(), BoardError> {
        self.run_operation(|fleet| rules::renew_current_merger_lease(&mut fleet.state, merger, now()))
    }
    fn release_merger_lease(&mut self, merger: u64) -> Result<(), BoardError> {
        self.run_operation(|fleet| rules::release_merger_lease(&mut fleet.state, merger))
    }
    fn record_merge_candidate_commit(
        &mut self,
        merger: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            rules::record_merge_candidate_commit(&mut fleet.state, merger, item, commit)
        })
    }
    fn restore_merge_candidate_commit(&mut self, item: usize, commit: &str) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            fleet.state.items[item].attempted_merge_commits.push(commit.to_owned());
            Ok(())
        })
    }
    fn reject_item(&mut self, rejected_item: &RejectedItem) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            rules::reopen_or_set_aside_rejected_item(
                &mut fleet.state,
                rejected_item.merger_epoch,
                rejected_item.item,
                &rejected_item.next_session_note,
            )?;
            fleet.start_and_base_commits[rejected_item.item] =
                (rejected_item.start_commit_id.clone(), rejected_item.base_commit_id.clone());
            Ok(())
        })
    }
    fn mark_items_in_target_as_merged(
        &mut self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
    ) -> Result<Vec<usize>, BoardError> {
        self.run_operation(|fleet| Ok(rules::mark_items_in_target_as_merged(&mut fleet.state, is_in_target)))
    }
    fn read_merge_commits_of_merged_items(
        &mut self,
        items: &[usize],
    ) -> Result<Vec<(usize, Vec<String>)>, BoardError> {
        self.run_operation(|fleet| {
            let board_items = &fleet.state.items;
            let is_merged = |item: &&usize| board_items[**item].stage == ItemStage::Merged;
            let merge_commits = |item: &usize| (*item, board_items[*item].attempted_merge_commits.clone());
            Ok(items.iter().filter(is_merged).map(merge_commits).collect())
        })
    }
    fn report_unconfirmed_merge(&mut self, item: usize) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            fleet.unconfirmed_merge_reports.push(item);
            Ok(())
        })
    }
    fn record_passed_commands(&mut self, commands: &[String]) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            fleet.passed_commands.extend(commands.iter().cloned());
            Ok(())
        })
    }
    fn record_report_and_reserve_budget(
        &mut self,
        _: &LocalWorkerReport,
        _: u32,
        _: f64,
    ) -> Result<Reservation, BoardError> {
        self.run_operation(|_| Ok(Reservation::Share { usd: Some(1.0), sessions: Some(3) }))
    }
    fn report_worker(&mut self, _: &LocalWorkerReport) -> Result<(), BoardError> {
        self.run_operation(|_| Ok(()))
    }
    fn end_fleet_if_all_merged(&mut self) -> Result<(), BoardError> {
        self.run_operation(|fleet| {
            fleet.end_report_count += 1;
            Ok(())
        })
    }
}

/// The work that a session has left.
struct LeftoverWork(usize);

impl UnfinishedWork for LeftoverWork {
    fn head_commit(&self) -> Option<String> {
        Some(commit_id(self.0))
    }
    fn commit_uncommitted_files(&self) -> Option<String> {
        Some(commit_id(self.0 + 1))
    }
}

const NEVER_GIVE_UP: &dyn Fn() -> bool = &|| false;

/// Returns the record of a machine with this board.
fn sample_workers_state(board_state: &BoardState, member_name: Option<&str>) -> WorkersState {
    let member_name = member_name.map(|name| FleetMember { name: name.to_owned(), ..FleetMember::default() });
    let item_progress = vec![ItemProgress::default(); board_state.items.len()];
    WorkersState {
        board: board_state.clone(),
        item_progress,
        start_commit_id: commit_id(1),
        fleet_member: member_name,
        ..WorkersState::default()
    }
}

fn local_board(folder: &Path, board_state: &BoardState) -> LocalBoard {
    let workers_file =
        WorkersFile::with_state(folder.join("local.json"), sample_workers_state(board_state, None));
    LocalBoard::new(workers_file, &Project::with_local_files(folder), folder.to_owned()).with_clock(now)
}

fn fleet_board(
    folder: &Path,
    name: &str,
    connection: &MemoryConnection,
    target: &RemoteTarget,
) -> FleetBoard {
    let workers_file = WorkersFile::with_state(
        folder.join(format!("{name}.json")),
        sample_workers_state(&connection.board_state(), Some(name)),
    );
    let (board_connection, heartbeat) =
        (Box::new(connection.of_member(name)), Box::new(connection.of_member(name)));
    FleetBoard::new(workers_file, board_connection, heartbeat, target.clone(), Duration::from_secs(1))
}

fn memory_connection(items: &[EstimatedItem]) -> MemoryConnection {
    let state = rules::create_board_with_done_items_merged(items);
    let start_and_base_commits = vec![(String::new(), String::new()); state.items.len()];
    let rows = FleetRows { state, start_and_base_commits, ..FleetRows::default() };
    MemoryConnection { rows: Arc::new(Mutex::new(rows)), member_name: "a".to_owned() }
}

fn plan_items(texts: &[&str]) -> Vec<EstimatedItem> {
    let item = |text: &&str| EstimatedItem {
        text: (*text).to_owned(),
        is_done: false,
        file_lines: None,
        model: None,
    };
    texts.iter().map(item).collect()
}

/// Runs a check on both boards of a plan with two items, one after the other. The fleet's machine reports its
/// results after each step.
fn with_both_boards(check: impl Fn(&dyn Board, &dyn Fn() -> BoardState, &str)) {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let plan_items = plan_items(&["one", "two"]);
    let board = local_board(folder.path(), &rules::create_board_with_done_items_merged(&plan_items));
    check(&board, &|| board.workers_file().workers_state().board, "local");
    let memory = memory_connection(&plan_items);
    let board = fleet_board(folder.path(), "a", &memory, &unreachable_remote_target(folder.path()));
    board.refresh_from_board().unwrap();
    let state = || {
        report_queued_results(&board);
        board.refresh_from_board().unwrap();
        memory.board_state()
    };
    check(&board, &state, "fleet");
}

/// Claims an item for each of these workers, as far as there are items.
fn claim_all(board: &dyn Board, workers: &[usize]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for worker in workers {
        let claim = board.claim_next_item(*worker, &claims, &|_| false).unwrap();
        claims.extend(claim);
    }
    claims
}

fn claim_one(board: &dyn Board) -> Claim {
    board.claim_next_item(1, &[], &|_| false).unwrap().expect("an item")
}

fn parse_commit(commit: &str) -> CommitId {
    CommitId::parse(commit).unwrap()
}

#[test]
fn each_worker_claims_its_own_item_until_none_is_left() {
    with_both_boards(|board, state, name| {
        assert!(board.can_claim_item(&[]), "{name}");
        let claims = claim_all(board, &[1, 2, 3]);
        assert_eq!(board.claims_to_recover(), claims, "{name}");
        assert_eq!(claims, [Claim { item_index: 0, epoch: 1 }, Claim { item_index: 1, epoch: 1 }], "{name}");
        assert!(!board.can_claim_item(&claims), "{name}");
        assert!(claims.iter().all(|claim| board.is_claim_valid(*claim)), "{name}");
        let workers: Vec<usize> = board
            .workers_file()
            .workers_state()
            .item_progress
            .iter()
            .map(|work| work.worker_number)
            .collect();
        assert_eq!(workers, [1, 2], "{name}");
        assert!(
            state().items.iter().all(|board_item| matches!(board_item.stage, ItemStage::Leased { .. })),
            "{name}"
        );
    });
}

#[test]
fn an_offered_item_is_merged_once_its_landing_commit_is_in_the_target() {
    with_both_boards(|board, state, name| {
        let claim = claim_one(board);
        board.mark_work_ready_to_merge(claim, &commit_id(7)).unwrap();
        assert_eq!(state().items[0].stage, ItemStage::ReadyToMerge { commit: commit_id(7) }, "{name}");
        assert_eq!(board.items_to_merge(false), [0], "{name}");
        let merger = board.acquire_merger_lease(NEVER_GIVE_UP).unwrap().expect("the only one");
        let landing_commit = parse_commit(&commit_id(8));
        board.record_merge_candidate_commits(merger, &[(0, &landing_commit)], NEVER_GIVE_UP).unwrap();
        assert_eq!(state().items[0].attempted_merge_commits, [commit_id(8)], "{name}");
        board.mark_items_in_target_as_merged(&|_, _| false, &[], NEVER_GIVE_UP).unwrap();
        assert_ne!(state().items[0].stage, ItemStage::Merged, "{name}");
        board
            .mark_items_in_target_as_merged(&|_, commit| commit == commit_id(8), &[], NEVER_GIVE_UP)
            .unwrap();
        assert_eq!(state().items[0].stage, ItemStage::Merged, "{name}");
        assert_eq!(
            board.workers_file().workers_state().board.items[0].stage,
            ItemStage::Merged,
            "{name}: the record"
        );
    });
}

#[test]
fn a_failing_item_continues_from_its_last_commit_and_is_then_set_aside() {
    with_both_boards(|board, state, name| {
        for attempt in 1..=rules::MAX_FAILED_ATTEMPTS {
            let claim = claim_one(board);
            assert_eq!((claim.item_index, claim.epoch), (0, u64::from(attempt)), "{name}");
            let is_set_aside = board.record_failed_attempt(claim, "stuck", Some(commit_id(9))).unwrap();
            assert_eq!(is_set_aside, attempt == rules::MAX_FAILED_ATTEMPTS, "{name}");
            let board_item = state().items[0].clone();
            assert_eq!(
                (board_item.failed_merge_count, board_item.next_session_note.as_str()),
                (attempt, "stuck"),
                "{name}"
            );
            assert_eq!(
                board.workers_file().workers_state().item_progress[0].start_commit_id,
                commit_id(9),
                "{name}"
            );
        }
        assert_eq!(
            state().items[0].stage,
            ItemStage::SetAside { reason: SetAsideReason::RunEnded("stuck".into()) },
            "{name}"
        );
    });
}

#[test]
fn a_parked_item_waits_and_continues_from_its_work() {
    with_both_boards(|board, state, name| {
        let claim = claim_one(board);
        board.park_item(claim, "Which port?", &LeftoverWork(3)).unwrap();
        let question = ItemStage::SetAside { reason: SetAsideReason::Question("Which port?".to_owned()) };
        assert_eq!(state().items[0].stage, question, "{name}");
        // The fleet commits the work, because another machine may continue it; on one machine that is not
        // necessary.
        let expected = if name == "fleet" { commit_id(4) } else { commit_id(3) };
        assert_eq!(board.workers_file().workers_state().item_progress[0].start_commit_id, expected, "{name}");
        assert_eq!(board.workers_file().workers_state().item_progress[0].pid, None, "{name}");
    });
}

#[test]
fn a_released_item_stays_local_or_returns_to_the_fleet() {
    with_both_boards(|board, state, name| {
        let claim = claim_one(board);
        board.release_claim(claim, &LeftoverWork(3)).unwrap();
        // The record shows it even before the board is told.
        assert_eq!(
            board.workers_file().workers_state().board.items[0].stage == ItemStage::Open,
            name == "fleet",
            "{name}"
        );
        let is_open = state().items[0].stage == ItemStage::Open;
        assert_eq!(is_open, name == "fleet", "{name}");
        assert_eq!(board.is_claim_valid(claim), name == "local", "{name}");
        assert_eq!(board.claims_to_recover().len(), usize::from(name == "local"), "{name}");
    });
}

#[test]
fn rejected_work_returns_with_its_note_until_the_tries_are_used_up() {
    with_both_boards(|board, state, name| {
        for attempt in 1..=rules::MAX_FAILED_ATTEMPTS {
            let claim = claim_one(board);
            board.mark_work_ready_to_merge(claim, &commit_id(7)).unwrap();
            state();
            let merger = board.acquire_merger_lease(NEVER_GIVE_UP).unwrap().expect("the only one");
            let (start, base_commit) = (commit_id(5), commit_id(6));
            let rejected_item = RejectedItem {
                merger_epoch: merger,
                item: 0,
                next_session_note: "red".to_owned(),
                start_commit_id: start,
                base_commit_id: base_commit,
            };
            let is_set_aside = board.reject_merge_candidate(&rejected_item, &[], NEVER_GIVE_UP).unwrap();
            assert_eq!(is_set_aside, attempt == rules::MAX_FAILED_ATTEMPTS, "{name}");
            assert_eq!(state().items[0].next_session_note, "red", "{name}");
            let item_progress = board.workers_file().workers_state().item_progress[0].clone();
            assert_eq!(
                (item_progress.start_commit_id, item_progress.base_commit_id),
                (commit_id(5), commit_id(6)),
                "{name}"
            );
        }
        assert_eq!(
            state().items[0].stage,
            ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges },
            "{name}"
        );
    });
}

#[test]
fn a_pause_stops_all_workers_and_an_earlier_end_changes_nothing() {
    with_both_boards(|board, state, name| {
        let until = if name == "local" { now() } else { local_now() } + 60_000;
        let pause =
            |until| board.pause_all_workers(&WorkersPause { ends_at: until, is_daily_limit: false }).unwrap();
        assert!(pause(until), "{name}");
        assert!(!pause(until - 1_000), "{name}");
        let left = state().paused_until - now();
        assert!((59_000..=60_000).contains(&left), "{name}: {left}");
        assert!(!board.can_claim_item(&[]), "{name}");
        // The daily limit of one machine's user pauses no other machine.
        assert!(
            board.pause_all_workers(&WorkersPause { ends_at: until + 60_000, is_daily_limit: true }).unwrap(),
            "{name}"
        );
        assert_eq!(state().paused_until - now() > 61_000, name == "local", "{name}");
        assert!(board.paused_until() >= until + 59_000, "{name}");
        assert!(board.workers_file().workers_state().waits_for_next_day, "{name}");
    });
}

#[test]
fn passed_commands_are_recorded_once() {
    with_both_boards(|board, state, name| {
        for commands in [["make"], ["make"]] {
            board.record_passed_commands(&commands.map(str::to_owned), NEVER_GIVE_UP).unwrap();
        }
        state();
        let passed = board.workers_file().workers_state().passed_verify_commands;
        assert!(passed.iter().all(|command| command == "make") && !passed.is_empty(), "{name}");
    });
}

/// Changes by a merger take effect only once the board has accepted them; results of items are kept until
/// then.
#[test]
fn during_an_outage_results_are_queued_and_no_landing_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let connection = memory_connection(&plan_items(&["one", "two"]));
    let board = fleet_board(folder.path(), "a", &connection, &unreachable_remote_target(folder.path()));
    board.refresh_from_board().unwrap();
    let [first_claim, second_claim] = claim_all(&board, &[1, 2])[..] else { panic!("two items") };
    board.mark_work_ready_to_merge(first_claim, &commit_id(7)).unwrap();
    report_queued_results(&board);
    let merger = board.acquire_merger_lease(NEVER_GIVE_UP).unwrap().expect("the only one");
    connection
        .update(|fleet| fleet.returned_error = Some(BoardError::Unreachable("nobody answers".to_owned())));
    let state_before = board.workers_file().workers_state();
    let (give_up, landing_commit): (&dyn Fn() -> bool, _) = (&|| true, parse_commit(&commit_id(8)));
    let rejected_item = RejectedItem {
        merger_epoch: merger,
        item: 0,
        next_session_note: "red".to_owned(),
        start_commit_id: String::new(),
        base_commit_id: String::new(),
    };
    assert!(board.record_merge_candidate_commits(merger, &[(0, &landing_commit)], give_up).is_err());
    assert!(
        board.mark_items_in_target_as_merged(&|_, _| true, &[(0, landing_commit.clone())], give_up).is_err()
    );
    assert!(board.reject_merge_candidate(&rejected_item, &[], give_up).is_err());
    assert!(board.record_passed_commands(&["make".to_owned()], give_up).is_err());
    assert_eq!(board.workers_file().workers_state(), state_before);
    board.mark_work_ready_to_merge(second_claim, &commit_id(9)).unwrap();
    let workers_state = board.workers_file().workers_state();
    assert_eq!(workers_state.board.items[1].stage, ItemStage::ReadyToMerge { commit: commit_id(9) });
    assert_eq!(workers_state.fleet_member.unwrap().outbox.len(), 1);
    assert!(board.should_wait_for_delivery(None, false) && !board.should_wait_for_delivery(None, true));
    connection.update(|fleet| fleet.returned_error = None);
    report_queued_results(&board);
    assert_eq!(connection.board_state().items[1].stage, ItemStage::ReadyToMerge { commit: commit_id(9) });
    assert!(!board.should_wait_for_delivery(None, false));
}

fn board_progress(board: &FleetBoard) -> BoardProgress {
    rules::classify_board_progress(&board.workers_file().workers_state().board, now())
}

/// Runs a check on the board of a fleet's machine whose plan has two items.
fn with_fleet_board(check: impl Fn(&FleetBoard, &MemoryConnection)) {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let connection = memory_connection(&plan_items(&["one", "two"]));
    let board = fleet_board(folder.path(), "a", &connection, &unreachable_remote_target(folder.path()));
    board.refresh_from_board().unwrap();
    check(&board, &connection);
}

#[test]
fn orders_of_the_fleet_close_the_run_of_a_machine() {
    let stopped = || ClosingReason::Stop(RunStatus::Canceled, "the fleet was stopped".to_owned());
    let spent = ClosingReason::Stop(RunStatus::Budget, "$2.00 of $2.00 spent by the whole fleet".to_owned());
    let used = ClosingReason::Stop(RunStatus::MaxIterations, "9 sessions used by the whole fleet".to_owned());
    let fault = ClosingReason::Pause(PauseKind::Fault, "no such plan".to_owned());
    type Change = fn(&mut FleetRows);
    let table: [(Change, Option<ClosingReason>, Option<ClosingReason>); 7] = [
        (|_| (), None, None),
        (|fleet| fleet.fleet_end = Some(FleetEnd::Stopped), None, Some(stopped())),
        // A stopped fleet ends at once, even if the run already closes for another reason.
        (
            |fleet| fleet.fleet_end = Some(FleetEnd::Stopped),
            Some(ClosingReason::Interrupted),
            Some(stopped()),
        ),
        (|fleet| fleet.exhausted_limit = Some(ExhaustedLimit::Money(2.0, 2.0)), None, Some(spent)),
        (|fleet| fleet.exhausted_limit = Some(ExhaustedLimit::Sessions(9)), None, Some(used)),
        (
            |fleet| fleet.exhausted_limit = Some(ExhaustedLimit::Sessions(9)),
            Some(ClosingReason::Interrupted),
            None,
        ),
        (
            |fleet| fleet.returned_error = Some(BoardError::Permanent("no such plan".to_owned())),
            None,
            Some(fault),
        ),
    ];
    for (number, (change, closing, expected)) in table.into_iter().enumerate() {
        with_fleet_board(|board, memory| {
            memory.update(change);
            let _ = board.refresh_from_board();
            assert_eq!(
                board.scheduler_orders(closing.as_ref()),
                SchedulerOrders { user_message: None, closing_reason: expected.clone() },
                "{number}"
            );
        });
    }
}

#[test]
fn a_draining_fleet_gives_out_no_items_and_closes_the_run() {
    with_fleet_board(|board, memory| {
        assert!(board.can_claim_item(&[]) && board.closing_reason_if_drained().is_none());
        memory.update(|fleet| fleet.is_draining = true);
        board.refresh_from_board().unwrap();
        let drained =
            ClosingReason::Stop(RunStatus::Completed, "the fleet drains: 0 of 2 items merged".to_owned());
        assert_eq!(board.closing_reason_if_drained(), Some(drained));
        assert!(!board.can_claim_item(&[]));
        memory.update(|fleet| {
            fleet.state.items.iter_mut().for_each(|board_item| board_item.stage = ItemStage::Merged);
        });
        board.refresh_from_board().unwrap();
        board.check_items_listed_as_merged(NEVER_GIVE_UP);
        assert_eq!(board_progress(board), BoardProgress::Done);
        assert_eq!(board.closing_reason_if_drained(), None, "it is done, and not drained");
    });
}

#[test]
fn a_claim_with_a_lost_response_is_recovered_with_its_epoch() {
    with_fleet_board(|board, memory| {
        let lost_claim = memory.of_member("a").claim_item(1, &[]).unwrap().unwrap().0;
        board.refresh_from_board().unwrap();
        assert_eq!(claim_one(board), lost_claim);
        assert_eq!(memory.board_state().items[lost_claim.item_index].epoch, lost_claim.epoch);
    });
}

#[test]
fn results_for_an_item_that_another_machine_has_claimed_are_rejected() {
    with_fleet_board(|board, memory| {
        let stale_claim = claim_one(board);
        NOW.set(now() + rules::LEASE_DURATION_MS);
        let newer_claim = memory.of_member("b").claim_item(1, &[]).unwrap().unwrap().0;
        assert_eq!(
            (newer_claim.item_index, newer_claim.epoch),
            (stale_claim.item_index, stale_claim.epoch + 1)
        );
        assert!(board.is_claim_valid(stale_claim), "it has not looked");
        board.refresh_from_board().unwrap();
        assert!(!board.is_claim_valid(stale_claim));
        let before = memory.board_state();
        board.keep_branch_of_lost_claim(stale_claim, &LeftoverWork(1)).unwrap();
        report_queued_results(board);
        board.mark_work_ready_to_merge(stale_claim, &commit_id(7)).unwrap();
        report_queued_results(board);
        assert_eq!(memory.board_state(), before);
        assert!(!board.should_wait_for_delivery(None, false), "a fenced result is forgotten");
    });
}

#[test]
fn only_one_machine_merges_and_another_takes_over_when_it_stops() {
    with_fleet_board(|board, memory| {
        let other_merger_epoch = memory.of_member("b").acquire_or_renew_merger_lease().unwrap().unwrap();
        board.refresh_from_board().unwrap();
        assert!(!board.try_begin_merge_round() && board.should_wait_for_merges(false));
        assert_eq!(board.acquire_merger_lease(NEVER_GIVE_UP).unwrap(), None);
        let landing_commit = parse_commit(&commit_id(8));
        assert!(
            board
                .record_merge_candidate_commits(
                    other_merger_epoch + 1,
                    &[(0, &landing_commit)],
                    NEVER_GIVE_UP
                )
                .is_err()
        );
        memory.clone().release_merger_lease(other_merger_epoch).unwrap();
        board.refresh_from_board().unwrap();
        assert!(board.try_begin_merge_round());
        assert!(!board.try_begin_merge_round(), "what is tried in vain is tried again after a moment");
        assert_eq!(board.acquire_merger_lease(NEVER_GIVE_UP).unwrap(), Some(other_merger_epoch + 1));
        board.leave_fleet(&[], &|| true);
        assert_eq!(memory.board_state().merger_lease.expires_at, 0, "it steps down");
    });
}

#[test]
fn a_claimed_item_has_its_start_commit_and_answered_question() {
    with_fleet_board(|board, memory| {
        let answered_question = ("Which port?".to_owned(), "8042".to_owned());
        memory.update(|fleet| {
            fleet.start_and_base_commits[0] = (commit_id(5), commit_id(6));
            fleet.answered_question = Some(answered_question.clone());
        });
        assert_eq!(claim_one(board).item_index, 0);
        let item_progress = board.workers_file().workers_state().item_progress[0].clone();
        assert_eq!(
            (item_progress.start_commit_id, item_progress.base_commit_id, item_progress.answered_question),
            (commit_id(5), commit_id(6), Some(answered_question))
        );
    });
}

/// An expired lease is not renewed if another machine has begun an item in the same area.
#[test]
fn a_claim_that_cannot_be_renewed_is_neither_held_nor_recovered() {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let connection = memory_connection(&plan_items(&["one (area: src)", "two (area: src)"]));
    let board = fleet_board(folder.path(), "a", &connection, &unreachable_remote_target(folder.path()));
    board.refresh_from_board().unwrap();
    let stale_claim = claim_one(&board);
    NOW.set(now() + rules::LEASE_DURATION_MS);
    connection.update(|fleet| {
        let lease = Lease { holder: "b/1".to_owned(), expires_at: now() + rules::LEASE_DURATION_MS };
        fleet.state.items[1].stage = ItemStage::Leased { lease };
    });
    board.refresh_from_board().unwrap();
    assert!(board.is_claim_valid(stale_claim) && board.can_claim_item(&[]), "it has not been told");
    board.set_leases_to_renew(vec![stale_claim], false, &Vec::new);
    renew_leases(&board);
    assert!(!board.is_claim_valid(stale_claim) && !board.can_claim_item(&[]));
}

#[test]
fn the_merger_lease_is_renewed_only_while_merging() {
    with_fleet_board(|board, memory| {
        board.acquire_merger_lease(NEVER_GIVE_UP).unwrap().expect("the only one");
        let mut renewed = |is_merging| {
            NOW.set(now() + 1_000);
            board.set_leases_to_renew(Vec::new(), is_merging, &Vec::new);
            renew_leases(board);
            memory.board_state().merger_lease.expires_at == now() + rules::LEASE_DURATION_MS
        };
        assert_eq!([true, false, true].map(&mut renewed), [true, false, false]);
    });
}

#[test]
fn an_older_snapshot_does_not_undo_a_change_of_the_record() {
    with_fleet_board(|board, _| {
        let workers_file = board.workers_file();
        let before = workers_file.change_count();
        workers_file.update_in_memory_if_unchanged(before, |workers| workers.plan_path = "seen".to_owned());
        assert_eq!(workers_file.workers_state().plan_path, "seen");
        workers_file.update_and_write_file(|workers| workers.plan_path = "changed".to_owned()).unwrap();
        workers_file.update_in_memory_if_unchanged(before, |workers| workers.plan_path = "seen".to_owned());
        assert_eq!(workers_file.workers_state().plan_path, "changed");
    });
}

#[test]
fn a_local_item_begins_at_the_target_end_or_at_its_last_attempt() {
    let folder = tempfile::tempdir().unwrap();
    NOW.set(1_000);
    let tip = repository_with_branch(folder.path(), "work");
    let board =
        local_board(folder.path(), &rules::create_board_with_done_items_merged(&plan_items(&["one"])));
    board
        .workers_file()
        .update_and_write_file(|workers| workers.target_branch_name = "work".to_owned())
        .unwrap();
    let first_claim = claim_one(&board);
    let start_and_base = || {
        let item_progress = board.workers_file().workers_state().item_progress[0].clone();
        (item_progress.start_commit_id, item_progress.base_commit_id)
    };
    assert_eq!(start_and_base(), (tip.clone(), tip.clone()));
    board.record_failed_attempt(first_claim, "stuck", Some(commit_id(9))).unwrap();
    assert_eq!(claim_one(&board).item_index, 0);
    assert_eq!(start_and_base(), (commit_id(9), tip));
}

#[test]
fn a_landing_lost_by_the_board_is_found_in_the_target() {
    with_fleet_board(|board, memory| {
        let is_in_target = |_: usize, commit: &str| commit == commit_id(8);
        board
            .mark_items_in_target_as_merged(&is_in_target, &[(1, parse_commit(&commit_id(8)))], NEVER_GIVE_UP)
            .unwrap();
        assert_eq!(memory.board_state().items[1].stage, ItemStage::Merged);
        assert_eq!(board.workers_file().workers_state().board.items[1].stage, ItemStage::Merged);
        // The remote cannot be reached, so nothing but the merger's own check confirms the item.
        board.refresh_from_board().unwrap();
        assert_eq!(board.workers_file().workers_state().board.items[1].stage, ItemStage::Merged);
    });
}

#[test]
fn a_fleet_limits_the_budget_of_an_item_to_its_share() {
    with_fleet_board(|board, memory| {
        let local_budget = ItemBudget::Enough { cost_usd: Some(5.0), tokens: Some(7), sessions: 10 };
        let share_budget = ItemBudget::Enough { cost_usd: Some(1.0), tokens: Some(7), sessions: 3 };
        assert_eq!(board.reserve_item_budget(1, 0, local_budget.clone()), share_budget);
        let exhausted_budget = ItemBudget::WaitForNextDay("spent".to_owned());
        assert_eq!(board.reserve_item_budget(1, 0, exhausted_budget.clone()), exhausted_budget);
        memory.update(|fleet| {
            fleet.returned_error = Some(BoardError::Unreachable("nobody answers".to_owned()));
        });
        assert_eq!(board.reserve_item_budget(1, 0, local_budget), ItemBudget::WaitForOthers);
    });
}

/// The board of one machine, for the tests of the rules.
struct LocalBoardUnderTest {
    board: LocalBoard,
    _folder: tempfile::TempDir,
}

/// A fleet in which each worker is a machine of its own. The last machine finishes what the others leave.
struct FleetUnderTest {
    connection: MemoryConnection,
    boards: Vec<FleetBoard>,
    /// The machine that made each claim, and the machine that became the merger with each epoch.
    claims_by_machine: Vec<(Claim, usize)>,
    mergers_by_machine: Vec<(u64, usize)>,
    /// The commits of the target as they were last given to a merger.
    target_commits: Vec<String>,
    _folder: tempfile::TempDir,
}

/// Returns an error if the claim's epoch is stale or the item is not leased.
fn check_claim(board_state: &BoardState, claim: Claim) -> Result<(), StaleEpoch> {
    let board_item = &board_state.items[claim.item_index];
    let is_current_claim =
        board_item.epoch == claim.epoch && matches!(board_item.stage, ItemStage::Leased { .. });
    if is_current_claim { Ok(()) } else { Err(StaleEpoch) }
}

fn question_text(reason: &SetAsideReason) -> &str {
    let SetAsideReason::Question(question) = reason else { panic!("a run sets aside what it asks about") };
    question
}

/// Returns the number at the end of a worker's or merger's name.
fn number_at_end(name: &str) -> Option<usize> {
    name.rsplit(' ').next()?.parse().ok()
}

fn rejected_item(merger: u64, item: usize, note: &str) -> RejectedItem {
    RejectedItem {
        merger_epoch: merger,
        item,
        next_session_note: note.to_owned(),
        start_commit_id: String::new(),
        base_commit_id: String::new(),
    }
}

impl BoardUnderTest for LocalBoardUnderTest {
    fn claim(&mut self, worker: &str, at: BoardMillis) -> Option<Claim> {
        NOW.set(at);
        self.board
            .claim_next_item(number_at_end(worker).map_or(9, |number| number + 1), &[], &|_| false)
            .unwrap()
    }
    /// Renews the lease directly, as the next claim would.
    fn renew(&mut self, claim: Claim, at: BoardMillis) -> Result<(), StaleEpoch> {
        self.board
            .workers_file()
            .update_and_write_file(|workers| {
                rules::renew_claim_unless_expired_and_area_taken(&mut workers.board, claim, at)
            })
            .unwrap()
    }
    fn offer_commit(&mut self, claim: Claim, commit: &str) -> Result<(), StaleEpoch> {
        let result = check_claim(&self.board(), claim);
        self.board.mark_work_ready_to_merge(claim, commit).unwrap();
        result
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), StaleEpoch> {
        let result = check_claim(&self.board(), claim);
        self.board.release_claim(claim, &LeftoverWork(1)).unwrap();
        result
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), StaleEpoch> {
        let result = check_claim(&self.board(), claim);
        self.board.record_failed_attempt(claim, reason, None).unwrap();
        result
    }
    fn set_aside(&mut self, claim: Claim, reason: SetAsideReason) -> Result<(), StaleEpoch> {
        let result = check_claim(&self.board(), claim);
        self.board.park_item(claim, question_text(&reason), &LeftoverWork(1)).unwrap();
        result
    }
    fn become_merger(&mut self, _: &str, at: BoardMillis) -> Option<u64> {
        NOW.set(at);
        self.board.acquire_merger_lease(NEVER_GIVE_UP).unwrap()
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        let is_in_target =
            |_: usize, commit: &str| target.iter().any(|target_commit| target_commit == commit);
        self.board.mark_items_in_target_as_merged(&is_in_target, &[], NEVER_GIVE_UP).unwrap();
        Vec::new()
    }
    fn land(&mut self, merger_epoch: u64, item: usize, commit: &str) -> Result<(), StaleEpoch> {
        self.board
            .record_merge_candidate_commits(merger_epoch, &[(item, &parse_commit(commit))], NEVER_GIVE_UP)
            .unwrap();
        let is_recorded = self.board().items[item]
            .attempted_merge_commits
            .iter()
            .any(|recorded_commit| recorded_commit == commit);
        if is_recorded { Ok(()) } else { Err(StaleEpoch) }
    }
    fn refuse(&mut self, merger_epoch: u64, item: usize, note: &str) -> Result<(), StaleEpoch> {
        let tries_before = self.board().items[item].failed_merge_count;
        self.board
            .reject_merge_candidate(&rejected_item(merger_epoch, item, note), &[], NEVER_GIVE_UP)
            .unwrap();
        if self.board().items[item].failed_merge_count > tries_before { Ok(()) } else { Err(StaleEpoch) }
    }
    fn pause(&mut self, _: BoardMillis, until: BoardMillis) {
        self.board.pause_all_workers(&WorkersPause { ends_at: until, is_daily_limit: false }).unwrap();
    }
    fn reopen(&mut self, item: usize) -> bool {
        self.board
            .workers_file()
            .update_and_write_file(|workers| {
                rules::reopen_set_aside_item_and_reset_failures(&mut workers.board, item)
            })
            .unwrap()
    }
    fn board(&mut self) -> BoardState {
        self.board.workers_file().workers_state().board
    }
}

impl FleetUnderTest {
    fn new(folder: tempfile::TempDir, target: &RemoteTarget, items: &[EstimatedItem]) -> FleetUnderTest {
        NOW.set(0);
        let memory = memory_connection(items);
        let machines = ["a", "b", "c", "d"].map(|name| fleet_board(folder.path(), name, &memory, target));
        let (claims, mergers) = (Vec::new(), Vec::new());
        let mut fleet = FleetUnderTest {
            connection: memory,
            boards: machines.into(),
            claims_by_machine: claims,
            mergers_by_machine: mergers,
            target_commits: Vec::new(),
            _folder: folder,
        };
        fleet.synchronize();
        fleet
    }

    /// Reports all results to the board, refreshes every machine from the board, and lets it check the merged items.
    fn synchronize(&mut self) {
        self.boards.iter().for_each(report_queued_results);
        for machine in &self.boards {
            machine.refresh_from_board().unwrap();
            check_merged_items_against(machine, &self.target_commits);
        }
    }

    fn board_of_claim(&self, claim: Claim) -> &FleetBoard {
        let (_, machine_index) =
            self.claims_by_machine.iter().rev().find(|(candidate, _)| *candidate == claim).expect("a claim");
        &self.boards[*machine_index]
    }

    fn act_and_check_claim(
        &mut self,
        claim: Claim,
        operation: impl FnOnce(&FleetBoard),
    ) -> Result<(), StaleEpoch> {
        let result = check_claim(&self.connection.board_state(), claim);
        operation(self.board_of_claim(claim));
        self.synchronize();
        result
    }

    fn board_of_merger(&self, epoch: u64) -> &FleetBoard {
        let (_, machine_index) = self
            .mergers_by_machine
            .iter()
            .rev()
            .find(|(candidate, _)| *candidate == epoch)
            .expect("a merger");
        &self.boards[*machine_index]
    }
}

/// Converts the result of a merger's operation.
fn merge_result<T>(result: Result<T, MergeError>) -> Result<T, StaleEpoch> {
    result.map_err(|error| match error {
        MergeError::Board(BoardError::StaleEpoch) => StaleEpoch,
        error => panic!("{error}"),
    })
}

impl BoardUnderTest for FleetUnderTest {
    fn claim(&mut self, worker: &str, at: BoardMillis) -> Option<Claim> {
        NOW.set(at);
        self.synchronize();
        let machine_index = number_at_end(worker).unwrap_or(3);
        let claim = self.boards[machine_index].claim_next_item(1, &[], &|_| false).unwrap();
        self.claims_by_machine.extend(claim.map(|claim| (claim, machine_index)));
        claim
    }
    fn renew(&mut self, claim: Claim, at: BoardMillis) -> Result<(), StaleEpoch> {
        NOW.set(at);
        let board_item =
            |fleet: &FleetUnderTest| fleet.connection.board_state().items[claim.item_index].clone();
        let (board_item_before, machine) = (board_item(self), self.board_of_claim(claim));
        machine.set_leases_to_renew(vec![claim], true, &Vec::new);
        renew_leases(machine);
        let is_renewed = board_item(self) != board_item_before || machine.is_claim_valid(claim);
        self.synchronize();
        if is_renewed { Ok(()) } else { Err(StaleEpoch) }
    }
    fn offer_commit(&mut self, claim: Claim, commit: &str) -> Result<(), StaleEpoch> {
        self.act_and_check_claim(claim, |machine| machine.mark_work_ready_to_merge(claim, commit).unwrap())
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), StaleEpoch> {
        self.act_and_check_claim(claim, |machine| machine.release_claim(claim, &LeftoverWork(1)).unwrap())
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), StaleEpoch> {
        self.act_and_check_claim(claim, |machine| {
            _ = machine.record_failed_attempt(claim, reason, None).unwrap();
        })
    }
    fn set_aside(&mut self, claim: Claim, reason: SetAsideReason) -> Result<(), StaleEpoch> {
        self.act_and_check_claim(claim, |machine| {
            machine.park_item(claim, question_text(&reason), &LeftoverWork(1)).unwrap();
        })
    }
    fn become_merger(&mut self, merger_name: &str, at: BoardMillis) -> Option<u64> {
        NOW.set(at);
        let machine_index = number_at_end(merger_name).unwrap_or_default().min(2);
        let merger = self.boards[machine_index].acquire_merger_lease(NEVER_GIVE_UP).unwrap();
        self.mergers_by_machine.extend(merger.map(|epoch| (epoch, machine_index)));
        merger
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        let is_in_target =
            |_: usize, commit: &str| target.iter().any(|target_commit| target_commit == commit);
        self.target_commits = target.to_vec();
        self.boards[0].mark_items_in_target_as_merged(&is_in_target, &[], NEVER_GIVE_UP).unwrap();
        self.synchronize();
        Vec::new()
    }
    fn land(&mut self, merger_epoch: u64, item: usize, commit: &str) -> Result<(), StaleEpoch> {
        merge_result(self.board_of_merger(merger_epoch).record_merge_candidate_commits(
            merger_epoch,
            &[(item, &parse_commit(commit))],
            NEVER_GIVE_UP,
        ))
    }
    fn refuse(&mut self, merger_epoch: u64, item: usize, note: &str) -> Result<(), StaleEpoch> {
        let result = merge_result(self.board_of_merger(merger_epoch).reject_merge_candidate(
            &rejected_item(merger_epoch, item, note),
            &[],
            NEVER_GIVE_UP,
        ));
        self.synchronize();
        result.map(drop)
    }
    fn pause(&mut self, at: BoardMillis, until: BoardMillis) {
        let until = local_now() + (until - at);
        self.boards[0].pause_all_workers(&WorkersPause { ends_at: until, is_daily_limit: false }).unwrap();
    }
    fn reopen(&mut self, item: usize) -> bool {
        self.connection
            .run_operation(|fleet| {
                Ok(rules::reopen_set_aside_item_and_reset_failures(&mut fleet.state, item))
            })
            .unwrap()
    }
    /// Asserts that every machine's copy matches the board, and returns the board.
    fn board(&mut self) -> BoardState {
        self.synchronize();
        let state = self.connection.board_state();
        for machine in &self.boards {
            let cached_board = machine.workers_file().workers_state().board;
            for (board_item, cached_item) in state.items.iter().zip(&cached_board.items) {
                assert_eq!(cached_item.stage, board_item.stage, "{}", board_item.text);
                assert!(
                    board_item.stage == ItemStage::Merged
                        || (cached_item.epoch, cached_item.failed_merge_count)
                            == (board_item.epoch, board_item.failed_merge_count)
                );
            }
        }
        state
    }
}

#[test]
fn the_rules_hold_on_both_boards_in_random_orders() {
    let new_local_board = |items: &[EstimatedItem]| {
        let folder = tempfile::tempdir().unwrap();
        NOW.set(0);
        LocalBoardUnderTest {
            board: local_board(folder.path(), &rules::create_board_with_done_items_merged(items)),
            _folder: folder,
        }
    };
    let (merged_count, set_aside_count) = interleavings::run_simulations(12, 100, new_local_board);
    assert!(
        merged_count > 12 && set_aside_count > 0,
        "the runs show nothing: {merged_count} merged, {set_aside_count} aside"
    );
    let remote = tempfile::tempdir().unwrap();
    let target = unreachable_remote_target(remote.path());
    let (merged_count, set_aside_count) = interleavings::run_simulations(8, 100, |items| {
        FleetUnderTest::new(tempfile::tempdir().unwrap(), &target, items)
    });
    assert!(
        merged_count > 12 && set_aside_count > 0,
        "the runs show nothing: {merged_count} merged, {set_aside_count} aside"
    );
}
