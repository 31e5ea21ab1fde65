//! `plimsoll prompt`: writes PROMPT.md again.

use crate::console::{fail, say};
use plimsoll_store::{Project, state_file};
use std::process::ExitCode;

/// Writes it for the current iteration; the user's own text stays byte for byte.
pub(crate) fn prompt() -> ExitCode {
    let project = Project::of_command();
    let state = match state_file::load(&project, None) {
        Ok(Some(state)) => state,
        Ok(None) => {
            let no_run = || format!("there is no run in {}", project.root().display());
            return fail(crate::foreign_state::words(&project).unwrap_or_else(no_run), 1);
        }
        Err(error) => return fail(error, 1),
    };
    match plimsoll_flows::run::prompt::write(&project, &state) {
        Ok(_) => {
            say(format!("wrote {} for iteration {}", project.relative(&project.prompt()), state.iteration));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error, 1),
    }
}
