//! Why a conversation may not change the memory or start a frame. The model reads it, and does what it says.

use super::{FrameAgent, NESTING_VARIABLE, shown};
use plimsoll_domain::memory::Memory;
use plimsoll_protocol::agent::TOOL;

/// Why a conversation may not do what it asked for, with what it can do instead. Names are as the model may see them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameRefusal {
    /// It has no frame to write in.
    #[error(
        "a subagent that is no frame reads the working memory and does not write it: put what you found into your answer"
    )]
    NoFrame,
    /// Its frame is over.
    #[error("your frame has returned: nothing more is written; end your turn")]
    HasReturned,
    /// A subagent works in the present frame.
    #[error("the frame \"{0}\" is at work: only it writes until it has popped")]
    AtWork(String),
    /// The present frame waits for another conversation.
    #[error("the frame \"{0}\" was pushed by another conversation, and waits for it")]
    Anothers(String),
    /// The present frame waits for its agent, and nothing is written before that.
    #[error("{}, or take it back with pop_frame", start_it(.name, .kind))]
    Waits {
        /// The frame.
        name: String,
        /// Its agent.
        kind: FrameAgent,
    },
    /// Another agent was started than the one that the frame waits for.
    #[error("{}", start_it(.name, .kind))]
    OtherWaits {
        /// The frame.
        name: String,
        /// Its agent.
        kind: FrameAgent,
    },
    /// No frame waits for an agent.
    #[error("no frame waits to be started: call push_frame first, and start one frame at a time")]
    NoneWaits,
    /// The client would not start its agent.
    #[error(
        "this client starts subagents {nesting} deep, and the frame would be at depth {depth}: do the work in this frame (the user can set {NESTING_VARIABLE}=5 in the client's environment or settings)"
    )]
    TooDeep {
        /// How deep the frame would lie.
        depth: usize,
        /// How deep the client goes.
        nesting: usize,
    },
    /// An ordinary session works beside a run, whose root frame this is.
    #[error("the root frame belongs to the run in this project: only the run's own session pops it")]
    RootOfRun,
}

impl FrameRefusal {
    pub(super) fn no_frame(memory: &Memory, agent: Option<&str>) -> FrameRefusal {
        let has_returned =
            memory.returned.as_ref().is_some_and(|returned| returned.agent.as_deref() == agent);
        if has_returned { FrameRefusal::HasReturned } else { FrameRefusal::NoFrame }
    }

    pub(super) fn anothers(memory: &Memory) -> FrameRefusal {
        FrameRefusal::Anothers(shown(memory.top()))
    }
}

fn start_it(name: &str, kind: &FrameAgent) -> String {
    let kind = kind.name();
    format!(
        "the frame \"{name}\" is pushed and waits: start it with {TOOL}(subagent_type \"{kind}\", description \"{name}\")"
    )
}
