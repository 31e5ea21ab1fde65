//! Starts and inspects the run of an item: a separate `plimsoll run` process in the item's worktree, which may
//! outlive this process.

use crate::hook_invocation::RUN_VARIABLE;
use crate::run::labels;
use crate::run::review::MERGE_REPOSITORY_VARIABLE;
use crate::workers::project_checkout::ITEM_PLAN_FILE;
use crate::workers::worktrees::WORKER_VARIABLE;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::state::VerifyTiming;
use plimsoll_domain::text::{to_safe_single_line, truncate_end, truncate_start};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{DATABASE_URL_VARIABLE, WorkUsage};
use plimsoll_domain::{ProcessExit, RunId, RunState, RunStatus, Timestamp, Verdict};
use plimsoll_launcher::client::{self, ClientLaunch, ClientStartError, LaunchedClient};
use plimsoll_launcher::git;
use plimsoll_store::{Durability, Project, StoreError, clock, disk, environment, ledger, state_file};
use plimsoll_system::paths::program_path;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ItemRunOutcome {
    /// The item's run has completed.
    Done,
    /// The item waits for the user's answer to this question.
    WaitsForAnswer(String),
    /// A usage limit or an overload. The run continues after `limit_resets_at`, or after a backoff if that is `None`.
    PausedByLimit { limit_resets_at: Option<Timestamp>, reason: String, consecutive_pauses: u32 },
    /// The run's share of the budget in dollars or tokens is exhausted.
    BudgetExhausted,
    /// The deadline has passed.
    DeadlineReached,
    /// The run has reached its maximum number of sessions.
    SessionLimitReached,
    /// A fatal error: no session can succeed.
    FatalError(String),
    /// The run was interrupted.
    Interrupted,
    /// The run failed for this reason.
    Failed(String),
}

/// Everything that is needed to start an item's run.
#[derive(Debug)]
pub(super) struct ItemRunLaunch<'a> {
    pub(super) run_state: &'a RunState,
    pub(super) client_program: &'a Path,
    pub(super) project: &'a Project,
    /// The git folder of the repository in which results are merged.
    pub(super) merge_repository: &'a Path,
    pub(super) worker_number: usize,
    pub(super) item_text: &'a str,
    /// The item's number in the plan, from 1, and the number of the attempt.
    pub(super) item_number: usize,
    pub(super) attempt_number: u64,
    /// True if the spans of the parallel run are exported.
    pub(super) exports_spans: bool,
    /// Verify commands that must pass.
    pub(super) verify_commands: &'a [String],
    /// The context of the whole plan for the item's run.
    pub(super) brief: &'a ItemBrief,
    /// The file into which the brief is written.
    pub(super) brief_path: &'a Path,
    /// The file with the task, which is used if the worktree has no tracked `PROMPT.md`.
    pub(super) task_path: &'a Path,
    pub(super) max_sessions: u32,
    pub(super) max_cost_usd: Option<f64>,
    pub(super) max_tokens: Option<u64>,
    /// The file to which the run's events (its standard output) are appended.
    pub(super) output_path: &'a Path,
    /// The file to which the run's error messages (its standard error) are appended.
    pub(super) errors_path: &'a Path,
}

/// Why an item's run could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum ItemRunStartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotStarted(#[from] ClientStartError),
    #[error("cannot find the folder of plimsoll")]
    NoProgramFolder,
}

impl ItemRunLaunch<'_> {
    /// Writes the brief and starts the process. The process resumes the run in the worktree if that is possible,
    /// and begins a new run otherwise. Also returns whether it resumes a run.
    pub(super) fn write_brief_and_start_or_resume_process(
        &self,
    ) -> Result<(LaunchedClient, bool), ItemRunStartError> {
        let program_folder = environment::executable_folder().ok_or(ItemRunStartError::NoProgramFolder)?;
        let program = program_path(&program_folder, "plimsoll");
        let brief = serde_json::to_vec(self.brief).unwrap_or_default();
        disk::replace(self.brief_path, &brief, Durability::Lazy)?;
        let current_state = state_file::load_state(self.project, None)?;
        let continues_run = current_state
            .as_ref()
            .is_some_and(|current_state| can_continue_run(current_state.lifecycle.status()));
        let arguments = if continues_run {
            self.resume_arguments()
        } else {
            self.start_arguments_removing_untracked_prompt()?
        };
        let client = client::start_child_run(ClientLaunch {
            program: &program,
            arguments: &arguments,
            folder: self.project.root(),
            environment: &self.environment_variables(),
            // Variables that would make the process work on another run or use the board.
            removed_variables: &[
                RUN_VARIABLE,
                ledger::RUN_RECORD_VARIABLE,
                "RALPH_STATE_FILE",
                "CLAUDE_PROJECT_DIR",
                DATABASE_URL_VARIABLE,
            ],
            stdin: disk::open(self.task_path)?,
            stdout: disk::open_for_append(self.output_path)?,
            stderr: disk::open_for_append(self.errors_path)?,
        })?;
        Ok((client, continues_run))
    }

    fn environment_variables(&self) -> Vec<(String, String)> {
        let merge_repository = self.merge_repository.display().to_string();
        let worker_variables = [
            (WORKER_VARIABLE.to_owned(), self.worker_number.to_string()),
            (MERGE_REPOSITORY_VARIABLE.to_owned(), merge_repository),
        ];
        worker_variables
            .into_iter()
            .chain(labels::worker_telemetry_variables(
                self.run_state,
                self.item_number,
                self.attempt_number,
                self.exports_spans,
            ))
            .collect()
    }

    fn start_arguments_removing_untracked_prompt(&self) -> Result<Vec<String>, ItemRunStartError> {
        let options = &self.run_state.options;
        let mut arguments = to_owned_strings(&["run", "--json", "--no-wait", "--todo", ITEM_PLAN_FILE]);
        arguments.push(format!("--name={}", truncate_end(&to_safe_single_line(self.item_text), 60)));
        arguments.push(format!("--promise={}", options.completion_promise));
        // A tracked PROMPT.md is the task. An untracked one is from an earlier run and is removed, because a
        // session may have written it.
        if !git::is_tracked(self.project.root(), "PROMPT.md") {
            disk::remove_if_exists(&self.project.prompt_path())?;
            arguments.push(format!("--objective-file={}", self.task_path.display()));
        }
        if options.verify_timing == VerifyTiming::BeforeCompletion {
            arguments.push("--verify-each=promise".to_owned());
        }
        let flags = [
            (!options.plan_checks.is_empty(), "--plan-verify"),
            (options.strict_promise, "--strict-promise"),
            (options.runs_commit_hooks, "--commit-hooks"),
        ];
        arguments.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        let review_flags = [
            (options.items_per_review > 0).then(|| format!("--review={}", options.items_per_review)),
            options.review_model.as_ref().map(|name| format!("--review-model={name}")),
        ];
        arguments.extend(review_flags.into_iter().flatten());
        Ok(self.add_arguments_common_to_start_and_resume(arguments))
    }

    fn resume_arguments(&self) -> Vec<String> {
        self.add_arguments_common_to_start_and_resume(to_owned_strings(&[
            "run",
            "--resume",
            "--json",
            "--no-wait",
        ]))
    }

    fn add_arguments_common_to_start_and_resume(&self, mut arguments: Vec<String>) -> Vec<String> {
        let options = &self.run_state.options;
        arguments.extend(self.verify_commands.iter().map(|command| format!("--verify={command}")));
        arguments.extend(options.verify_sandbox.then(|| "--verify-sandbox".to_owned()));
        let limit_flags = [
            Some(format!("--max-iterations={}", self.max_sessions.max(1))),
            self.max_cost_usd.map(|max| format!("--max-cost={max:.4}")),
            options.limits.max_cost_per_day_usd.map(|max| format!("--max-cost-per-day={max}")),
            self.max_tokens.map(|max| format!("--max-tokens={max}")),
            options.limits.deadline.as_ref().map(|deadline| format!("--deadline={deadline}")),
            options.limits.stop_at_limit_percent.map(|percent| format!("--stop-at-limit={percent}")),
            options.idle_timeout_seconds.map(|seconds| format!("--idle-timeout={seconds}s")),
            options.tool_timeout_seconds.map(|seconds| format!("--tool-timeout={seconds}s")),
            Some(format!("--client={}", self.client_program.display())),
            Some(format!("--item-brief={}", self.brief_path.display())),
        ];
        arguments.extend(limit_flags.into_iter().flatten());
        arguments.push("--".to_owned());
        arguments.extend(options.client_arguments.iter().cloned());
        arguments
    }
}

fn to_owned_strings(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Returns true if a run with this status can be resumed. A run that was stuck is not resumed, because a new
/// run may succeed.
fn can_continue_run(status: RunStatus) -> bool {
    !status.is_final() && status != RunStatus::CircuitBreaker
}

/// Returns true if the next run in a worktree keeps the existing plan, with its ticks and notes. A run that
/// waits for an answer gets a new plan, which contains the answer.
pub(super) fn keeps_existing_plan(project: &Project) -> bool {
    let state = state_file::load_state(project, None).ok().flatten();
    let status = state.map(|state| state.lifecycle.status());
    status.is_some_and(|status| can_continue_run(status) && status != RunStatus::Blocked)
}

/// Returns true if the next attempt resumes the run in a worktree.
pub(super) fn has_run_to_continue(project: &Project) -> bool {
    let state = state_file::load_state(project, None).ok().flatten();
    state.is_some_and(|state| can_continue_run(state.lifecycle.status()))
}

/// Loads the state of an item's current run. Returns `None` if there is no state, or only that of an earlier
/// attempt.
pub(super) fn load_current_run(project: &Project, earlier_run_id: &str) -> Option<RunState> {
    let state = state_file::load_state(project, None).ok().flatten();
    state.filter(|state| earlier_run_id.is_empty() || state.run_id != earlier_run_id)
}

/// Loads the id of the run in a worktree if that run cannot be resumed, so that the next attempt begins a new
/// one. Returns an empty string otherwise.
pub(super) fn load_ended_run_id(project: &Project) -> Result<String, StoreError> {
    let state =
        state_file::load_state(project, None)?.filter(|state| !can_continue_run(state.lifecycle.status()));
    Ok(state.map(|state| state.run_id.to_string()).unwrap_or_default())
}

/// Loads the id of an item's current run.
pub(super) fn load_current_run_id(project: &Project, earlier_run_id: &str) -> Option<RunId> {
    load_current_run(project, earlier_run_id).map(|state| state.run_id)
}

/// Returns the usage of the ended sessions of an item's current run.
pub(super) fn usage_of_current_run(project: &Project, earlier_run_id: &str) -> WorkUsage {
    usage_of_ended_sessions_of_run(&load_current_run(project, earlier_run_id).unwrap_or_default())
}

/// Returns the usage of the ended sessions of a run. The session count includes the session that is running.
pub(super) fn usage_of_ended_sessions_of_run(state: &RunState) -> WorkUsage {
    WorkUsage {
        cost_usd: state.spending.cost_usd,
        cost_basis: state.spending.cost_basis(),
        tokens: state.spending.tokens,
        sessions: state.iteration,
    }
}

/// Returns true if an item's current run has ended and cannot be resumed.
pub(super) fn has_current_run_ended(project: &Project, earlier_run_id: &str) -> bool {
    load_current_run(project, earlier_run_id).is_some_and(|state| state.lifecycle.has_ended())
}

/// Returns the outcome of an item's run from its exit and its recorded state. A run without a state, or with an
/// exit that contradicts the state, has failed.
pub(super) fn item_run_outcome(
    project: &Project,
    earlier_run_id: &str,
    exit: &ProcessExit,
    errors_path: &Path,
) -> ItemRunOutcome {
    let Some(state) = load_current_run(project, earlier_run_id) else {
        return ItemRunOutcome::Failed(describe_abnormal_exit(errors_path, exit));
    };
    if exit.code == Some(ExitStatus::Interrupted.code().into()) {
        return ItemRunOutcome::Interrupted;
    }
    let reason = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. } | Verdict::Pause { reason, .. }) => to_safe_single_line(reason),
        Some(Verdict::Continue { .. }) | None => String::new(),
    };
    match state.lifecycle.status() {
        // The exit code is checked as well, because an agent can replace the state with that of an earlier
        // run of its worktree.
        RunStatus::Completed if exit.code.is_none_or(|code| code == 0) => ItemRunOutcome::Done,
        RunStatus::Completed => ItemRunOutcome::Failed(describe_abnormal_exit(errors_path, exit)),
        RunStatus::Blocked => match state.plan_items.parked_questions.first() {
            Some(parked_item) => ItemRunOutcome::WaitsForAnswer(parked_item.question.clone()),
            None => ItemRunOutcome::Failed(format!("it is blocked: {reason}")),
        },
        RunStatus::Paused => outcome_of_pause(&state, reason),
        RunStatus::MaxIterations => ItemRunOutcome::SessionLimitReached,
        RunStatus::Budget => ItemRunOutcome::BudgetExhausted,
        RunStatus::Deadline => ItemRunOutcome::DeadlineReached,
        RunStatus::FatalError => ItemRunOutcome::FatalError(reason),
        RunStatus::Canceled => ItemRunOutcome::Failed("its run was canceled".to_owned()),
        RunStatus::Running => ItemRunOutcome::Failed(describe_abnormal_exit(errors_path, exit)),
        // The run was stuck, or ended in another way that a new attempt may avoid.
        _ => ItemRunOutcome::Failed(reason),
    }
}

fn outcome_of_pause(state: &RunState, reason: String) -> ItemRunOutcome {
    match state.lifecycle.last_verdict() {
        Some(Verdict::Pause { kind: pause_kind, pause_end: until, .. }) => match pause_kind {
            PauseKind::Limit | PauseKind::Overload | PauseKind::Quota => ItemRunOutcome::PausedByLimit {
                limit_resets_at: until.clone(),
                reason,
                consecutive_pauses: state.lifecycle.consecutive_pauses(),
            },
            PauseKind::Interrupted => ItemRunOutcome::Interrupted,
            PauseKind::Thrash | PauseKind::Fault => ItemRunOutcome::Failed(reason),
        },
        // Ctrl-C between two sessions.
        Some(Verdict::Stop { .. } | Verdict::Continue { .. }) | None => ItemRunOutcome::Interrupted,
    }
}

fn describe_abnormal_exit(errors_path: &Path, exit: &ProcessExit) -> String {
    let stderr_tail = disk::read_last_lines(errors_path, 4_000).ok().flatten().unwrap_or_default();
    let stderr_tail = to_safe_single_line(&truncate_start(String::from_utf8_lossy(&stderr_tail).trim(), 400));
    let exit_text = match (exit.code, exit.signal) {
        (Some(code), _) => format!("its run ended with {code}"),
        (None, Some(signal)) => format!("its run was ended by signal {signal}"),
        (None, None) => "its run has crashed".to_owned(),
    };
    if stderr_tail.is_empty() { exit_text } else { format!("{exit_text}: {stderr_tail}") }
}

/// Returns when a pause ends, in milliseconds since the Unix epoch.
pub(super) fn pause_end_unix_millis(limit_resets_at: Option<&Timestamp>, pause_count: u32) -> u64 {
    let random_fraction = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    let now = clock::now();
    let wait_ms = match limit_resets_at.and_then(clock::parse_timestamp) {
        Some(reset_at) => {
            plimsoll_policy::pause::reset_wait_with_margin_ms((reset_at - now).num_seconds(), random_fraction)
        }
        None => plimsoll_policy::pause::backoff_ms(pause_count.max(1), random_fraction),
    };
    u64::try_from(now.timestamp_millis()).unwrap_or_default().saturating_add(wait_ms)
}

/// The files of an item's run, in the folder of the parallel run.
#[derive(Debug)]
pub(super) struct ItemRunFiles {
    /// The run's events, as JSON lines.
    pub(super) output: PathBuf,
    /// The run's error messages.
    pub(super) errors: PathBuf,
    /// The brief: the context of the whole plan for the item's run, as JSON.
    pub(super) brief: PathBuf,
}

pub(super) fn item_run_file_paths(
    main_project: &Project,
    run_state: &RunState,
    item_index: usize,
    epoch: u64,
) -> ItemRunFiles {
    let folder = main_project.run_folder(&run_state.run_id);
    let file = |extension: &str| folder.join(format!("worker-{:03}-{epoch}.{extension}", item_index + 1));
    ItemRunFiles { output: file("jsonl"), errors: file("err"), brief: file("brief.json") }
}
