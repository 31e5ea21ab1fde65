//! Handling of special arguments and of parse errors, for every program.

use crate::console;
use plimsoll_protocol::untrusted_text::escape_hidden_characters;
use std::process::ExitCode;

/// Returns true for exactly `--version --json`, in either order. Checked before clap, which stops at `--version`.
pub fn is_version_json_request() -> bool {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let is_any_of = |argument: &std::ffi::OsString, flags: &[&str]| flags.iter().any(|flag| argument == flag);
    let is_version_flag = |argument| is_any_of(argument, &["--version", "-V"]);
    let is_json_flag = |argument| is_any_of(argument, &["--json"]);
    matches!(&arguments[..], [first, second] if is_version_flag(first) && is_json_flag(second) || is_json_flag(first) && is_version_flag(second))
}

/// Prints clap's help or error and returns clap's exit code. If an argument contains hidden characters (a shell may complete a file
/// name that does), the text is printed escaped and without colors, because clap does not escape arguments.
pub fn print_clap_help_or_error(error: &clap::Error) -> ExitCode {
    let has_no_hidden_characters = |argument: std::ffi::OsString| {
        let argument = argument.to_string_lossy();
        escape_hidden_characters(&argument) == argument
    };
    if std::env::args_os().all(has_no_hidden_characters) {
        // A closed pipe is not an error.
        let _ = error.print();
    } else {
        console::print_to_stderr(error.render().to_string().trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
