//! How the command becomes one of the optional programs, which do what it links nothing for.

use plimsoll_flows::optional_program;
use plimsoll_store::Project;
use plimsoll_terminal::console::fail;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Becomes the program of this name, with these words; exit code 1 where it cannot be started.
pub(crate) fn become_program(name: &'static str, words: &[impl AsRef<OsStr>]) -> ExitCode {
    let program = match optional_program::find(&Project::of_command(), name) {
        Ok(program) => program,
        Err(error) => return fail(format!("{error}\nhint: {}", error.hint())),
    };
    let error = plimsoll_launcher::become_successor(&program, words);
    fail(format!("{} cannot be started: {error}", program.display()))
}
