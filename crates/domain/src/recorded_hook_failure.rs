//! An internal error of a hook, stored for `plimsoll doctor`.

use crate::ids::SessionId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of `.claude/plimsoll/faults.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedHookFailure {
    /// When the failure was recorded (RFC 3339, UTC, with milliseconds). The function that appends the failure to the file
    /// sets it; a value from the caller is overwritten.
    #[serde(rename = "at")]
    pub occurred_at: Timestamp,
    /// The Plimsoll program that failed.
    pub program: String,
    /// The session it ran in; empty if unknown.
    pub session_id: SessionId,
    /// What the program wrote to standard error, on one line.
    #[serde(rename = "what")]
    pub message: String,
}
