//! A checkpoint before the client forgets: PreCompact and PostCompact.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(flows::compact::pre_compact)
}
