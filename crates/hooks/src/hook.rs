//! Runs one hook, from reading its payload to writing its response.

use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::text::to_single_line;
use plimsoll_flows::HookResponse;
use plimsoll_flows::hook_invocation::is_review_session;
use plimsoll_flows::hooks::{HookProgram, HookStart, PROGRAMS, find_program};
use plimsoll_flows::install::hook_precedence::EntryParts;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

/// The largest payload that is read. An image in a batch of tool results is a few hundred KB of base64; no
/// real payload is larger than this.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// The one command that every hook program has: it prints the version for `plimsoll doctor` and does nothing
/// else.
const VERSION_COMMAND: &str = "version";
/// The option after the version command that prints all build information as JSON.
const JSON_OPTION: &str = "--json";

/// A response that is complete before the hook has finished its work: a panic after that must not lose it.
static KEPT_RESPONSE: Mutex<Option<HookResponse>> = Mutex::new(None);

/// Installs a panic hook that writes a valid response, so that a panic never ends a session of the client.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(respond_and_exit_after_panic));
}

/// Runs one hook: reads the payload from standard input and writes the response. Returns the exit code.
pub(crate) fn run_hook(program: HookProgram, name: &str, arguments: &[String]) -> ExitCode {
    // Before standard input is read: the client accepts a hook that does not read it (2.1.329).
    let parts = EntryParts::parts_to_run(name, arguments);
    if parts.runs_nothing() || is_review_session() {
        return ExitCode::SUCCESS;
    }
    let (input, response) = match plimsoll_store::disk::read_stdin(MAX_INPUT_BYTES) {
        Ok(input) => {
            let start =
                HookStart { input: &input, arguments, parts, save_response: &keep_response_for_panic };
            let response = program(&start);
            (input, response)
        }
        Err(error) => {
            let error_message = format!("cannot read standard input: {error}");
            (Vec::new(), HookResponse::default().with_stderr_line(Some(error_message)))
        }
    };
    write_response(&response);
    // After the response is written: a failure to record the faults must not lose it.
    if !response.stderr_lines.is_empty() {
        plimsoll_flows::hooks::faults::record_faults(&input, name, &response.stderr_lines);
    }
    response.exit_status.into()
}

/// Returns the name under which this program was started.
fn own_program_name() -> String {
    program_name_from_command_or_executable(std::env::args_os().next())
}

/// Returns the program's name from the first word of a command line. If that is a link of the user's own with
/// another name, the name of the file that it leads to counts.
pub(crate) fn program_name_from_command_or_executable(command_path: Option<OsString>) -> String {
    let started_name = file_name(command_path.unwrap_or_default());
    let executable_name =
        || std::env::current_exe().ok().map(file_name).filter(|name| find_program(name).is_some());
    if find_program(&started_name).is_some() {
        started_name
    } else {
        executable_name().unwrap_or(started_name)
    }
}

fn file_name(path: impl AsRef<Path>) -> String {
    path.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reports a start that nobody can have intended. The session is not at fault, so the exit code does not end
/// it.
pub(crate) fn report_invalid_start(error_message: &str) -> ExitCode {
    write_response(&HookResponse::default().with_stderr_line(Some(error_message)));
    ExitCode::SUCCESS
}

/// Returns the hint for a program name that no hook has.
pub(crate) fn valid_names_hint() -> String {
    let names = PROGRAMS.map(|(name, _)| name);
    format!("start it by a link with the name of a hook: {}", names.join(", "))
}

pub(crate) fn is_version_command(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|argument| argument == VERSION_COMMAND)
}

pub(crate) fn print_version_as_text_or_json(name: &str, arguments: &[String]) -> ExitCode {
    let build_info = BuildInfo::for_current_program(name);
    let is_json = arguments.get(1).is_some_and(|argument| argument == JSON_OPTION);
    let version =
        if is_json { build_info.to_json() } else { format!("{} {}", build_info.program, build_info.version) };
    write_response(&HookResponse::from_text(Some(version)));
    ExitCode::SUCCESS
}

fn keep_response_for_panic(response: &HookResponse) {
    if let Ok(mut kept_response) = KEPT_RESPONSE.lock() {
        *kept_response = Some(response.clone());
    }
}

/// Handles a panic, which is a fault of ours. The user gets one line, the client gets the response that was
/// kept before, or an empty one, and the session continues. A release build does not unwind, so no caller
/// could catch the panic.
#[expect(clippy::exit, reason = "the alternative is an abort, which the client shows as an error")]
fn respond_and_exit_after_panic(panic_info: &std::panic::PanicHookInfo<'_>) {
    let response = response_after_panic(panic_info);
    write_response(&response);
    plimsoll_flows::hooks::faults::record_faults_without_payload(&own_program_name(), &response.stderr_lines);
    std::process::exit(response.exit_status.code().into());
}

fn response_after_panic(panic_message: impl std::fmt::Display) -> HookResponse {
    let kept_response =
        KEPT_RESPONSE.try_lock().ok().and_then(|mut kept_response| kept_response.take()).unwrap_or_default();
    kept_response.with_stderr_line(Some(format!("internal error: {panic_message}")))
}

/// Writes a response. A reader that has closed its end is no error. The client reads standard output; people
/// read standard error, so its text is cleaned of terminal control characters.
#[expect(clippy::disallowed_methods, reason = "a hook answers on its standard output")]
fn write_response(response: &HookResponse) {
    if let Some(mut text) = response.stdout() {
        text.push('\n');
        let _ = plimsoll_store::disk::write_stdout(text.as_bytes());
    }
    for stderr_line in &response.stderr_lines {
        let line = format!("{}: {}\n", own_program_name(), to_single_line(stderr_line));
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
        assert_eq!((without_response.stdout(), without_response.exit_status), (None, ExitStatus::Success));
        let complete_response = HookResponse::from_text(Some("what was decided".to_owned()))
            .with_exit_status(ExitStatus::Failure);
        keep_response_for_panic(&complete_response);
        let response = response_after_panic("in the memory's half");
        assert_eq!(
            (response.stdout(), response.exit_status),
            (complete_response.stdout(), ExitStatus::Failure)
        );
        assert_eq!(response.stderr_lines, ["internal error: in the memory's half"]);
    }
}
