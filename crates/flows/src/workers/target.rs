//! The target branch into which the work of a parallel run is merged, and the data that the next session of
//! an item needs.
//!
//! A [`LocalTarget`] is a branch of the clone. A [`FleetTarget`] is a branch of the remote, so that several
//! machines can use it. The merger and the scheduler use a `dyn Target` and need not know which one it is.

mod local;
mod merged_items;
mod offered_work;
mod remote;

pub(super) use local::LocalTarget;
pub use merged_items::PlanOnTarget;
pub(super) use remote::FleetTarget;
pub use remote::RemoteTarget;

use crate::workers::error::MergeError;
use crate::workers::worktrees::{WorktreeSetupError, WorktreeSpec};
use merged_items::TargetContents;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::workers::WorkersState;
use plimsoll_launcher::plimsoll_repository::PlimsollRepositoryError;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_policy::workers::Claim;
use plimsoll_store::StoreError;
use std::time::Duration;

/// How long something that must be on the remote may be missing there. A git host may answer a fetch from a replica
/// that does not have the last push yet.
pub(super) const REPLICA_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// The branch into which the work of a parallel run is merged. Commits are those of the repository in which
/// results are merged.
pub(super) trait Target: Sync {
    /// Fetches the target branch and the work on these items. Returns the last commit of the target.
    fn fetch_target_tip(
        &self,
        items: &[usize],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<CommitId, MergeError>;

    /// Returns the last commit of the target as it was last seen, or `None` if the branch is gone.
    fn target_tip_without_fetch(&self) -> Option<CommitId>;

    /// Returns the commits with which items were about to be merged, if they are recorded beside the branch.
    /// A board may have lost them.
    fn recorded_merge_candidates(&self) -> Vec<(usize, CommitId)>;

    /// Reads which items the target contains, at this commit. Commits from before `start_commit` do not count.
    fn read_contents(
        &self,
        start_commit: &CommitId,
        target_tip: &CommitId,
    ) -> Result<TargetContents, PlimsollRepositoryError>;

    /// Copies the offered work on an item, which ends at this commit, into the repository in which results are
    /// merged. Returns whether it is there.
    fn copy_work_into_merge_repository(
        &self,
        item: usize,
        commit: &CommitId,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<OfferedWork, MergeError>;

    /// Moves the target from one commit to another. Returns false if it has moved since.
    fn move_target_forward(
        &self,
        from: &CommitId,
        to: &CommitId,
        item_commits: &[(usize, &CommitId)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError>;

    /// Removes the branches and texts of merged items, each given with the epoch of the merged attempt.
    fn remove_branches_of_merged_items(
        &self,
        merged_items: &[(usize, u64)],
        should_cancel: &dyn Fn() -> bool,
    );

    /// Completes the description of an item's worktree with what earlier sessions have left, perhaps on
    /// another machine.
    fn add_work_pushed_to_remote(
        &self,
        worktree_spec: WorktreeSpec,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<WorktreeSpec, WorktreeSetupError>;

    /// Records that the target could not be reached.
    fn record_outage(&self, error: &RemoteError);

    /// Returns why the last work on an item was sent back, if that is known here.
    fn load_returned_work(&self, item: usize) -> Option<ReturnedWork>;

    /// Saves why the work of an attempt is sent back and the commit at which the item's next session begins.
    /// Returns that commit if the session can begin there.
    fn save_returned_work_and_start_commit(
        &self,
        claim: Claim,
        returned_work: &ReturnedWork,
        start_commit: Option<CommitId>,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<Option<CommitId>, MergeError>;

    /// Makes a commit available to the next session of its item. Returns false if that is not possible.
    fn publish_work(&self, commit: &CommitId) -> bool;

    /// Returns the branch or commit by which the next session of an item finds the offered work that ends at
    /// this commit.
    fn branch_or_commit_of_work(
        &self,
        workers_state: &WorkersState,
        item: usize,
        end_commit: &CommitId,
    ) -> String;

    /// Carries the notes that sessions wrote into their copies of the plan over to the plan that keeps them.
    fn carry_over_session_notes(&self, item: usize) -> Result<(), StoreError>;

    /// Adds the notes that belong to an item's work to a plan that is about to be committed.
    fn add_session_notes_to_plan(&self, plan: Vec<u8>, item: usize) -> Result<Vec<u8>, StoreError>;

    /// Returns the plan with notes that are committed with no item's work. Returns `None` if there cannot be
    /// such notes.
    fn read_plan_with_late_notes(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Checks the target and the plan once every item is merged.
    fn check_completed_run(&self) -> CompletionCheck;
}

/// Whether the offered work on an item is in the repository in which results are merged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfferedWork {
    Available,
    /// It may come; a later round merges it.
    NotYet,
    /// It cannot be merged, so the item is sent back.
    Unavailable(PlimsollRepositoryError),
}

impl OfferedWork {
    /// Returns whether the work can be merged or why not, or `None` if that is not known yet.
    pub(super) fn into_result_unless_not_yet(self) -> Option<Result<(), PlimsollRepositoryError>> {
        match self {
            OfferedWork::Available => Some(Ok(())),
            OfferedWork::NotYet => None,
            OfferedWork::Unavailable(error) => Some(Err(error)),
        }
    }
}

/// The result of the check of a completed run.
#[derive(Debug, Default)]
pub(super) struct CompletionCheck {
    /// Messages for the user.
    pub(super) notes: Vec<String>,
    /// Why the run does not count as completed.
    pub(super) objection: Option<String>,
}
