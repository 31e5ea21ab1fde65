//! The gate: Stop and StopFailure.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(flows::gate::stop_gate)
}
