//! The hook programs, one file per program: each reads the event, decides, writes and responds. [`PROGRAMS`]
//! lists them by name.
//!
//! `subagent` is shared by several programs and handles frames of the working memory that are pushed or
//! popped around a subagent; `handoff_offer` is SessionStart's message about an unread handoff; `model_switch` is the
//! monitor's message about another model; `resume_cost` is SessionStart's message about an expired cache;
//! `item_packing` decides at Stop whether the session has room for the next item.

pub(crate) mod handoff_offer;
pub mod hook_failures;
pub(crate) mod item_packing;
pub mod memory;
mod model_switch;
pub mod post_tool;
pub mod pre_compact;
mod resume_cost;
pub mod session_end;
pub mod session_start;
pub mod statusline;
pub mod stop;
pub mod subagent;

use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::install::hook_precedence::{HookOrigin, HookPartsToRun};
use memory::run_usage_part_then_memory_part;

/// The input, arguments and options of a started hook.
pub struct HookStart<'a> {
    pub input: &'a [u8],
    /// The arguments in the hook's settings entry.
    pub arguments: &'a [String],
    /// Whether to run the usage part, the memory part, or both.
    pub parts: HookPartsToRun,
    /// Saves a complete response, which is printed if a later part panics.
    pub save_response: &'a dyn Fn(&HookResponse),
}

/// A function that runs a hook and returns its response.
pub type HookProgram = fn(&HookStart<'_>) -> HookResponse;

/// The hook programs by name, in the order of `programs.txt`.
pub const PROGRAMS: [(&str, HookProgram); 8] = [
    // The frames of the working memory and their subagents: PreToolUse, PostToolUse, SubagentStart.
    ("plimsoll-frame", subagent::run_frame_hook),
    // The text of the working memory for the model: UserPromptSubmit, and the further parts of a text that is too long
    // for one output of SessionStart.
    ("plimsoll-memory", memory::run_memory_hook),
    // The monitor: PostToolBatch, or PostToolUse on clients without PostToolBatch. Then the changes in the memory, if
    // the entry enables them. Also PreModelSwitch, because another model has another window.
    ("plimsoll-post-tool", |start| run_usage_part_then_memory_part(start, post_tool::run_post_tool_hook)),
    // Writes a checkpoint before the client compacts: PreCompact and PostCompact.
    ("plimsoll-pre-compact", |start| pre_compact::run_pre_or_post_compact_hook(start.input)),
    ("plimsoll-session-end", |start| session_end::run_session_end_hook(start.input)),
    // The briefing at SessionStart, then the first part of the memory.
    ("plimsoll-session-start", |start| {
        let origin = HookOrigin::from_plugin_flag_or_team_guarded_flag(start.arguments);
        run_usage_part_then_memory_part(start, |invocation| {
            session_start::run_session_start_hook(invocation, origin)
        })
    }),
    // The status line. With `--wrap COMMAND`, it records the usage and then runs the user's status line command.
    ("plimsoll-statusline", |start| match start.arguments.split_first() {
        Some((option, command)) if option == "--wrap" => {
            statusline::publish_and_exec_wrapped_status_line(start.input, command)
        }
        _ => statusline::render_and_publish_status_line(start.input),
    }),
    // The gate: Stop and StopFailure. Then, at Stop and SubagentStop, the end of a frame.
    ("plimsoll-stop-gate", |start| run_usage_part_then_memory_part(start, stop::run_stop_hook)),
];

/// Runs a hook on the input of an event, for commands that receive the event from another program.
pub fn run_hook_on_input(input: &[u8], run_hook: fn(&HookInvocation) -> HookResponse) -> HookResponse {
    match HookInvocation::parse_input_and_load_project(input) {
        Ok(mut invocation) => {
            invocation.switch_project_if_session_has_no_record();
            run_hook(&invocation)
        }
        Err(error) => HookResponse::for_input_error(&error),
    }
}

/// Finds a hook program by its name.
pub fn find_program(name: &str) -> Option<HookProgram> {
    PROGRAMS.iter().find(|(program_name, _)| *program_name == name).map(|(_, program)| *program)
}

#[cfg(test)]
mod tests {
    use plimsoll_protocol::settings;

    #[test]
    fn program_names_match_the_settings() {
        assert_eq!(*settings::PROGRAM_NAMES, super::PROGRAMS.map(|(name, _)| name));
    }
}
