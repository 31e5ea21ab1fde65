//! The status line.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(flows::statusline::statusline)
}
