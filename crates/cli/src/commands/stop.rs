//! `plimsoll stop`: cancels the run for good.

use crate::endings::ending_words;
use clap::Args;
use plimsoll_domain::text::{counted, one_line};
use plimsoll_domain::{Marker, RunState, Status};
use plimsoll_flows::run::lifecycle;
use plimsoll_flows::workers;
use plimsoll_store::{Project, state_file};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, say};
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Whether to ask first.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct StopArguments {
    /// Cancel without asking; without a terminal nobody is asked
    #[arg(long)]
    yes: bool,
}

const HELP: &str = "\
To pause a run that you can resume, press Ctrl-C in the terminal of `plimsoll run`.";

/// Cancels; a run that is over stays as it is. Exit code 0, or 1 if there is none or the user does not agree.
pub(crate) fn stop(arguments: &StopArguments) -> ExitCode {
    let project = Project::of_command();
    let is_asked = !arguments.yes && console::is_terminal() && std::io::stdin().is_terminal();
    if is_asked && !agrees(&project) {
        return fail("nothing was cancelled");
    }
    let cancelled = lifecycle::cancel(&project);
    if let Ok(Some(state)) = &cancelled
        && state.lifecycle.status() == Status::Cancelled
        && let Err(error) = workers::end_left(&project, state)
    {
        return fail(error);
    }
    match cancelled {
        Ok(Some(state)) if state.lifecycle.status() == Status::Cancelled => {
            say(Marker::Stop { status: Status::Cancelled, reason: String::new() });
            ExitCode::SUCCESS
        }
        Ok(Some(state)) => {
            say(already_over(&state));
            ExitCode::SUCCESS
        }
        Ok(None) => {
            let no_run = || format!("there is no run in {}", project.root().display());
            fail(crate::foreign_state::words(&project).unwrap_or_else(no_run))
        }
        Err(error) => fail(error),
    }
}

/// What cannot be taken back is asked about; where there is nothing to cancel there is nothing to ask.
fn agrees(project: &Project) -> bool {
    let run = state_file::load(project, None).ok().flatten().filter(|run| !run.lifecycle.is_over());
    run.is_none_or(|run| {
        console::ask(question(&run));
        console::agrees()
    })
}

/// How a run has ended that is to be stopped, and how it could go on.
fn already_over(run: &RunState) -> String {
    let name = one_line(&run.options.task_name);
    let Some(ending) = ending_words(run) else { return format!("nothing to stop: \"{name}\" is over") };
    let way_on = ending.way_on.map_or(String::new(), |way_on| format!("; to continue it: {way_on}"));
    format!("nothing to stop: the run \"{name}\" has ended: {}{way_on}", ending.heading)
}

fn question(run: &RunState) -> String {
    let open = run.items.todo_items.len();
    let left = if open == 0 { String::new() } else { format!(", with {} open", counted(open, "item")) };
    format!(
        "Cancel the run \"{}\" for good{left}? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] ",
        one_line(&run.options.task_name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{Lifecycle, RunOptions};

    #[test]
    fn a_run_that_is_over_is_told_with_what_continues_it() {
        let told = |status| {
            let options = RunOptions { task_name: "Dates".into(), ..RunOptions::default() };
            already_over(&RunState { lifecycle: Lifecycle::of(status), options, ..RunState::default() })
        };
        assert_eq!(
            told(Status::MaxIterations),
            "nothing to stop: the run \"Dates\" has ended: out of sessions (max_iterations); to continue it: plimsoll run --resume --max-iterations N, with a larger N"
        );
        assert_eq!(told(Status::Completed), "nothing to stop: the run \"Dates\" has ended: completed");
    }
}
