//! Why a turn failed: a closed list.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

/// Why a turn failed, in whose words, and what became of its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// The message of what refused or failed.
    pub message: String,
    /// The calls, in order.
    pub calls: Vec<CallOutcome>,
}

/// What became of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// The client's id of the call.
    pub id: String,
    /// True when it returned well.
    pub ok: bool,
    /// The beginning of what came back.
    pub preview: String,
    /// The SHA-256 of what came back, where the preview is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// Why a turn failed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// A tool returned an error.
    ToolError,
    /// The user or a rule did not allow a call.
    ToolDenied,
    /// A hook did not allow a call.
    HookBlocked,
    /// There is no such tool.
    UnknownTool,
    /// A call's arguments could not be read.
    ParseError,
    /// The user stopped it.
    Interrupted,
    /// The response was cut at its longest.
    MaxTokens,
    /// The model declined.
    Refusal,
    /// The API failed.
    ApiError,
    /// The session ended before the calls had returned.
    Abandoned,
}

impl Reason {
    /// All of them.
    pub const ALL: &[Reason] = Reason::VARIANTS;

    /// The word in files and on the screen.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl Failure {
    /// As written in the turn's result.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Read from a turn's result; none if it is no failure.
    pub fn from_value(value: &Value) -> Option<Failure> {
        Failure::deserialize(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_written_as_its_word() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
        }
    }
}
