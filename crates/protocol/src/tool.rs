//! Tool calls in hook payloads.

use crate::lenient;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One tool call with its response.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    /// Such as `Bash` or `mcp__server__tool`.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub tool_name: Option<String>,
    /// The call's id; also in the transcript's assistant line.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub tool_use_id: Option<String>,
    /// The input fields that we use.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub tool_input: ToolInput,
    /// The response: in PostToolBatch the content that the model will see, in PostToolUse the tool's own object.
    #[serde(deserialize_with = "lenient::raw_json")]
    pub tool_response: Option<Box<RawValue>>,
}

/// A call that the model is about to make (PreToolUse).
#[derive(Debug, Clone, Default)]
pub struct PendingToolCall {
    pub tool_name: String,
    pub tool_use_id: String,
    /// The complete input.
    pub tool_input: Option<Box<RawValue>>,
}

/// The fields of a tool's input that we use.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolInput {
    /// The file of Read, Edit and Write.
    #[serde(deserialize_with = "lenient::non_empty_text", alias = "notebook_path")]
    pub file_path: Option<String>,
    /// The command line of Bash.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub command: Option<String>,
    /// The text that Edit replaces.
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub old_string: Option<String>,
    /// The replacement of Edit.
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub new_string: Option<String>,
    /// The file content of Write.
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub content: Option<String>,
}

/// The size of the part of a tool's response that the model will read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VisibleSize {
    pub text_bytes: u64,
    /// Number of images; the size of their base64 does not count.
    pub image_count: u64,
}

impl ToolCall {
    /// Returns true if the command line contains `git` and `commit`, which means that it may have created a commit.
    pub fn mentions_git_commit(&self) -> bool {
        self.tool_input
            .command
            .as_ref()
            .is_some_and(|command| command.contains("git") && command.contains("commit"))
    }

    /// Returns the response if it is a JSON string, such as a command's output in PostToolBatch.
    pub fn response_text(&self) -> Option<String> {
        serde_json::from_str(self.tool_response.as_deref()?.get()).ok()
    }

    pub fn visible_size(&self) -> VisibleSize {
        self.tool_response.as_deref().map(measure_visible_size).unwrap_or_default()
    }
}

/// Fields of a tool's own object that never reach the model unchanged.
// The response of one Edit was 102 KB in PostToolUse and 61 bytes in PostToolBatch, which has what the model sees (2.1.329).
const HIDDEN_FIELDS: [&str; 6] =
    ["originalFile", "structuredPatch", "oldString", "newString", "base64", "data"];

/// The maximum depth of recursion. Deeper values are measured by their raw length, so that deeply nested brackets cannot
/// overflow the stack.
const MAX_DEPTH: u8 = 16;

/// Measures the visible size of a response: a string, content blocks for the model, or a tool's own object.
pub fn measure_visible_size(response: &RawValue) -> VisibleSize {
    measure_visible_size_to_depth(response, MAX_DEPTH)
}

fn measure_visible_size_to_depth(response: &RawValue, remaining_depth: u8) -> VisibleSize {
    let json = response.get();
    if let Some(text_bytes) = lenient::estimate_decoded_string_bytes(response) {
        return VisibleSize { text_bytes, image_count: 0 };
    }
    let Some(depth_below) = remaining_depth.checked_sub(1) else {
        return VisibleSize { text_bytes: json.len() as u64, image_count: 0 };
    };
    let measure_part = |part: &RawValue| measure_visible_size_to_depth(part, depth_below);
    if let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(json) {
        return parts.into_iter().map(measure_part).fold(VisibleSize::default(), VisibleSize::plus);
    }
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) else {
        return VisibleSize { text_bytes: json.len() as u64, image_count: 0 };
    };
    if fields.get("type").is_some_and(|kind| kind.get() == "\"image\"") {
        return VisibleSize { text_bytes: 0, image_count: 1 };
    }
    let visible_fields = fields.into_iter().filter(|(key, _)| !HIDDEN_FIELDS.contains(&key.as_str()));
    visible_fields.map(|(_, part)| measure_part(part)).fold(VisibleSize::default(), VisibleSize::plus)
}

impl VisibleSize {
    fn plus(self, other: VisibleSize) -> VisibleSize {
        VisibleSize {
            text_bytes: self.text_bytes + other.text_bytes,
            image_count: self.image_count + other.image_count,
        }
    }
}
