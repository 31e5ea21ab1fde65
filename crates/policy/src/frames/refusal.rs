//! Reasons why a conversation may not change the memory or start a frame. They are shown to the model.

use super::{FrameAgent, NESTING_LIMIT_VARIABLE, displayed_name};
use plimsoll_domain::memory::Memory;
use plimsoll_protocol::agent::TOOL_NAME;

/// Why a conversation may not do this, and what it can do instead. Names are in displayed form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameRefusal {
    /// The conversation is a subagent without a frame.
    #[error(
        "a subagent without a frame can read the working memory but not write it: put your findings into your answer"
    )]
    NotAFrame,
    /// The conversation's frame has returned.
    #[error("your frame has returned and can write nothing more: end your turn")]
    FrameReturned,
    /// A subagent is working in the current frame.
    #[error("the frame \"{0}\" is working: only it writes until it pops")]
    FrameBusy(String),
    /// The current frame waits for another conversation.
    #[error("the frame \"{0}\" was pushed by another conversation and waits for it")]
    OtherConversation(String),
    /// The current frame waits for its agent, and nothing may be written before that.
    #[error("{}, or remove it with pop_frame", start_instruction(.name, .kind))]
    WaitsForAgent {
        /// The name of the frame.
        name: String,
        /// The agent to start.
        kind: FrameAgent,
    },
    /// The Agent call does not fit the frame that waits.
    #[error("{}", start_instruction(.name, .kind))]
    WrongAgent {
        /// The name of the frame.
        name: String,
        /// The agent to start.
        kind: FrameAgent,
    },
    /// No frame waits for an agent.
    #[error("no frame is waiting to start: call push_frame first, and start one frame at a time")]
    NoFrameWaiting,
    /// The client would not start the frame's agent at this depth.
    #[error(
        "this client starts subagents {nesting} deep, and the frame would be at depth {depth}: do the work in this frame (the user can set {NESTING_LIMIT_VARIABLE}=5 in Claude Code's environment or settings)"
    )]
    TooDeep {
        /// The depth that the frame would have.
        depth: usize,
        /// The client's limit.
        nesting: usize,
    },
    /// An ordinary session runs next to a run, to which the root frame belongs.
    #[error("the root frame belongs to the run in this project: only the run's own session pops it")]
    RootOfRun,
}

impl FrameRefusal {
    pub(super) fn not_a_frame_or_returned(memory: &Memory, agent: Option<&str>) -> FrameRefusal {
        let has_returned =
            memory.last_returned_frame.as_ref().is_some_and(|returned| returned.agent_id.as_deref() == agent);
        if has_returned { FrameRefusal::FrameReturned } else { FrameRefusal::NotAFrame }
    }

    pub(super) fn other_conversation(memory: &Memory) -> FrameRefusal {
        FrameRefusal::OtherConversation(displayed_name(memory.current_frame()))
    }
}

fn start_instruction(name: &str, kind: &FrameAgent) -> String {
    let subagent_type = kind.subagent_type();
    format!(
        "the frame \"{name}\" is pushed and waits: start it with {TOOL_NAME}(subagent_type \"{subagent_type}\", description \"{name}\")"
    )
}
