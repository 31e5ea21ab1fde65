//! The briefing: SessionStart.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_hooks::run(|input| {
        plimsoll_flows::hooks::session_start::session_start(input, plimsoll_hooks::brought())
    })
}
