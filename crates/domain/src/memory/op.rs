//! The operations that change a memory. Replaying a log of them restores the memory.

use super::{FrameOwner, Register};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// New values of registers, before truncation.
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
        /// True for input from the user: constraints, assumptions and questions are then written into all frames
        /// of the stack.
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
        /// What the frame must report when it pops.
        return_spec: String,
        /// The id of the model's tool call that pushed the frame; `None` if no call did.
        #[serde(rename = "call", default, skip_serializing_if = "Option::is_none")]
        push_call_id: Option<String>,
    },
    /// Records that the current frame's subagent is started.
    StartFrame {
        /// The id of the model's tool call that starts the subagent.
        #[serde(rename = "call")]
        start_call_id: String,
        /// The session and the client that start the subagent.
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
    /// Removes the current frame after its subagent ended without a pop.
    CloseFrame {
        #[serde(rename = "how")]
        abnormal_end: AbnormalEnd,
        /// The last message of the frame's subagent.
        #[serde(rename = "words")]
        last_message: String,
    },
    /// Allocates a chunk on the heap.
    HeapAlloc {
        name: String,
        /// The text of the chunk.
        content: String,
        /// The purpose of the text.
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
    /// Allows writes again after the root frame has popped, because the user has sent a new prompt.
    Reopen,
}

impl MemoryOp {
    /// Returns true if the operation writes registers or the heap. It then changes only what its caller passed, so
    /// the caller needs no report of the change.
    pub fn is_register_or_heap_write(&self) -> bool {
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
    /// The subagent ended its turn without a pop, even after a reminder.
    #[serde(rename = "unpopped")]
    TurnEndedWithoutPop,
    /// The subagent died, or was never started.
    Abandoned,
}

impl AbnormalEnd {
    /// Returns the name that the memory's file and `plimsoll memory log` use.
    pub fn as_str(self) -> &'static str {
        match self {
            AbnormalEnd::TurnEndedWithoutPop => "unpopped",
            AbnormalEnd::Abandoned => "abandoned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_abnormal_end_is_the_serialized_one() {
        for abnormal_end in [AbnormalEnd::TurnEndedWithoutPop, AbnormalEnd::Abandoned] {
            assert_eq!(serde_json::json!(abnormal_end), abnormal_end.as_str());
        }
    }
}
