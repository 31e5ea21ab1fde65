//! The end of a session: SessionEnd.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(flows::session_end::session_end)
}
