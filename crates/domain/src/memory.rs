//! The working memory of an agent: registers, a stack of frames, a heap. Plain data and its one way to change:
//! [`Memory::apply`]. The log of what was applied, folded, is the live state.

mod apply;
mod fit;
mod frames;
mod heap;
mod op;
mod register;
pub mod render;

pub use apply::{Refusal, Report};
pub use fit::{Cut, fit};
pub use heap::{
    CHUNK_NAME, CHUNK_UNITS, Chunk, DESCRIPTION, HARD_LIMIT, MOST_CHUNKS, Pressure, SOFT_LIMIT, share,
};
pub use op::{Closing, Op, Values};
pub use register::Register;

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The deepest frame; the root is 0.
pub const DEEPEST: usize = 5;
/// The longest name of a frame, in characters: `returned from: ` and it fill R3.
pub const NAME: usize = 45;
/// After this many steps without a write, a register that belongs to every step is stale.
pub const STALE_STEPS: u64 = 3;

/// The working memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Grows with every change.
    pub rev: u64,
    /// Responses of the model so far, over all frames.
    pub step: u64,
    /// The stack: the root first, the current frame last. Never empty.
    pub frames: Vec<Frame>,
    /// The heap, in the order of allocation.
    pub heap: Vec<Chunk>,
    /// What is gone, with the revision in which it went: a reader may still have it in mind.
    pub freed: Vec<(String, u64)>,
    /// The root's result, once it has popped: then nothing is written until the user writes again.
    pub done: Option<String>,
    /// The frame that returned last: its parent is told when its call is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<Returned>,
}

/// One frame of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// Its name; empty for the root.
    pub name: String,
    /// What it is to do, whole.
    pub objective: String,
    /// What it must know beside heap and registers.
    pub context: String,
    /// What it is to report.
    pub return_spec: String,
    /// Its registers.
    pub registers: [Slot; 8],
    /// R4 and R5 as it got them.
    pub inherited: [String; 2],
    /// The model's call that pushed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_by: Option<String>,
    /// The call that starts its subagent, once there is one: before that the frame waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Started>,
    /// The subagent that works in it, once it is there.
    pub agent: Option<String>,
}

/// How a frame's subagent was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Started {
    /// The model's call.
    pub call: String,
    /// By whom.
    pub owner: Owner,
    /// The revision of the brief.
    pub rev: u64,
}

/// A session and its client: a frame whose owner is gone has no owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// The session.
    pub session: SessionId,
    /// The client's process, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When that began: a pid comes back, a pid with its start does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_started: Option<u64>,
}

/// A frame that is no longer on the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Returned {
    /// Its name.
    pub name: String,
    /// The call that had started its subagent.
    pub call: Option<String>,
    /// Its subagent.
    pub agent: Option<String>,
    /// How it ended, where it did not pop.
    pub how: Option<Closing>,
    /// What it reported.
    pub result: String,
    /// What its parent should know of the merge.
    pub notes: Vec<String>,
}

/// A register's value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slot {
    /// The value.
    pub text: String,
    /// The revision that wrote it.
    pub rev: u64,
    /// The step in which it was written.
    pub step: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            rev: 0,
            step: 0,
            frames: vec![Frame::default()],
            heap: Vec::new(),
            freed: Vec::new(),
            done: None,
            returned: None,
        }
    }
}

impl Memory {
    /// The state that a log of accepted changes comes to.
    pub fn fold<'a>(changes: impl IntoIterator<Item = &'a Op>) -> Memory {
        let mut memory = Memory::default();
        for op in changes {
            // What was accepted once is accepted again.
            let _ = memory.apply(op);
        }
        memory
    }

    /// The current frame.
    pub fn top(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    /// How deep it is: 0 at the root.
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// A register of the current frame.
    pub fn register(&self, register: Register) -> &str {
        &self.top().registers[register.index()].text
    }

    /// The frame in which a subagent works; the root for the main conversation. None for a subagent that is no frame.
    pub fn depth_of(&self, agent: Option<&str>) -> Option<usize> {
        match agent {
            None => Some(0),
            agent => self.frames.iter().rposition(|frame| frame.agent.as_deref() == agent),
        }
    }

    /// True while the current frame has been pushed and no agent was told to work in it.
    pub fn is_waiting(&self) -> bool {
        self.depth() > 0 && self.top().started.is_none()
    }

    /// A chunk.
    pub fn chunk(&self, name: &str) -> Option<&Chunk> {
        self.heap.iter().find(|chunk| chunk.name == name)
    }

    /// What the heap holds, in characters.
    pub fn heap_size(&self) -> usize {
        self.heap.iter().map(Chunk::size).sum()
    }

    /// How near the heap is to its soft limit.
    pub fn pressure(&self) -> Pressure {
        Pressure::of(self.heap_size())
    }

    /// The registers of every step that have not been written for too long.
    pub fn stale(&self) -> Vec<Register> {
        let is_stale = |register: &Register| {
            let written = self.top().registers[register.index()].step;
            self.step.saturating_sub(written) >= STALE_STEPS
        };
        [Register::Next, Register::Status].into_iter().filter(is_stale).collect()
    }

    /// True for a change of the registers after which another step has begun, and nobody has counted it. The hooks count
    /// each answer of the model; with the server alone only the registers tell, which change once in a step.
    pub fn begins_a_step(&self, op: &Op) -> bool {
        let Op::UpdateRegisters { values, everywhere: false, .. } = op else { return false };
        let was_written_now = |register: Register| {
            let slot = &self.top().registers[register.index()];
            slot.rev > 0 && slot.step == self.step
        };
        [Register::Next, Register::Status]
            .into_iter()
            .any(|register| was_written_now(register) && values.iter().any(|(given, _)| *given == register))
    }

    /// As a turn keeps it: what is in the registers of the current frame, and the heap.
    pub fn snapshot(&self) -> Map<String, Value> {
        let filled = Register::ALL.into_iter().filter(|register| !self.register(*register).is_empty());
        let registers: Map<String, Value> =
            filled.map(|register| (register.key().to_owned(), json!(self.register(register)))).collect();
        let heap: Map<String, Value> =
            self.heap.iter().map(|chunk| (chunk.name.clone(), json!(chunk.content))).collect();
        let (frame, depth) = (&self.top().name, self.depth());
        let fields = json!({"rev": self.rev, "step": self.step, "frame": frame, "depth": depth,
            "registers": registers, "heap": heap});
        fields.as_object().cloned().unwrap_or_default()
    }

    /// True while nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.rev == 0
    }
}
