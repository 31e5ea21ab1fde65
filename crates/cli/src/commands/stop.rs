//! `plimsoll stop`: cancels the run permanently.

use crate::endings::ending_text;
use clap::Args;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_domain::{Marker, RunState, RunStatus};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::workers;
use plimsoll_store::{Project, state_file};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, print_text};
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// The confirmation option.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct StopArguments {
    /// Cancel without asking; without a terminal nobody is asked
    #[arg(long)]
    yes: bool,
}

const HELP: &str = "\
To pause a run that you can resume, press Ctrl-C in the terminal of `plimsoll run`.";

/// Cancels the run, after a confirmation on a terminal. A run that has ended is not changed. Exits with 0, or with 1 if
/// there is no run or the user declines.
pub(crate) fn confirm_and_cancel_run(arguments: &StopArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    let should_ask = !arguments.yes && console::is_terminal() && std::io::stdin().is_terminal();
    if should_ask && !confirm_if_run_is_open(&project) {
        return fail("nothing was canceled");
    }
    let cancel_result = lifecycle::cancel_newest_run_and_end_orphaned_client(&project);
    if let Ok(Some(state)) = &cancel_result
        && state.lifecycle.status() == RunStatus::Canceled
        && let Err(error) = workers::end_item_runs_if_run_lock_is_free(&project, state)
    {
        return fail(error);
    }
    match cancel_result {
        Ok(Some(state)) if state.lifecycle.status() == RunStatus::Canceled => {
            if console::is_terminal() {
                print_text(canceled_message(&state));
            } else {
                print_text(Marker::Stop { status: RunStatus::Canceled, reason: String::new() });
            }
            ExitCode::SUCCESS
        }
        Ok(Some(state)) => {
            print_text(nothing_to_stop_message(&state));
            ExitCode::SUCCESS
        }
        Ok(None) => {
            let no_run_message = || format!("there is no run in {}", project.root().display());
            fail(crate::foreign_state::describe_foreign_state(&project).unwrap_or_else(no_run_message))
        }
        Err(error) => fail(error),
    }
}

/// Asks the user to confirm that the open run is canceled, which cannot be undone. Returns true without asking if there is
/// no open run.
fn confirm_if_run_is_open(project: &Project) -> bool {
    let run = state_file::load_state(project, None).ok().flatten().filter(|run| !run.lifecycle.has_ended());
    run.is_none_or(|run| {
        console::print_question(cancel_question(&run));
        console::read_confirmation()
    })
}

/// Returns the message for a canceled run, and the command that starts a new one if items are open.
fn canceled_message(run: &RunState) -> String {
    let sentence = format!("Canceled the run \"{}\".", to_safe_single_line(&run.options.task_name));
    match run.plan_items.todo_items.len() {
        0 => sentence,
        open_count => {
            format!(
                "{sentence}\nFor the {}, start a new run: plimsoll run",
                count_with_noun(open_count, "open item")
            )
        }
    }
}

/// Returns the message for a run that has already ended: how it ended, and how to continue it.
fn nothing_to_stop_message(run: &RunState) -> String {
    let name = to_safe_single_line(&run.options.task_name);
    let Some(ending) = ending_text(run) else {
        return format!("nothing to stop: the run \"{name}\" has ended");
    };
    let resume_hint =
        ending.resume_command.map_or(String::new(), |command| format!("; to continue it: {command}"));
    format!("nothing to stop: the run \"{name}\" has ended: {}{resume_hint}", ending.heading)
}

fn cancel_question(run: &RunState) -> String {
    let open_count = run.plan_items.todo_items.len();
    let open_items_text = if open_count == 0 {
        String::new()
    } else {
        format!(", with {} open", count_with_noun(open_count, "item"))
    };
    format!(
        "Cancel the run \"{}\" for good{open_items_text}? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] ",
        to_safe_single_line(&run.options.task_name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{Lifecycle, RunOptions};

    #[test]
    fn an_ended_run_is_described_with_the_command_that_continues_it() {
        let description_of = |status| {
            let options = RunOptions { task_name: "Dates".into(), ..RunOptions::default() };
            nothing_to_stop_message(&RunState {
                lifecycle: Lifecycle::with_status(status),
                options,
                ..RunState::default()
            })
        };
        assert_eq!(
            description_of(RunStatus::MaxIterations),
            "nothing to stop: the run \"Dates\" has ended: out of sessions (max_iterations); to continue it: plimsoll run --resume --max-iterations N, with a larger N"
        );
        assert_eq!(
            description_of(RunStatus::Completed),
            "nothing to stop: the run \"Dates\" has ended: completed"
        );
    }
}
