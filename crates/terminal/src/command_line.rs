//! Handling of special arguments and of parse errors, for every program.

use crate::console;
use crate::help_layout;
use clap::error::ErrorKind;
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

/// Returns the error message of a program without clap whose arguments name none of its commands.
pub fn missing_or_unknown_command_message(arguments: &[String]) -> String {
    if arguments.is_empty() {
        "a command is missing".to_owned()
    } else {
        format!("unknown arguments: {}", arguments.join(" "))
    }
}

/// Returns true if the error is a help text, which must be rendered for the terminal's width ([`help_layout`]).
pub fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Prints clap's help or error and returns clap's exit code. If an argument contains hidden characters (a shell may complete a file
/// name that does), the text is printed escaped and without colors, because clap does not escape arguments.
pub fn print_clap_help_or_error(error: &clap::Error) -> ExitCode {
    if is_help(error) {
        let is_for_stderr = error.use_stderr();
        let text = error.render();
        let has_colors = if is_for_stderr { console::has_error_colors() } else { console::has_colors() };
        let text = if has_colors { text.ansi().to_string() } else { text.to_string() };
        console::print_help(&help_layout::restore_spaces(&text), is_for_stderr);
        return clap_exit_code(error);
    }
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
    clap_exit_code(error)
}

/// Prints an error and returns an exit code where unattended runs do not work: on Windows nothing could ask a session to end.
pub fn fail_if_runs_are_unsupported(command: &str) -> Option<ExitCode> {
    let message = || format!("`{command}` is not on Windows yet: use WSL");
    (!plimsoll_system::process_control::CAN_TERMINATE_GRACEFULLY).then(|| console::fail(message()))
}

fn clap_exit_code(error: &clap::Error) -> ExitCode {
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
