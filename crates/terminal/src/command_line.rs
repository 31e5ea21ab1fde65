//! Handling of special arguments and of parse errors, for every program.

use crate::console;
use plimsoll_protocol::untrusted_text::escape_hidden_characters;
use std::process::ExitCode;

/// Returns true for exactly `--version --json`, in either order. Checked before clap, which stops at `--version`.
pub fn is_version_json_request() -> bool {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let is_any_of = |word: &std::ffi::OsString, names: &[&str]| names.iter().any(|name| word == name);
    let is_version_flag = |word| is_any_of(word, &["--version", "-V"]);
    let is_json_flag = |word| is_any_of(word, &["--json"]);
    matches!(&arguments[..], [first, second] if is_version_flag(first) && is_json_flag(second) || is_json_flag(first) && is_version_flag(second))
}

/// Prints clap's help or error. clap adds colors and does not escape control characters in arguments (a shell may complete a file
/// name that contains some), so in that case the text is printed without colors and escaped.
pub fn print_clap_error(error: &clap::Error) -> ExitCode {
    let is_plain_argument = |argument: std::ffi::OsString| {
        let argument = argument.to_string_lossy();
        escape_hidden_characters(&argument) == argument
    };
    if std::env::args_os().all(is_plain_argument) {
        // A closed output is not an error.
        let _ = error.print();
    } else {
        console::print_to_stderr(error.render().to_string().trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
