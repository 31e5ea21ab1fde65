//! The briefing: SessionStart.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(flows::brief::session_start)
}
