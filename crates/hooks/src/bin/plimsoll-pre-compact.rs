//! A checkpoint before the client forgets: PreCompact and PostCompact.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_hooks::run(plimsoll_flows::hooks::pre_compact::pre_compact)
}
