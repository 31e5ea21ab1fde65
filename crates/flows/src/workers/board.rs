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
use plimsoll_domain::board::Moment;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_policy::workers::Claim;
use plimsoll_store::{StoreError, clock};

/// What is asked of a board.
pub(super) trait Board: Sync {
    /// The record of this machine, with the board as it is known here.
    fn table(&self) -> &Table;

    /// Now, by the board's clock.
    fn moment(&self) -> Moment;

    /// Until when nothing is begun here, by this machine's clock.
    fn paused_until(&self) -> Moment;

    /// Holds all workers up because of a limit that one of them has met. Returns true if no pause was known that lasts as long.
    fn pause(&self, pause: &Pause) -> Result<bool, StoreError>;

    /// Returns true if a worker could claim an item now. These are held by workers at work.
    fn can_claim(&self, held: &[Claim]) -> bool;

    /// Gives a worker of this machine (from 1) the first item that it can begin. `goes_on` tells whether the run of an item goes on
    /// in its worktree.
    fn claim(
        &self,
        worker: usize,
        held: &[Claim],
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError>;

    /// Returns false once somebody else has an item that a worker of this machine took.
    fn is_held(&self, claim: Claim) -> bool;

    /// The items that an earlier process of this machine has left at work.
    fn claims_to_recover(&self) -> Vec<Claim>;

    /// Keeps these items for the workers that work on them.
    fn keep_leases(&self, held: Vec<Claim>, is_merging: bool, news: &dyn Fn() -> Vec<WorkerNews>);

    /// Sets aside what the run of an item may use, of what was found for it on this machine.
    fn reserve(&self, worker: usize, item: usize, found: Means) -> Means;

    /// The work on an item is done, and ends at this commit.
    fn offer(&self, claim: Claim, commit: &str) -> Result<(), StoreError>;

    /// The run of an item could not do it. Its next attempt begins at `end`, if there is one. Returns true if it is set aside.
    fn fail(&self, claim: Claim, reason: &str, end: Option<String>) -> Result<bool, StoreError>;

    /// An item waits for the user's answer.
    fn park(&self, claim: Claim, question: &str, work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Nobody works on an item any more, and it is not done.
    fn release(&self, claim: Claim, work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Somebody else has an item by now: what was done here is kept on its own branch.
    fn keep_branch(&self, claim: Claim, work: &dyn UnfinishedWork) -> Result<(), StoreError>;

    /// Opens again what waited for an answer that the plan holds by now. Returns true if there is any.
    fn take_answers(&self) -> Result<bool, StoreError>;

    /// What is to be done besides the items.
    fn orders(&self, closing: Option<&Closing>) -> Orders;

    /// Returns true while the board has still to hear what has become of items, and may.
    fn has_undelivered_results(&self, interrupt: Option<Interrupt>, is_closing: bool) -> bool;

    /// Why nothing new begins here, once everything that was begun is over and nothing new is given out.
    fn closing_when_drained(&self) -> Option<Closing>;

    /// Says how this machine leaves. These files are no part of anybody's work.
    fn leave(&self, plan_files: &[RepoPath], give_up: &dyn Fn() -> bool);

    /// The items whose work is merged in the next round. With `takes_all` no work waits for that of another item.
    fn items_to_merge(&self, takes_all: bool) -> Vec<usize>;

    /// Returns true if a round of merging may begin here now.
    fn try_begin_merging(&self) -> bool;

    /// Returns true if this machine waits for what is to be merged before it ends.
    fn waits_for_merging(&self, is_closing: bool) -> bool;

    /// Makes one merger of several. Returns its epoch; none if somebody else is the merger.
    fn become_merger(&self, give_up: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError>;

    /// Counts as merged what is in the target. These items have landed by a commit that the board may have lost.
    fn settle(
        &self,
        is_in_target: &dyn Fn(&str) -> bool,
        landed: &[(usize, CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Notes which verify commands have passed on the target: from then on they must.
    fn note_passed(&self, commands: &[String], give_up: &dyn Fn() -> bool) -> Result<(), MergeError>;

    /// Notes by which commits items are about to land. Only then may the target move.
    fn land(
        &self,
        merger: u64,
        landing: &[(usize, &CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), MergeError>;

    /// Sends offered work back, which conflicts in these files with what was merged. Returns true if its item is set aside.
    fn refuse(
        &self,
        refused: &Refused,
        conflicts: &[String],
        give_up: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError>;
}

impl dyn Board + '_ {
    /// True while nothing is begun.
    pub(super) fn is_paused(&self) -> bool {
        local_moment() < self.paused_until()
    }
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
    /// The end of what is committed.
    fn head(&self) -> Option<String>;
    /// Commits what is not, so that another machine can go on with it, and returns the end. None if that cannot be.
    fn commit_all(&self) -> Option<String>;
}

/// Now, by this machine's clock.
pub(super) fn local_moment() -> Moment {
    u64::try_from(clock::now().timestamp_millis()).unwrap_or_default()
}
