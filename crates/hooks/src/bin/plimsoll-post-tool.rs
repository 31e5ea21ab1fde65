//! The monitor: PostToolBatch, and PostToolUse where the client is too old for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_hooks::run(plimsoll_flows::hooks::post_tool::post_tool)
}
