//! The gate: Stop and StopFailure.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_hooks::run(plimsoll_flows::hooks::stop::stop_gate)
}
