//! The briefing: SessionStart.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(|input| flows::brief::session_start(input, hooks::brought()))
}
