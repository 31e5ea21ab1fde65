//! `plimsoll run`: works through a task unattended.

use crate::answers::{self, AnswerError};
use crate::branch;
use crate::changed_checks;
use crate::endings::{hint_to_resume_and_allow_refused_tools, resume_command};
use crate::linear_reporter::wrap_with_linear_delivery_if_configured;
use crate::other_plans;
use crate::plan_checks;
use crate::questions;
use crate::reviews;
use crate::task_arguments::{CHECKS, SESSIONS, TASK, TaskArguments, TaskError, WHILE_IT_RUNS, WORKERS};
use clap::Args;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::state::{DeliveryMode, WorkerOptions};
use plimsoll_domain::text::{capitalize, to_safe_single_line};
use plimsoll_domain::{Marker, RunState, Verdict};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::{NewRun, ResumeChanges, ResumeOutcome, StartError, StoredLaunchOptions};
use plimsoll_flows::run::permissions;
use plimsoll_flows::run::protect;
use plimsoll_flows::run::sandbox::{self, SandboxError};
use plimsoll_flows::run::{
    LaunchOptions, Preflight, RunError, check_client_prepare_hooks_and_lock_run, run_sessions as run_flow,
};
use plimsoll_flows::run_context::RunContext;
use plimsoll_flows::telemetry;
use plimsoll_flows::workers::{self, WorkersError, project_checkout};
use plimsoll_policy::tool_permissions::add_unlisted_refused_tools_to_allowed;
use plimsoll_store::{Project, StoreError, config, disk, environment, state_file};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail_with_hint, print_hint, print_notice, print_text, print_warning};
use plimsoll_terminal::project_choice;
use plimsoll_terminal::run_progress::telemetry::with_telemetry_export_and_start_errors_if_any;
use plimsoll_terminal::run_progress::{self, ProgressFormat, new_run_observer_handling_signals};
use plimsoll_terminal::value_parsers::{self, ValueError};
use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;

/// A run.
#[derive(Debug, Args)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// The task, as with --objective
    #[arg(id = "words", value_name = "OBJECTIVE", conflicts_with_all = ["objective", "objective_file", "resume"])]
    positional_objective: Option<String>,
    #[command(flatten)]
    task: TaskArguments,
    /// The path of Claude Code [default: claude; with --resume as when the run was started]
    #[arg(long, value_name = "PATH", help_heading = SESSIONS, hide_short_help = true)]
    client: Option<String>,
    /// Continue the run of this project
    #[arg(long, help_heading = TASK)]
    resume: bool,
    /// With --resume: close the circuit breaker
    ///
    /// The next session is a trial.
    #[arg(long, requires = "resume", help_heading = TASK)]
    reset_breaker: bool,
    /// With --resume: first answer question N of `plimsoll status`
    ///
    /// `-` reads the text from standard input. Repeat the option to answer several questions.
    #[arg(long, num_args = 2, value_names = ["N", "TEXT"], allow_negative_numbers = true, requires = "resume", help_heading = TASK)]
    answer: Vec<String>,
    /// Review ticked items in a session that can only read [default: off]
    ///
    /// It runs after each `item`, or after each N items, before their ticks count. It looks at the diff; what it finds is open
    /// points for the next session, at most twice an item.
    #[arg(long, value_name = "item|N|off", value_parser = value_parsers::review_interval_from_item_off_or_number, help_heading = CHECKS)]
    review: Option<u32>,
    /// The model that reviews [default: the sessions' own]
    #[arg(long, value_name = "NAME", requires = "review", help_heading = CHECKS, hide_short_help = true)]
    review_model: Option<String>,
    /// End Claude Code after this much silence (30m, 90s; 0: never) [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::seconds_from_minutes_or_duration, help_heading = SESSIONS, hide_short_help = true)]
    idle_timeout: Option<u64>,
    /// The limit while a tool runs, such as a long build (3h; 0: never) [default: 2h]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::seconds_from_minutes_or_duration, help_heading = SESSIONS, hide_short_help = true)]
    tool_timeout: Option<u64>,
    /// Share the plan among N workers, each item in its own worktree
    ///
    /// What they do comes together on one branch. With --resume: another number.
    #[arg(long, value_name = "N", value_parser = value_parsers::workers, help_heading = WORKERS)]
    workers: Option<usize>,
    /// With --workers: a command that prepares each worktree (`npm ci`)
    #[arg(long, value_name = "CMD", requires = "workers", conflicts_with = "resume", help_heading = WORKERS)]
    setup: Option<String>,
    /// With --workers: leave the work on its branch, or merge it at the end
    ///
    /// Merging moves the branch that is checked out forward.
    #[arg(long, value_name = "WHERE", default_value = "branch", requires = "workers", conflicts_with = "resume", help_heading = WORKERS, hide_short_help = true)]
    deliver: DeliveryArgument,
    /// A program to start at the end, at pauses and for questions
    ///
    /// It gets JSON on its standard input; no shell is used.
    #[arg(long, value_name = "CMD", help_heading = WHILE_IT_RUNS)]
    notify: Option<String>,
    /// Do not wait during pauses: exit with 6 instead
    #[arg(long, help_heading = WHILE_IT_RUNS, hide_short_help = true)]
    no_wait: bool,
    /// Print each step as one JSON object per line, as in the journal
    #[arg(long, help_heading = WHILE_IT_RUNS, hide_short_help = true)]
    json: bool,
    /// What `--workers` tells the run of a single item of the whole plan, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    item_brief: Option<PathBuf>,
    /// Arguments for Claude Code, such as `--model opus --allowedTools Bash`
    ///
    /// With --resume the earlier ones are used unless you give others.
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    client_arguments: Vec<String>,
}

/// The delivery of the work of several workers.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DeliveryArgument {
    /// It stays on the run's branch; the end says how to merge it
    Branch,
    /// The branch that is checked out is moved forward to it, if nothing is in the way
    Merge,
}

const SHORT_EXAMPLES: &str = "\
Examples:
  plimsoll run --verify 'cargo test' -- --allowedTools Bash Edit Write
  plimsoll run --resume                    after Ctrl-C, a crash, a reboot

`plimsoll run --help` shows all options, more examples, and the exit codes.";

const EXAMPLES: &str = "\
Examples:
  plimsoll run --verify 'cargo test' -- --allowedTools Bash Edit Write
  plimsoll run 'Translate docs/ into German.' --todo pages.md --deadline 07:00 \\
    --max-cost 20 -- --allowedTools Bash Edit Write
  plimsoll run --branch night -- --allowedTools Bash Edit Write
    leaves the branch that is checked out as it is; the end says how to merge
  plimsoll run --workers 3 --verify 'npm test' -- --allowedTools Bash Edit Write
    works on three items at a time and merges each when it is done
  plimsoll run --resume                    after Ctrl-C, a crash, a reboot
  plimsoll run --resume --reset-breaker    after you have fixed the cause
  plimsoll run --resume --answer 1 'Use port 8042'
    answers an open question of `plimsoll status` and continues

Exit codes:
  0    completed
  1    could not run
  2    wrong usage
  3    a limit: iterations, cost, tokens, deadline
  4    the circuit breaker is open
  5    a fatal error
  6    paused
  7    blocked: everything open waits for your answer, or only the promise is missing
  9    canceled by `plimsoll stop`
  130  ended by you; --resume continues";

/// Starts or resumes a run. The exit code says how it ended (0 completed, 3 limits, 4 breaker, 5 fatal, 6 paused, 7 blocked,
/// 9 canceled, 130 interrupted, 1 could not run).
pub(crate) fn start_or_resume_run(arguments: &RunArguments) -> ExitCode {
    plimsoll_launcher::git::use_query_timeout_of_runs();
    let project = if arguments.resume {
        Project::find_upwards_from_current_dir()
    } else {
        project_choice::find_project_for_new_run_and_print_notice(arguments.task.plan_file())
    };
    match start_or_resume_and_print_next_steps(&project, arguments) {
        Ok(exit_code) => ExitCode::from(exit_code),
        Err(error) => {
            let exit_code = fail_with_hint(&error, error.hint());
            if error.is_missing_task_or_required_plan() {
                other_plans::render_lines(&project).iter().for_each(print_hint);
            }
            exit_code
        }
    }
}

/// The reason why a run did not start, or could not continue.
#[derive(Debug, Error)]
enum RunCommandError {
    #[error("{0}; {hint}", hint = .0.hint())]
    Settings(StoreError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("--notify takes {0}")]
    InvalidNotifyCommand(ValueError),
    #[error(
        "`{0}` was not found: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )]
    ClientNotFound(String),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    Workers(#[from] WorkersError),
    #[error(transparent)]
    UnsuitableRepository(#[from] project_checkout::UnsuitableRepository),
    #[error("{0} cannot be used with --workers yet: leave one of them out")]
    ConflictsWithWorkers(&'static str),
    #[error("this run has no workers: --workers is only for a new run")]
    RunHasNoWorkers,
    #[error("--item-brief {0}: there is no such file")]
    ItemBriefMissing(PathBuf),
    #[error("--item-brief {file}: {error}")]
    ItemBrief { file: PathBuf, error: serde_json::Error },
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("this run belongs to the fleet `{0}`: plimsoll fleet join {0} continues it")]
    BelongsToFleet(String),
}

impl RunCommandError {
    /// Returns true if there is no task, or no plan although `--review` or `--workers` needs one.
    fn is_missing_task_or_required_plan(&self) -> bool {
        matches!(
            self,
            RunCommandError::Start(
                StartError::NoTask | StartError::NoPlanForReview | StartError::NoPlanForWorkers
            )
        )
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            RunCommandError::Sandbox(error) => error.fix_hint(),
            _ => None,
        }
    }
}

fn start_or_resume_and_print_next_steps(
    project: &Project,
    arguments: &RunArguments,
) -> Result<u8, RunCommandError> {
    check_settings_and_print_ignored_keys(project)?;
    let launch_inputs = LaunchInputs::from_arguments_and_stored_options(project, arguments)?;
    let mut options = launch_inputs.options.clone();
    let (preflight, state) = if arguments.resume {
        match check_and_resume_with_answers(project, arguments, launch_inputs)? {
            (preflight, ResumeOutcome::Open(state)) => (preflight, *state),
            (_, ResumeOutcome::Ended(state)) => {
                return Ok(print_ended_run_with_zero_code_if_final(&state, arguments.json));
            }
        }
    } else {
        check_and_create_with_warnings(project, arguments, launch_inputs)?
    };
    // Reads the user's current settings, but the project's settings as they were when the run started.
    let settings = config::load_for_run(project, &state.run_id);
    let progress_format =
        if arguments.json { ProgressFormat::Json } else { ProgressFormat::for_current_terminal() };
    let observer =
        new_run_observer_handling_signals(progress_format, "--resume").map_err(RunCommandError::Signals)?;
    let telemetry_exporter = telemetry::start_exporter_if_configured_and_installed(project, &state);
    options.exports_spans = telemetry_exporter.exports_spans;
    let observer = with_telemetry_export_and_start_errors_if_any(telemetry_exporter, observer);
    let mut observer =
        wrap_with_linear_delivery_if_configured(project, &settings, state.run_id.clone(), observer);
    let context = RunContext { project, settings: &settings, run_id: &state.run_id };
    let result = if state.options.workers.is_some() {
        let reset_breaker = arguments.reset_breaker;
        workers::run_parallel_plan(context, &options, preflight, &state, reset_breaker, observer.as_mut())
            .map_err(RunCommandError::from)
    } else {
        run_flow(context, &options, preflight, &state, observer.as_mut()).map_err(RunCommandError::from)
    };
    // Removes the progress bar before anything else is printed.
    drop(observer);
    let exit_code = result?;
    if progress_format != ProgressFormat::Json {
        print_next_steps_after_run(project);
    }
    Ok(exit_code)
}

/// Prints a warning about each ignored setting. Returns an error if the settings cannot be read.
fn check_settings_and_print_ignored_keys(project: &Project) -> Result<(), RunCommandError> {
    let config::LoadedSettings { error: settings_error, ignored_keys: ignored, .. } =
        config::load_with_ignored_keys(project);
    if let Some(error) = settings_error {
        return Err(RunCommandError::Settings(error));
    }
    for (file, ignored_key) in &ignored {
        let message =
            to_safe_single_line(&format!("{}: {}", project.relative_to_root(file), ignored_key.describe()));
        print_warning(&format!("{message}\nhint: run `plimsoll doctor`"));
    }
    Ok(())
}

/// The launch options from the command line. On resume, missing ones are taken from the stored options of the run.
struct LaunchInputs {
    options: LaunchOptions,
    client_name: Option<String>,
    notify_command: Option<Vec<String>>,
}

impl LaunchInputs {
    fn from_arguments_and_stored_options(
        project: &Project,
        arguments: &RunArguments,
    ) -> Result<LaunchInputs, RunCommandError> {
        // Invalid arguments and a missing client are detected before anything is written.
        let notify_command =
            arguments.notify.as_deref().map(value_parsers::split_command_into_words).transpose();
        let notify_command = notify_command.map_err(RunCommandError::InvalidNotifyCommand)?;
        let stored_options = if arguments.resume {
            lifecycle::load_launch_options(project)?
        } else {
            StoredLaunchOptions::default()
        };
        let client_name = arguments.client.clone().or(stored_options.client);
        let use_stored_client_arguments = arguments.client_arguments.is_empty();
        let client_arguments = if use_stored_client_arguments {
            stored_options.client_arguments
        } else {
            arguments.client_arguments.clone()
        };
        let program_name = client_name.clone().unwrap_or_else(|| "claude".to_owned());
        let client =
            environment::find_program(&program_name).ok_or(RunCommandError::ClientNotFound(program_name))?;
        let options = LaunchOptions {
            client: to_absolute_path(client),
            client_arguments,
            uses_working_memory: arguments.task.memory() || stored_options.uses_working_memory,
            should_wait: !arguments.no_wait,
            exports_spans: false,
        };
        Ok(LaunchInputs { options, client_name, notify_command })
    }
}

fn check_and_resume_with_answers(
    project: &Project,
    arguments: &RunArguments,
    launch_inputs: LaunchInputs,
) -> Result<(Preflight, ResumeOutcome), RunCommandError> {
    let resume_changes = ResumeChanges {
        client: launch_inputs.client_name,
        client_arguments: launch_inputs.options.client_arguments.clone(),
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        notify_command: launch_inputs.notify_command,
        items_per_review: arguments.review,
        review_model: arguments.review_model.clone(),
        worker_count: arguments.workers,
        item_brief: arguments.read_item_brief_file()?,
        resets_breaker: arguments.reset_breaker,
        ..arguments.task.to_resume_changes_unless_new_run_options()?
    };
    sandbox::check_sandbox_for_resume(project, arguments.task.verify_sandbox())?;
    let preflight = check_client_prepare_hooks_and_lock_run(project, &launch_inputs.options)?;
    let saved_options = state_file::load_state(project, None)?.map(|state| state.options).unwrap_or_default();
    preflight.check_review_support(
        &launch_inputs.options,
        resume_changes.items_per_review.unwrap_or(saved_options.items_per_review),
    )?;
    match &saved_options.workers {
        Some(WorkerOptions { fleet_name: Some(fleet), .. }) => {
            return Err(RunCommandError::BelongsToFleet(fleet.clone()));
        }
        // The branch of a run with workers is not checked out in the user's worktree.
        Some(_) => {}
        None if arguments.workers.is_some_and(|count| count > 1) => {
            return Err(RunCommandError::RunHasNoWorkers);
        }
        None => lifecycle::switch_back_with_notice_before_resume(project)?.iter().for_each(print_notice),
    }
    if !arguments.answer.is_empty() {
        // The answers are written after all other checks. They stay in the plan even if the resume itself fails.
        answers::write_answers_to_plan(project, &arguments.answer)?.sentences.iter().for_each(print_notice);
    }
    let resume_outcome = lifecycle::resume_run(project, &resume_changes)?;
    Ok((preflight, resume_outcome))
}

fn check_and_create_with_warnings(
    project: &Project,
    arguments: &RunArguments,
    launch_inputs: LaunchInputs,
) -> Result<(Preflight, RunState), RunCommandError> {
    let new_run = NewRun {
        client: launch_inputs.client_name,
        client_arguments: launch_inputs.options.client_arguments.clone(),
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        notify_command: launch_inputs.notify_command.unwrap_or_default(),
        items_per_review: arguments.review.unwrap_or(0),
        review_model: arguments.review_model.clone(),
        workers: worker_options_if_parallel(arguments)?,
        item_brief: arguments.read_item_brief_file()?,
        ..arguments.task.read_objective_and_build_new_run()?
    };
    let new_run = match &arguments.positional_objective {
        Some(objective) if disk::is_file(&environment::current_dir().join(objective)) => {
            return Err(TaskError::ObjectiveIsFile(objective.clone()).into());
        }
        Some(objective) => NewRun { objective: Some(objective.clone()), ..new_run },
        None => new_run,
    };
    if new_run.workers.is_some() {
        project_checkout::check_suitable_for_workers(project)?;
    }
    if new_run.verify_sandbox {
        sandbox::check_sandbox_available(project)?;
    }
    let preflight = check_client_prepare_hooks_and_lock_run(project, &launch_inputs.options)?;
    preflight.check_review_support(&launch_inputs.options, new_run.items_per_review)?;
    if new_run.workers.is_some() {
        protect::unprotected_parallel_run_warning(project).iter().for_each(print_warning);
    }
    let changed_files_warning = protect::warning_if_last_run_left_protected_changes(project);
    let state = lifecycle::create_run(project, &new_run)?;
    changed_files_warning.iter().for_each(print_warning);
    // With `--json`, which workers use too, a program reads the output, so nobody would see the advice.
    if !arguments.json {
        sandbox::hint_if_verify_runs_outside_client_sandbox(project, &state.options)
            .iter()
            .for_each(print_hint);
        warning_if_bash_seems_disallowed(project, &state).iter().for_each(print_warning);
    }
    if state.options.todo_file.is_none() {
        other_plans::render_lines(project).iter().for_each(print_hint);
    }
    lifecycle::warning_if_no_open_items(&state).iter().for_each(print_warning);
    plan_checks::render_planned_checks_or_not_run_note(&state).iter().for_each(print_notice);
    if let Some(waiting_note) = questions::waiting_item_count_text(&state) {
        print_notice(&format!(
            "{waiting_note}; sessions skip it until then\nhint: to see the questions: plimsoll status"
        ));
    }
    Ok((preflight, state))
}

/// Returns a warning if the client probably does not allow Bash: nobody can grant permission during an unattended run.
fn warning_if_bash_seems_disallowed(project: &Project, run: &RunState) -> Option<String> {
    if permissions::is_bash_probably_allowed(project, &run.options.client_arguments) {
        return None;
    }
    let process_arguments =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let arguments_before_dashes = process_arguments.take_while(|argument| argument != "--");
    let client_arguments =
        add_unlisted_refused_tools_to_allowed(&run.options.client_arguments, &["Bash".to_owned()])?;
    let command_arguments: Vec<String> =
        arguments_before_dashes.chain(["--".to_owned()]).chain(client_arguments).collect();
    let command = shlex::try_join(command_arguments.iter().map(String::as_str)).ok()?;
    Some(format!(
        "neither the arguments nor the settings of Claude Code seem to allow Bash, and nobody will be there to ask, \
         so sessions may be refused builds, tests and commits; to allow it: plimsoll {command}"
    ))
}

impl RunArguments {
    /// Reads the file of `--item-brief`, which describes the whole plan to the run of a single item. Returns `None`
    /// without the option.
    fn read_item_brief_file(&self) -> Result<Option<ItemBrief>, RunCommandError> {
        let Some(file) = &self.item_brief else { return Ok(None) };
        let bytes = disk::read(file)?.ok_or_else(|| RunCommandError::ItemBriefMissing(file.clone()))?;
        let brief = serde_json::from_slice(&bytes)
            .map_err(|error| RunCommandError::ItemBrief { file: file.clone(), error })?;
        Ok(Some(brief))
    }
}

/// Returns the worker options, or `None` unless there are at least two workers. Fails if another option is incompatible with them.
fn worker_options_if_parallel(arguments: &RunArguments) -> Result<Option<WorkerOptions>, RunCommandError> {
    let Some(count) = arguments.workers.filter(|count| *count > 1) else { return Ok(None) };
    if let Some(option) = arguments.task.option_unusable_with_workers() {
        return Err(RunCommandError::ConflictsWithWorkers(option));
    }
    let mode = match arguments.deliver {
        DeliveryArgument::Branch => DeliveryMode::Branch,
        DeliveryArgument::Merge => DeliveryMode::Merge,
    };
    Ok(Some(WorkerOptions {
        worker_count: count,
        setup_command: arguments.setup.clone(),
        delivery_mode: mode,
        ..WorkerOptions::default()
    }))
}

/// Prints the open questions and the resume command if the run can be resumed, then what to review and where to see what happened.
fn print_next_steps_after_run(project: &Project) {
    let Some(mut state) = state_file::load_state(project, None).ok().flatten() else { return };
    plimsoll_flows::run::questions::refresh_open_questions(project, &mut state);
    if !state.lifecycle.status().is_final() {
        questions::questions_and_answer_command(&state).iter().for_each(print_notice);
    }
    if !state.lifecycle.status().is_final() {
        print_hint(&format!("to continue: {}", resume_command(&state)));
        if let Some(hint) = hint_to_resume_and_allow_refused_tools(&state) {
            print_hint(&hint);
        }
    }
    reviews::cost_findings_and_missing_review_lines(&state).iter().for_each(print_notice);
    changed_checks::changed_protected_sentence(&state).iter().for_each(print_warning);
    if let Some(sentence) = changed_checks::changed_check_files_sentence(&state) {
        print_warning(&sentence);
        changed_checks::git_diff_command_for_changed_check_files(&state)
            .iter()
            .for_each(|command| print_hint(&format!("to see it: {command}")));
    }
    if let Some(line) = branch::render_branch_and_merge_command(&state) {
        print_notice(&line);
    }
    if !state.context_history.is_empty() {
        print_hint(&"to see what happened: plimsoll report --open, or plimsoll log");
    }
}

/// Prints that the run has ended, and returns the exit code: 0 if the run can never be reopened (completed or canceled),
/// else the code of its status. In the latter case, also prints how to reopen the run.
fn print_ended_run_with_zero_code_if_final(state: &RunState, as_json: bool) -> u8 {
    let has_final_status = state.lifecycle.status().is_final();
    let reason = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. }) if !has_final_status => reason.clone(),
        _ => "this run has ended".to_owned(),
    };
    let exit_code = if has_final_status { 0 } else { state.lifecycle.status().exit_code() };
    let marker = Marker::Stop { status: state.lifecycle.status(), reason };
    if as_json {
        console::print_json(run_progress::render_run_ended_line(state, &marker, exit_code));
    } else if !console::is_terminal() {
        print_text(marker);
    } else if !has_final_status {
        // The line below also says that the run has ended, but not why.
        print_text(capitalize(&console::describe_marker(&marker)));
    }
    if !has_final_status && !as_json {
        questions::questions_and_answer_command(state).iter().for_each(print_notice);
    }
    let name = to_safe_single_line(&state.options.task_name);
    let ended_sentence = format!("the run \"{name}\" has ended ({})", state.lifecycle.status());
    if has_final_status {
        print_notice(&format!("{ended_sentence} and cannot be resumed"));
    } else {
        print_notice(&format!("{ended_sentence}\nhint: to resume it: {}", resume_command(state)));
    }
    exit_code
}

fn to_absolute_path(path: PathBuf) -> PathBuf {
    environment::current_dir().join(path)
}
