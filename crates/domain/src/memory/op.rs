//! The operations that change a memory. Replaying a log of them gives the memory.

use super::{FrameOwner, Register};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values for registers, as they were given: not yet truncated.
pub type RegisterValues = BTreeMap<Register, String>;

/// One operation on the memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum MemoryOp {
    /// Writes registers of the current frame.
    UpdateRegisters {
        /// The registers to change; all others are kept.
        values: RegisterValues,
        /// True to refuse a value that is too long; otherwise it is truncated.
        #[serde(default)]
        strict: bool,
        /// True for input from the user: constraints, assumptions and questions are then written into every
        /// frame.
        #[serde(rename = "everywhere", default, skip_serializing_if = "std::ops::Not::not")]
        in_all_frames: bool,
    },
    /// Starts a run: replaces the stack with a new root frame that has the objective in R0. The heap is kept.
    BeginRun { objective: String },
    /// Pushes a new frame onto the stack.
    PushFrame {
        name: String,
        /// The frame's task.
        objective: String,
        /// Background that the frame's subagent needs.
        context: String,
        /// What the frame has to report when it pops.
        return_spec: String,
        /// The id of the model's tool call that pushed it; `None` if no call did.
        #[serde(rename = "call", default, skip_serializing_if = "Option::is_none")]
        pushed_by_call: Option<String>,
    },
    /// Starts the current frame's subagent.
    StartFrame {
        /// The id of the model's tool call that starts it.
        #[serde(rename = "call")]
        started_by_call: String,
        /// The session and the client that start it.
        owner: FrameOwner,
    },
    /// Assigns a subagent to the current frame.
    EnterFrame {
        /// The id of the subagent.
        agent: String,
    },
    /// Finishes the current frame and returns to its parent.
    PopFrame {
        /// The report for the parent frame.
        result: String,
    },
    /// Removes the current frame, whose subagent ended without a pop.
    CloseFrame {
        #[serde(rename = "how")]
        abnormal_end: AbnormalEnd,
        /// The last message of its subagent.
        #[serde(rename = "words")]
        last_message: String,
    },
    /// Allocates a chunk on the heap.
    HeapAlloc {
        name: String,
        /// The text of the chunk.
        content: String,
        /// What the text is for.
        #[serde(default)]
        description: String,
    },
    /// Replaces the content of a chunk.
    HeapWrite {
        name: String,
        /// The new text of the chunk.
        content: String,
    },
    /// Removes a chunk from the heap.
    HeapFree { name: String },
    /// Counts one response of the model.
    Step,
    /// Allows writes again after the root frame was done, because the user has written.
    Reopen,
}

impl MemoryOp {
    /// Returns true if the operation changed only what its caller wrote itself, so the caller needs no report
    /// of it.
    pub fn is_write_known_to_caller(&self) -> bool {
        matches!(
            self,
            MemoryOp::UpdateRegisters { .. }
                | MemoryOp::HeapAlloc { .. }
                | MemoryOp::HeapWrite { .. }
                | MemoryOp::HeapFree { .. }
        )
    }
}

/// How a frame ended without a pop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbnormalEnd {
    /// Its subagent ended its turn without a pop, even after a reminder.
    #[serde(rename = "unpopped")]
    TurnEndedWithoutPop,
    /// Its subagent died, or was never started.
    Abandoned,
}
