//! `plimsoll start`: prepares a run for a shell loop.

mod inside_session;

use crate::branch;
use crate::other_plans;
use crate::plan_checks;
use crate::questions;
use crate::target_session::TargetSession;
use crate::task_arguments::TaskArguments;
use clap::Args;
use plimsoll_domain::RunState;
use plimsoll_flows::hook_invocation::RUN_VARIABLE;
use plimsoll_flows::run::baseline::{self, BaselineResult};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::{NewRun, StartError};
use plimsoll_flows::run::protect;
use plimsoll_flows::run::sandbox::{self, SandboxError};
use plimsoll_flows::run_context::RunContext;
use plimsoll_store::ledger::{self, RUN_RECORD_VARIABLE};
use plimsoll_store::{Project, config};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with, fail_with_hint, print_hint, print_notice, print_warning};
use plimsoll_terminal::project_choice;
use plimsoll_terminal::run_progress::render_verify_outcomes;
use std::process::ExitCode;
use thiserror::Error;

/// An error that prevents `plimsoll start` from preparing a run.
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
            StartCommandError::Sandbox(error) => error.fix_hint(),
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
pub(crate) fn prepare_run_and_print_exports(arguments: &StartArguments) -> ExitCode {
    let project = project_choice::find_project_for_new_run_and_print_notice(arguments.task.plan_file());
    let new_run = match arguments.task.read_objective_and_build_new_run() {
        Ok(new_run) => new_run,
        Err(error) => return fail(error),
    };
    if TargetSession::is_called_inside_session() {
        return inside_session::check_and_refuse_with_terminal_command(&project, &new_run);
    }
    let create_result = create_run_and_print_warnings(&project, &new_run).and_then(|state| {
        plan_checks::render_planned_checks_or_not_run_note(&state).iter().for_each(print_notice);
        if state.options.todo_file.is_none() {
            other_plans::render_lines(&project).iter().for_each(print_hint);
        }
        run_and_print_missing_verify_baseline(&project, state)
    });
    let plan_first_iteration = |state: RunState| {
        lifecycle::plan_iteration_or_end_if_all_parked(&project, &state.run_id, None)
            .map_err(StartCommandError::from)
    };
    match create_result.and_then(plan_first_iteration) {
        // Planning the iteration ended the run, because every open item waits for an answer.
        Ok(state) if state.lifecycle.has_ended() => {
            questions::questions_and_answer_command(&state).iter().for_each(print_notice);
            let status = state.lifecycle.status();
            fail_with(
                "no session can begin: every open item waits for your answer; then: plimsoll start",
                status.exit_code(),
            )
        }
        Ok(state) => {
            // Standard output is for `eval`, so messages for the user go to standard error.
            console::print_text_escaped_only_on_terminal(&format!(
                "export {RUN_VARIABLE}={}\n",
                state.run_id
            ));
            console::print_text_escaped_only_on_terminal(&format!(
                "export RALPH_STATE_FILE={}\n",
                shell_quote(&project.state_path().to_string_lossy())
            ));
            if let Some(record_path) = ledger::run_record_path(&project, &state.run_id) {
                console::print_text_escaped_only_on_terminal(&format!(
                    "export {RUN_RECORD_VARIABLE}={}\n",
                    shell_quote(&record_path.to_string_lossy())
                ));
            }
            print_notice(&format!(
                "run \"{}\" is ready: PROMPT.md is written, session {} of at most {}",
                plimsoll_domain::text::to_safe_single_line(&state.options.task_name),
                state.iteration,
                state.options.max_iterations
            ));
            if let Some(branch_line) = branch::render_branch_and_merge_command(&state) {
                print_notice(&branch_line);
            }
            ExitCode::SUCCESS
        }
        Err(error) => fail_with_hint(&error, error.hint()),
    }
}

fn create_run_and_print_warnings(project: &Project, new_run: &NewRun) -> Result<RunState, StartCommandError> {
    if new_run.verify_sandbox {
        sandbox::check_sandbox_available(project)?;
    }
    let changed_files_warning = protect::warning_if_last_run_left_protected_changes(project);
    let state = lifecycle::create_run(project, new_run)?;
    changed_files_warning.iter().for_each(print_warning);
    lifecycle::warning_if_no_open_items(&state).iter().for_each(print_warning);
    Ok(state)
}

/// Runs the verify commands that have no recorded result yet, prints their outcomes, and returns `state` unchanged. After Ctrl-C,
/// `plimsoll stop` can cancel the run.
fn run_and_print_missing_verify_baseline(
    project: &Project,
    state: RunState,
) -> Result<RunState, StartCommandError> {
    let commands = baseline::baseline_commands_to_run_if_work_remains(project, &state);
    if !commands.is_empty() {
        print_notice(&baseline::render_baseline_start_notice(&state, &commands));
        let (settings, _) = config::load_settings(project);
        let baseline_result = baseline::run_baseline_or_pause_if_interrupted(
            &RunContext { project, settings: &settings, run_id: &state.run_id },
            &state,
            &commands,
            &|| false,
        );
        if let BaselineResult::Outcomes(outcomes) = baseline_result? {
            print_notice(&render_verify_outcomes(&outcomes));
        }
    }
    Ok(state)
}

/// Quotes `text` with single quotes, safe for `eval`.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_stays_one_word_in_eval() {
        assert_eq!(shell_quote("/it's $HOME/`x`"), r"'/it'\''s $HOME/`x`'");
    }
}
