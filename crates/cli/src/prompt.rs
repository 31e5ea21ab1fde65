//! `plimsoll prompt`: writes PROMPT.md again.

use crate::{fail, say};
use std::process::ExitCode;
use store::{Project, state_file};

/// Writes it for the present iteration; the user's own text stays byte for byte.
pub(crate) fn prompt() -> ExitCode {
    let project = Project::of_command();
    let state = match state_file::load(&project, None) {
        Ok(Some(state)) => state,
        Ok(None) => {
            let no_run = || format!("there is no run in {}", project.root().display());
            return fail(crate::foreign::words(&project).unwrap_or_else(no_run), 1);
        }
        Err(error) => return fail(error, 1),
    };
    match flows::prompt::write(&project, &state) {
        Ok(_) => {
            say(format!("wrote {} for iteration {}", project.relative(&project.prompt()), state.iteration));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error, 1),
    }
}
