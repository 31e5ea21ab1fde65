//! Reasons why git gave no result or made no commit.

use std::time::Duration;
use thiserror::Error;

/// The reason why a git operation failed. The text goes to the handoff and the journal; newlines are removed
/// when it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum GitError {
    /// A query did not finish before its time limit.
    #[error("git took too long")]
    TimedOut,
    /// The output is a list longer than we read.
    #[error("git lists too many files")]
    TooManyFiles,
    /// Git's own error message, or the last line that git or a hook of the user's printed.
    #[error("{0}")]
    Failed(String),
    /// A rebase, a merge or the like is in progress: a commit would end it or become a part of it.
    #[error("{0} is in progress")]
    OperationInProgress(&'static str),
    /// A merge left conflicts.
    #[error("there are files with conflicts")]
    Conflicts,
    /// Another git process holds the lock of the index.
    #[error("index.lock exists: another git is running, or one has crashed")]
    IndexLocked,
    /// The commit, including the user's hooks, did not finish in time.
    #[error("the commit took longer than {} seconds", .0.as_secs())]
    CommitTimedOut(Duration),
}
