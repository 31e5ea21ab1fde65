//! Tests the rules against a simple model: workers and mergers that die, freeze and return too late, in random order.
//!
//! All boards share this suite. Here it tests the rules themselves; the tests of `plimsoll-flows` include this file for both boards
//! of a scheduler, those of `plimsoll-fleet` for the rows in PostgreSQL.

use plimsoll_domain::board::{BoardItem, BoardMillis, BoardState, ItemStage, SetAsideReason};
use plimsoll_domain::item_area::areas_overlap;
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::*;

/// A board under test, wherever it is stored. `now` is the time of the board's only clock.
pub(crate) trait BoardUnderTest {
    fn claim(&mut self, worker: &str, now: BoardMillis) -> Option<Claim>;
    fn renew(&mut self, claim: Claim, now: BoardMillis) -> Result<(), StaleEpoch>;
    fn offer_commit(&mut self, claim: Claim, commit: &str) -> Result<(), StaleEpoch>;
    fn give_back(&mut self, claim: Claim) -> Result<(), StaleEpoch>;
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), StaleEpoch>;
    fn set_aside(&mut self, claim: Claim, reason: SetAsideReason) -> Result<(), StaleEpoch>;
    fn become_merger(&mut self, name: &str, now: BoardMillis) -> Option<u64>;
    fn settle(&mut self, target: &[String]) -> Vec<usize>;
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), StaleEpoch>;
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), StaleEpoch>;
    fn pause(&mut self, now: BoardMillis, until: BoardMillis);
    fn reopen(&mut self, item: usize) -> bool;
    /// Returns a copy of the current state.
    fn board(&mut self) -> BoardState;
}

impl BoardUnderTest for BoardState {
    fn claim(&mut self, worker: &str, now: BoardMillis) -> Option<Claim> {
        claim_next_item(self, worker, now)
    }
    fn renew(&mut self, claim: Claim, now: BoardMillis) -> Result<(), StaleEpoch> {
        renew_claim_unless_expired_and_area_taken(self, claim, now)
    }
    fn offer_commit(&mut self, claim: Claim, commit: &str) -> Result<(), StaleEpoch> {
        mark_claimed_item_ready_to_merge(self, claim, commit)
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), StaleEpoch> {
        reopen_claimed_item(self, claim)
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), StaleEpoch> {
        reopen_or_set_aside_after_failed_attempt(self, claim, reason)
    }
    fn set_aside(&mut self, claim: Claim, reason: SetAsideReason) -> Result<(), StaleEpoch> {
        set_claimed_item_aside(self, claim, reason)
    }
    fn become_merger(&mut self, name: &str, now: BoardMillis) -> Option<u64> {
        acquire_or_renew_merger_lease(self, name, now)
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        mark_items_in_target_as_merged(self, |_, commit| target.iter().any(|known| known == commit))
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), StaleEpoch> {
        record_merge_candidate_commit(self, merger, item, commit)
    }
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), StaleEpoch> {
        reopen_or_set_aside_rejected_item(self, merger, item, note)
    }
    fn pause(&mut self, _now: BoardMillis, until: BoardMillis) {
        pause_claims_at_least_until(self, until);
    }
    fn reopen(&mut self, item: usize) -> bool {
        reopen_set_aside_item_and_reset_failures(self, item)
    }
    fn board(&mut self) -> BoardState {
        self.clone()
    }
}

/// Returns the id of the last commit of an attempt's branch, as long as a git commit id.
fn branch_head(claim: Claim) -> String {
    format!("b{:07x}{:032x}", claim.item_index, claim.epoch)
}

/// A random number generator with a seed, so that runs are reproducible.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn number_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.number_below(many) == 0
    }
}

/// The next step of a merger. It may be suspended for any time between two steps.
#[derive(Clone, Debug, Default)]
enum MergerStep {
    #[default]
    Idle,
    /// It has the lease, has read the length of the target, and has marked the items merged that were in the target by then.
    Settled { epoch: u64, target_len: usize },
    /// It has recorded the commits that it is about to push onto the target of that length.
    Recorded { target_len: usize, commits: Vec<String> },
}

pub(crate) struct Simulation<K> {
    random: RandomNumbers,
    tested_board: K,
    /// The state after the last step.
    last_board: BoardState,
    now: BoardMillis,
    /// The commits of the target branch.
    target: Vec<String>,
    workers: Vec<Option<Claim>>,
    /// Claims of workers that were presumed dead. They may still act later.
    late_claims: Vec<Claim>,
    mergers: Vec<MergerStep>,
    commit_count: usize,
}

/// Returns a random plan whose items need earlier ones and touch the same areas.
fn random_plan_items(random: &mut RandomNumbers) -> Vec<EstimatedItem> {
    let count = 4 + random.number_below(8);
    let item = |index: usize| {
        let needs = (1..=index).filter(|_| random.one_in(4)).map(|need| format!("after: {need}"));
        let needs: Vec<String> = needs.collect();
        let areas = ["src", "src/a", "docs"].iter().filter(|_| random.one_in(4));
        let areas = areas.map(|area| format!("area: {area}"));
        let properties: Vec<String> = needs.into_iter().chain(areas).collect();
        let text = format!("item {index} ({})", properties.join(", "));
        EstimatedItem { is_done: false, text, file_lines: None, model: None }
    };
    (0..count).map(item).collect()
}

impl<K: BoardUnderTest> Simulation<K> {
    pub(crate) fn new(seed: u64, create_board: impl FnOnce(&[EstimatedItem]) -> K) -> Simulation<K> {
        let mut random = RandomNumbers(seed);
        let mut tested_board = create_board(&random_plan_items(&mut random));
        Simulation {
            last_board: tested_board.board(),
            random,
            tested_board,
            now: 0,
            target: vec!["first".to_owned()],
            workers: vec![None; 3],
            late_claims: Vec::new(),
            mergers: vec![MergerStep::default(); 2],
            commit_count: 0,
        }
    }

    fn new_commit_id(&mut self, item: usize) -> String {
        self.commit_count += 1;
        // The id has the length of a git commit id, because a database accepts nothing else.
        format!("{item:08x}{:032x}", self.commit_count)
    }

    /// Performs one random action and checks all invariants. `words` is the context for error messages.
    pub(crate) fn step_and_check(&mut self, context: &str) {
        let before = self.last_board.clone();
        self.act_at_random();
        self.last_board = self.tested_board.board();
        self.check_invariants(&before, context);
    }

    fn act_at_random(&mut self) {
        match self.random.number_below(12) {
            0..4 => self.step_worker(),
            4 => self.step_late_worker(),
            5..9 => self.step_merger(),
            9 => self.now += self.random.number_below(LEASE_DURATION_MS as usize) as BoardMillis,
            10 if self.random.one_in(6) => self.target.push("the user's".to_owned()),
            10 if self.random.one_in(6) => self.tested_board.pause(self.now, self.now + LEASE_DURATION_MS),
            _ if self.random.one_in(4) => {
                let item = self.random.number_below(self.last_board.items.len());
                self.tested_board.reopen(item);
            }
            _ => {}
        }
    }

    fn step_worker(&mut self) {
        let worker = self.random.number_below(self.workers.len());
        let Some(claim) = self.workers[worker] else {
            self.workers[worker] = self.tested_board.claim(&format!("worker {worker}"), self.now);
            return;
        };
        let has_failed = self.random.one_in(3);
        let board = &mut self.tested_board;
        let result = match self.random.number_below(10) {
            0..4 => board.renew(claim, self.now),
            4..7 => {
                let branch = branch_head(claim);
                self.workers[worker] = None;
                board.offer_commit(claim, &branch)
            }
            7 => {
                self.workers[worker] = None;
                if has_failed { board.fail(claim, "stuck") } else { board.give_back(claim) }
            }
            8 => {
                self.workers[worker] = None;
                board.set_aside(claim, SetAsideReason::Question("which?".to_owned()))
            }
            // The worker is presumed dead, or it freezes and may return later.
            _ => {
                self.late_claims.push(claim);
                self.workers[worker] = None;
                Ok(())
            }
        };
        if result.is_err() {
            self.workers[worker] = None;
        }
    }

    /// Lets a worker return late. Its action succeeds only if nobody else has claimed the item.
    fn step_late_worker(&mut self) {
        if self.late_claims.is_empty() {
            return;
        }
        let late_claim = self.late_claims[self.random.number_below(self.late_claims.len())];
        let row = self.last_board.items[late_claim.item_index].clone();
        let is_still_leased = row.epoch == late_claim.epoch && matches!(row.stage, ItemStage::Leased { .. });
        let action = self.random.number_below(3);
        let result = match action {
            0 => self.tested_board.renew(late_claim, self.now),
            1 => self.tested_board.offer_commit(late_claim, &branch_head(late_claim)),
            _ => self.tested_board.give_back(late_claim),
        };
        // A renewal may fail even if the item is still leased to it: another item in the same area may have begun.
        assert!(is_still_leased || result.is_err(), "{late_claim:?} {row:?}");
        assert!(!is_still_leased || result.is_ok() || action == 0, "{late_claim:?} {row:?}");
        if result.is_err() {
            assert_eq!(self.tested_board.board().items[late_claim.item_index], row);
        }
    }

    fn step_merger(&mut self) {
        let merger = self.random.number_below(self.mergers.len());
        if self.random.one_in(12) {
            self.mergers[merger] = MergerStep::Idle;
        }
        self.mergers[merger] = match std::mem::take(&mut self.mergers[merger]) {
            MergerStep::Idle => self.settle_as_merger(merger),
            MergerStep::Settled { epoch, target_len } => self.record_landings(epoch, target_len),
            MergerStep::Recorded { target_len, commits } => {
                // Like `git push --force-with-lease`: only if the target is still as the merger last saw it.
                if self.target.len() == target_len {
                    self.target.extend(commits);
                }
                MergerStep::Idle
            }
        };
    }

    fn settle_as_merger(&mut self, merger: usize) -> MergerStep {
        let Some(epoch) = self.tested_board.become_merger(&format!("merger {merger}"), self.now) else {
            return MergerStep::Idle;
        };
        self.tested_board.settle(&self.target);
        MergerStep::Settled { epoch, target_len: self.target.len() }
    }

    fn record_landings(&mut self, epoch: u64, target_len: usize) -> MergerStep {
        let mut commits = Vec::new();
        for item in ready_to_merge_items(&self.tested_board.board()) {
            match self.random.number_below(8) {
                0 => drop(self.tested_board.refuse(epoch, item, "conflict")),
                _ => {
                    let commit = self.new_commit_id(item);
                    if self.tested_board.land(epoch, item, &commit).is_ok() {
                        commits.push(commit);
                    }
                }
            }
        }
        if commits.is_empty() { MergerStep::Idle } else { MergerStep::Recorded { target_len, commits } }
    }

    fn landed_positions(&self, item: usize) -> Vec<usize> {
        let prefix = format!("{item:08x}");
        (0..self.target.len()).filter(|index| self.target[*index].starts_with(&prefix)).collect()
    }

    fn check_invariants(&self, previous_board: &BoardState, context: &str) {
        for (item, row) in self.last_board.items.iter().enumerate() {
            let landed = self.landed_positions(item);
            assert!(landed.len() <= 1, "{context}: item {item} has landed {landed:?}");
            let was_merged = previous_board.items[item].stage == ItemStage::Merged;
            assert!(
                !was_merged || row.stage == ItemStage::Merged,
                "{context}: item {item} is no longer merged"
            );
            if row.stage == ItemStage::Merged {
                assert!(landed.len() == 1, "{context}: item {item} is merged and lost");
            }
            for place in landed {
                assert!(
                    row.attempted_merge_commits.contains(&self.target[place]),
                    "{context}: nobody can know of item {item}"
                );
                for need in &row.dependency_indices {
                    let is_before = self.landed_positions(*need).first().is_some_and(|other| *other < place);
                    assert!(is_before, "{context}: item {item} before {need}");
                }
            }
        }
        let is_leased =
            |row: &&BoardItem| matches!(&row.stage, ItemStage::Leased { lease } if lease.is_active(self.now));
        let leased_items: Vec<&BoardItem> = self.last_board.items.iter().filter(is_leased).collect();
        for (index, row) in leased_items.iter().enumerate() {
            let others = leased_items[index + 1..]
                .iter()
                .filter(|other| areas_overlap(&row.stated_areas, &other.stated_areas));
            assert_eq!(others.count(), 0, "{context}: two at work in one place");
        }
    }

    /// Completes the plan without further failures. Returns how many items are merged and how many set aside.
    pub(crate) fn finish_and_check(&mut self, context: &str) -> (usize, usize) {
        let previous_board = self.last_board.clone();
        self.run_to_completion();
        self.last_board = self.tested_board.board();
        self.check_invariants(&previous_board, context);
        let (mut merged, mut aside) = (0, 0);
        for (item, row) in self.last_board.items.iter().enumerate() {
            match &row.stage {
                ItemStage::Merged => merged += 1,
                ItemStage::SetAside { .. } => aside += 1,
                ItemStage::Open => {
                    let waits = |need: &usize| self.last_board.items[*need].stage != ItemStage::Merged;
                    assert!(row.dependency_indices.iter().any(waits), "{context}: item {item} is left");
                }
                ItemStage::Leased { .. } | ItemStage::ReadyToMerge { .. } => {
                    panic!("{context}: item {item} is left")
                }
            }
        }
        (merged, aside)
    }

    fn run_to_completion(&mut self) {
        for _ in 0..10_000 {
            self.now += 2 * LEASE_DURATION_MS;
            match classify_board_progress(&self.tested_board.board(), self.now) {
                BoardProgress::Done | BoardProgress::Blocked => return,
                BoardProgress::ItemAvailable => {
                    let claim = self.tested_board.claim("last", self.now).expect("it is free");
                    self.tested_board.offer_commit(claim, &branch_head(claim)).expect("nobody else is there");
                }
                BoardProgress::InProgress => {
                    let MergerStep::Settled { epoch, .. } = self.settle_as_merger(9) else { continue };
                    for item in ready_to_merge_items(&self.tested_board.board()) {
                        let commit = self.new_commit_id(item);
                        self.tested_board.land(epoch, item, &commit).expect("the only merger");
                        self.target.push(commit);
                    }
                    self.settle_as_merger(9);
                }
            }
        }
        panic!("it does not end: {:#?}", self.tested_board.board());
    }
}

/// Simulates `steps` steps for each of `plans` random plans. Returns how many items were merged and how many set aside in total.
pub(crate) fn run_simulations<K: BoardUnderTest>(
    plan_count: u64,
    step_count: u32,
    mut create_board: impl FnMut(&[EstimatedItem]) -> K,
) -> (usize, usize) {
    let (mut merged, mut aside) = (0, 0);
    for seed in 0..plan_count {
        let mut world = Simulation::new(seed, &mut create_board);
        for step in 0..step_count {
            world.step_and_check(&format!("seed {seed}, step {step}"));
        }
        let counts = world.finish_and_check(&format!("seed {seed}, at the end"));
        (merged, aside) = (merged + counts.0, aside + counts.1);
    }
    (merged, aside)
}

#[test]
fn in_any_order_of_steps_each_item_lands_once_or_is_set_aside() {
    // A hundred thousand steps in total.
    let (merged, aside) = run_simulations(200, 500, create_board_with_done_items_merged);
    assert!(merged > 500 && aside > 50, "the runs show nothing: {merged} merged, {aside} aside");
}

/// The model detects a landing that was not recorded, and one that was not settled before the next.
#[test]
fn the_model_detects_a_broken_rule() {
    for broken in [0, 1] {
        let mut world = Simulation::new(1, create_board_with_done_items_merged);
        let claim = world.tested_board.claim("w", 0).expect("an item");
        let [written, unwritten] = [(); 2].map(|()| world.new_commit_id(claim.item_index));
        world.tested_board.offer_commit(claim, &branch_head(claim)).expect("mine");
        let merger = world.tested_board.become_merger("m", 0).expect("the only one");
        if broken == 1 {
            world.tested_board.land(merger, claim.item_index, &written).expect("the merger");
            world.target.push(written);
        }
        world.target.push(unwritten);
        let previous_board = world.last_board.clone();
        world.last_board = world.tested_board.board();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            world.check_invariants(&previous_board, "broken");
        }));
        assert!(result.is_err(), "{broken}");
    }
}
