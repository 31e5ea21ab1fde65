//! Where the work of a parallel run comes together: a branch, and what travels with the work to whoever goes on with it.
//!
//! A [`LocalTarget`] is a branch of the clone. A [`FleetTarget`] is a branch of the remote, so that several machines reach it. The
//! merger and the scheduler hold a `dyn Target` and need not know which.

mod local;
mod remote;

pub(super) use local::LocalTarget;
pub(super) use remote::FleetTarget;
pub use remote::RemoteTarget;

use crate::workers::error::MergeError;
use crate::workers::tree::{TreeError, Wanted};
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::workers::Workers;
use plimsoll_launcher::own_repository::OwnRepositoryError;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_policy::workers::Claim;
use plimsoll_store::StoreError;

/// The branch in which the work of a parallel run comes together. Commits are those of the repository in which results are merged.
pub(super) trait Target: Sync {
    /// Fetches its end as it is now, with the work on these items.
    fn fetch_tip(&self, items: &[usize], give_up: &dyn Fn() -> bool) -> Result<CommitId, MergeError>;

    /// Returns its end as it was last seen; none if it is gone.
    fn last_seen_tip(&self) -> Option<CommitId>;

    /// Returns the commits by which items were about to land, if they are kept beside the branch: a board may have lost them.
    fn landings(&self) -> Vec<(usize, CommitId)>;

    /// Takes the offered work on an item.
    fn take_work(&self, commit: &CommitId) -> Result<(), OwnRepositoryError>;

    /// Moves it from where it was seen. Returns false if it has moved meanwhile.
    fn advance(
        &self,
        from: &CommitId,
        to: &CommitId,
        landing: &[(usize, &CommitId)],
        give_up: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError>;

    /// Removes what is left of items that are merged, each with the epoch of the attempt that landed.
    fn remove_merged(&self, merged: &[(usize, u64)], give_up: &dyn Fn() -> bool);

    /// Completes what an item's worktree is made of with what earlier sessions have left, perhaps on another machine.
    fn fetch_earlier_work(&self, wanted: Wanted, give_up: &dyn Fn() -> bool) -> Result<Wanted, TreeError>;

    /// Notes that it could not be reached.
    fn note_away(&self, why: &RemoteError);

    /// Returns why the last work on an item was sent back, as far as that is known here.
    fn returned_work(&self, item: usize) -> Option<ReturnedWork>;

    /// Keeps why the work of an attempt is sent back, for the next session of its item, and the commit at which that begins. Returns the commit if
    /// the session can begin there.
    fn keep_returned_work(
        &self,
        attempt: Claim,
        work: &ReturnedWork,
        start: Option<CommitId>,
        give_up: &dyn Fn() -> bool,
    ) -> Result<Option<CommitId>, MergeError>;

    /// Makes a commit visible to the next session of its item. Returns false if that cannot be.
    fn publish_work(&self, commit: &CommitId) -> bool;

    /// Returns the name by which the next session of an item finds its offered work, which ends at this commit.
    fn work_name(&self, now: &Workers, item: usize, end: &CommitId) -> String;

    /// Carries what sessions wrote into their copies of the plan to where it is kept.
    fn carry_notes(&self, item: usize) -> Result<(), StoreError>;

    /// Adds the notes to a plan that come with the work on an item.
    fn add_notes(&self, plan: Vec<u8>, item: usize) -> Result<Vec<u8>, StoreError>;

    /// Returns the plan with the notes that come with no item's work; none if there cannot be any.
    fn plan_with_late_notes(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Checks what everything has come to, once every item is merged.
    fn check_completed(&self) -> CompletionCheck;
}

/// What came of that check.
#[derive(Debug, Default)]
pub(super) struct CompletionCheck {
    /// What the user is told.
    pub(super) notes: Vec<String>,
    /// Why the run is not completed.
    pub(super) objection: Option<String>,
}
