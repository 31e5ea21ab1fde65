//! The state of the circuit breaker: how many times in a row each kind of failure occurred, and why the
//! breaker opened.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Separate counters for separate causes. The state itself has the two older counters, `no_change_count` and
/// `error_hashes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerState {
    /// Refused promises in a row, without a finished item between them.
    #[serde(rename = "refused")]
    pub refused_promise_count: u32,
    /// Sessions in a row in which the client refused a tool, without a finished item between them.
    #[serde(rename = "permission_denied")]
    pub permission_denied_count: u32,
    /// Sessions in a row without any text or tool call.
    #[serde(rename = "empty_reply")]
    pub empty_reply_count: u32,
    /// Sessions in a row that failed before the model answered.
    #[serde(rename = "quick_failure")]
    pub quick_failure_count: u32,
    /// The text of the last error.
    pub last_error: String,
    /// Times of checkpoints at a usage threshold since the last finished item, in seconds since 1970.
    #[serde(rename = "fruitless_checkpoints_at")]
    pub fruitless_checkpoint_times: Vec<i64>,
    /// Set by `--reset-breaker`: the next session is a trial, and the same failure opens the breaker again at
    /// once.
    #[serde(rename = "half_open")]
    pub half_open_cause: Option<BreakerCause>,
    /// Why the breaker is open; `None` while it is closed.
    #[serde(rename = "opened")]
    pub trip: Option<BreakerTrip>,
}

/// Why the breaker opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BreakerCause {
    /// Sessions failed before the model answered.
    QuickFailure,
    /// The client refused tools.
    PermissionDenied,
    /// Sessions had no text and no tool call.
    EmptyReply,
    /// Completion promises were false.
    #[serde(rename = "refused")]
    #[strum(serialize = "refused")]
    RefusedPromises,
    /// One error occurred again and again.
    SameError,
    /// No session made progress.
    NoProgress,
}

impl BreakerCause {
    /// Returns the name that is written in the marker.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why and when the breaker opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerTrip {
    pub cause: BreakerCause,
    /// The counter's value at that time.
    #[serde(rename = "count")]
    pub failure_count: u32,
    /// The evidence, as text.
    pub evidence: String,
    /// The iteration in which it opened.
    pub iteration: u32,
    /// RFC 3339, UTC.
    #[serde(rename = "at")]
    pub tripped_at: Timestamp,
}
