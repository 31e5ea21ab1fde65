//! The failure of a turn, with its reason from a closed list.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

/// Why a turn failed, the error message, and the outcome of each call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnFailure {
    pub reason: FailureReason,
    /// The message of the tool, rule, hook or API that refused or failed.
    pub message: String,
    /// The outcomes of the calls, in order.
    pub calls: Vec<ToolCallOutcome>,
}

/// The outcome of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallOutcome {
    /// The client's id of the call.
    pub id: String,
    /// True if the call succeeded.
    #[serde(rename = "ok")]
    pub has_succeeded: bool,
    /// The beginning of the call's result.
    pub preview: String,
    /// The SHA-256 of the whole result, if the preview is shorter.
    #[serde(rename = "blob", default, skip_serializing_if = "Option::is_none")]
    pub full_result_sha256: Option<String>,
}

/// Why a turn failed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureReason {
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
    /// The response was cut off at its maximum length.
    MaxTokens,
    /// The model declined.
    Refusal,
    /// The API failed.
    ApiError,
    /// The session ended before the calls had returned.
    Abandoned,
}

impl FailureReason {
    pub const ALL: &[FailureReason] = FailureReason::VARIANTS;

    /// Returns the name that is used in files and on the screen.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TurnFailure {
    /// Converts the failure to the JSON that becomes the turn's result.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Parses a failure from a turn's result; `None` if the result is not a failure.
    pub fn from_value(value: &Value) -> Option<TurnFailure> {
        TurnFailure::deserialize(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_serialized_as_its_name() {
        for reason in FailureReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
