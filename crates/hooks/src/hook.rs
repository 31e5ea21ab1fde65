//! Runs one hook, from reading its payload to writing its response.

use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_flows::HookResponse;
use plimsoll_flows::hook_invocation::is_review_session;
use plimsoll_flows::hooks::{HookProgram, HookStart, PROGRAMS, find_program};
use plimsoll_flows::install::hook_precedence::HookPartsToRun;
use plimsoll_system::paths::program_name;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

/// Maximum payload size. An image in a batch of tool results is a few hundred KB of base64, so real payloads are
/// far smaller.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// The only command of a hook program. It prints the version for `plimsoll doctor`.
const VERSION_COMMAND: &str = "version";
/// The option after the version command that prints all build information as JSON.
const JSON_OPTION: &str = "--json";

/// A response that was complete before the hook finished. It is still written if the hook panics later.
static SAVED_RESPONSE: Mutex<Option<HookResponse>> = Mutex::new(None);

/// Installs a panic hook that writes a valid response, so that a panic never ends the client's session.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(respond_and_exit_after_panic));
}

/// Reads the payload from standard input, runs the hook and writes its response. Does nothing in a review session, or if
/// another entry runs the same hook. Returns the hook's exit code.
pub(crate) fn run_hook_unless_duplicate_or_in_review(
    program: HookProgram,
    name: &str,
    arguments: &[String],
) -> ExitCode {
    // Checked before reading standard input: the client accepts a hook that does not read it (2.1.329).
    let parts = HookPartsToRun::without_parts_that_other_entries_run(name, arguments);
    if parts.runs_nothing() || is_review_session() {
        return ExitCode::SUCCESS;
    }
    let (input, response) = match plimsoll_store::disk::read_stdin_up_to(MAX_INPUT_BYTES) {
        Ok(input) => {
            let start =
                HookStart { input: &input, arguments, parts, save_response: &save_response_for_panic };
            let response = program(&start);
            (input, response)
        }
        Err(error) => {
            let error_message = format!("cannot read standard input: {error}");
            (Vec::new(), HookResponse::default().with_stderr_line(Some(error_message)))
        }
    };
    write_response_to_stdout_and_stderr(&response);
    // Recorded after the response is written, so that a failure here cannot lose the response.
    if !response.stderr_lines.is_empty() {
        plimsoll_flows::hooks::hook_failures::record_errors_of_hook_event(
            &input,
            name,
            &response.stderr_lines,
        );
    }
    response.exit_status.into()
}

/// Returns the name under which this program was started.
fn current_program_name() -> String {
    command_name_if_hook_else_executable_name(std::env::args_os().next())
}

/// Returns the file name in the first argument of the command line. If no hook has that name, because the user started the
/// program through another link, returns the executable's file name if a hook has it.
pub(crate) fn command_name_if_hook_else_executable_name(command_path: Option<OsString>) -> String {
    let command_name = file_name(command_path.unwrap_or_default());
    let executable_name =
        || std::env::current_exe().ok().map(file_name).filter(|name| find_program(name).is_some());
    if find_program(&command_name).is_some() {
        command_name
    } else {
        executable_name().unwrap_or(command_name)
    }
}

fn file_name(path: impl AsRef<Path>) -> String {
    program_name(path.as_ref()).into_owned()
}

/// Reports an invalid command line. Returns success, because a failure could end the client's session.
pub(crate) fn report_invalid_command_line_and_succeed(error_message: &str) -> ExitCode {
    write_response_to_stdout_and_stderr(&HookResponse::default().with_stderr_line(Some(error_message)));
    ExitCode::SUCCESS
}

/// Returns the error message for a program name that no hook has.
pub(crate) fn unknown_hook_name_message() -> String {
    let names = PROGRAMS.map(|(name, _)| name);
    format!("start it by a link with the name of a hook: {}", names.join(", "))
}

pub(crate) fn is_version_command(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|argument| argument == VERSION_COMMAND)
}

pub(crate) fn print_version_as_text_or_json(name: &str, arguments: &[String]) {
    let build_info = BuildInfo::for_current_program(name);
    let is_json = arguments.get(1).is_some_and(|argument| argument == JSON_OPTION);
    let version =
        if is_json { build_info.to_json() } else { format!("{} {}", build_info.program, build_info.version) };
    write_response_to_stdout_and_stderr(&HookResponse::from_text(Some(version)));
}

fn save_response_for_panic(response: &HookResponse) {
    if let Ok(mut saved_response) = SAVED_RESPONSE.lock() {
        *saved_response = Some(response.clone());
    }
}

/// Handles a panic. The user gets one line, the client gets the saved response or an empty one, and the session continues.
/// A release build does not unwind, so no caller could catch the panic.
#[expect(clippy::exit, reason = "the alternative is an abort, which the client shows as an error")]
fn respond_and_exit_after_panic(panic_info: &std::panic::PanicHookInfo<'_>) {
    let response = response_after_panic(panic_info);
    write_response_to_stdout_and_stderr(&response);
    plimsoll_flows::hooks::hook_failures::record_errors_without_payload(
        &current_program_name(),
        &response.stderr_lines,
    );
    std::process::exit(response.exit_status.code().into());
}

fn response_after_panic(panic_message: impl std::fmt::Display) -> HookResponse {
    let saved_response =
        SAVED_RESPONSE.try_lock().ok().and_then(|mut guard| guard.take()).unwrap_or_default();
    saved_response.with_stderr_line(Some(format!("internal error: {panic_message}")))
}

/// Writes a response to standard output, which the client reads, and its error lines to standard error. Error lines are for
/// people, so terminal control characters are removed. A closed pipe is not an error.
#[expect(clippy::disallowed_methods, reason = "a hook answers on its standard output")]
fn write_response_to_stdout_and_stderr(response: &HookResponse) {
    if let Some(mut text) = response.render_stdout() {
        text.push('\n');
        let _ = plimsoll_store::disk::write_all_to_stdout(text.as_bytes());
    }
    // Starts with the program's name and not with `error:`. Claude Code runs the hooks of all programs together and shows
    // their standard error to its user, who must see that it comes from Plimsoll.
    for stderr_line in &response.stderr_lines {
        let line = format!("{}: {}\n", current_program_name(), to_safe_single_line(stderr_line));
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::exit_status::ExitStatus;

    #[test]
    fn a_panic_loses_neither_a_kept_response_nor_its_exit_code() {
        let without_response = response_after_panic("before any answer");
        assert_eq!(
            (without_response.render_stdout(), without_response.exit_status),
            (None, ExitStatus::Success)
        );
        let complete_response = HookResponse::from_text(Some("what was decided".to_owned()))
            .with_exit_status(ExitStatus::Failure);
        save_response_for_panic(&complete_response);
        let response = response_after_panic("in the memory's half");
        assert_eq!(
            (response.render_stdout(), response.exit_status),
            (complete_response.render_stdout(), ExitStatus::Failure)
        );
        assert_eq!(response.stderr_lines, ["internal error: in the memory's half"]);
    }
}
