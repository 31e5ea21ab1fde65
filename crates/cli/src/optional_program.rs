//! Replaces this process with an optional program; these link libraries that this program does not need.

use plimsoll_flows::optional_program;
use plimsoll_store::Project;
use plimsoll_terminal::console::fail;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Replaces this process with the program. Returns exit code 1 if it cannot be found or started.
pub(crate) fn replace_process_with_program(name: &'static str, arguments: &[impl AsRef<OsStr>]) -> ExitCode {
    let program = match optional_program::find_sibling_or_trusted_program(
        &Project::find_upwards_from_current_dir(),
        name,
    ) {
        Ok(program) => program,
        Err(error) => return fail(format!("{error}\nhint: {}", error.install_hint())),
    };
    let error = plimsoll_launcher::exec_program(&program, arguments);
    fail(format!("{} cannot be started: {error}", program.display()))
}
