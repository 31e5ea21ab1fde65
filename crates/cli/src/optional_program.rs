//! Replaces the command with one of the optional programs, which link libraries that the command does not.

use plimsoll_flows::optional_program;
use plimsoll_store::Project;
use plimsoll_terminal::console::fail;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Replaces this process with the program of this name and these arguments. Exits with 1 if it cannot be
/// started.
pub(crate) fn replace_process_with_program(name: &'static str, arguments: &[impl AsRef<OsStr>]) -> ExitCode {
    let program = match optional_program::find_program(&Project::find_for_command(), name) {
        Ok(program) => program,
        Err(error) => return fail(format!("{error}\nhint: {}", error.install_hint())),
    };
    let error = plimsoll_launcher::exec_program(&program, arguments);
    fail(format!("{} cannot be started: {error}", program.display()))
}
