//! What each hook program does, one file per program: read the event, decide, write, respond. [`PROGRAMS`] has them by their
//! names.
//!
//! `subagent` is what several of them do when a frame of the working memory is pushed or popped around a subagent;
//! `offer` is what SessionStart says of an unread handoff; `pack` is the Stop hook's question whether the session has room
//! for the next item.

pub mod faults;
pub mod memory;
pub(crate) mod offer;
pub(crate) mod pack;
pub mod post_tool;
pub mod pre_compact;
pub mod session_end;
pub mod session_start;
pub mod statusline;
pub mod stop;
pub mod subagent;

use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::install::plugin::{Halves, HookOrigin};
use memory::with_memory;

/// How a hook was started.
pub struct Started<'a> {
    /// Its standard input.
    pub input: &'a [u8],
    /// The arguments of its entry.
    pub arguments: &'a [String],
    /// What of it runs.
    pub halves: Halves,
    /// Keeps an answer that is complete: it is printed if there is a panic after it.
    pub keep: &'a dyn Fn(&HookResponse),
}

/// A hook from its start to its answer.
pub type Program = fn(&Started<'_>) -> HookResponse;

/// The hook programs by their names, in the order of `programs.txt`, and what each of them does.
pub const PROGRAMS: [(&str, Program); 8] = [
    // The frames of the working memory and their subagents: PreToolUse, PostToolUse, SubagentStart.
    ("plimsoll-frame", subagent::frames),
    // The working memory as the model sees it: UserPromptSubmit, and what one output of SessionStart does not hold.
    ("plimsoll-memory", memory::memory),
    // The monitor: PostToolBatch, and PostToolUse where the client is too old for it; then, where the entry says so, what is
    // new in the memory.
    ("plimsoll-post-tool", |started| with_memory(started, post_tool::post_tool)),
    // A checkpoint before the client forgets: PreCompact and PostCompact.
    ("plimsoll-pre-compact", |started| pre_compact::pre_compact(started.input)),
    // The end of a session: SessionEnd.
    ("plimsoll-session-end", |started| session_end::session_end(started.input)),
    // The briefing: SessionStart; then the memory's first part.
    ("plimsoll-session-start", |started| {
        let origin = HookOrigin::of(started.arguments);
        with_memory(started, |call| session_start::session_start(call, origin))
    }),
    // The status line; or, with `--wrap COMMAND`, another one that we measure for.
    ("plimsoll-statusline", |started| match started.arguments.split_first() {
        Some((option, command)) if option == "--wrap" => statusline::wrap(started.input, command),
        _ => statusline::statusline(started.input),
    }),
    // The gate: Stop and StopFailure; then, at Stop and SubagentStop, the end of a frame.
    ("plimsoll-stop-gate", |started| with_memory(started, stop::stop_gate)),
];

/// What a hook's program answers to an event that somebody else hands over.
pub fn answer(input: &[u8], program: fn(&HookInvocation) -> HookResponse) -> HookResponse {
    match HookInvocation::read(input) {
        Ok(mut call) => {
            call.find_project_of_session();
            program(&call)
        }
        Err(error) => HookResponse::for_input_error(&error),
    }
}

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
