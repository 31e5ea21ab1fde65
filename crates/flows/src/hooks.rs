//! What each hook program does, one file per program: read the event, decide, write, respond. [`PROGRAMS`] has them by their
//! names.
//!
//! `subagent` is what several of them do when a frame of the working memory is pushed or popped around a subagent;
//! `pack` is the Stop hook's question whether the session has room for the next item.

pub mod faults;
pub(crate) mod pack;
pub mod post_tool;
pub mod pre_compact;
pub mod session_end;
pub mod session_start;
pub mod statusline;
pub mod stop;
pub mod subagent;

use crate::hook_response::HookResponse;
use crate::install::plugin::HookOrigin;
use crate::memory::{Part, memory};

/// A hook from its payload, and the arguments of its entry, to its answer.
pub type Program = fn(&[u8], &[String]) -> HookResponse;

/// The hook programs by their names, in the order of `programs.txt`, and what each of them does.
pub const PROGRAMS: [(&str, Program); 8] = [
    // The frames of the working memory and their subagents: PreToolUse, PostToolUse, SubagentStart, SubagentStop, Stop.
    ("plimsoll-frame", |input, arguments| subagent::frames(input, HookOrigin::of(arguments))),
    // The working memory as the model sees it: SessionStart (one entry for each part), UserPromptSubmit, PostToolBatch.
    ("plimsoll-memory", |input, arguments| {
        memory(input, arguments.first().and_then(|word| Part::named(word)))
    }),
    // The monitor: PostToolBatch, and PostToolUse where the client is too old for it.
    ("plimsoll-post-tool", |input, _| post_tool::post_tool(input)),
    // A checkpoint before the client forgets: PreCompact and PostCompact.
    ("plimsoll-pre-compact", |input, _| pre_compact::pre_compact(input)),
    // The end of a session: SessionEnd.
    ("plimsoll-session-end", |input, _| session_end::session_end(input)),
    // The briefing: SessionStart.
    ("plimsoll-session-start", |input, arguments| {
        session_start::session_start(input, HookOrigin::of(arguments))
    }),
    // The status line; or, with `--wrap COMMAND`, another one that we measure for.
    ("plimsoll-statusline", |input, arguments| match arguments.split_first() {
        Some((option, command)) if option == "--wrap" => statusline::wrap(input, command),
        _ => statusline::statusline(input),
    }),
    // The gate: Stop and StopFailure.
    ("plimsoll-stop-gate", |input, _| stop::stop_gate(input)),
];

/// The hook program of a name.
pub fn program_of(name: &str) -> Option<Program> {
    PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, program)| *program)
}

#[cfg(test)]
mod tests {
    use plimsoll_protocol::settings;

    #[test]
    fn the_names_that_the_settings_and_the_scripts_know_are_the_programs() {
        assert_eq!(*settings::PROGRAMS, super::PROGRAMS.map(|(name, _)| name));
    }
}
