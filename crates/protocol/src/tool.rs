//! Tool calls as the hooks see them.

use crate::lenient;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One call of a tool with what came back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    /// The tool's name, such as `Bash` or `mcp__server__tool`.
    #[serde(deserialize_with = "lenient::text")]
    pub tool_name: Option<String>,
    /// The call's id; the transcript's assistant line carries the same.
    #[serde(deserialize_with = "lenient::text")]
    pub tool_use_id: Option<String>,
    /// The parts of the input that we act on.
    #[serde(deserialize_with = "lenient::field")]
    pub tool_input: ToolInput,
    /// The answer: in PostToolBatch what the model will see, in PostToolUse the tool's own object.
    #[serde(deserialize_with = "lenient::raw")]
    pub tool_response: Option<Box<RawValue>>,
}

/// A call that the model wants to make.
#[derive(Debug, Clone, Default)]
pub struct Intent {
    /// The tool's name.
    pub tool_name: String,
    /// The call's id.
    pub tool_use_id: String,
    /// All that the model gives it.
    pub tool_input: Option<Box<RawValue>>,
}

/// The parts of a tool's input that we act on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolInput {
    /// The file of Read, Edit and Write.
    #[serde(deserialize_with = "lenient::text", alias = "notebook_path")]
    pub file_path: Option<String>,
    /// The command line of Bash.
    #[serde(deserialize_with = "lenient::text")]
    pub command: Option<String>,
    /// What Edit looks for.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub old_string: Option<String>,
    /// What Edit puts there.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub new_string: Option<String>,
    /// What Write writes.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub content: Option<String>,
}

/// How much of a tool's answer the model will have to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visible {
    /// Bytes of text.
    pub bytes: u64,
    /// Pictures, whatever their base64 weighs.
    pub images: u64,
}

impl ToolCall {
    /// True if its command line speaks of git and a commit: it may have made one.
    pub fn may_commit(&self) -> bool {
        self.tool_input
            .command
            .as_ref()
            .is_some_and(|command| command.contains("git") && command.contains("commit"))
    }

    /// What a command printed, as PostToolBatch has it.
    pub fn output(&self) -> Option<String> {
        serde_json::from_str(self.tool_response.as_deref()?.get()).ok()
    }

    /// Measures the answer.
    pub fn visible(&self) -> Visible {
        self.tool_response.as_deref().map(visible).unwrap_or_default()
    }
}

/// Fields of a tool's own object that never reach the model unchanged.
// One Edit was 102 KB at PostToolUse, and 61 bytes at PostToolBatch, which has what the model gets (2.1.329).
const UNSEEN: [&str; 6] = ["originalFile", "structuredPatch", "oldString", "newString", "base64", "data"];

/// Deeper than this an answer is measured as it is, so that a nest of brackets cannot end the program.
const DEEPEST: u8 = 16;

/// Measures any answer: a text, the model's content blocks, or a tool's own object.
pub fn visible(answer: &RawValue) -> Visible {
    visible_within(answer, DEEPEST)
}

fn visible_within(answer: &RawValue, depth: u8) -> Visible {
    let json = answer.get();
    if let Some(bytes) = lenient::length(answer) {
        return Visible { bytes, images: 0 };
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Visible { bytes: json.len() as u64, images: 0 };
    };
    let inner = |part: &RawValue| visible_within(part, depth);
    if let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(json) {
        return parts.into_iter().map(inner).fold(Visible::default(), Visible::plus);
    }
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) else {
        return Visible { bytes: json.len() as u64, images: 0 };
    };
    if fields.get("type").is_some_and(|kind| kind.get() == "\"image\"") {
        return Visible { bytes: 0, images: 1 };
    }
    let seen = fields.into_iter().filter(|(key, _)| !UNSEEN.contains(&key.as_str()));
    seen.map(|(_, part)| inner(part)).fold(Visible::default(), Visible::plus)
}

impl Visible {
    fn plus(self, other: Visible) -> Visible {
        Visible { bytes: self.bytes + other.bytes, images: self.images + other.images }
    }
}
