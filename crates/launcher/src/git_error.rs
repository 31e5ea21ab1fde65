//! Why git gave no answer, or made no commit.

use std::time::Duration;
use thiserror::Error;

/// Words for the handoff and the journal, on one line once they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum GitError {
    /// A question was not answered by its deadline.
    #[error("git took too long")]
    TookTooLong,
    /// A list longer than we read.
    #[error("git names too many files")]
    TooManyFiles,
    /// Its own verdict, or the last line that it or a hook of the user's printed.
    #[error("{0}")]
    Failed(String),
    /// A rebase, a merge, …: a commit would end it or become a part of it.
    #[error("{0} is under way")]
    Busy(&'static str),
    /// A merge left conflicts.
    #[error("there are files with conflicts")]
    Conflicts,
    /// Another git holds the index.
    #[error("index.lock is there: another git is at work, or one has died")]
    IndexLocked,
    /// The commit, with the user's hooks, was not made by its deadline.
    #[error("the commit took longer than {} seconds", .0.as_secs())]
    CommitTookTooLong(Duration),
}
