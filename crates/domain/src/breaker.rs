//! The circuit breaker's memory: what has gone wrong how often in a row, and why it opened.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Separate counters for separate causes. The two that the original design named are in the state itself:
/// `no_change_count` and `error_hashes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Breaker {
    /// Promises refused in a row, with no item finished between.
    pub refused: u32,
    /// Sessions in a row in which the client refused a tool, with no item finished between.
    pub permission_denied: u32,
    /// Sessions in a row that said and did nothing.
    pub empty_reply: u32,
    /// Sessions in a row that failed before the model had answered.
    pub quick_failure: u32,
    /// The words of the last error.
    pub last_error: String,
    /// Level checkpoints without a finished item since the last one, in seconds since 1970.
    pub fruitless_checkpoints_at: Vec<i64>,
    /// Set by `--reset-breaker`: the next session is a trial, and the same trouble opens it again at once.
    pub half_open: Option<BreakerCause>,
    /// Why it is open.
    pub opened: Option<Opened>,
}

/// Why the breaker opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BreakerCause {
    /// Sessions that failed before the model had answered.
    QuickFailure,
    /// Tools that the client refuses.
    PermissionDenied,
    /// Sessions that say and do nothing.
    EmptyReply,
    /// Promises that do not hold.
    Refused,
    /// The same error again and again.
    SameError,
    /// Nothing changes.
    NoProgress,
}

impl BreakerCause {
    /// As written in the marker.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The moment it opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Which counter.
    pub cause: BreakerCause,
    /// How far it had come.
    pub count: u32,
    /// The evidence, in words.
    pub evidence: String,
    /// The iteration that opened it.
    pub iteration: u32,
    /// RFC 3339 UTC.
    pub at: Timestamp,
}
