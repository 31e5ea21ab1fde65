//! `plimsoll start`: prepares a run for a shell loop.

mod inside;

use crate::branch;
use crate::other_plans;
use crate::plan_checks;
use crate::questions;
use crate::target_session::TargetSession;
use crate::task_arguments::TaskArguments;
use clap::Args;
use plimsoll_domain::RunState;
use plimsoll_flows::hook_invocation::RUN_VARIABLE;
use plimsoll_flows::run::baseline::{self, Known};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::{NewRun, StartError};
use plimsoll_flows::run::protect;
use plimsoll_flows::run::sandbox::{self, SandboxError};
use plimsoll_flows::run_context::RunContext;
use plimsoll_store::ledger::{self, RECORD_VARIABLE};
use plimsoll_store::{Project, config};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with, fail_with_hint, say_error};
use plimsoll_terminal::place;
use plimsoll_terminal::run_progress::verified;
use std::process::ExitCode;
use thiserror::Error;

/// Why no run was prepared.
#[derive(Debug, Error)]
enum StartCommandError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl StartCommandError {
    fn hint(&self) -> Option<&'static str> {
        match self {
            StartCommandError::Sandbox(error) => error.hint(),
            StartCommandError::Start(_) => None,
        }
    }
}

/// A run for a shell loop.
#[derive(Debug, Args)]
#[command(after_help = "`plimsoll start --help` shows all options and examples.", after_long_help = EXAMPLES)]
pub(crate) struct StartArguments {
    #[command(flatten)]
    task: TaskArguments,
}

const EXAMPLES: &str = "\
Examples:
  eval \"$(plimsoll start --objective 'Migrate to Vitest')\"

The sessions of a loop need the hooks that `plimsoll init` sets up.
`scripts/ralph-loop.sh` is such a loop. `plimsoll run` needs none.";

/// Creates the run, plans its first iteration and prints its environment for `eval`.
pub(crate) fn start(arguments: &StartArguments) -> ExitCode {
    let project = place::of_new_run(arguments.task.plan());
    let new = match arguments.task.new_run() {
        Ok(new) => new,
        Err(error) => return fail(error),
    };
    if TargetSession::is_inside() {
        return inside::refuse(&project, &new);
    }
    let created = create(&project, &new).and_then(|state| {
        plan_checks::lines(&state).iter().for_each(say_error);
        if state.options.todo_file.is_none() {
            other_plans::lines(&project).iter().for_each(say_error);
        }
        learn_what_passes(&project, state)
    });
    let plan =
        |state: RunState| lifecycle::plan(&project, &state.run_id, None).map_err(StartCommandError::from);
    match created.and_then(plan) {
        // Every open item waits for an answer.
        Ok(state) if state.lifecycle.is_over() => {
            questions::lines(&state).iter().for_each(say_error);
            let status = state.lifecycle.status();
            fail_with(
                "no session can begin: every open item waits for your answer; then: plimsoll start",
                status.exit_code(),
            )
        }
        Ok(state) => {
            // Standard output is for `eval`: what the user reads goes to standard error.
            console::data(&format!("export {RUN_VARIABLE}={}\n", state.run_id));
            console::data(&format!(
                "export RALPH_STATE_FILE={}\n",
                quoted(&project.state().to_string_lossy())
            ));
            if let Some(record) = ledger::record_path(&project, &state.run_id) {
                console::data(&format!("export {RECORD_VARIABLE}={}\n", quoted(&record.to_string_lossy())));
            }
            say_error(&format!(
                "run \"{}\" is ready: PROMPT.md is written, iteration {} of {}",
                plimsoll_domain::text::one_line(&state.options.task_name),
                state.iteration,
                state.options.max_iterations
            ));
            if let Some(words) = branch::words(&state) {
                say_error(&words);
            }
            ExitCode::SUCCESS
        }
        Err(error) => fail_with_hint(&error, error.hint()),
    }
}

fn create(project: &Project, new: &NewRun) -> Result<RunState, StartCommandError> {
    if new.verify_sandbox {
        sandbox::check(project)?;
    }
    let warning = protect::changed_before_words(project);
    let state = lifecycle::create(project, new)?;
    warning.iter().for_each(say_error);
    lifecycle::nothing_open(&state).iter().for_each(say_error);
    Ok(state)
}

/// Runs the verify commands once, before the first session. A Ctrl-C here leaves a run that `plimsoll stop` cancels.
fn learn_what_passes(project: &Project, state: RunState) -> Result<RunState, StartCommandError> {
    let commands = baseline::unknown(project, &state);
    if !commands.is_empty() {
        say_error(&baseline::words(&state, &commands));
        let (settings, _) = config::load(project);
        let known = baseline::learn(
            &RunContext { project, settings: &settings, run_id: &state.run_id },
            &state,
            &commands,
            &|| false,
        );
        if let Known::Said(said) = known? {
            say_error(&verified(&said));
        }
    }
    Ok(state)
}

/// Safe inside single quotes for `eval`.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_through_eval_stays_one_word() {
        assert_eq!(quoted("/it's $HOME/`x`"), r"'/it'\''s $HOME/`x`'");
    }
}
