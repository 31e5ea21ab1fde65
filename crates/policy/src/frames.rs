//! Who may write the working memory, and which subagent works in which frame. A refusal is shown to the
//! model, which can do something about it.

mod refusal;

pub use refusal::FrameRefusal;

use plimsoll_domain::SessionId;
use plimsoll_domain::memory::{Closing, Frame, Memory, Op, Returned, render};
use plimsoll_protocol::agent::AgentCall;

/// By which name the client knows the subagent that works in frames: that goes by who brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameAgent {
    /// A file in the folder of the project's or the user's agents, or the client's `--agents`.
    Own,
    /// The plugin.
    Plugins,
}

impl FrameAgent {
    /// What the Agent tool's `subagent_type` says.
    pub fn name(self) -> &'static str {
        match self {
            FrameAgent::Own => "frame",
            FrameAgent::Plugins => "plimsoll:frame",
        }
    }

    /// The kind to start where the model has asked for this one. Our words are the same for both: a model that has
    /// read `frame` means ours.
    pub fn to_start(self, asked: &str) -> &str {
        match self {
            FrameAgent::Own => asked,
            FrameAgent::Plugins => self.name(),
        }
    }
}

/// How deep the client lets subagents start others by default.
// Observed on 2.1.329.
const USUAL_NESTING: usize = 3;
/// The variable that sets it.
pub const NESTING_VARIABLE: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";

/// True for a subagent of our kind, whoever brings it.
pub fn is_frame(kind: &str) -> bool {
    [FrameAgent::Own, FrameAgent::Plugins].iter().any(|ours| ours.name() == kind)
}

/// What a tool does to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Reads it.
    Read,
    /// Writes registers or the heap.
    Write,
    /// Pushes a frame.
    Push,
    /// Pops one.
    Pop,
}

impl Use {
    /// Of a tool of our server, whatever the client puts before its name; none for any other tool.
    pub fn of_tool(name: &str) -> Option<Use> {
        let (server, tool) = name.strip_prefix("mcp__")?.rsplit_once("__")?;
        if server != "plimsoll" && !server.ends_with("_plimsoll") {
            return None;
        }
        match tool {
            "memory_show" => Some(Use::Read),
            "update_registers" | "heap_alloc" | "heap_write" | "heap_free" => Some(Use::Write),
            "push_frame" => Some(Use::Push),
            "pop_frame" => Some(Use::Pop),
            _ => None,
        }
    }
}

/// A conversation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// The subagent; none for the session's own.
    pub agent: Option<&'a str>,
    /// The call with which its session pushed its last frame.
    pub pushed: Option<&'a str>,
}

/// May this conversation do that? Only the current frame writes: every other conversation is told why not. `nesting` is what the
/// client's variable says.
pub fn may(
    memory: &Memory,
    who: Caller<'_>,
    what: Use,
    (kind, nesting): (FrameAgent, Option<usize>),
) -> Result<(), FrameRefusal> {
    if what == Use::Read {
        return Ok(());
    }
    let Some(depth) = memory.depth_of(who.agent) else {
        return Err(FrameRefusal::no_frame(memory, who.agent));
    };
    let is_own = is_own(memory, who);
    let is_taken_back = what == Use::Pop && depth + 1 == memory.depth() && is_own;
    let is_present = memory.depth() <= depth;
    if is_present && what == Use::Push {
        can_nest(depth + 1, nesting.unwrap_or(USUAL_NESTING))
    } else if is_present {
        Ok(())
    } else if !memory.is_waiting() {
        Err(FrameRefusal::AtWork(shown(memory.top())))
    } else if is_taken_back {
        Ok(())
    } else if is_own {
        Err(FrameRefusal::Waits { name: shown(memory.top()), kind })
    } else {
        Err(FrameRefusal::anothers(memory))
    }
}

/// True if the frame that waits was pushed by this session, or by a client that names no calls.
fn is_own(memory: &Memory, who: Caller<'_>) -> bool {
    memory.top().pushed_by.is_none() || memory.top().pushed_by.as_deref() == who.pushed
}

fn can_nest(depth: usize, nesting: usize) -> Result<(), FrameRefusal> {
    if depth <= nesting { Ok(()) } else { Err(FrameRefusal::TooDeep { depth, nesting }) }
}

/// A frame's name as words of ours may hold it.
fn shown(frame: &Frame) -> String {
    render::safe(&frame.name)
}

/// What becomes of a call of the Agent tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// It is not one of our frames.
    Other,
    /// It starts the frame that waits.
    Start,
    /// It is refused, and why.
    Refuse(FrameRefusal),
}

/// A subagent of our kind is started for the frame that waits, by the conversation that pushed it, and by its name.
pub fn begin(memory: &Memory, who: Caller<'_>, call: &AgentCall, kind: FrameAgent) -> Begin {
    // Beside the plugin's, a `frame` may be an agent of the user's.
    let may_be_anothers = kind == FrameAgent::Plugins && call.kind != kind.name();
    if !is_frame(&call.kind) || (may_be_anothers && !memory.is_waiting()) {
        return Begin::Other;
    }
    if !memory.is_waiting() {
        return Begin::Refuse(FrameRefusal::NoneWaits);
    }
    if memory.depth_of(who.agent) != Some(memory.depth() - 1) || !is_own(memory, who) {
        return Begin::Refuse(FrameRefusal::anothers(memory));
    }
    // The model has read the name as we show it.
    let name = shown(memory.top());
    if [&call.description, &call.prompt].into_iter().any(|words| names(&render::safe(words), &name)) {
        Begin::Start
    } else {
        Begin::Refuse(FrameRefusal::OtherWaits { name, kind })
    }
}

/// True if a text has that name in it, and not as a part of a longer word.
fn names(text: &str, name: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
    text.match_indices(name).any(|(place, _)| {
        is_end(text[..place].chars().next_back()) && is_end(text[place + name.len()..].chars().next())
    })
}

/// How many frames are above a conversation whose turn is over: no agent will return from them. Of the main
/// conversation those of its own session.
pub fn left_behind(memory: &Memory, who: Caller<'_>, session: &SessionId) -> usize {
    let Some(depth) = memory.depth_of(who.agent) else { return 0 };
    let Some(first) = memory.frames.get(depth + 1) else { return 0 };
    let is_own = match &first.started {
        Some(started) => started.owner.session == *session,
        None => first.pushed_by.is_some() && first.pushed_by.as_deref() == who.pushed,
    };
    if who.agent.is_some() || is_own { memory.depth() - depth } else { 0 }
}

/// How many frames end with these calls: the one that such a call had started, and all above it.
pub fn over(memory: &Memory, calls: &[&str]) -> usize {
    let is_over =
        |frame: &Frame| frame.started.as_ref().is_some_and(|started| calls.contains(&started.call.as_str()));
    memory.frames.iter().position(is_over).map_or(0, |depth| memory.frames.len() - depth)
}

/// What is done with a frame whose subagent is gone.
pub fn abandon(memory: &Memory) -> Op {
    let words = match &memory.top().agent {
        Some(_) => "its subagent ended and did not return from it",
        None => "no subagent worked in it",
    };
    Op::CloseFrame { how: Closing::Abandoned, words: words.to_owned() }
}

/// A subagent that ends its turn in its frame is reminded once.
pub fn reminder(memory: &Memory) -> String {
    format!(
        "You have not returned from the frame \"{}\". Call pop_frame now, with the report that RETURN asks for (what \
         was done, what is open), and then end your turn.",
        shown(memory.top())
    )
}

/// What the parent is told about a frame that is over.
pub fn report(returned: &Returned) -> String {
    let name = &returned.name;
    let words = match returned.how {
        None => format!("The frame \"{name}\" has returned:\n{}", returned.result),
        Some(Closing::Unpopped) => {
            format!("The frame \"{name}\" ended without a report; its last words were:\n{}", returned.result)
        }
        Some(Closing::Abandoned) => format!(
            "The frame \"{name}\" was abandoned: {}. Its STATUS, OPEN_QUESTIONS and PLAN are in your registers now.",
            returned.result
        ),
    };
    let notes: String = returned.notes.iter().map(|note| format!("\nnote: {note}")).collect();
    render::safe(&format!("{words}{notes}"))
}

#[cfg(test)]
mod tests;
