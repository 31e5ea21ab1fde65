//! Errors of a parallel run.

use crate::run::lifecycle::StartError;
use crate::workers::project_checkout::UnsuitableRepository;
use plimsoll_domain::git_names::{InvalidBranchName, InvalidCommitId};
use plimsoll_launcher::plimsoll_repository::PlimsollRepositoryError;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree::WorktreeError;
use plimsoll_store::StoreError;

/// Why a parallel run could not begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkersError {
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The repository is not suitable for workers.
    #[error(transparent)]
    Repository(#[from] UnsuitableRepository),
    /// The branch of the run could not be created.
    #[error("cannot create the branch `{0}`: is there a branch `plimsoll`?")]
    CannotCreateTarget(String),
    /// The worktree for merging could not be prepared.
    #[error("cannot prepare the worktree for merging: {0}")]
    CannotPrepareMergeWorktree(String),
    /// Verify commands could not be run.
    #[error("cannot check what passes before the first item: {0}")]
    CannotRunVerifyCommands(String),
    /// The shared board could not be used.
    #[error(transparent)]
    Board(#[from] BoardError),
}

impl From<MergeError> for WorkersError {
    fn from(error: MergeError) -> WorkersError {
        match error {
            MergeError::Store(error) => WorkersError::Store(error),
            MergeError::Board(error) => WorkersError::Board(error),
            error => WorkersError::CannotPrepareMergeWorktree(error.to_string()),
        }
    }
}

/// Why an operation on the shared board failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// The claim's epoch is stale: another machine has the item.
    #[error("another process has taken it over")]
    StaleEpoch,
    /// The board cannot be reached; waiting may help.
    #[error("{0}")]
    Unreachable(String),
    /// A permanent error; retrying cannot help.
    #[error("{0}")]
    Permanent(String),
}

impl BoardError {
    /// Returns true if the board cannot be reached, so that waiting may help.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, BoardError::Unreachable(_))
    }
}

/// Why a merge round failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] WorktreeError),
    #[error("the branch {0} no longer exists")]
    TargetBranchMissing(String),
    #[error("the branch {0} is checked out and cannot be moved: switch to another one with git switch")]
    TargetBranchCheckedOut(String),
    #[error("it was given up")]
    Aborted,
    #[error(transparent)]
    OwnRepository(#[from] PlimsollRepositoryError),
    #[error(transparent)]
    InvalidCommitId(#[from] InvalidCommitId),
    #[error(transparent)]
    InvalidBranchName(#[from] InvalidBranchName),
    /// An error of the shared board. The merge is retried here or on another machine.
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error("the branch {0}: {1}")]
    Remote(String, RemoteError),
}

impl MergeError {
    /// Returns true if waiting may help, or if another machine continues the merge.
    pub(super) fn is_transient(&self) -> bool {
        matches!(
            self,
            MergeError::Board(BoardError::Unreachable(_) | BoardError::StaleEpoch)
                | MergeError::Remote(_, RemoteError::Unreachable(_))
        )
    }
}
