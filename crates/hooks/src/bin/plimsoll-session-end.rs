//! The end of a session: SessionEnd.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_hooks::run(plimsoll_flows::hooks::session_end::session_end)
}
