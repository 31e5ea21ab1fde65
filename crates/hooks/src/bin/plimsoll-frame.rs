//! The frames of the working memory and their subagents: PreToolUse, PostToolUse, SubagentStart, SubagentStop, Stop.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_hooks::run(|input| plimsoll_flows::hooks::subagent::frames(input, plimsoll_hooks::brought()))
}
