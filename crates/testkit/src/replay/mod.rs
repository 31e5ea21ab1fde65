//! The client, replayed: a small program that does what `claude -p` of the pinned version was seen to do, at a hundredth
//! of its price. It asks the same model, starts the same hooks with the same payloads and environment, runs the same
//! commands, and writes the same stream and transcript.
//!
//! It knows only what was recorded (`recorded.json`, and the kinds of session in `tests/tests/client/replay`, each of
//! which every full test run plays with the real client, too, and compares). Asked for anything else it ends with
//! [`NOT_RECORDED`] and says what it was: such a test takes the real client.

#![expect(clippy::disallowed_macros, reason = "its output is a program's own")]

mod arguments;
mod hooks;
mod lines;
mod model;
mod patch;
mod session;
mod settings;
mod spent;
mod tools;
mod transcript;

use arguments::Arguments;
use std::path::Path;
use std::process::ExitCode;

/// The variable that names the file for what it has no recording of: a run may take its end for a crash and continue, but
/// the world that it was played in fails its test.
pub const REFUSALS: &str = "PLIMSOLL_REPLAY_REFUSALS";

/// How it ends when it is asked for what was never recorded: no exit code of the client's.
pub const NOT_RECORDED: u8 = 70;

/// Something that was never recorded; in words.
#[derive(Debug)]
struct NotRecorded(String);

/// What most of its functions give.
type Recorded<T> = Result<T, NotRecorded>;

fn not_recorded<T>(what: impl Into<String>) -> Recorded<T> {
    Err(NotRecorded(what.into()))
}

/// A folder's path as the client names things after it.
pub fn dashed(folder: &Path) -> String {
    let path = folder.display().to_string();
    path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// The program.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        println!("{} (Claude Code)", crate::client::CLIENT_VERSION);
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(&arguments).and_then(session::play) {
        Ok(code) => ExitCode::from(code),
        Err(NotRecorded(what)) => {
            eprintln!("the replayed client has no recording of {what}: this test needs the real one");
            if let Some(file) = std::env::var_os(REFUSALS) {
                let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
                let _ = opened.and_then(|mut file| {
                    std::io::Write::write_all(&mut file, format!("{what}\n").as_bytes())
                });
            }
            ExitCode::from(NOT_RECORDED)
        }
    }
}
