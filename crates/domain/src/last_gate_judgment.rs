//! The last decision of `plimsoll gate` in a loop of shell scripts.

use crate::Timestamp;
use crate::state::WorktreeFingerprint;
use serde::{Deserialize, Serialize};

/// The loop's state and files after the last decision. Comparing them with the present ones shows which
/// counters the loop's scripts update themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastGateJudgment {
    /// When the loop started; it distinguishes one loop from the next.
    #[serde(rename = "started_at")]
    pub loop_started_at: Timestamp,
    /// The number of the session that was judged.
    #[serde(rename = "iteration")]
    pub session_number: u64,
    /// Sessions in a row without a change, as recorded in the loop's file; `None` if the record has no such
    /// value.
    pub no_change_count: Option<u64>,
    /// `last_diff_hash` in the loop's file.
    pub last_diff_hash: String,
    /// Open items in the loop's file.
    #[serde(rename = "open")]
    pub open_items: Vec<String>,
    /// The state of the project's files.
    #[serde(rename = "fingerprint")]
    pub worktree_fingerprint: WorktreeFingerprint,
}
