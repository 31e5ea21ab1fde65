//! `plimsoll run`: works through a task unattended.

use crate::progress::{self, Style};
use crate::start::TaskArguments;
use crate::{fail, say, say_error};
use clap::Args;
use flows::run::{Options, prepare, run as run_flow};
use flows::start::{self, Resumed};
use session::{Marker, RunState};
use std::path::PathBuf;
use std::process::ExitCode;
use store::{Project, config, environment};

/// A run.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    task: TaskArguments,
    /// The client [default: claude; with --resume the one the run was started with]
    #[arg(long, value_name = "PATH")]
    client: Option<String>,
    /// Go on with the run of this project
    #[arg(long)]
    resume: bool,
    /// Do not sit through pauses: exit with 6 instead
    #[arg(long)]
    no_wait: bool,
    /// Print one JSON object per event
    #[arg(long)]
    json: bool,
    /// Arguments passed on to the client (with --resume, none means those of before), such as `--model opus --allowedTools Bash Edit Write`
    #[arg(last = true, value_name = "CLIENT ARGS")]
    client_arguments: Vec<String>,
}

/// Runs; the exit code tells how it ended (0 completed, 3 limits, 4 breaker, 5 fatal, 6 paused, 7 blocked,
/// 9 cancelled, 130 interrupted, 1 could not run).
pub(crate) fn run(arguments: &RunArguments) -> ExitCode {
    let project =
        if arguments.resume { Project::of_command() } else { Project::at(&environment::current_dir()) };
    match prepare_and_run(&project, arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(error, 1),
    }
}

fn prepare_and_run(project: &Project, arguments: &RunArguments) -> Result<u8, String> {
    let (settings, complaint) = config::load(project);
    if let Some(complaint) = complaint {
        return Err(format!("{complaint}; {}", complaint.hint()));
    }
    // Before anything is written: without a client there is nothing to run.
    let mut new = arguments.task.new_run()?;
    let (before, arguments_before) = match arguments.resume {
        true => start::remembered_client(project).map_err(|error| error.to_string())?,
        false => (None, Vec::new()),
    };
    new.client = arguments.client.clone().or(before);
    let same = arguments.client_arguments.is_empty();
    new.client_arguments = if same { arguments_before } else { arguments.client_arguments.clone() };
    let name = new.client.clone().unwrap_or_else(|| "claude".to_owned());
    let client = launcher::client::locate(&name).ok_or_else(|| missing_client(&name))?;
    let options = Options {
        client: absolute(client),
        client_arguments: new.client_arguments.clone(),
        wait: !arguments.no_wait,
    };
    let ready = prepare(project, &options).map_err(|error| error.to_string())?;
    let state = if arguments.resume {
        match start::resume(project, &new, arguments.task.max_iterations)
            .map_err(|error| error.to_string())?
        {
            Resumed::Open(state) => *state,
            Resumed::Over(state) => return Ok(over(&state)),
        }
    } else {
        start::create(project, &new).map_err(|error| error.to_string())?
    };
    let style = if arguments.json { Style::Json } else { Style::fitting() };
    let mut watcher =
        progress::watcher(style).map_err(|error| format!("cannot listen for signals: {error}"))?;
    let ended = run_flow(project, &settings, &options, ready, &state, watcher.as_mut());
    drop(watcher);
    ended.map_err(|error| error.to_string())
}

fn over(state: &RunState) -> u8 {
    say(Marker::Stop { status: state.status, reason: "this run is over".to_owned() });
    say_error(&format!(
        "the run \"{}\" is over ({}): there is nothing to resume",
        state.task_name, state.status
    ));
    0
}

fn absolute(path: PathBuf) -> PathBuf {
    environment::current_dir().join(path)
}

fn missing_client(name: &str) -> String {
    format!(
        "there is no client `{name}`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )
}
