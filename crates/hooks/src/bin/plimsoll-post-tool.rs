//! The monitor: PostToolBatch, and PostToolUse where the client is too old for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(flows::monitor::post_tool)
}
