//! RULE: the process around a hook. It reads one JSON document from standard input, calls the program of this name in
//! `plimsoll_flows::hooks`, and writes one response.
//!
//! All hook programs are one executable with several names, as in busybox. They share nearly all their
//! code, so one file is a fifth of the size of eight, is linked once, and is in memory once, however many
//! hooks a session starts. A settings file selects a hook by its name, and `ps` shows the name.
//! `programs.txt` lists the names for the scripts that create the links.
//!
//! Hook programs accept only these arguments: the role of a `plimsoll-memory` entry, the command that the status line
//! wraps, the origin of a plugin's entry, and `version`. They start no shell and no thread, and link nothing that slows
//! down start-up. An internal error never ends the session: the hook responds with `{}` and writes one line to standard
//! error.
//!
//! Limits: at most 64 MB of a payload are read. An error is not recorded if the project's folder is not writable, and
//! the client discards a hook's standard error.

mod hook;

use plimsoll_flows::hooks;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the hook whose name this process was started under.
pub fn run_hook_of_this_program_name() -> ExitCode {
    hook::install_panic_hook();
    let mut command_line = std::env::args_os();
    let name = hook::command_name_if_hook_else_executable_name(command_line.next());
    let arguments: Vec<String> = match command_line.map(OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(argument) => {
            return hook::report_invalid_command_line_and_succeed(&format!(
                "the argument {} is not UTF-8",
                argument.display()
            ));
        }
    };
    if hook::is_version_command(&arguments) {
        hook::print_version_as_text_or_json(&name, &arguments);
        return ExitCode::SUCCESS;
    }
    match hooks::find_program(&name) {
        Some(program) => hook::run_hook_unless_duplicate_or_in_review(program, &name, &arguments),
        None => hook::report_invalid_command_line_and_succeed(&hook::unknown_hook_name_message()),
    }
}
