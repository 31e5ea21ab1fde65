//! `plimsoll stop`: cancels the run for good.

use crate::console::{fail, say};
use plimsoll_domain::text::one_line;
use plimsoll_domain::{Marker, Status};
use plimsoll_flows::run::lifecycle;
use plimsoll_store::Project;
use std::process::ExitCode;

/// Cancels; a run that is over stays as it is. Exit code 0, or 1 if there is none.
pub(crate) fn stop() -> ExitCode {
    let project = Project::of_command();
    match lifecycle::cancel(&project) {
        Ok(Some(state)) if state.lifecycle.status() == Status::Cancelled => {
            say(Marker::Stop { status: Status::Cancelled, reason: String::new() });
            ExitCode::SUCCESS
        }
        Ok(Some(state)) => {
            say(format!(
                "the run \"{}\" is over already: {}",
                one_line(&state.options.task_name),
                state.lifecycle.status()
            ));
            ExitCode::SUCCESS
        }
        Ok(None) => {
            let no_run = || format!("there is no run in {}", project.root().display());
            fail(crate::foreign_state::words(&project).unwrap_or_else(no_run), 1)
        }
        Err(error) => fail(error, 1),
    }
}
