//! What can be done to a memory. A log of these is the memory.

use super::{Owner, Register};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values for registers, whole, as they were given.
pub type Values = BTreeMap<Register, String>;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// Registers of the current frame are written.
    UpdateRegisters {
        /// Only those that change.
        values: Values,
        /// True to refuse a value that is too long, instead of cutting it.
        #[serde(default)]
        strict: bool,
        /// True for the user's word: what holds for the task holds in every frame.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        everywhere: bool,
    },
    /// A run begins: a root frame of its own, with its objective in R0. The heap stays.
    BeginRun {
        /// What the run is to do.
        objective: String,
    },
    /// A frame is begun.
    PushFrame {
        /// Its name.
        name: String,
        /// What it is to do.
        objective: String,
        /// What it must know.
        context: String,
        /// What it is to report.
        return_spec: String,
        /// The model's call that pushed it, where one is behind it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// The client is told to start the current frame's subagent.
    StartFrame {
        /// The model's call that starts it.
        call: String,
        /// By whom.
        owner: Owner,
    },
    /// A subagent begins to work in the current frame.
    EnterFrame {
        /// Its id.
        agent: String,
    },
    /// The current frame is finished.
    PopFrame {
        /// What its parent is told.
        result: String,
    },
    /// The current frame ended in another way.
    CloseFrame {
        /// How.
        how: Closing,
        /// Its last words.
        words: String,
    },
    /// A chunk is allocated.
    HeapAlloc {
        /// Its name.
        name: String,
        /// What it holds.
        content: String,
        /// What it is for.
        #[serde(default)]
        description: String,
    },
    /// A chunk is rewritten.
    HeapWrite {
        /// Its name.
        name: String,
        /// What it holds from now on.
        content: String,
    },
    /// A chunk is freed.
    HeapFree {
        /// Its name.
        name: String,
    },
    /// The model has answered.
    Step,
    /// The user has spoken: a memory whose root was done is written again.
    Reopen,
}

impl Op {
    /// True if the caller already knows everything that it wrote.
    pub fn is_told_by_its_call(&self) -> bool {
        matches!(
            self,
            Op::UpdateRegisters { .. } | Op::HeapAlloc { .. } | Op::HeapWrite { .. } | Op::HeapFree { .. }
        )
    }
}

/// How a frame ended that did not pop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Its subagent ended its turn and did not pop, also not when it was reminded.
    Unpopped,
    /// Its subagent died, or was never started.
    Abandoned,
}
