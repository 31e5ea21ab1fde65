//! `plimsoll run`: works through a task unattended.

use crate::answers::{self, AnswerError};
use crate::branch;
use crate::changed_checks;
use crate::endings::{beside_way_on, way_on};
use crate::linear_reporter::reporting;
use crate::other_plans;
use crate::plan_checks;
use crate::questions;
use crate::reviews;
use crate::task_arguments::{CHECKS, SESSIONS, TASK, TaskArguments, TaskError, WHILE_IT_RUNS, WORKERS};
use clap::Args;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::state::{Deliver, WorkerOptions};
use plimsoll_domain::text::one_line;
use plimsoll_domain::{Marker, RunState, Verdict};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::{Changes, NewRun, Remembered, Resumed, StartError};
use plimsoll_flows::run::permissions;
use plimsoll_flows::run::protect;
use plimsoll_flows::run::sandbox::{self, SandboxError};
use plimsoll_flows::run::{Options, Preflight, RunError, prepare, run as run_flow};
use plimsoll_flows::run_context::RunContext;
use plimsoll_flows::telemetry;
use plimsoll_flows::workers::{self, WorkersError, ground};
use plimsoll_policy::allow::allowing;
use plimsoll_store::{Project, StoreError, config, disk, environment, state_file};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail_with_hint, say, say_error};
use plimsoll_terminal::place;
use plimsoll_terminal::run_progress::telemetry::exporting;
use plimsoll_terminal::run_progress::{self, Style, watcher};
use plimsoll_terminal::value_parsers::{self, ValueError};
use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;

/// A run.
#[derive(Debug, Args)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// The task, as with --objective
    #[arg(value_name = "OBJECTIVE", conflicts_with_all = ["objective", "objective_file", "resume"])]
    words: Option<String>,
    #[command(flatten)]
    task: TaskArguments,
    /// The client [default: claude; with --resume the one the run was started with]
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
    #[arg(long, value_name = "item|N|off", value_parser = value_parsers::review, help_heading = CHECKS)]
    review: Option<u32>,
    /// The model that reviews [default: the sessions' own]
    #[arg(long, value_name = "NAME", requires = "review", help_heading = CHECKS, hide_short_help = true)]
    review_model: Option<String>,
    /// End a client that is silent for this long (30m, 90s; 0 for never) [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::seconds, help_heading = SESSIONS, hide_short_help = true)]
    idle_timeout: Option<u64>,
    /// The same while a tool runs, such as a long build (3h; 0 for never) [default: 2h]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::seconds, help_heading = SESSIONS, hide_short_help = true)]
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
    deliver: DeliverMode,
    /// A program to start at the end, at pauses and for questions
    ///
    /// It gets JSON on its standard input; no shell is used.
    #[arg(long, value_name = "CMD", help_heading = WHILE_IT_RUNS)]
    notify: Option<String>,
    /// Do not wait during pauses: exit with 6 instead
    #[arg(long, help_heading = WHILE_IT_RUNS, hide_short_help = true)]
    no_wait: bool,
    /// Print each step as it happens, one JSON object per line, as in the journal
    #[arg(long, help_heading = WHILE_IT_RUNS, hide_short_help = true)]
    json: bool,
    /// What `--workers` tells the run of a single item of the whole plan, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    item_brief: Option<PathBuf>,
    /// Arguments for the client, such as `--model opus --allowedTools Bash`
    ///
    /// With --resume the earlier ones are used unless you give others.
    #[arg(last = true, value_name = "CLIENT ARGS")]
    client_arguments: Vec<String>,
}

/// Where the work of several workers goes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DeliverMode {
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
  9    cancelled by `plimsoll stop`
  130  ended by you; --resume continues";

/// Runs; the exit code says how it ended (0 completed, 3 limits, 4 breaker, 5 fatal, 6 paused, 7 blocked,
/// 9 cancelled, 130 interrupted, 1 could not run).
pub(crate) fn run(arguments: &RunArguments) -> ExitCode {
    let project =
        if arguments.resume { Project::of_command() } else { place::of_new_run(arguments.task.plan()) };
    match prepare_and_run(&project, arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let code = fail_with_hint(&error, error.hint());
            if error.is_without_plan() {
                other_plans::lines(&project).iter().for_each(say_error);
            }
            code
        }
    }
}

/// Why a run did not begin, or could not continue.
#[derive(Debug, Error)]
enum RunCommandError {
    #[error("{0}; {hint}", hint = .0.hint())]
    Settings(StoreError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("--notify takes {0}")]
    Notify(ValueError),
    #[error(
        "there is no client `{0}`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )]
    NoClient(String),
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
    Unfit(#[from] ground::Unfit),
    #[error("{0} cannot be used with --workers yet: leave one of them out")]
    NotWithWorkers(&'static str),
    #[error("this run has no workers: --workers belongs to a new run")]
    NoWorkers,
    #[error("--item-brief {file}: {error}")]
    ItemBrief { file: PathBuf, error: serde_json::Error },
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("this run belongs to the fleet `{0}`: plimsoll fleet join {0} continues it")]
    OfFleet(String),
}

impl RunCommandError {
    /// True if there is no task, or no plan that the run needs.
    fn is_without_plan(&self) -> bool {
        matches!(
            self,
            RunCommandError::Start(
                StartError::NoTask | StartError::NoPlanToReview | StartError::NoPlanToShare
            )
        )
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            RunCommandError::Sandbox(error) => error.hint(),
            _ => None,
        }
    }
}

fn prepare_and_run(project: &Project, arguments: &RunArguments) -> Result<u8, RunCommandError> {
    check_settings(project)?;
    let asked = Asked::of(project, arguments)?;
    let mut options = asked.options.clone();
    let (ready, state) = if arguments.resume {
        match resume(project, arguments, asked)? {
            (ready, Resumed::Open(state)) => (ready, *state),
            (_, Resumed::Over(state)) => return Ok(over(&state, arguments.json)),
        }
    } else {
        create(project, arguments, asked)?
    };
    // The user's own settings are those of now; the project's are those of the run's beginning.
    let settings = config::load_of_run(project, &state.run_id);
    let style = if arguments.json { Style::Json } else { Style::fitting() };
    let watcher = watcher(style, "--resume").map_err(RunCommandError::Signals)?;
    let telemetry = telemetry::start(project, &state);
    options.has_spans = telemetry.has_spans;
    let watcher = exporting(telemetry, watcher);
    let mut watcher = reporting(project, &settings, state.run_id.clone(), watcher);
    let context = RunContext { project, settings: &settings, run_id: &state.run_id };
    let ended = if state.options.workers.is_some() {
        let reopen = arguments.reset_breaker;
        workers::run(context, &options, ready, &state, reopen, watcher.as_mut())
            .map_err(RunCommandError::from)
    } else {
        run_flow(context, &options, ready, &state, watcher.as_mut()).map_err(RunCommandError::from)
    };
    // Gives the bar back before anything else is printed.
    drop(watcher);
    let code = ended?;
    if style != Style::Json {
        say_what_now(project);
    }
    Ok(code)
}

/// Says what is ignored of the settings; fails where they cannot be read.
fn check_settings(project: &Project) -> Result<(), RunCommandError> {
    let config::Loaded { fault, ignored, .. } = config::load_telling(project);
    if let Some(fault) = fault {
        return Err(RunCommandError::Settings(fault));
    }
    for (file, ignored) in &ignored {
        let words = one_line(&format!("{}: {}", project.relative(file), ignored.words()));
        say_error(&format!("{words} (`plimsoll doctor` says what to do)"));
    }
    Ok(())
}

/// What the run is started with, by the command line or by what the run before was started with.
struct Asked {
    options: Options,
    client_named: Option<String>,
    notify: Option<Vec<String>>,
}

impl Asked {
    fn of(project: &Project, arguments: &RunArguments) -> Result<Asked, RunCommandError> {
        // Before anything is written: without a client there is nothing to run.
        let notify = arguments.notify.as_deref().map(value_parsers::words).transpose();
        let notify = notify.map_err(RunCommandError::Notify)?;
        let before = if arguments.resume { lifecycle::remembered(project)? } else { Remembered::default() };
        let client_named = arguments.client.clone().or(before.client);
        let same = arguments.client_arguments.is_empty();
        let client_arguments =
            if same { before.client_arguments } else { arguments.client_arguments.clone() };
        let name = client_named.clone().unwrap_or_else(|| "claude".to_owned());
        let client = environment::find_program(&name).ok_or(RunCommandError::NoClient(name))?;
        let options = Options {
            client: absolute(client),
            client_arguments,
            memory: arguments.task.memory() || before.memory,
            wait: !arguments.no_wait,
            has_spans: false,
        };
        Ok(Asked { options, client_named, notify })
    }
}

fn resume(
    project: &Project,
    arguments: &RunArguments,
    asked: Asked,
) -> Result<(Preflight, Resumed), RunCommandError> {
    let changes = Changes {
        client: asked.client_named,
        client_arguments: asked.options.client_arguments.clone(),
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        notify: asked.notify,
        review_every: arguments.review,
        review_model: arguments.review_model.clone(),
        workers: arguments.workers,
        item_brief: arguments.item_brief()?,
        reset_breaker: arguments.reset_breaker,
        ..arguments.task.changes()?
    };
    sandbox::check_for_resume(project, arguments.task.verify_sandbox())?;
    let ready = prepare(project, &asked.options)?;
    let known = state_file::load(project, None)?.map(|state| state.options).unwrap_or_default();
    ready.check_review(&asked.options, changes.review_every.unwrap_or(known.review_every))?;
    match &known.workers {
        Some(WorkerOptions { fleet: Some(fleet), .. }) => {
            return Err(RunCommandError::OfFleet(fleet.clone()));
        }
        // Its branch is checked out nowhere.
        Some(_) => {}
        None if arguments.workers.is_some_and(|count| count > 1) => return Err(RunCommandError::NoWorkers),
        None => lifecycle::return_to_branch(project)?.iter().for_each(say_error),
    }
    if !arguments.answer.is_empty() {
        // Everything else that may fail has been checked. If the resume fails, the answers stay.
        answers::write_answers(project, &arguments.answer)?.sentences.iter().for_each(say_error);
    }
    let found = lifecycle::resume(project, &changes)?;
    Ok((ready, found))
}

fn create(
    project: &Project,
    arguments: &RunArguments,
    asked: Asked,
) -> Result<(Preflight, RunState), RunCommandError> {
    let new = NewRun {
        client: asked.client_named,
        client_arguments: asked.options.client_arguments.clone(),
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        notify: asked.notify.unwrap_or_default(),
        review_every: arguments.review.unwrap_or(0),
        review_model: arguments.review_model.clone(),
        workers: worker_options(arguments)?,
        item_brief: arguments.item_brief()?,
        ..arguments.task.new_run()?
    };
    let new = match &arguments.words {
        Some(words) if disk::is_file(&environment::current_dir().join(words)) => {
            return Err(TaskError::FileForObjective(words.clone()).into());
        }
        Some(words) => NewRun { objective: Some(words.clone()), ..new },
        None => new,
    };
    if new.workers.is_some() {
        ground::check(project)?;
    }
    if new.verify_sandbox {
        sandbox::check(project)?;
    }
    let ready = prepare(project, &asked.options)?;
    ready.check_review(&asked.options, new.review_every)?;
    if new.workers.is_some() {
        protect::unprotected_words(project).iter().for_each(say_error);
    }
    let warning = protect::changed_before_words(project);
    let state = lifecycle::create(project, &new)?;
    warning.iter().for_each(say_error);
    // Standard error of a run that a program reads, as that of a worker, is nobody's screen.
    if !arguments.json {
        sandbox::recommendation(project, &state.options).iter().for_each(say_error);
        bash_warning(project, &state).iter().for_each(say_error);
    }
    if state.options.todo_file.is_none() {
        other_plans::lines(project).iter().for_each(say_error);
    }
    lifecycle::nothing_open(&state).iter().for_each(say_error);
    plan_checks::lines(&state).iter().for_each(say_error);
    if let Some(waiting) = questions::waiting(&state) {
        say_error(&format!("{waiting}; until you answer, sessions skip what waits: plimsoll status"));
    }
    Ok((ready, state))
}

/// A line for a user whose sessions may be refused every command, while nobody is there to allow it.
fn bash_warning(project: &Project, run: &RunState) -> Option<String> {
    if permissions::seem_to_allow_bash(project, &run.options.client_arguments) {
        return None;
    }
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let before = words.take_while(|word| word != "--");
    let arguments = allowing(&run.options.client_arguments, &["Bash".to_owned()])?;
    let words: Vec<String> = before.chain(["--".to_owned()]).chain(arguments).collect();
    let command = shlex::try_join(words.iter().map(String::as_str)).ok()?;
    Some(format!(
        "warning: neither the arguments nor the settings of Claude Code seem to allow Bash, and nobody will be there to ask, \
         so sessions may be refused builds, tests and commits; to allow it: plimsoll {command}"
    ))
}

impl RunArguments {
    /// Reads what the run of a single item is told of the whole plan; none for another run.
    fn item_brief(&self) -> Result<Option<ItemBrief>, RunCommandError> {
        let Some(file) = &self.item_brief else { return Ok(None) };
        let bytes = disk::read(file)?.unwrap_or_default();
        let brief = serde_json::from_slice(&bytes)
            .map_err(|error| RunCommandError::ItemBrief { file: file.clone(), error })?;
        Ok(Some(brief))
    }
}

/// How several workers share the plan; none for one.
fn worker_options(arguments: &RunArguments) -> Result<Option<WorkerOptions>, RunCommandError> {
    let Some(count) = arguments.workers.filter(|count| *count > 1) else { return Ok(None) };
    if let Some(option) = arguments.task.not_with_workers() {
        return Err(RunCommandError::NotWithWorkers(option));
    }
    let deliver = match arguments.deliver {
        DeliverMode::Branch => Deliver::Branch,
        DeliverMode::Merge => Deliver::Merge,
    };
    Ok(Some(WorkerOptions { count, setup: arguments.setup.clone(), deliver, ..WorkerOptions::default() }))
}

/// How to continue, where that can be, and where to see what happened.
fn say_what_now(project: &Project) {
    let Some(mut state) = state_file::load(project, None).ok().flatten() else { return };
    plimsoll_flows::run::questions::refresh(project, &mut state);
    if !state.lifecycle.status().is_final() {
        questions::lines(&state).iter().for_each(say_error);
    }
    if !state.lifecycle.status().is_final() {
        say_error(&format!("to continue: {}", way_on(&state)));
        if let Some(words) = beside_way_on(&state) {
            say_error(&words);
        }
    }
    reviews::lines(&state).iter().for_each(say_error);
    changed_checks::protected_sentence(&state).iter().for_each(say_error);
    if let Some(words) = changed_checks::sentence(&state) {
        say_error(&words);
        changed_checks::command(&state)
            .iter()
            .for_each(|command| say_error(&format!("to see it: {command}")));
    }
    if let Some(words) = branch::words(&state) {
        say_error(&words);
    }
    if !state.context_history.is_empty() {
        say_error(&"to see what happened: plimsoll report --open, or plimsoll log");
    }
}

/// A run that was completed or cancelled stays so: 0. One that the user can open again says how, with the exit
/// code of its end.
fn over(state: &RunState, json: bool) -> u8 {
    let for_good = state.lifecycle.status().is_final();
    let reason = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. }) if !for_good => reason.clone(),
        _ => "this run is over".to_owned(),
    };
    let code = if for_good { 0 } else { state.lifecycle.status().exit_code() };
    let marker = Marker::Stop { status: state.lifecycle.status(), reason };
    if json {
        console::json(run_progress::over(state, &marker, code));
    } else {
        say(marker);
    }
    if !for_good && !json {
        questions::lines(state).iter().for_each(say_error);
    }
    let then = if for_good { "there is nothing to resume".to_owned() } else { way_on(state) };
    say_error(&format!(
        "the run \"{}\" is over ({}): {then}",
        one_line(&state.options.task_name),
        state.lifecycle.status()
    ));
    code
}

fn absolute(path: PathBuf) -> PathBuf {
    environment::current_dir().join(path)
}
