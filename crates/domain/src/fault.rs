//! A fault of our own: what a hook could not do, kept for `plimsoll doctor`.

use crate::ids::SessionId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of `.claude/plimsoll/faults.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// When, RFC 3339 UTC with milliseconds; the writer stamps it.
    pub at: Timestamp,
    /// Which of our programs.
    pub program: String,
    /// The session it was called in; empty if not stated.
    pub session_id: SessionId,
    /// What it wrote to standard error, on one line.
    pub what: String,
}
