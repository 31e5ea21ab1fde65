//! Reasons why a run cannot start.

use crate::run::branch::BranchMismatch;
use crate::run::prompt::PromptError;
use plimsoll_domain::RunId;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_launcher::branch::BranchError;
use plimsoll_policy::protected::ProtectError;
use plimsoll_store::StoreError;

/// Why a run could not be started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// PROMPT.md cannot be read or written.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The volume ignores case, so the run would write its task to a file of the user. Git and our comparisons know it by
    /// its other name.
    #[error("the project has the file {} instead of PROMPT.md: rename it to PROMPT.md", to_safe_single_line(.0))]
    PromptSpelledDifferently(String),
    /// There are two texts, and it is unclear which one is the task.
    #[error(
        "there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)"
    )]
    TwoTasks,
    /// There is no text that could be the task.
    #[error(
        "there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE"
    )]
    NoTask,
    /// The plan file that was named does not exist.
    #[error("the plan {0} is missing: write it, or leave out --todo")]
    PlanMissing(String),
    /// The plan file cannot be used, for example because it has no open item.
    #[error("{0}")]
    UnusablePlan(String),
    /// Reviews need a plan, because without one nothing is ticked.
    #[error(
        "--review needs a plan, whose ticked items it reviews: write fix_plan.md, or name one with --todo"
    )]
    NoPlanForReview,
    /// Workers need a plan to share.
    #[error("workers need a plan, whose items they share: write fix_plan.md, or name one with --todo")]
    NoPlanForWorkers,
    /// Reviews need a repository, because without one there is no diff.
    #[error(
        "--review needs a git repository, whose diff it reviews, but {0} is not in one: run `git init`, or leave out --review"
    )]
    NoRepositoryToReview(String),
    /// The run's branch cannot be created or checked out.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// Another branch than the run's is checked out.
    #[error(transparent)]
    BranchMismatch(#[from] BranchMismatch),
    /// The project already has an open run.
    #[error(
        "the run \"{}\" ({run_id}) is {status} at session {iteration}: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`",
        to_safe_single_line(name)
    )]
    RunExists { name: String, run_id: RunId, status: RunStatus, iteration: u32 },
    #[error(transparent)]
    Protect(#[from] ProtectError),
    /// The client cannot work in a folder whose path is not UTF-8.
    #[error("the path {0:?} is not valid UTF-8, and Claude Code does not work in such a folder: rename it")]
    NotUtf8(std::path::PathBuf),
    /// The records of the run would be in a location that its sessions may write.
    #[error("{0}")]
    UnsafeRecordsLocation(String),
    /// The project has no run.
    #[error("there is no run in {0}: start one with `plimsoll run`")]
    NoRun(String),
    /// The state was not written by one of this user's runs.
    #[error("{0}")]
    StateNotWrittenByPlimsoll(String),
}
