//! A connection to the board that the machines of a fleet share: its operations and their data.
//! [`FleetBoard`] calls them, and the crate `fleet` implements them with a database.
//!
//! [`FleetBoard`]: super::board::FleetBoard

use crate::workers::error::BoardError;
use plimsoll_domain::board::{BoardItem, BoardMillis, BoardState};
use plimsoll_domain::workers::ItemResult;
use plimsoll_policy::workers::Claim;
use std::time::Duration;

/// An item on the shared board.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedItem {
    pub board_item: BoardItem,
    /// The commit at which the next attempt begins; empty for the end of the target.
    pub start_commit_id: String,
    /// The commit after which the item's own commits begin.
    pub base_commit_id: String,
    /// The last question about the item and the user's answer.
    pub answered_question: Option<(String, String)>,
}

/// The state of the shared board at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoardSnapshot {
    /// The time by the board's clock.
    pub board_time: BoardMillis,
    /// The state that all machines share, without items.
    pub board_state: BoardState,
    /// The items that are not recorded as merged, each with its index in the plan.
    pub open_items: Vec<(usize, SharedItem)>,
    /// Verify commands that have passed on the target.
    pub passed_commands: Vec<String>,
    /// True if no more items are given out.
    pub is_draining: bool,
    /// The limit that prevents new items, if one is exhausted.
    pub exhausted_limit: Option<ExhaustedLimit>,
    /// Why the fleet has ended, if it has.
    pub fleet_end: Option<FleetEnd>,
}

/// Why a fleet has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetEnd {
    /// Everything is merged.
    AllMerged,
    /// Somebody stopped it.
    Stopped,
}

/// The response to a request to reserve money and sessions for a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reservation {
    /// The worker may use this much more; `None` means no limit.
    Share {
        /// US dollars.
        usd: Option<f64>,
        /// Sessions of the worker's current item.
        sessions: Option<u32>,
    },
    /// Everything that is left is reserved for other workers until they end.
    WaitForOthers,
    /// A limit is exhausted.
    Exhausted(ExhaustedLimit),
}

/// A limit that a fleet has exhausted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExhaustedLimit {
    /// The dollars that are spent, and the maximum.
    Money(f64, f64),
    /// The number of sessions that have begun.
    Sessions(u64),
}

/// An offered item that the merger sends back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedItem {
    /// The epoch of the merger.
    pub merger_epoch: u64,
    /// The item.
    pub item: usize,
    /// The reason, for the next session of the item.
    pub next_session_note: String,
    /// The commit at which the next attempt begins; empty for the end of the target.
    pub start_commit_id: String,
    /// The commit after which the item's own commits begin.
    pub base_commit_id: String,
}

/// A report about a worker.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalWorkerReport {
    /// The worker's number on this machine, from 1.
    pub worker_number: usize,
    /// The item on which the worker is at work.
    pub item: Option<usize>,
    pub session_id: String,
    /// The used percentage of the session's context window.
    pub context_percent: Option<u64>,
    /// The cost of all items of this worker since it began.
    pub cost_usd: f64,
}

/// A connection to a shared board. All times on the board are by its own clock.
pub trait BoardConnection: Send {
    /// Reads the current state of the board.
    fn read_board(&mut self) -> Result<BoardSnapshot, BoardError>;
    /// Claims the first item that this worker can begin, and returns it. The worker can begin no item that depends
    /// on one of `unconfirmed_items`: these are recorded as merged, but they are not in the target branch as far as
    /// this machine knows.
    fn claim_item(
        &mut self,
        worker_number: usize,
        unconfirmed_items: &[usize],
    ) -> Result<Option<(Claim, SharedItem)>, BoardError>;
    /// Renews the lease on a claimed item.
    fn renew_claim(&mut self, claim: Claim) -> Result<(), BoardError>;
    /// Records the result of an item.
    fn report_item_result(&mut self, result: &ItemResult) -> Result<(), BoardError>;
    /// Pauses all workers for this long.
    fn pause_all_workers(&mut self, duration: Duration) -> Result<(), BoardError>;
    /// Gives the merger's lease to this machine if it is free. Returns the merger's epoch.
    fn acquire_or_renew_merger_lease(&mut self) -> Result<Option<u64>, BoardError>;
    /// Renews the merger's lease.
    fn renew_merger_lease(&mut self, merger_epoch: u64) -> Result<(), BoardError>;
    /// Releases the merger's lease, so that another machine can take it.
    fn release_merger_lease(&mut self, merger_epoch: u64) -> Result<(), BoardError>;
    /// Records the commit with which an item is about to be merged.
    fn record_merge_candidate_commit(
        &mut self,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), BoardError>;
    /// Records a commit with which an item was merged, if the board has lost it, for example because it was
    /// restored from a backup.
    fn restore_merge_candidate_commit(&mut self, item: usize, commit: &str) -> Result<(), BoardError>;
    /// Sends an offered item back.
    fn reject_item(&mut self, rejected_item: &RejectedItem) -> Result<(), BoardError>;
    /// Marks the items as merged whose landing commits are in the target. Returns these items.
    fn mark_items_in_target_as_merged(
        &mut self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
    ) -> Result<Vec<usize>, BoardError>;
    /// Returns those of these items that are recorded as merged, each with the commits with which it may have been
    /// merged. An empty list of commits means that the item was already done when the fleet was created. Only the
    /// fleet's owner can record that, so it is believed.
    fn read_merge_commits_of_merged_items(
        &mut self,
        items: &[usize],
    ) -> Result<Vec<(usize, Vec<String>)>, BoardError>;
    /// Writes into the fleet's journal that an item is recorded as merged, and that this machine does not find it in
    /// the target branch.
    fn report_unconfirmed_merge(&mut self, item: usize) -> Result<(), BoardError>;
    /// Records the verify commands that have passed on the target.
    fn record_passed_commands(&mut self, commands: &[String]) -> Result<(), BoardError>;
    /// Records a report about a worker, and reserves what it may use next from what is left for all.
    /// `unreported_sessions` is the number of sessions of its item that were not reported yet.
    fn record_report_and_reserve_budget(
        &mut self,
        worker_report: &LocalWorkerReport,
        unreported_sessions: u32,
        min_usd: f64,
    ) -> Result<Reservation, BoardError>;
    /// Records a report about a worker.
    fn report_worker(&mut self, worker_report: &LocalWorkerReport) -> Result<(), BoardError>;
    /// Records that everything is merged.
    fn end_fleet_if_all_merged(&mut self) -> Result<(), BoardError>;
}
