//! The replayed client: a small program that does what `claude -p` of the pinned version was recorded to do,
//! at a hundredth of the cost. It sends the same requests to the model, starts the same hooks with the same
//! payloads and environment, runs the same commands, and writes the same stream and transcript.
//!
//! It supports only what was recorded (`recorded.json`, and the kinds of session in
//! `tests/tests/client/replay`, which every full test run also plays with the real client and compares). For
//! anything else it exits with [`NOT_RECORDED_EXIT_CODE`] and prints what is missing: such a test needs the real
//! client.

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

/// The variable with the path of a file for requests without a recording. A run may take the exit for a crash
/// and continue, but the test whose world it is fails.
pub const UNRECORDED_REQUESTS_VARIABLE: &str = "PLIMSOLL_REPLAY_REFUSALS";

/// The exit code for a request without a recording. The client itself never exits with it.
pub const NOT_RECORDED_EXIT_CODE: u8 = 70;

/// A description of something that was never recorded.
#[derive(Debug)]
struct NotRecorded(String);

/// The result of most functions of this module.
type ReplayResult<T> = Result<T, NotRecorded>;

fn not_recorded<T>(description: impl Into<String>) -> ReplayResult<T> {
    Err(NotRecorded(description.into()))
}

/// Returns the path of a folder as the client uses it in names: other characters than letters and digits
/// become dashes.
pub fn dashed_path(folder: &Path) -> String {
    let path = folder.display().to_string();
    path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        println!("{} (Claude Code)", crate::client::CLIENT_VERSION);
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(&arguments).and_then(session::run_session) {
        Ok(code) => ExitCode::from(code),
        Err(NotRecorded(description)) => {
            eprintln!("the replayed client has no recording of {description}: this test needs the real one");
            if let Some(file) = std::env::var_os(UNRECORDED_REQUESTS_VARIABLE) {
                let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
                let _ = opened.and_then(|mut file| {
                    std::io::Write::write_all(&mut file, format!("{description}\n").as_bytes())
                });
            }
            ExitCode::from(NOT_RECORDED_EXIT_CODE)
        }
    }
}
