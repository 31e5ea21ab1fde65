//! Access control for the working memory: which conversation may write, and which subagent works in which frame.
//! Refusals are shown to the model, which can act on them.

mod refusal;

pub use refusal::FrameRefusal;

use plimsoll_domain::SessionId;
use plimsoll_domain::memory::{AbnormalEnd, Frame, Memory, MemoryOp, ReturnedFrame, render};
use plimsoll_protocol::agent::AgentCall;

/// The frame agent, depending on how it was installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameAgent {
    /// Installed as a file in the project's or the user's agents folder, or passed with `--agents`.
    Standalone,
    /// Installed by the plugin.
    Plugin,
}

impl FrameAgent {
    /// Returns its `subagent_type` for the Agent tool.
    pub fn subagent_type(self) -> &'static str {
        match self {
            FrameAgent::Standalone => "frame",
            FrameAgent::Plugin => "plimsoll:frame",
        }
    }

    /// Returns the `subagent_type` to start if the model requested this one. Plimsoll's messages call both agents
    /// `frame`, so a model that requests `frame` refers to the installed agent.
    pub fn subagent_type_to_start(self, requested: &str) -> &str {
        match self {
            FrameAgent::Standalone => requested,
            FrameAgent::Plugin => self.subagent_type(),
        }
    }
}

/// The client's default limit for nested subagents.
// Observed on 2.1.329.
const DEFAULT_NESTING_LIMIT: usize = 3;
/// The client's environment variable for that limit.
pub const NESTING_LIMIT_VARIABLE: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";

/// Returns true for the frame agent, however it was installed.
pub fn is_frame_agent(subagent_type: &str) -> bool {
    [FrameAgent::Standalone, FrameAgent::Plugin]
        .iter()
        .any(|frame_agent| frame_agent.subagent_type() == subagent_type)
}

/// The kind of access that a tool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAccess {
    /// Reads the memory.
    Read,
    /// Writes registers or the heap.
    Write,
    /// Pushes a frame.
    Push,
    /// Pops a frame.
    Pop,
}

impl MemoryAccess {
    /// Returns the access that a tool of Plimsoll's server needs, whatever prefix the client adds to its name.
    /// Returns `None` for any other tool.
    pub fn from_plimsoll_tool_name(tool_name: &str) -> Option<MemoryAccess> {
        let (server, tool) = tool_name.strip_prefix("mcp__")?.rsplit_once("__")?;
        if server != "plimsoll" && !server.ends_with("_plimsoll") {
            return None;
        }
        match tool {
            "memory_show" => Some(MemoryAccess::Read),
            "update_registers" | "heap_alloc" | "heap_write" | "heap_free" => Some(MemoryAccess::Write),
            "push_frame" => Some(MemoryAccess::Push),
            "pop_frame" => Some(MemoryAccess::Pop),
            _ => None,
        }
    }
}

/// The conversation that calls a tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// The id of the subagent; `None` for the session's main conversation.
    pub agent: Option<&'a str>,
    /// The id of the last `push_frame` call of its session.
    pub last_push_call: Option<&'a str>,
}

/// Checks whether a conversation may access the memory in this way. Every conversation may read; only the current
/// frame may write, push or pop. The conversation that pushed a frame may pop it while it waits for its agent.
/// `nesting_limit` is the value of [`NESTING_LIMIT_VARIABLE`], if it is set.
pub fn check_memory_access(
    memory: &Memory,
    caller: Caller<'_>,
    access: MemoryAccess,
    (frame_agent, nesting_limit): (FrameAgent, Option<usize>),
) -> Result<(), FrameRefusal> {
    if access == MemoryAccess::Read {
        return Ok(());
    }
    let Some(depth) = memory.frame_depth_of_agent(caller.agent) else {
        return Err(FrameRefusal::not_a_frame_or_returned(memory, caller.agent));
    };
    let is_pushed_by_this_caller = is_pushed_by_caller(memory, caller);
    let is_pop_of_waiting_frame =
        access == MemoryAccess::Pop && depth + 1 == memory.depth() && is_pushed_by_this_caller;
    let is_current_frame = memory.depth() <= depth;
    if is_current_frame && access == MemoryAccess::Push {
        check_nesting(depth + 1, nesting_limit.unwrap_or(DEFAULT_NESTING_LIMIT))
    } else if is_current_frame {
        Ok(())
    } else if !memory.is_waiting_for_agent() {
        Err(FrameRefusal::FrameBusy(displayed_name(memory.current_frame())))
    } else if is_pop_of_waiting_frame {
        Ok(())
    } else if is_pushed_by_this_caller {
        Err(FrameRefusal::WaitsForAgent { name: displayed_name(memory.current_frame()), kind: frame_agent })
    } else {
        Err(FrameRefusal::other_conversation(memory))
    }
}

/// Returns true if this session pushed the waiting frame, or if its push call has no id because the client sends
/// none.
fn is_pushed_by_caller(memory: &Memory, caller: Caller<'_>) -> bool {
    memory.current_frame().push_call_id.is_none()
        || memory.current_frame().push_call_id.as_deref() == caller.last_push_call
}

fn check_nesting(depth: usize, nesting_limit: usize) -> Result<(), FrameRefusal> {
    if depth <= nesting_limit { Ok(()) } else { Err(FrameRefusal::TooDeep { depth, nesting: nesting_limit }) }
}

/// Returns a frame's name in the form in which messages show it.
fn displayed_name(frame: &Frame) -> String {
    render::neutralize_tags_and_hidden_chars(&frame.name)
}

/// The decision about a call of the Agent tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameStartDecision {
    /// The call does not concern the frame agent.
    NotAFrame,
    /// The call starts the waiting frame.
    Start,
    /// The call is refused.
    Refuse(FrameRefusal),
}

/// Decides whether an Agent call starts the waiting frame. The call must come from the conversation that pushed
/// the frame, request the frame agent, and contain the frame's name.
pub fn decide_frame_start(
    memory: &Memory,
    caller: Caller<'_>,
    agent_call: &AgentCall,
    frame_agent: FrameAgent,
) -> FrameStartDecision {
    // With the plugin installed, `frame` may also be an agent of the user.
    let may_be_user_agent =
        frame_agent == FrameAgent::Plugin && agent_call.subagent_type != frame_agent.subagent_type();
    if !is_frame_agent(&agent_call.subagent_type) || (may_be_user_agent && !memory.is_waiting_for_agent()) {
        return FrameStartDecision::NotAFrame;
    }
    if !memory.is_waiting_for_agent() {
        return FrameStartDecision::Refuse(FrameRefusal::NoFrameWaiting);
    }
    if memory.frame_depth_of_agent(caller.agent) != Some(memory.depth() - 1)
        || !is_pushed_by_caller(memory, caller)
    {
        return FrameStartDecision::Refuse(FrameRefusal::other_conversation(memory));
    }
    // The model saw the name in its displayed form.
    let name = displayed_name(memory.current_frame());
    if [&agent_call.description, &agent_call.prompt]
        .into_iter()
        .any(|text| contains_whole_name(&render::neutralize_tags_and_hidden_chars(text), &name))
    {
        FrameStartDecision::Start
    } else {
        FrameStartDecision::Refuse(FrameRefusal::WrongAgent { name, kind: frame_agent })
    }
}

/// Returns true if the text contains the name as a whole word.
fn contains_whole_name(text: &str, name: &str) -> bool {
    let is_word_boundary = |neighbor: Option<char>| neighbor.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(name).any(|(index, _)| {
        is_word_boundary(text[..index].chars().next_back())
            && is_word_boundary(text[index + name.len()..].chars().next())
    })
}

/// Returns the number of frames above a conversation that has ended its turn; no agent will return from them. For
/// the main conversation only frames that `session` started count.
pub fn count_frames_left_open_by_conversation(
    memory: &Memory,
    caller: Caller<'_>,
    session: &SessionId,
) -> usize {
    let Some(depth) = memory.frame_depth_of_agent(caller.agent) else { return 0 };
    let Some(first_frame_above) = memory.frames.get(depth + 1) else { return 0 };
    let is_started_by_session = match &first_frame_above.subagent_launch {
        Some(launch) => launch.owner.session_id == *session,
        None => {
            first_frame_above.push_call_id.is_some()
                && first_frame_above.push_call_id.as_deref() == caller.last_push_call
        }
    };
    if caller.agent.is_some() || is_started_by_session { memory.depth() - depth } else { 0 }
}

/// Returns the number of frames that end with these Agent calls: the lowest frame that one of the calls started, and
/// all frames above it.
pub fn count_frames_ended_by_calls(memory: &Memory, ended_calls: &[&str]) -> usize {
    let is_started_by_call = |frame: &Frame| {
        frame.subagent_launch.as_ref().is_some_and(|launch| ended_calls.contains(&launch.call_id.as_str()))
    };
    memory.frames.iter().position(is_started_by_call).map_or(0, |depth| memory.frames.len() - depth)
}

/// Returns the operation that closes the top frame as abandoned, because its subagent ended or never started.
pub fn op_to_close_top_frame_as_abandoned(memory: &Memory) -> MemoryOp {
    let reason = match &memory.current_frame().agent_id {
        Some(_) => "its subagent ended without returning from it",
        None => "no subagent worked in it",
    };
    MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::Abandoned, last_message: reason.to_owned() }
}

/// Renders the reminder for a subagent that ends its turn without popping its frame. It is sent once.
pub fn render_reminder_to_pop_frame(memory: &Memory) -> String {
    format!(
        "You have not returned from the frame \"{}\". Call pop_frame now with the report that RETURN asks for (what \
         was done, what is open). Then end your turn.",
        displayed_name(memory.current_frame())
    )
}

/// Renders the report to the parent about a closed frame.
pub fn render_returned_frame_report(returned: &ReturnedFrame) -> String {
    let name = &returned.name;
    let text = match returned.abnormal_end {
        None => format!("The frame \"{name}\" has returned:\n{}", returned.result),
        Some(AbnormalEnd::TurnEndedWithoutPop) => {
            format!("The frame \"{name}\" ended without a report. Its last message:\n{}", returned.result)
        }
        Some(AbnormalEnd::Abandoned) => format!(
            "The frame \"{name}\" was abandoned: {}. Its STATUS, OPEN_QUESTIONS and PLAN are in your registers now.",
            returned.result
        ),
    };
    let notes: String = returned.merge_notes.iter().map(|note| format!("\nnote: {note}")).collect();
    render::neutralize_tags_and_hidden_chars(&format!("{text}{notes}"))
}

#[cfg(test)]
mod tests;
