//! A board that several machines share, reached over two connections, and the state of it that this machine
//! caches.
//!
//! The record of this machine ([`WorkersFile`]) mirrors the board, so that every reader of a parallel run's record
//! sees what is known. The outcome of an item is written into the record first, as a result
//! ([`plimsoll_domain::workers::ItemResult`]), and reported once its branch is on the remote ([`delivery`]),
//! because the board may be unreachable and this process may be killed. The board rejects a repeated result
//! by its stale epoch. Claims and all steps of a merger are sent to the board at once, or not done at all, and
//! the record follows. An item that the board lists as merged counts as merged in the record only once this
//! machine has found it in the target branch ([`merge_check`]).

mod closing;
mod delivery;
mod heartbeat;
mod merge_check;
#[cfg(test)]
pub(super) mod tests;
mod unstarted_claim;

use super::{
    Board, SchedulerOrders, UnfinishedWork, WorkersPause, local_now, write_merge_candidate_commits,
    write_next_start_commit,
};
use crate::run::Interrupt;
use crate::workers::closing_reason::ClosingReason;
use crate::workers::connection::{
    BoardConnection, ExhaustedLimit, FleetEnd, LocalWorkerReport, RejectedItem, Reservation,
};
use crate::workers::error::{BoardError, MergeError};
use crate::workers::item_budget::{ItemBudget, MIN_SESSION_USD};
use crate::workers::retry::retry_while_transient;
use crate::workers::target::{REPLICA_GRACE_PERIOD, RemoteTarget};
use crate::workers::workers_file::WorkersFile;
use closing::describe_exhausted_limit;
use merge_check::MergeChecks;
use plimsoll_domain::RunStatus;
use plimsoll_domain::board::{BoardItem, BoardMillis, ItemStage, SetAsideReason};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{ItemOutcome, WorkersState};
use plimsoll_policy::workers::{
    BoardProgress, Claim, classify_board_progress, mark_claimed_item_ready_to_merge,
    pause_claims_at_least_until, ready_to_merge_items, reopen_claimed_item,
    reopen_or_set_aside_after_failed_attempt, reopen_or_set_aside_rejected_item, set_claimed_item_aside,
};
use plimsoll_store::StoreError;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of sessions of one item's run in a fleet. A run that needs more makes no progress,
/// whatever the limit of the whole fleet is.
const MAX_SESSIONS_PER_ITEM: u32 = 50;
/// How often to ask the shared board for an item, since other machines may have claimed it by now.
const CLAIM_INTERVAL: Duration = Duration::from_secs(2);
/// How often to retry a merge.
const MERGE_INTERVAL: Duration = Duration::from_secs(2);
/// How long to retry one call of the merger while the board is unreachable.
const MERGER_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last messages to the board may take. The next `join` delivers the rest.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a closing machine waits for the merger of another one, which merges every two seconds.
const OTHER_MERGER_TIMEOUT: Duration = Duration::from_secs(5);
/// A shorter outage is not announced to the user.
const MIN_ANNOUNCED_OUTAGE: Duration = Duration::from_secs(3);

pub(in super::super) struct FleetBoard {
    workers_file: WorkersFile,
    connection: Mutex<Box<dyn BoardConnection>>,
    /// A second connection, so that renewing leases never waits for other calls.
    heartbeat: Mutex<Box<dyn BoardConnection>>,
    target: RemoteTarget,
    /// How long this machine waits for a board or a remote that is unreachable.
    outage_timeout: Duration,
    /// How long an item that is recorded as merged may be missing from the target before that counts.
    replica_grace_period: Duration,
    cached_state: Mutex<CachedState>,
    /// Locked while reports about workers are sent over either connection. Otherwise the report about an idle
    /// worker, taken before its item began and written after money was reserved for that item, would free the
    /// money again.
    reporting_lock: Mutex<()>,
    wait_times: Mutex<WaitTimes>,
}

/// State that this machine caches and that is not in its record.
#[derive(Debug, Default)]
struct CachedState {
    /// How far the board's clock is ahead of this machine's, in milliseconds.
    clock_offset_ms: i64,
    /// True if the board gave out no more items when it was last read.
    is_draining: bool,
    exhausted_limit: Option<ExhaustedLimit>,
    fleet_end: Option<FleetEnd>,
    /// Claims that have a stale epoch, because another machine has claimed their items.
    lost_claims: BTreeSet<(usize, u64)>,
    /// The claims whose leases are renewed.
    leased_claims: Vec<Claim>,
    merger_epoch: Option<u64>,
    /// Which of the items that the board lists as merged are in the target.
    merge_checks: MergeChecks,
    worker_reports: Vec<LocalWorkerReport>,
    /// Since when the board has been unreachable over each connection, with the last error. They are separate
    /// because reads may succeed while writes fail.
    board_outage: Option<(Instant, String)>,
    heartbeat_outage: Option<(Instant, String)>,
    /// A permanent error; retrying cannot help.
    permanent_error: Option<String>,
}

/// The times at which this machine did or began to wait for something.
#[derive(Debug, Default)]
struct WaitTimes {
    /// When the board was last asked for an item and had none for this machine.
    last_claim_without_item_at: Option<Instant>,
    /// When the last round of merging began.
    last_merge_round: Option<Instant>,
    /// Since when this closing process has been waiting for another machine's merger.
    waiting_for_other_merger_since: Option<Instant>,
    /// When this process was asked to end at once.
    immediate_end_requested_at: Option<Instant>,
    /// True once the user was told that this machine waits for the board or the remote.
    was_waiting_announced: bool,
}

/// Why this machine cannot report or claim.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ConnectionProblem {
    /// Unreachable for this long, with the last error; it may pass.
    Unreachable(Duration, String),
    /// A permanent error.
    Permanent(String),
}

impl FleetBoard {
    /// Returns the board behind these connections.
    pub(in super::super) fn new(
        workers_file: WorkersFile,
        connection: Box<dyn BoardConnection>,
        heartbeat: Box<dyn BoardConnection>,
        target: RemoteTarget,
        outage_timeout: Duration,
    ) -> FleetBoard {
        FleetBoard {
            workers_file,
            connection: Mutex::new(connection),
            heartbeat: Mutex::new(heartbeat),
            target,
            outage_timeout,
            replica_grace_period: REPLICA_GRACE_PERIOD,
            cached_state: Mutex::default(),
            reporting_lock: Mutex::default(),
            wait_times: Mutex::default(),
        }
    }

    /// Renews the leases and copies the board into the record until `should_stop` is true. Runs in its own
    /// thread.
    pub(in super::super) fn run_heartbeat(&self, should_stop: &AtomicBool) {
        heartbeat::run_heartbeat_loop(self, should_stop);
    }

    /// Reports the results of items to the board until `should_stop` is true. Runs in its own thread.
    /// `item_notes` returns what the sessions of an item noted below it.
    pub(in super::super) fn run_result_delivery(
        &self,
        should_stop: &AtomicBool,
        should_cancel: &dyn Fn() -> bool,
        item_notes: &dyn Fn(usize) -> Vec<String>,
    ) {
        delivery::run_delivery_loop(self, should_stop, should_cancel, item_notes);
    }

    /// Reads the board and copies its state into the record.
    pub(in super::super) fn refresh_from_board(&self) -> Result<(), BoardError> {
        heartbeat::refresh_cached_state_from_board(self)
    }

    fn lock_cached_state(&self) -> MutexGuard<'_, CachedState> {
        self.cached_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_wait_times(&self) -> MutexGuard<'_, WaitTimes> {
        self.wait_times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an operation on the board and records whether the board was reachable.
    fn call_board<T>(
        &self,
        operation: impl FnOnce(&mut dyn BoardConnection) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let result = operation(connection.as_mut());
        drop(connection);
        self.record_reachability(&result, |cached_state| &mut cached_state.board_outage);
        result
    }

    /// Runs an operation on the board, and repeats it while the board is unreachable. Every operation is
    /// idempotent. A round of merging has many operations: over an unreliable line no round would finish if
    /// each failure ended it.
    fn call_board_with_retry<T>(
        &self,
        should_cancel: &dyn Fn() -> bool,
        mut operation: impl FnMut(&mut dyn BoardConnection) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        retry_while_transient(MERGER_CALL_TIMEOUT, should_cancel, BoardError::is_unreachable, || {
            self.call_board(&mut operation)
        })
    }

    /// Runs an operation on the board over the second connection, and records whether the board was
    /// reachable.
    fn call_board_over_heartbeat<T>(
        &self,
        operation: impl FnOnce(&mut dyn BoardConnection) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut connection = self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner);
        let result = operation(connection.as_mut());
        drop(connection);
        self.record_reachability(&result, |cached_state| &mut cached_state.heartbeat_outage);
        result
    }

    fn record_reachability<T>(
        &self,
        result: &Result<T, BoardError>,
        outage_field: impl FnOnce(&mut CachedState) -> &mut Option<(Instant, String)>,
    ) {
        let mut cached_state = self.lock_cached_state();
        match result {
            Ok(_) | Err(BoardError::StaleEpoch) => *outage_field(&mut cached_state) = None,
            Err(BoardError::Unreachable(error)) => {
                let outage = outage_field(&mut cached_state);
                let unreachable_since = outage.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                *outage = Some((unreachable_since, error.clone()));
            }
            Err(BoardError::Permanent(error)) => {
                _ = cached_state.permanent_error.get_or_insert_with(|| error.clone());
            }
        }
    }

    /// Records a permanent error. The first one is kept.
    fn record_permanent_error(&self, error: String) {
        self.lock_cached_state().permanent_error.get_or_insert(error);
    }

    /// Reserves money for a worker's item, and replaces the report about that worker that is still to be
    /// sent.
    fn reserve_money_and_replace_report(
        &self,
        worker_report: &LocalWorkerReport,
        session_count: u32,
    ) -> Result<Reservation, BoardError> {
        let _reporting_guard = self.reporting_lock.lock().unwrap_or_else(PoisonError::into_inner);
        for known_report in self
            .lock_cached_state()
            .worker_reports
            .iter_mut()
            .filter(|known| known.worker_number == worker_report.worker_number)
        {
            known_report.clone_from(worker_report);
        }
        self.call_board(|board| {
            board.record_report_and_reserve_budget(worker_report, session_count, MIN_SESSION_USD)
        })
    }

    /// Returns what keeps this machine from reporting and claiming, if anything: a permanent error, or else
    /// the longest outage.
    fn current_problem(&self) -> Option<ConnectionProblem> {
        let cached_state = self.lock_cached_state();
        let permanent_error = cached_state.permanent_error.clone().map(ConnectionProblem::Permanent);
        let remote_outage = self.target.outage();
        let outages = [&cached_state.board_outage, &cached_state.heartbeat_outage, &remote_outage]
            .into_iter()
            .flatten();
        let longest_outage = outages.max_by_key(|(unreachable_since, _)| unreachable_since.elapsed());
        permanent_error.or_else(|| {
            longest_outage.map(|(unreachable_since, error)| {
                ConnectionProblem::Unreachable(unreachable_since.elapsed(), error.clone())
            })
        })
    }

    /// Returns true if only a call of the scheduler or the merger can show that the board is reachable again:
    /// everything else responds, and no result is queued.
    fn should_probe_board(&self) -> bool {
        let cached_state = self.lock_cached_state();
        let is_everything_else_reachable = cached_state.heartbeat_outage.is_none()
            && self.target.outage().is_none()
            && cached_state.permanent_error.is_none();
        drop(cached_state);
        is_everything_else_reachable && !self.has_queued_results()
    }

    /// Returns true while results of items are still to be reported.
    fn has_queued_results(&self) -> bool {
        self.workers_file.workers_state().fleet_member.is_some_and(|member| !member.outbox.is_empty())
    }

    /// Converts a time of this machine's clock to the board's clock.
    fn to_board_time(&self, time: BoardMillis) -> BoardMillis {
        time.saturating_add_signed(self.lock_cached_state().clock_offset_ms)
    }

    /// Converts a time of the board's clock to this machine's clock.
    fn to_local_time(&self, time: BoardMillis) -> BoardMillis {
        time.saturating_add_signed(self.lock_cached_state().clock_offset_ms.saturating_neg())
    }

    /// Finds an item that the board has leased to this machine in a response that was lost.
    fn find_claim_of_lost_response(
        &self,
        workers_state: &WorkersState,
        worker_claims: &[Claim],
    ) -> Option<Claim> {
        let is_at_work = |item: usize| worker_claims.iter().any(|claim| claim.item_index == item);
        (0..workers_state.board.items.len())
            .find(|item| epoch_if_leased_here(workers_state, *item).is_some() && !is_at_work(*item))
            .map(|item| Claim { item_index: item, epoch: workers_state.board.items[item].epoch })
            .filter(|claim| self.is_claim_valid(*claim))
    }

    /// Updates the record with the result of an item, and queues the result for the board. `done_commit` is
    /// the last commit of the work.
    fn update_and_queue_result<T>(
        &self,
        claim: Claim,
        done_commit: Option<String>,
        outcome: ItemOutcome,
        update: impl FnOnce(&mut WorkersState) -> T,
    ) -> Result<T, StoreError> {
        self.workers_file.update_and_write_file(|workers| {
            workers.item_progress[claim.item_index].pid = None;
            if let Some(done_commit) = done_commit {
                workers.item_progress[claim.item_index].start_commit_id = done_commit;
            }
            let board_item_before = workers.board.items[claim.item_index].clone();
            let was_leased_here = workers.is_leased_by_this_machine(claim.item_index);
            let result = update(workers);
            // The board may list the item as merged since, which the record shows as a lease that is not ours.
            if !was_leased_here {
                workers.board.items[claim.item_index] = board_item_before;
            }
            workers.queue_item_result_if_fleet_member(claim.item_index, claim.epoch, outcome);
            result
        })
    }

    /// Returns true while another machine is the merger.
    fn is_other_machine_merger(&self) -> bool {
        let workers_state = self.workers_file.workers_state();
        let member_name = workers_state.fleet_member.unwrap_or_default().name;
        workers_state.board.merger_lease.is_active(self.board_now())
            && workers_state.board.merger_lease.holder != member_name
    }

    /// Returns a message when this machine begins to wait for the board or the remote, and when that is over.
    fn message_if_waiting_changed(&self, problem: Option<&ConnectionProblem>) -> Option<String> {
        let mut wait_times = self.lock_wait_times();
        let message = match (problem, wait_times.was_waiting_announced) {
            (Some(ConnectionProblem::Unreachable(outage, error)), false)
                if *outage >= MIN_ANNOUNCED_OUTAGE =>
            {
                let timeout_seconds = self.outage_timeout.as_secs();
                format!(
                    "running items continue, no new item starts (giving up after {timeout_seconds} s): {error}"
                )
            }
            (None, true) => "the database and the remote are reachable again; resuming".to_owned(),
            _ => return None,
        };
        wait_times.was_waiting_announced = !wait_times.was_waiting_announced;
        Some(message)
    }
}

impl Board for FleetBoard {
    fn workers_file(&self) -> &WorkersFile {
        &self.workers_file
    }

    fn board_now(&self) -> BoardMillis {
        self.to_board_time(local_now())
    }

    fn paused_until(&self) -> BoardMillis {
        let workers_state = self.workers_file.workers_state();
        let member_pause = workers_state.fleet_member.map_or(0, |member| member.paused_until);
        self.to_local_time(workers_state.board.paused_until).max(member_pause)
    }

    fn pause_all_workers(
        &self,
        WorkersPause { ends_at, is_daily_limit }: &WorkersPause,
    ) -> Result<bool, StoreError> {
        let (is_new, board_ends_at) = (*ends_at > self.paused_until(), self.to_board_time(*ends_at));
        self.workers_file.update_and_write_file(|workers| {
            match &mut workers.fleet_member {
                Some(member) if *is_daily_limit => member.paused_until = member.paused_until.max(*ends_at),
                _ => pause_claims_at_least_until(&mut workers.board, board_ends_at),
            }
            if is_new {
                workers.waits_for_next_day = *is_daily_limit;
            }
        })?;
        if !is_daily_limit {
            // The duration is sent, because the clocks differ. If the board is unreachable, other machines
            // reach the limit themselves.
            let duration = Duration::from_millis(ends_at.saturating_sub(local_now()));
            let _ = self.call_board(|board| board.pause_all_workers(duration));
        }
        Ok(is_new)
    }

    /// Decides by the cached state whether asking the board is worthwhile.
    fn can_claim_item(&self, worker_claims: &[Claim]) -> bool {
        let workers_state = self.workers_file.workers_state();
        let asked_recently = self
            .lock_wait_times()
            .last_claim_without_item_at
            .is_some_and(|claimed_at| claimed_at.elapsed() < CLAIM_INTERVAL);
        let is_reachable = self.current_problem().is_none() || self.should_probe_board();
        let gives_items = {
            let cached_state = self.lock_cached_state();
            !cached_state.is_draining && cached_state.fleet_end.is_none()
        };
        is_reachable
            && gives_items
            && !asked_recently
            && (self.find_claim_of_lost_response(&workers_state, worker_claims).is_some()
                || classify_board_progress(&workers_state.board, self.board_now())
                    == BoardProgress::ItemAvailable)
    }

    fn claim_next_item(
        &self,
        worker: usize,
        worker_claims: &[Claim],
        continues_run: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError> {
        let workers_state = self.workers_file.workers_state();
        let lost_claim = self.find_claim_of_lost_response(&workers_state, worker_claims);
        self.lock_wait_times().last_claim_without_item_at = Some(Instant::now());
        let unconfirmed_items = self.lock_cached_state().merge_checks.items_not_confirmed();
        let claim_result = self.call_board(|board| {
            // After a sleep, this machine's own leases may have expired. They are renewed first, so that no
            // other machine gets these items.
            for worker_claim in worker_claims {
                let _ = board.renew_claim(*worker_claim);
            }
            match lost_claim {
                Some(lost_claim) => {
                    board.renew_claim(lost_claim)?;
                    Ok(Some((lost_claim, None)))
                }
                None => Ok(board
                    .claim_item(worker, &unconfirmed_items)?
                    .map(|(claim, shared_item)| (claim, Some(shared_item)))),
            }
        });
        // The error is recorded and handled in each round of the scheduler.
        let Ok(Some((claim, shared_item))) = claim_result else { return Ok(None) };
        // Once this machine has found the dependency in the target, it claims the item again.
        if self.give_back_claim_if_dependency_unmerged(claim, shared_item.as_ref()) {
            return Ok(None);
        }
        self.lock_wait_times().last_claim_without_item_at = None;
        let continues_run = continues_run(claim.item_index);
        self.workers_file.update_and_write_file(|workers| {
            if let Some(shared_item) = shared_item {
                let text = std::mem::take(&mut workers.board.items[claim.item_index].text);
                workers.board.items[claim.item_index] = BoardItem { text, ..shared_item.board_item };
                let item_progress = &mut workers.item_progress[claim.item_index];
                (
                    item_progress.start_commit_id,
                    item_progress.base_commit_id,
                    item_progress.answered_question,
                ) = (shared_item.start_commit_id, shared_item.base_commit_id, shared_item.answered_question);
            }
            workers.move_current_usage_to_earlier_totals(claim.item_index, continues_run);
            let item_progress = &mut workers.item_progress[claim.item_index];
            (item_progress.worker_number, item_progress.epoch, item_progress.pid) =
                (worker, claim.epoch, None);
        })?;
        Ok(Some(claim))
    }

    fn is_claim_valid(&self, claim: Claim) -> bool {
        let is_leased_here =
            epoch_if_leased_here(&self.workers_file.workers_state(), claim.item_index) == Some(claim.epoch);
        is_leased_here && !self.lock_cached_state().lost_claims.contains(&(claim.item_index, claim.epoch))
    }

    fn claims_to_recover(&self) -> Vec<Claim> {
        let workers_state = self.workers_file.workers_state();
        let claim_to_recover = |item: usize| {
            let item_progress = &workers_state.item_progress[item];
            match epoch_if_leased_here(&workers_state, item) {
                Some(epoch) if epoch == item_progress.epoch => Some(Claim { item_index: item, epoch }),
                // An item that another machine has now was ours with an earlier epoch. If its process still runs
                // here, it is ended. A claim that is not in the record was never begun: its response was lost, and
                // it is made again.
                Some(_) | None => item_progress
                    .pid
                    .is_some()
                    .then_some(Claim { item_index: item, epoch: item_progress.epoch }),
            }
        };
        (0..workers_state.board.items.len()).filter_map(claim_to_recover).collect()
    }

    fn set_leases_to_renew(
        &self,
        worker_claims: Vec<Claim>,
        is_merging: bool,
        worker_reports: &dyn Fn() -> Vec<LocalWorkerReport>,
    ) {
        let worker_reports = worker_reports();
        let mut cached_state = self.lock_cached_state();
        (cached_state.leased_claims, cached_state.worker_reports) = (worker_claims, worker_reports);
        if !is_merging {
            cached_state.merger_epoch = None;
        }
    }

    /// Limits the budget by what all machines together may use.
    fn reserve_item_budget(&self, worker: usize, item: usize, local_budget: ItemBudget) -> ItemBudget {
        let ItemBudget::Enough { cost_usd, tokens, sessions } = local_budget else { return local_budget };
        let workers_state = self.workers_file.workers_state();
        let item_usage = workers_state.item_progress[item].current_usage;
        let worker_report = LocalWorkerReport {
            worker_number: worker,
            item: Some(item),
            cost_usd: workers_state.worker_cost_usd(worker),
            ..LocalWorkerReport::default()
        };
        let max_sessions = sessions.min(MAX_SESSIONS_PER_ITEM + item_usage.sessions);
        match self.reserve_money_and_replace_report(&worker_report, item_usage.sessions) {
            Ok(Reservation::Share { usd: share_usd, sessions: more_sessions }) => ItemBudget::Enough {
                cost_usd: share_usd
                    .map(|share| item_usage.cost_usd + share)
                    .into_iter()
                    .chain(cost_usd)
                    .reduce(f64::min),
                tokens,
                sessions: more_sessions
                    .map_or(max_sessions, |more| max_sessions.min(item_usage.sessions.saturating_add(more))),
            },
            Ok(Reservation::Exhausted(exhausted_limit)) => {
                let (status, reason) = describe_exhausted_limit(exhausted_limit);
                ItemBudget::Exhausted(status, reason)
            }
            Ok(Reservation::WaitForOthers) | Err(_) => ItemBudget::WaitForOthers,
        }
    }

    fn mark_work_ready_to_merge(&self, claim: Claim, end_commit: &str) -> Result<(), StoreError> {
        self.update_and_queue_result(claim, Some(end_commit.to_owned()), ItemOutcome::Offered, |workers| {
            // A stale epoch means that the item was merged meanwhile.
            let _ = mark_claimed_item_ready_to_merge(&mut workers.board, claim, end_commit);
        })
    }

    fn record_failed_attempt(
        &self,
        claim: Claim,
        reason: &str,
        next_start_commit: Option<String>,
    ) -> Result<bool, StoreError> {
        self.update_and_queue_result(
            claim,
            next_start_commit,
            ItemOutcome::Failed(reason.to_owned()),
            |workers| {
                let _ = reopen_or_set_aside_after_failed_attempt(&mut workers.board, claim, reason);
                matches!(workers.board.items[claim.item_index].stage, ItemStage::SetAside { .. })
            },
        )
    }

    /// Commits all work, because another machine may continue with it.
    fn park_item(
        &self,
        claim: Claim,
        question: &str,
        unfinished_work: &dyn UnfinishedWork,
    ) -> Result<(), StoreError> {
        let done_commit = unfinished_work
            .commit_uncommitted_files()
            .or_else(|| unfinished_work.head_commit())
            .unwrap_or_default();
        let question_without_secrets = plimsoll_secrets::redact(question);
        self.update_and_queue_result(
            claim,
            Some(done_commit),
            ItemOutcome::WaitsForAnswer(question_without_secrets),
            |workers| {
                let _ = set_claimed_item_aside(
                    &mut workers.board,
                    claim,
                    SetAsideReason::Question(question.to_owned()),
                );
            },
        )
    }

    /// Commits all work and gives the item back. The next attempt begins at that commit.
    fn release_claim(&self, claim: Claim, unfinished_work: &dyn UnfinishedWork) -> Result<(), StoreError> {
        self.update_and_queue_result(
            claim,
            unfinished_work.commit_uncommitted_files(),
            ItemOutcome::Released,
            |workers| {
                let _ = reopen_claimed_item(&mut workers.board, claim);
            },
        )
    }

    fn keep_branch_of_lost_claim(
        &self,
        claim: Claim,
        unfinished_work: &dyn UnfinishedWork,
    ) -> Result<(), StoreError> {
        self.update_and_queue_result(
            claim,
            unfinished_work.commit_uncommitted_files(),
            ItemOutcome::TakenByOther,
            |_| (),
        )
    }

    /// Does nothing: the user answers to the fleet.
    fn reopen_answered_items(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn scheduler_orders(&self, current_closing_reason: Option<&ClosingReason>) -> SchedulerOrders {
        let problem = self.current_problem();
        let user_message = self
            .message_if_waiting_changed(problem.as_ref())
            .or_else(|| self.take_message_about_unconfirmed_item());
        let (fleet_end, exhausted_limit) = {
            let cached_state = self.lock_cached_state();
            (cached_state.fleet_end, cached_state.exhausted_limit)
        };
        if fleet_end == Some(FleetEnd::Stopped) {
            let stopped = ClosingReason::Stop(RunStatus::Canceled, "the fleet was stopped".to_owned());
            return SchedulerOrders { user_message, closing_reason: Some(stopped) };
        }
        // If the run closes already, only a stop of the fleet changes the reason.
        let closing_after_outage = match problem {
            Some(ConnectionProblem::Permanent(error)) => Some(ClosingReason::Pause(PauseKind::Fault, error)),
            Some(ConnectionProblem::Unreachable(outage, error)) if outage >= self.outage_timeout => Some(
                ClosingReason::Pause(PauseKind::Fault, format!("waited for {} s: {error}", outage.as_secs())),
            ),
            Some(ConnectionProblem::Unreachable(..)) | None => None,
        };
        // Checked here because no claim is made any more that could report it.
        let closing_if_exhausted = || {
            let (status, reason) = describe_exhausted_limit(exhausted_limit?);
            Some(ClosingReason::Stop(status, reason))
        };
        let closing_reason = if current_closing_reason.is_some() {
            None
        } else {
            closing_after_outage.or_else(closing_if_exhausted)
        };
        SchedulerOrders { user_message, closing_reason }
    }

    fn should_wait_for_delivery(&self, interrupt: Option<Interrupt>, is_closing: bool) -> bool {
        // A process that must end now, for example at a system shutdown, waits this long to deliver results
        // that other machines can continue with.
        let has_leave_timeout_passed = interrupt >= Some(Interrupt::EndSession)
            && self.lock_wait_times().immediate_end_requested_at.get_or_insert_with(Instant::now).elapsed()
                >= LEAVE_TIMEOUT;
        // Until the run closes, an outage is waited for, up to the outage timeout.
        let can_still_deliver = match self.current_problem() {
            None => true,
            Some(ConnectionProblem::Unreachable(..)) => !is_closing,
            Some(ConnectionProblem::Permanent(_)) => false,
        };
        // The next pass of the scheduler shows the message.
        if self.lock_cached_state().merge_checks.has_items_to_announce() {
            return true;
        }
        self.has_queued_results()
            && can_still_deliver
            && !has_leave_timeout_passed
            && interrupt < Some(Interrupt::Immediately)
    }

    fn closing_reason_if_drained(&self) -> Option<ClosingReason> {
        self.closing_reason_if_drained_or_recorded_as_done()
    }

    fn leave_fleet(&self, plan_files: &[RepoPath], should_cancel: &dyn Fn() -> bool) {
        if classify_board_progress(&self.workers_file.workers_state().board, self.board_now())
            == BoardProgress::Done
        {
            // No other machine may be left to report it.
            let _ = retry_while_transient(LEAVE_TIMEOUT, should_cancel, BoardError::is_unreachable, || {
                self.call_board(|board| board.end_fleet_if_all_merged())
            });
            self.target.remove_leftover_merged_branches(plan_files, should_cancel);
        }
        let workers_state = self.workers_file.workers_state();
        let is_merger = workers_state
            .fleet_member
            .is_some_and(|member| member.name == workers_state.board.merger_lease.holder);
        if is_merger && workers_state.board.merger_lease.is_active(self.board_now()) {
            let merger_epoch = workers_state.board.merger_epoch;
            let _ = self.call_board(|board| board.release_merger_lease(merger_epoch));
        }
    }

    /// Never lets work wait for another item: another machine may work on that one. Leaves out the work of this
    /// machine that is not delivered yet: its branch is not on the remote, and the board would reject each step.
    fn items_to_merge(&self, _: bool) -> Vec<usize> {
        let workers_state = self.workers_file.workers_state();
        let mut items = ready_to_merge_items(&workers_state.board);
        let queued_results = workers_state.fleet_member.map(|member| member.outbox).unwrap_or_default();
        items.retain(|item| !queued_results.iter().any(|result| result.item == *item));
        items
    }

    /// Returns false while another machine merges. After an outage, the next try comes after a moment.
    fn try_begin_merge_round(&self) -> bool {
        let merged_recently = self
            .lock_wait_times()
            .last_merge_round
            .is_some_and(|began_at| began_at.elapsed() < MERGE_INTERVAL);
        let is_unreachable = self.current_problem().is_some() && !self.should_probe_board();
        if self.is_other_machine_merger() || merged_recently || is_unreachable {
            return false;
        }
        self.lock_wait_times().last_merge_round = Some(Instant::now());
        true
    }

    /// Returns false if this machine closes and another one has been merging for a moment, which then
    /// continues alone. The other one may be closing, too, and may not have seen the last offer; then this
    /// machine becomes the merger.
    fn should_wait_for_merges(&self, is_closing: bool) -> bool {
        let can_leave_to_other_merger = is_closing
            && self.is_other_machine_merger()
            && self
                .lock_wait_times()
                .waiting_for_other_merger_since
                .get_or_insert_with(Instant::now)
                .elapsed()
                >= OTHER_MERGER_TIMEOUT;
        self.current_problem().is_none() && !can_leave_to_other_merger
    }

    fn acquire_merger_lease(&self, should_cancel: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError> {
        let merger_epoch =
            self.call_board_with_retry(should_cancel, |board| board.acquire_or_renew_merger_lease())?;
        self.lock_cached_state().merger_epoch = merger_epoch;
        if merger_epoch.is_some() {
            // Reads what other machines have offered since the last read.
            self.refresh_from_board()?;
        }
        Ok(merger_epoch)
    }

    fn mark_items_in_target_as_merged(
        &self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
        merged_item_commits: &[(usize, CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        // Items that the board lists as merged need no entry there, only the confirmation of this machine.
        let (listed_items, unlisted_items): (Vec<_>, Vec<_>) = {
            let cached_state = self.lock_cached_state();
            merged_item_commits.iter().partition(|(item, _)| cached_state.merge_checks.is_listed(*item))
        };
        for (item, commit) in unlisted_items {
            self.call_board_with_retry(should_cancel, |board| {
                board.restore_merge_candidate_commit(*item, commit.as_str())
            })?;
        }
        let mut merged_items = self.call_board_with_retry(should_cancel, |board| {
            board.mark_items_in_target_as_merged(is_in_target)
        })?;
        merged_items.extend(listed_items.iter().map(|(item, _)| *item));
        // Now, and not only in the next check: the merger sets the ticks of the plan by the record, and would remove
        // the tick of an item that another machine has just merged.
        merged_items.extend(self.find_listed_items_in_target(is_in_target, should_cancel)?);
        // Both are locked together, so that no refresh comes between and lists the items as unchecked.
        let mut cached_state = self.lock_cached_state();
        self.workers_file.update_and_write_file(|workers| {
            for item in &merged_items {
                if let Some(board_item) = workers.board.items.get_mut(*item) {
                    board_item.stage = ItemStage::Merged;
                }
            }
        })?;
        merged_items.iter().for_each(|item| cached_state.merge_checks.confirm_item(*item));
        Ok(())
    }

    fn record_passed_commands(
        &self,
        commands: &[String],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        self.call_board_with_retry(should_cancel, |board| board.record_passed_commands(commands))?;
        Ok(self.workers_file.update_and_write_file(|workers| workers.record_passed_commands(commands))?)
    }

    /// Fails, so that the target does not move, if this machine is no longer the merger or if an item is
    /// already merged.
    fn record_merge_candidate_commits(
        &self,
        merger_epoch: u64,
        item_commits: &[(usize, &CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        for (item, commit) in item_commits {
            self.call_board_with_retry(should_cancel, |board| {
                board.record_merge_candidate_commit(merger_epoch, *item, commit.as_str())
            })?;
        }
        Ok(write_merge_candidate_commits(&self.workers_file, merger_epoch, item_commits)?)
    }

    /// Ignores the files, which the rows of a fleet do not have. Only the number of tries limits the
    /// conflicts of an item.
    fn reject_merge_candidate(
        &self,
        rejected_item: &RejectedItem,
        _: &[String],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        self.call_board_with_retry(should_cancel, |board| board.reject_item(rejected_item))?;
        let RejectedItem { merger_epoch: merger, item, next_session_note: note, .. } = rejected_item;
        Ok(self.workers_file.update_and_write_file(|workers| {
            // A stale epoch means that another machine has the item.
            let _ = reopen_or_set_aside_rejected_item(&mut workers.board, *merger, *item, note);
            write_next_start_commit(workers, rejected_item)
        })?)
    }
}

/// Returns the epoch of the lease if this machine has leased the item.
fn epoch_if_leased_here(workers_state: &WorkersState, item: usize) -> Option<u64> {
    workers_state.fleet_member.as_ref()?;
    let board_item = workers_state.board.items.get(item)?;
    workers_state.is_leased_by_this_machine(item).then_some(board_item.epoch)
}
