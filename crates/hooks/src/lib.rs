//! RULE: the process around a hook. It reads one JSON document from standard input, calls the program with
//! its name in `plimsoll_flows::hooks`, and writes one response.
//!
//! The hook programs are one program under several names, as in busybox. They share nearly all their code, so
//! one file has a fifth of the size of eight, is linked once, and is in memory once, however many of its
//! names a session starts. A settings file selects a hook by its name, and `ps` shows the name;
//! `programs.txt` lists the names for the scripts that create the links.
//!
//! They take no options except: the part that an entry of `plimsoll-memory` plays, the command that the
//! status line wraps, the word that marks a plugin's entry, and `version`. They start no shell and no thread,
//! link nothing that slows down start-up, and never end a session through a fault of their own: in that case
//! they respond with `{}` and write one line to standard error.
//!
//! Limits: at most 64 MB of a payload are read, and a fault is not recorded if its project cannot be written
//! (the client discards a hook's standard error).

mod hook;

use plimsoll_flows::hooks;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the hook whose name this process was started under.
pub fn main() -> ExitCode {
    hook::install_panic_hook();
    let mut command_line = std::env::args_os();
    let name = hook::program_name_from_command_or_executable(command_line.next());
    let arguments: Vec<String> = match command_line.map(OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(argument) => {
            return hook::report_invalid_start(&format!("the argument {} is not UTF-8", argument.display()));
        }
    };
    if hook::is_version_command(&arguments) {
        return hook::print_version_as_text_or_json(&name, &arguments);
    }
    match hooks::find_program(&name) {
        Some(program) => hook::run_hook(program, &name, &arguments),
        None => hook::report_invalid_start(&hook::valid_names_hint()),
    }
}
