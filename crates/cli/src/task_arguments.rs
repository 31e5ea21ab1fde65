//! The options for a run's task, checks and limits, which `run` and `start` share.

use clap::Args;
use plimsoll_domain::Timestamp;
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::promise::PromiseWord;
use plimsoll_domain::state::{CheckpointCommitMode, VerifyTiming};
use plimsoll_flows::run::lifecycle::{NewRun, ResumeChanges};
use plimsoll_policy::shell_loop::DEFAULT_PROMISE;
use plimsoll_store::{StoreError, disk, environment};
use plimsoll_terminal::value_parsers;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Headings of the options of `run` and `start`, in the order of the help. The short help (`-h`) omits options
/// that a new user does not need.
pub(crate) const TASK: &str = "Task";
pub(crate) const CHECKS: &str = "Checks";
const LIMITS: &str = "Limits";
const REPOSITORY: &str = "Repository";
pub(crate) const SESSIONS: &str = "Sessions";
pub(crate) const WORKERS: &str = "Workers";
pub(crate) const WHILE_IT_RUNS: &str = "While it runs";

/// The options that `run` and `start` share.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskArguments {
    /// The task; without it PROMPT.md is the task, or else what the plan says
    #[arg(long, value_name = "TEXT", conflicts_with = "objective_file", help_heading = TASK, hide_short_help = true)]
    objective: Option<String>,
    /// A file with the task
    #[arg(long, value_name = "FILE", help_heading = TASK, hide_short_help = true)]
    objective_file: Option<PathBuf>,
    /// A short name for the run
    #[arg(long, help_heading = TASK, hide_short_help = true)]
    name: Option<String>,
    /// The plan, with `- [ ]` lines [default: fix_plan.md, if it exists]
    #[arg(long, value_name = "FILE", help_heading = TASK)]
    todo: Option<String>,
    /// The word of the promise
    #[arg(long, default_value = DEFAULT_PROMISE, value_name = "WORD", value_parser = value_parsers::promise_word, help_heading = CHECKS, hide_short_help = true)]
    promise: PromiseWord,
    /// A command that must pass before completion is believed; repeatable
    #[arg(long, value_name = "CMD", help_heading = CHECKS)]
    verify: Vec<String>,
    /// When the --verify commands run [default: tick]
    ///
    /// Whatever it is, completion is believed only once all of them pass.
    #[arg(long, value_name = "WHEN", help_heading = CHECKS, hide_short_help = true)]
    verify_each: Option<VerifyMode>,
    /// Also run the plan's own checks, `(verify: CMD)`
    ///
    /// Each runs after its item is ticked, and all of them before completion is believed. Only checks that are in the plan when
    /// the run begins are used.
    #[arg(long, help_heading = CHECKS)]
    plan_verify: bool,
    /// Run all these commands in a sandbox without network
    ///
    /// The --verify commands, the plan's own checks and --setup see no network and an empty HOME, and write only to the project
    /// and a cache (Linux, with bubblewrap).
    #[arg(long, help_heading = CHECKS)]
    verify_sandbox: bool,
    /// Complete only with the exact promise line
    ///
    /// Without this option passing --verify commands complete the run once every item is ticked. With --resume, `=false`
    /// switches it off.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", help_heading = CHECKS, hide_short_help = true)]
    strict_promise: Option<bool>,
    /// A file or folder that no session may change; repeatable
    ///
    /// It must be in the project. While it differs from what it was when the run began, no tick counts and the run is not
    /// completed. Not with --workers. With --resume: protects more.
    #[arg(long, value_name = "PATH", help_heading = CHECKS)]
    protect: Vec<String>,
    /// End after N sessions [default: 50]
    #[arg(long, value_name = "N", value_parser = value_parsers::at_least_one, help_heading = LIMITS)]
    max_iterations: Option<u32>,
    /// End when this many US dollars are spent
    ///
    /// As reported by Claude Code, else estimated.
    #[arg(long, value_name = "USD", value_parser = value_parsers::dollars, help_heading = LIMITS)]
    max_cost: Option<f64>,
    /// Wait for tomorrow once all your runs have spent this much today
    #[arg(long, value_name = "USD", value_parser = value_parsers::dollars, help_heading = LIMITS)]
    max_cost_per_day: Option<f64>,
    /// End when this many tokens are used, of all kinds: 500k, 5M
    #[arg(long, value_name = "TOKENS", value_parser = value_parsers::tokens, help_heading = LIMITS)]
    max_tokens: Option<u64>,
    /// End at a time (07:00) or after a duration (8h, 90m)
    ///
    /// A time may have a date: "2026-01-07 07:00".
    #[arg(long, value_name = "TIME|DURATION", value_parser = value_parsers::deadline, help_heading = LIMITS)]
    deadline: Option<Timestamp>,
    /// Wait for the reset at this share of the 5-hour or weekly quota
    ///
    /// Only if Claude Code reports how much is used.
    #[arg(long, value_name = "PERCENT", value_parser = value_parsers::percent, help_heading = LIMITS)]
    stop_at_limit: Option<u8>,
    /// Work on this branch; it is created if it does not exist
    ///
    /// The end of the run says how to merge it [default: the current branch].
    #[arg(long, value_name = "NAME", help_heading = REPOSITORY)]
    branch: Option<String>,
    /// What to do with uncommitted work at a checkpoint [default: wip]
    #[arg(long, value_name = "MODE", help_heading = REPOSITORY, hide_short_help = true)]
    commit: Option<CommitMode>,
    /// Let commits run the repository's git hooks and filters
    ///
    /// A session may have written them. They then run with your rights, outside of Claude Code's sandbox; --verify is the place
    /// for checks.
    #[arg(long, help_heading = REPOSITORY, hide_short_help = true)]
    commit_hooks: bool,
    /// Let a session start the next item while its window has room
    #[arg(long, help_heading = SESSIONS)]
    pack: bool,
    /// Give the sessions the working memory
    ///
    /// Registers, frames and a heap persist between sessions.
    #[arg(long, help_heading = SESSIONS)]
    memory: bool,
}

/// How a checkpoint treats uncommitted work.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CommitMode {
    /// Commit it as `ralph: checkpoint …`, with --branch only on that branch
    Wip,
    /// Leave it as it is
    Off,
}

/// When the verify commands run.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum VerifyMode {
    /// Also after each session that ticked an item: the tick is taken back if a command fails that had passed
    Tick,
    /// Only before completion is believed
    Promise,
}

/// Default limit, so that a loop without a limit must be requested explicitly.
const DEFAULT_MAX_ITERATIONS: u32 = 50;

/// An error in the task options.
#[derive(Debug, Error)]
pub(crate) enum TaskError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the objective file {0} is missing")]
    MissingObjectiveFile(PathBuf),
    #[error(
        "`{0}` is a file: give it with --todo if it is the plan, or with --objective-file if it is the task"
    )]
    ObjectiveIsFile(String),
    #[error("{0} is only for a new run: --resume keeps the task, the plan, its checks and the branch")]
    OnlyForNewRun(&'static str),
}

impl TaskArguments {
    /// Converts the options to a new run. Fails if the objective file cannot be read.
    pub(crate) fn read_objective_and_build_new_run(&self) -> Result<NewRun, TaskError> {
        let objective = match &self.objective_file {
            Some(file) => Some(read_objective_file(file)?),
            None => self.objective.clone(),
        };
        Ok(NewRun {
            objective,
            name: self.name.clone(),
            plan_file: self.todo.clone(),
            max_iterations: self.max_iterations.unwrap_or(DEFAULT_MAX_ITERATIONS),
            promise: self.promise.clone(),
            verify_commands: self.verify.clone(),
            verify_timing: self.verify_timing().unwrap_or_default(),
            runs_plan_checks: self.plan_verify,
            verify_sandbox: self.verify_sandbox,
            strict_promise: self.strict_promise.unwrap_or(false),
            protected_paths: self.protect.clone(),
            limits: self.limits(),
            branch: self.branch.clone(),
            commit_mode: self.commit_mode().unwrap_or_default(),
            runs_commit_hooks: self.commit_hooks,
            allows_several_items_per_session: self.pack,
            uses_working_memory: self.memory,
            ..NewRun::default()
        })
    }

    /// Returns the changes for a resumed run. Fails if an option is only for a new run.
    pub(crate) fn to_resume_changes_unless_new_run_options(&self) -> Result<ResumeChanges, TaskError> {
        let new_run_options = [
            (self.objective.is_some(), "--objective"),
            (self.objective_file.is_some(), "--objective-file"),
            (self.name.is_some(), "--name"),
            (self.todo.is_some(), "--todo"),
            // An agent may have changed the plan since the run started.
            (self.plan_verify, "--plan-verify"),
            (self.branch.is_some(), "--branch"),
        ];
        if let Some((_, option)) = new_run_options.iter().find(|(is_set, _)| *is_set) {
            return Err(TaskError::OnlyForNewRun(option));
        }
        Ok(ResumeChanges {
            max_iterations: self.max_iterations,
            verify_commands: Some(self.verify.clone()).filter(|verify| !verify.is_empty()),
            verify_timing: self.verify_timing(),
            verify_sandbox: self.verify_sandbox,
            strict_promise: self.strict_promise,
            added_protected_paths: self.protect.clone(),
            limits: self.limits(),
            commit_mode: self.commit_mode(),
            runs_commit_hooks: self.commit_hooks,
            allows_several_items_per_session: self.pack,
            uses_working_memory: self.memory,
            ..ResumeChanges::default()
        })
    }

    /// Returns the first option that is set and does not work with several workers.
    pub(crate) fn option_unusable_with_workers(&self) -> Option<&'static str> {
        let options = [
            (self.branch.is_some(), "--branch"),
            (self.memory, "--memory"),
            (self.pack, "--pack"),
            (matches!(self.commit, Some(CommitMode::Off)), "--commit off"),
        ];
        options.iter().find(|(is_set, _)| *is_set).map(|(_, option)| *option)
    }

    pub(crate) fn memory(&self) -> bool {
        self.memory
    }

    pub(crate) fn verify_sandbox(&self) -> bool {
        self.verify_sandbox
    }

    fn limits(&self) -> RunLimits {
        RunLimits {
            max_cost_usd: self.max_cost,
            max_cost_per_day_usd: self.max_cost_per_day,
            max_tokens: self.max_tokens,
            deadline: self.deadline.clone(),
            stop_at_limit_percent: self.stop_at_limit,
        }
    }

    fn verify_timing(&self) -> Option<VerifyTiming> {
        self.verify_each.map(|mode| match mode {
            VerifyMode::Tick => VerifyTiming::AfterTick,
            VerifyMode::Promise => VerifyTiming::BeforeCompletion,
        })
    }

    /// Returns the plan file, if the command line names one.
    pub(crate) fn plan_file(&self) -> Option<&str> {
        self.todo.as_deref()
    }

    fn commit_mode(&self) -> Option<CheckpointCommitMode> {
        self.commit.map(|mode| match mode {
            CommitMode::Wip => CheckpointCommitMode::Wip,
            CommitMode::Off => CheckpointCommitMode::Off,
        })
    }
}

fn read_objective_file(file: &Path) -> Result<String, TaskError> {
    let path = environment::current_dir().join(file);
    disk::read_text(&path)?.ok_or(TaskError::MissingObjectiveFile(path))
}
