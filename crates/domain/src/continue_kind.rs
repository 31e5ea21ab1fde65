//! What makes the next session of a run.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// What makes the next session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ContinueKind {
    /// The last one ended at a checkpoint: resume from its handoff.
    Checkpoint,
    /// The next item.
    Next,
    /// The agent promised completion and was refused.
    Refused,
}

impl ContinueKind {
    /// As written in the marker.
    pub fn word(self) -> &'static str {
        self.into()
    }
}
