//! The board of a parallel run, as its scheduler and its merger use it: who works on what, what waits to be merged, and what holds
//! for all workers.
//!
//! A [`LocalBoard`] is this machine's record alone. A [`FleetBoard`] is shared with other machines, and the record mirrors it.
//! Whoever holds a `dyn Board` need not know which: each method brings board and record up to date, in an order of which a kill
//! between the two leaves what the next process can go on with.

mod fleet;
mod local;
#[cfg(test)]
mod tests;

pub(super) use fleet::FleetBoard;
pub(super) use local::LocalBoard;

use crate::run::Interrupt;
use crate::workers::closing::Closing;
use crate::workers::connection::{Refused, WorkerNews};
use crate::workers::error::MergeError;
use crate::workers::means::Means;
use crate::workers::table::Table;
use plimsoll_domain::board::{Moment, Stage};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::workers::Workers;
use plimsoll_policy::workers::{self, Claim};
use plimsoll_store::{StoreError, clock};

/// The board of a parallel run.
pub(super) trait Board: Sync {
    /// Returns the record of this machine, with the board as it is known here.
    fn table(&self) -> &Table;

    /// Returns the time by the board's clock.
    fn moment(&self) -> Moment;

    /// Returns when the pause of all workers ends, by this machine's clock; a moment of the past if there is none.
    fn paused_until(&self) -> Moment;

    /// Returns true during a pause of all workers.
    fn is_paused(&self) -> bool {
        local_moment() < self.paused_until()
    }

    /// Pauses all workers because one of them has met a limit. Returns true if no pause was known that lasts as long.
    fn pause(&self, pause: &Pause) -> Result<bool, StoreError>;

    /// Returns true if a free worker could claim an item now. `held` are the claims of the others.
    fn can_claim(&self, held: &[Claim]) -> bool;

    /// Claims the first item that a worker of this machine (from 1) can begin; none if there is none. `goes_on` tells whether the run
    /// of an item goes on in its worktree.
    fn claim(
        &self,
        worker: usize,
        held: &[Claim],
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError>;

    /// Returns false once somebody else has an item that a worker of this machine took.
    fn is_held(&self, claim: Claim) -> bool;

    /// Returns the claims that an earlier process of this machine has left.
    fn claims_to_recover(&self) -> Vec<Claim>;

    /// Keeps these items leased to the workers that work on them, and the merger's lease while it is merging.
    fn keep_leases(&self, held: Vec<Claim>, is_merging: bool, news: &dyn Fn() -> Vec<WorkerNews>);

    /// Reserves what the run of an item may use, of what was found for it on this machine. Returns what it gets.
    fn reserve(&self, worker: usize, item: usize, found: Means) -> Means;

    /// Offers the work on an item, which is done and ends at this commit.
    fn offer(&self, claim: Claim, commit: &str) -> Result<(), StoreError>;

    /// Gives an item back whose run could not do it. Its next attempt begins at `end`, if there is one. Returns true if it is set
    /// aside.
    fn fail(&self, claim: Claim, reason: &str, end: Option<String>) -> Result<bool, StoreError>;

    /// Sets an item aside until the user has answered a question.
    fn park(&self, claim: Claim, question: &str, work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Gives up a claim: nobody works on the item any more, and it is not done.
    fn release(&self, claim: Claim, work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Gives up a claim on an item that somebody else has by now: what was done here is kept on its own branch.
    fn keep_branch(&self, claim: Claim, work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Opens the items again whose questions have an answer in the plan by now. Returns true if there are any.
    fn take_answers(&self) -> Result<bool, StoreError>;

    /// Returns what the board asks of this machine.
    fn orders(&self, closing: Option<&Closing>) -> Orders;

    /// Returns true while the board has not heard yet what has become of items, and is to be waited for.
    fn has_undelivered_results(&self, interrupt: Option<Interrupt>, is_closing: bool) -> bool;

    /// Returns why the run closes, if the board gives out no more items and those that were begun are over.
    fn closing_when_drained(&self) -> Option<Closing>;

    /// Tells the board that this machine leaves. `plan_files` are no part of anybody's work.
    fn leave(&self, plan_files: &[RepoPath], give_up: &dyn Fn() -> bool);

    /// Returns the items whose work is merged in the next round. With `takes_all` no work waits for that of another item.
    fn items_to_merge(&self, takes_all: bool) -> Vec<usize>;

    /// Returns true if a round of merging may begin here now, and notes that it begins.
    fn try_begin_merging(&self) -> bool;

    /// Returns true if this machine does not end before everything that is offered is merged.
    fn waits_for_merging(&self, is_closing: bool) -> bool;

    /// Makes this machine the merger. Returns the merger's epoch; none if somebody else is the merger.
    fn become_merger(&self, give_up: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError>;

    /// Counts as merged what is in the target. `landed` are open items in it of whose landing the board may not know.
    fn settle(
        &self,
        is_in_target: &dyn Fn(&str) -> bool,
        landed: &[(usize, CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Records which verify commands have passed on the target: from then on they must.
    fn note_passed(&self, commands: &[String], give_up: &dyn Fn() -> bool) -> Result<(), MergeError>;

    /// Records by which commits items are about to land. Only then may the target move.
    fn land(
        &self,
        merger: u64,
        landing: &[(usize, &CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Sends offered work back, which conflicts in these files with what was merged. Returns true if the item is set aside.
    fn refuse(
        &self,
        refused: &Refused,
        conflicts: &[String],
        give_up: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError>;
}

/// A pause of all workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    /// When it ends, by this machine's clock.
    pub(super) until: Moment,
    /// True for what this machine's user may spend on a day: that holds up no other machine.
    pub(super) is_of_day: bool,
}

/// What a board asks of the scheduler.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Orders {
    /// What the user is told.
    pub(super) words: Option<String>,
    /// Why nothing new begins any more.
    pub(super) closing: Option<Closing>,
}

/// What a run has left of an item that is not done.
pub(super) trait UnfinishedWork {
    /// Returns the end of what is committed.
    fn head(&self) -> Option<String>;
    /// Commits what is not, so that another machine can go on with it, and returns the end. None if that cannot be.
    fn commit_all(&self) -> Option<String>;
}

/// Writes into the record by which commits items are about to land. One that is fenced has landed, or is somebody else's by now.
fn record_landing(table: &Table, merger: u64, landing: &[(usize, &CommitId)]) -> Result<(), StoreError> {
    table.change(|record| {
        for (item, commit) in landing {
            let _ = workers::land(&mut record.board, merger, *item, commit.as_str());
        }
    })
}

/// Writes into the record where the next attempt at a refused item begins. Returns true if the item is set aside.
fn record_next_start(workers: &mut Workers, refused: &Refused) -> bool {
    let work = &mut workers.works[refused.item];
    (work.start, work.beyond) = (refused.start.clone(), refused.beyond.clone());
    matches!(workers.board.items[refused.item].stage, Stage::Aside { .. })
}

/// Now, by this machine's clock.
pub(super) fn local_moment() -> Moment {
    u64::try_from(clock::now().timestamp_millis()).unwrap_or_default()
}
