//! The frames of the working memory and their subagents: PreToolUse, PostToolUse, SubagentStart, SubagentStop, Stop.

use std::process::ExitCode;

fn main() -> ExitCode {
    hooks::run(|input| flows::frames::frames(input, hooks::brought()))
}
