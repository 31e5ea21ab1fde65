//! Why a run starts its next session.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Why a run starts its next session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ContinueKind {
    /// The last session ended at a checkpoint, and the next one resumes from its handoff.
    Checkpoint,
    /// The next item is due.
    #[serde(rename = "next")]
    #[strum(serialize = "next")]
    NextItem,
    /// The agent promised completion, and the promise was refused.
    #[serde(rename = "refused")]
    #[strum(serialize = "refused")]
    RefusedPromise,
}

impl ContinueKind {
    /// Returns the name that is written in the marker.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
