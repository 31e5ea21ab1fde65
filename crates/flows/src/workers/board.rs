//! The board of a parallel run, for its scheduler and its merger: who works on which item, what waits to be
//! merged, and the state that all workers share.
//!
//! A [`LocalBoard`] is this machine's record alone. A [`FleetBoard`] is shared with other machines, and the
//! record mirrors it. A user of `dyn Board` need not know which one it is. Each method updates both the board
//! and the record, in an order that lets the next process recover from a kill between the two.

mod fleet;
mod local;
#[cfg(test)]
mod tests;

pub(super) use fleet::FleetBoard;
pub(super) use local::LocalBoard;

use crate::run::Interrupt;
use crate::workers::closing_reason::ClosingReason;
use crate::workers::connection::{LocalWorkerReport, RejectedItem};
use crate::workers::error::MergeError;
use crate::workers::item_budget::ItemBudget;
use crate::workers::workers_file::WorkersFile;
use plimsoll_domain::board::{BoardMillis, ItemStage};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::workers::WorkersState;
use plimsoll_policy::workers::{self, Claim};
use plimsoll_store::{StoreError, clock};

/// The board of a parallel run.
pub(super) trait Board: Sync {
    /// Returns the record of this machine, which has the state of the board as far as it is known here.
    fn workers_file(&self) -> &WorkersFile;

    /// Returns the time by the board's clock.
    fn board_now(&self) -> BoardMillis;

    /// Returns when the pause of all workers ends, by this machine's clock, or a time in the past if there is
    /// no pause.
    fn paused_until(&self) -> BoardMillis;

    /// Returns true while all workers are paused.
    fn is_paused(&self) -> bool {
        local_now() < self.paused_until()
    }

    /// Pauses all workers because one of them has reached a limit. Returns false if a known pause lasts at
    /// least as long.
    fn pause_all_workers(&self, pause: &WorkersPause) -> Result<bool, StoreError>;

    /// Returns true if a free worker could claim an item now. `worker_claims` has the claims of the other
    /// workers.
    fn can_claim_item(&self, worker_claims: &[Claim]) -> bool;

    /// Claims the first item that a worker of this machine can begin; workers are numbered from 1. Returns
    /// `None` if there is no such item. `continues_run` returns whether the run of an item continues in its
    /// worktree.
    fn claim_next_item(
        &self,
        worker: usize,
        worker_claims: &[Claim],
        continues_run: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError>;

    /// Returns false once another machine has the item of this claim.
    fn is_claim_valid(&self, claim: Claim) -> bool;

    /// Returns the claims that an earlier process of this machine has left.
    fn claims_to_recover(&self) -> Vec<Claim>;

    /// Sets the claims whose leases are renewed from now on, and the reports about workers. The merger's
    /// lease is renewed while `is_merging` is true.
    fn set_leases_to_renew(
        &self,
        worker_claims: Vec<Claim>,
        is_merging: bool,
        worker_reports: &dyn Fn() -> Vec<LocalWorkerReport>,
    );

    /// Reserves the budget of an item's run from what all machines may use. `local_budget` is what this
    /// machine allows. Returns the budget that the run gets.
    fn reserve_item_budget(&self, worker: usize, item: usize, local_budget: ItemBudget) -> ItemBudget;

    /// Offers the finished work on an item, which ends at this commit, for merging.
    fn mark_work_ready_to_merge(&self, claim: Claim, end_commit: &str) -> Result<(), StoreError>;

    /// Gives an item back after its run has failed. The next attempt begins at `next_start_commit` if that is
    /// given. Returns true if the item is set aside.
    fn record_failed_attempt(
        &self,
        claim: Claim,
        reason: &str,
        next_start_commit: Option<String>,
    ) -> Result<bool, StoreError>;

    /// Sets an item aside until the user has answered a question.
    fn park_item(
        &self,
        claim: Claim,
        question: &str,
        unfinished_work: &dyn UnfinishedWork,
    ) -> Result<(), StoreError>;

    /// Gives up a claim on an item that nobody works on any more and that is not done.
    fn release_claim(&self, claim: Claim, unfinished_work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Gives up a claim on an item that another machine has claimed since. The work that was done here is
    /// kept on its own branch.
    fn keep_branch_of_lost_claim(
        &self,
        claim: Claim,
        unfinished_work: &dyn UnfinishedWork,
    ) -> Result<(), StoreError>;

    /// Reopens the items whose questions have been answered in the plan. Returns true if there are any.
    fn reopen_answered_items(&self) -> Result<bool, StoreError>;

    /// Returns what the board asks the scheduler of this machine to do.
    fn scheduler_orders(&self, closing_reason: Option<&ClosingReason>) -> SchedulerOrders;

    /// Returns true while results of items are not delivered to the board and it is worth waiting for that.
    fn should_wait_for_delivery(&self, interrupt: Option<Interrupt>, is_closing: bool) -> bool;

    /// Returns why the run closes if the board gives out no more items and the items that were begun have
    /// ended.
    fn closing_reason_if_drained(&self) -> Option<ClosingReason>;

    /// Tells the board that this machine leaves. Changes of `plan_files` do not count as work.
    fn leave_fleet(&self, plan_files: &[RepoPath], should_cancel: &dyn Fn() -> bool);

    /// Returns the items whose work is merged in the next round. With `include_waiting`, no work waits for
    /// that of another item.
    fn items_to_merge(&self, include_waiting: bool) -> Vec<usize>;

    /// Returns true if a round of merging may begin on this machine now, and records that it begins.
    fn try_begin_merge_round(&self) -> bool;

    /// Returns true if this machine may not end before all offered work is merged.
    fn should_wait_for_merges(&self, is_closing: bool) -> bool;

    /// Makes this machine the merger. Returns the merger's epoch, or `None` if another machine is the merger.
    fn acquire_merger_lease(&self, should_cancel: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError>;

    /// Marks the items as merged whose commits are in the target. `merged_item_commits` has open items that
    /// are in the target although the board may not know it.
    fn mark_items_in_target_as_merged(
        &self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
        merged_item_commits: &[(usize, CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Records which verify commands have passed on the target. From then on they have to pass after each
    /// merge.
    fn record_passed_commands(
        &self,
        commands: &[String],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Records the commits with which items are about to be merged. The target may move only after that.
    fn record_merge_candidate_commits(
        &self,
        merger_epoch: u64,
        item_commits: &[(usize, &CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Sends offered work back. `conflict_files` has the files that conflict with what was merged. Returns
    /// true if the item is set aside.
    fn reject_merge_candidate(
        &self,
        rejected_item: &RejectedItem,
        conflict_files: &[String],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError>;
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WorkersPause {
    /// When the pause ends, by this machine's clock.
    pub(super) ends_at: BoardMillis,
    /// True if this user's daily spending limit is the reason; that does not pause other machines.
    pub(super) is_daily_limit: bool,
}

/// A request of the board to the scheduler.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SchedulerOrders {
    /// A message for the user.
    pub(super) user_message: Option<String>,
    /// Why no new item may begin, if that is so.
    pub(super) closing_reason: Option<ClosingReason>,
}

/// The work that a run has left on an item that is not done.
pub(super) trait UnfinishedWork {
    /// Returns the last commit of the work.
    fn head_commit(&self) -> Option<String>;
    /// Commits what is uncommitted, so that another machine can continue with it, and returns the last
    /// commit. Returns `None` if that is not possible.
    fn commit_uncommitted_files(&self) -> Option<String>;
}

/// Writes the commits with which items are about to be merged into the record. A stale claim is ignored: that
/// item is already merged, or another machine has it.
fn write_merge_candidate_commits(
    workers_file: &WorkersFile,
    merger_epoch: u64,
    item_commits: &[(usize, &CommitId)],
) -> Result<(), StoreError> {
    workers_file.update_and_write_file(|workers_state| {
        for (item, commit) in item_commits {
            let _ = workers::record_merge_candidate_commit(
                &mut workers_state.board,
                merger_epoch,
                *item,
                commit.as_str(),
            );
        }
    })
}

/// Writes the commit at which the next attempt at a rejected item begins into the record. Returns true if the
/// item is set aside.
fn write_next_start_commit(workers_state: &mut WorkersState, rejected_item: &RejectedItem) -> bool {
    let item_progress = &mut workers_state.item_progress[rejected_item.item];
    (item_progress.start_commit_id, item_progress.base_commit_id) =
        (rejected_item.start_commit_id.clone(), rejected_item.base_commit_id.clone());
    matches!(workers_state.board.items[rejected_item.item].stage, ItemStage::SetAside { .. })
}

/// Returns the current time by this machine's clock.
pub(super) fn local_now() -> BoardMillis {
    u64::try_from(clock::now().timestamp_millis()).unwrap_or_default()
}
