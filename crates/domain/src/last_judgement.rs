//! The last judgement of `plimsoll gate` in a loop of shell scripts.

use crate::Timestamp;
use crate::state::WorktreeFingerprint;
use serde::{Deserialize, Serialize};

/// The loop's state and files after the last judgement: they show which of the loop's counters its scripts move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastJudgement {
    /// Tells one loop from the next.
    pub started_at: Timestamp,
    /// The number of the session that was judged.
    pub iteration: u64,
    /// Sessions in a row without a change, as the loop's file has it; `None` if the record does not say.
    pub no_change_count: Option<u64>,
    /// `last_diff_hash` in the loop's file.
    pub last_diff_hash: String,
    /// Open items in the loop's file.
    pub open: Vec<String>,
    /// The project's files.
    pub fingerprint: WorktreeFingerprint,
}
