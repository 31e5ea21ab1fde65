//! The working memory of an agent: registers, a stack of frames, a heap. It is plain data that changes only
//! through [`Memory::apply`]. Applying a log of changes in order restores the current state.

mod apply;
mod frames;
mod heap;
mod op;
mod register;
pub mod render;
mod truncation;

pub use apply::{ApplyError, ChangeReport};
pub use heap::{
    Chunk, HARD_LIMIT_UTF16_UNITS, HeapPressure, MAX_CHUNK_NAME_UTF16_UNITS, MAX_CHUNK_UTF16_UNITS,
    MAX_CHUNKS, MAX_DESCRIPTION_CHARS, SOFT_LIMIT_CHARS, percent_of_soft_limit,
};
pub use op::{AbnormalEnd, MemoryOp, RegisterValues};
pub use register::Register;
pub use truncation::{Truncation, truncate_at_grapheme};

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The maximum depth of a frame; the root has depth 0.
pub const MAX_FRAME_DEPTH: usize = 5;
/// The maximum length of a frame's name, in characters. `returned from: ` and the name together must fit into
/// register R3.
pub const MAX_FRAME_NAME_CHARS: usize = 45;
/// R2 NEXT and R7 STATUS change in every step; they are stale after this many steps without a write.
pub const STALE_AFTER_STEPS: u64 = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Incremented with every change.
    #[serde(rename = "rev")]
    pub revision: u64,
    /// The number of model responses so far, over all frames.
    #[serde(rename = "step")]
    pub step_number: u64,
    /// The stack: the root first, the current frame last. Never empty.
    pub frames: Vec<Frame>,
    /// The heap, in order of allocation.
    pub heap: Vec<Chunk>,
    /// The names of removed chunks, each with the revision that removed it. The model may still refer to them.
    #[serde(rename = "freed")]
    pub freed_chunks: Vec<(String, u64)>,
    /// The result of the root frame, once it has popped. Writes are then refused until the user's next prompt.
    #[serde(rename = "done")]
    pub root_result: Option<String>,
    /// The frame that returned last. Its parent is informed when the tool call of its subagent ends.
    #[serde(rename = "returned", skip_serializing_if = "Option::is_none")]
    pub last_returned_frame: Option<ReturnedFrame>,
}

/// One frame of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// The name; empty for the root.
    pub name: String,
    /// The frame's task, in full.
    pub objective: String,
    /// Background that the frame needs in addition to the heap and the registers.
    pub context: String,
    /// What the frame must report when it pops.
    #[serde(rename = "return_spec")]
    pub expected_result: String,
    pub registers: [RegisterValue; 8],
    /// The values of R4 and R5 when the frame was pushed.
    #[serde(rename = "inherited")]
    pub inherited_registers: [String; 2],
    /// The id of the model's tool call that pushed the frame.
    #[serde(rename = "pushed_by", skip_serializing_if = "Option::is_none")]
    pub push_call_id: Option<String>,
    /// How the frame's subagent was started. `None` while the frame waits for its subagent.
    #[serde(rename = "started", skip_serializing_if = "Option::is_none")]
    pub subagent_launch: Option<SubagentLaunch>,
    /// The id of the subagent that works in the frame; `None` until it has started.
    #[serde(rename = "agent")]
    pub agent_id: Option<String>,
}

/// How a frame's subagent was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentLaunch {
    /// The id of the model's tool call.
    #[serde(rename = "call")]
    pub call_id: String,
    /// The session and client that started it.
    pub owner: FrameOwner,
    /// The revision of the brief that the subagent received.
    #[serde(rename = "rev")]
    pub brief_revision: u64,
}

/// A session and its client. If the client has exited, the frame has no owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameOwner {
    #[serde(rename = "session")]
    pub session_id: SessionId,
    /// The process id of the client; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When that process started. A pid may be reused, but never together with its start time.
    #[serde(rename = "process_started", skip_serializing_if = "Option::is_none")]
    pub process_started_at: Option<u64>,
}

/// A frame that is no longer on the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReturnedFrame {
    pub name: String,
    /// The id of the tool call that started the frame's subagent.
    #[serde(rename = "call")]
    pub call_id: Option<String>,
    /// The id of the subagent that worked in the frame.
    #[serde(rename = "agent")]
    pub agent_id: Option<String>,
    /// How the frame was closed; `None` if it popped.
    #[serde(rename = "how")]
    pub abnormal_end: Option<AbnormalEnd>,
    /// The frame's report.
    pub result: String,
    /// Notes for the parent about the merge of the frame's registers.
    #[serde(rename = "notes")]
    pub merge_notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegisterValue {
    pub text: String,
    /// The revision in which the value was written.
    #[serde(rename = "rev")]
    pub revision: u64,
    /// The step in which the value was written.
    #[serde(rename = "step")]
    pub written_at_step: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            revision: 0,
            step_number: 0,
            frames: vec![Frame::default()],
            heap: Vec::new(),
            freed_chunks: Vec::new(),
            root_result: None,
            last_returned_frame: None,
        }
    }
}

impl Memory {
    /// Applies a log of accepted changes, in order, to an empty memory.
    pub fn replay<'a>(ops: impl IntoIterator<Item = &'a MemoryOp>) -> Memory {
        let mut memory = Memory::default();
        for op in ops {
            // An operation that was accepted once succeeds on replay, so the result needs no check.
            let _ = memory.apply(op);
        }
        memory
    }

    /// Returns the current frame.
    pub fn current_frame(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    /// Returns the depth of the current frame; 0 for the root.
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// Returns the value of a register of the current frame.
    pub fn register_text(&self, register: Register) -> &str {
        &self.current_frame().registers[register.index()].text
    }

    /// Returns the depth of the frame in which this subagent works; 0 for the main conversation, which has no
    /// agent id. Returns `None` for a subagent that works in no frame.
    pub fn frame_depth_of_agent(&self, agent_id: Option<&str>) -> Option<usize> {
        match agent_id {
            None => Some(0),
            agent_id => self.frames.iter().rposition(|frame| frame.agent_id.as_deref() == agent_id),
        }
    }

    /// Returns true if the current frame was pushed but no subagent has been started for it yet.
    pub fn is_waiting_for_agent(&self) -> bool {
        self.depth() > 0 && self.current_frame().subagent_launch.is_none()
    }

    /// Returns the chunk with this name.
    pub fn find_chunk(&self, name: &str) -> Option<&Chunk> {
        self.heap.iter().find(|chunk| chunk.name == name)
    }

    /// Returns the size of the heap, in characters.
    pub fn heap_size_in_chars(&self) -> usize {
        self.heap.iter().map(Chunk::char_count).sum()
    }

    /// Returns how close the heap is to its soft limit.
    pub fn heap_pressure(&self) -> HeapPressure {
        HeapPressure::from_heap_chars(self.heap_size_in_chars())
    }

    /// Returns R2 NEXT and R7 STATUS of the current frame, if they were not written in the last steps.
    pub fn stale_next_and_status_registers(&self) -> Vec<Register> {
        let is_stale = |register: &Register| {
            let written_at_step = self.current_frame().registers[register.index()].written_at_step;
            self.step_number.saturating_sub(written_at_step) >= STALE_AFTER_STEPS
        };
        [Register::Next, Register::Status].into_iter().filter(is_stale).collect()
    }

    /// Returns true if the operation writes R2 NEXT or R7 STATUS again in the step in which it was already
    /// written. If only the MCP server is installed, no hook counts the responses of the model, and such a second
    /// write is the only sign that another step has begun.
    pub fn rewrites_next_or_status_in_same_step(&self, op: &MemoryOp) -> bool {
        let MemoryOp::UpdateRegisters { values, in_all_frames: false, .. } = op else { return false };
        let was_already_written_in_step = |register: Register| {
            let value = &self.current_frame().registers[register.index()];
            value.revision > 0 && value.written_at_step == self.step_number
        };
        [Register::Next, Register::Status].into_iter().any(|register| {
            was_already_written_in_step(register)
                && values.iter().any(|(updated_register, _)| *updated_register == register)
        })
    }

    /// Converts the registers of the current frame and the heap into JSON for the turn log. Empty registers are
    /// left out.
    pub fn current_frame_and_heap_to_json(&self) -> Map<String, Value> {
        let nonempty_registers =
            Register::ALL.into_iter().filter(|register| !self.register_text(*register).is_empty());
        let registers: Map<String, Value> = nonempty_registers
            .map(|register| (register.key().to_owned(), json!(self.register_text(register))))
            .collect();
        let heap: Map<String, Value> =
            self.heap.iter().map(|chunk| (chunk.name.clone(), json!(chunk.content))).collect();
        let (frame, depth) = (&self.current_frame().name, self.depth());
        let snapshot = json!({"rev": self.revision, "step": self.step_number, "frame": frame, "depth": depth,
            "registers": registers, "heap": heap});
        snapshot.as_object().cloned().unwrap_or_default()
    }

    /// Returns true if nothing has ever been written.
    pub fn is_empty(&self) -> bool {
        self.revision == 0
    }
}
