//! Why a step of a parallel run fails.

use crate::run::lifecycle::StartError;
use crate::workers::ground::Unfit;
use plimsoll_domain::git_names::{InvalidBranchName, InvalidCommitId};
use plimsoll_launcher::own_repository::OwnRepositoryError;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree::WorktreeError;
use plimsoll_store::StoreError;

/// Why a parallel run could not begin, or go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkersError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The repository.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The branch of the run is taken by another.
    #[error(
        "cannot create the branch `{0}`, on which the work comes together: is there a branch `plimsoll`?"
    )]
    NoTarget(String),
    /// The place where results come together.
    #[error("cannot prepare the worktree in which results come together: {0}")]
    NoMerger(String),
    /// Verify commands could not be run.
    #[error("cannot find out what passes before the first item: {0}")]
    NothingLearned(String),
    /// The board that is shared with others.
    #[error(transparent)]
    Board(#[from] BoardError),
}

impl From<MergeError> for WorkersError {
    fn from(error: MergeError) -> WorkersError {
        match error {
            MergeError::Store(error) => WorkersError::Store(error),
            MergeError::Board(error) => WorkersError::Board(error),
            other => WorkersError::NoMerger(other.to_string()),
        }
    }
}

/// Why the shared board did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// Somebody else has it.
    #[error("somebody else has taken it over meanwhile")]
    Fenced,
    /// It cannot be reached; waiting may help.
    #[error("{0}")]
    Away(String),
    /// It will not, however often it is asked.
    #[error("{0}")]
    Refused(String),
}

impl BoardError {
    /// True for what waiting may end.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, BoardError::Away(_))
    }
}

/// Why nothing can be merged now.
#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] WorktreeError),
    #[error("the branch {0} is gone")]
    NoTarget(String),
    #[error("the branch {0} is checked out, and would move under its files: git switch another one")]
    CheckedOut(String),
    #[error("it was given up")]
    GivenUp,
    #[error(transparent)]
    Own(#[from] OwnRepositoryError),
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    BadBranch(#[from] InvalidBranchName),
    /// What is shared with others: it is tried again, here or elsewhere.
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error("the branch {0}: {1}")]
    Remote(String, RemoteError),
}

impl MergeError {
    /// True for what waiting may end, and for what another machine goes on with.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            MergeError::Board(BoardError::Away(_) | BoardError::Fenced)
                | MergeError::Remote(_, RemoteError::Away(_))
        )
    }
}
