//! RULE: the process around a hook. It reads one JSON document from standard input, calls the program of its name in
//! `plimsoll_flows::hooks`, and writes one answer.
//!
//! The hook programs are one program under several names, as busybox is: they share nearly all their code, so one file is a
//! fifth of what eight are, is linked once, and is in memory once however many of its names a session starts. A settings
//! file names what it wants by the name, and so does `ps`; `programs.txt` has the names for the scripts that make the links.
//!
//! They take no options, but for the part that an entry of `plimsoll-memory` plays, the command that the status line wraps,
//! the word by which a plugin's entry is known, and `version`. They start no shell and no thread, link nothing that costs
//! start-up, and never end a session by a fault of their own: then they answer `{}` and say one line on standard error.
//!
//! Limits: of a payload only 64 MB are read, and a fault is not reported where its project cannot be written (the
//! client discards a hook's standard error).

mod hook;

use plimsoll_flows::hooks;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the hook by whose name this process was started.
pub fn main() -> ExitCode {
    hook::survive_panics();
    let mut words = std::env::args_os();
    let name = hook::name_of(words.next());
    let arguments: Vec<String> = match words.map(OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(argument) => return hook::refuse(&format!("the argument {} is not UTF-8", argument.display())),
    };
    if hook::is_asked_for_version(&arguments) {
        return hook::tell_version(&name, &arguments);
    }
    match hooks::program_of(&name) {
        Some(program) => hook::run(program, &name, &arguments),
        None => hook::refuse(&hook::names()),
    }
}
