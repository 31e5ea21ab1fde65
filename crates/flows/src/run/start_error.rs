//! Why a run cannot begin.

use crate::run::branch::OtherBranch;
use crate::run::prompt::PromptError;
use plimsoll_domain::RunId;
use plimsoll_domain::status::Status;
use plimsoll_domain::text::one_line;
use plimsoll_launcher::branch::BranchError;
use plimsoll_policy::protected::ProtectError;
use plimsoll_store::StoreError;

/// Why a run could not be started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// PROMPT.md.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// Two texts: it is not clear which one is meant.
    #[error(
        "there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)"
    )]
    TwoTasks,
    /// No text at all.
    #[error(
        "there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE"
    )]
    NoTask,
    /// The plan file that was named is not there.
    #[error("the plan {0} is missing: write it, or leave out --todo")]
    NoTodo(String),
    /// The plan file has no open item.
    #[error("{0}")]
    UnfitTodo(String),
    /// Without a plan nothing is ticked.
    #[error(
        "--review needs a plan, whose ticked items it reviews: write fix_plan.md, or name one with --todo"
    )]
    NoPlanToReview,
    /// Without a plan there is nothing to share.
    #[error("workers need a plan, whose items they share: write fix_plan.md, or name one with --todo")]
    NoPlanToShare,
    /// Without a repository there is no diff.
    #[error(
        "--review needs a git repository, whose diff it reviews, and {0} is in none: run `git init`, or leave out --review"
    )]
    NoRepositoryToReview(String),
    /// The branch.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// Another branch is checked out than the run's.
    #[error(transparent)]
    OtherBranch(#[from] OtherBranch),
    /// A run is there already.
    #[error(
        "the run \"{}\" ({run_id}) is {status} at iteration {iteration}: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`",
        one_line(name)
    )]
    RunThere {
        /// Its name.
        name: String,
        /// Its id.
        run_id: RunId,
        /// Its status.
        status: Status,
        /// Its current iteration.
        iteration: u32,
    },
    /// A file to protect cannot be protected.
    #[error(transparent)]
    Protect(#[from] ProtectError),
    /// The client cannot work there.
    #[error("the path {0:?} is not valid UTF-8, and Claude Code does not work in such a folder: rename it")]
    NotUtf8(std::path::PathBuf),
    /// The records of a run would be where its sessions may write.
    #[error("{0}")]
    UnfitRecords(String),
    /// There is none.
    #[error("there is no run in {0}: start one with `plimsoll run`")]
    NoRun(String),
    /// No run of this user wrote the state there.
    #[error("{0}")]
    Foreign(String),
}
