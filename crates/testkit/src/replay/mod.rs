//! The replayed client: a small program that reproduces the recorded behavior of `claude -p` of the pinned version at
//! a hundredth of the cost. It sends the same requests to the model, starts the same hooks with the same payloads and
//! environment, runs the same commands, and writes the same stream and transcript.
//!
//! It supports only what has a recording: `recorded.json`, and the kinds of session in `tests/tests/client/replay`,
//! which every full test run also runs with the real client to compare the results. For anything else it prints what
//! is missing and exits with [`MISSING_RECORDING_EXIT_CODE`]; such a test needs the real client.

#![expect(clippy::disallowed_macros, reason = "its output is a program's own")]

mod arguments;
mod hooks;
mod lines;
mod model;
mod patch;
mod session;
mod settings;
mod token_usage;
mod tools;
mod transcript;

use arguments::Arguments;
use std::path::Path;
use std::process::ExitCode;

/// The environment variable with the path of a file that lists requests without a recording. A run may treat the exit
/// code as a crash and continue, but the test fails if this file has content.
pub const UNRECORDED_REQUESTS_VARIABLE: &str = "PLIMSOLL_REPLAY_REFUSALS";

/// The exit code for a request without a recording. The real client never uses it.
pub const MISSING_RECORDING_EXIT_CODE: u8 = 70;

/// The error for something without a recording, with a description of it.
#[derive(Debug)]
struct MissingRecording(String);

/// The result of an operation that may lack a recording.
type ReplayResult<T> = Result<T, MissingRecording>;

fn not_replayable_error<T>(description: impl Into<String>) -> ReplayResult<T> {
    Err(MissingRecording(description.into()))
}

/// Returns the path of a folder in the form that the client uses in file names: every character except ASCII letters
/// and digits becomes a dash.
pub fn dashed_path(folder: &Path) -> String {
    let path = folder.display().to_string();
    path.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect()
}

/// Runs the replayed client with this process's arguments and returns its exit code.
pub fn run_replayed_client() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        println!("{} (Claude Code)", crate::client::CLIENT_VERSION);
        return ExitCode::SUCCESS;
    }
    match Arguments::parse_rejecting_unsupported(&arguments).and_then(session::run_session) {
        Ok(code) => ExitCode::from(code),
        Err(MissingRecording(description)) => {
            eprintln!("the replayed client has no recording of {description}: this test needs the real one");
            if let Some(report_path) = std::env::var_os(UNRECORDED_REQUESTS_VARIABLE) {
                let open_result = std::fs::OpenOptions::new().create(true).append(true).open(report_path);
                let _ = open_result.and_then(|mut report_file| {
                    std::io::Write::write_all(&mut report_file, format!("{description}\n").as_bytes())
                });
            }
            ExitCode::from(MISSING_RECORDING_EXIT_CODE)
        }
    }
}
