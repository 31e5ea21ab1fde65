//! One line of the client's transcript, read for usage, files and messages. Plimsoll never writes transcripts.

use crate::lenient;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::OnceLock;

/// One line of any kind. Fields that its kind does not have keep their defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TranscriptEntry {
    /// `assistant`, `user`, `system`, `attachment`, or a kind of a newer client.
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    pub kind: Option<String>,
    /// `compact_boundary`, `api_error`, `stop_hook_summary`, …
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub subtype: Option<String>,
    /// True for a subagent's lines.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub is_sidechain: bool,
    /// True if the client wrote the line for an error; its usage is all zero.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub is_api_error_message: bool,
    /// The client's error code, the same as in its StopFailure event.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub error: Option<String>,
    /// The requested model, with the `[1m]` suffix that `message.model` lacks.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub requested_model: Option<String>,
    /// RFC 3339.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub timestamp: Option<String>,
    /// The version of the client that wrote the line.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub version: Option<String>,
    /// The working directory when the line was written.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub cwd: Option<String>,
    /// The message of an assistant or user line.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub message: Message,
    /// Token counts of a compaction.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub compact_metadata: CompactMetadata,
    /// The tool's own object for a tool result.
    #[serde(deserialize_with = "lenient::raw_json")]
    pub tool_use_result: Option<Box<RawValue>>,
}

/// An assistant line exactly as the client writes it, with borrowed texts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(borrow)]
    requested_model: Option<&'a str>,
    #[serde(borrow)]
    timestamp: Option<&'a str>,
    #[serde(borrow)]
    version: Option<&'a str>,
    #[serde(borrow)]
    message: UsageMessage<'a>,
}

#[derive(Deserialize)]
struct UsageMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a str>,
    #[serde(borrow)]
    model: Option<&'a str>,
    usage: ExactUsage,
}

#[derive(Clone, Copy, Deserialize)]
pub(crate) struct ExactUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl From<ExactUsage> for Usage {
    fn from(usage: ExactUsage) -> Usage {
        let ExactUsage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
            usage;
        Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens }
    }
}

impl From<UsageLine<'_>> for TranscriptEntry {
    fn from(line: UsageLine<'_>) -> TranscriptEntry {
        let non_empty_text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        TranscriptEntry {
            kind: non_empty_text(Some(line.kind)),
            is_sidechain: line.is_sidechain,
            is_api_error_message: line.is_api_error_message,
            requested_model: non_empty_text(line.requested_model),
            timestamp: non_empty_text(line.timestamp),
            version: non_empty_text(line.version),
            message: Message {
                id: non_empty_text(line.message.id),
                model: non_empty_text(line.message.model),
                usage: Some(line.message.usage.into()),
                ..Message::default()
            },
            ..TranscriptEntry::default()
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The response id, identical in all lines of one response.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub id: Option<String>,
    /// The model that responded; `<synthetic>` if the client wrote the message itself.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub model: Option<String>,
    /// A text or blocks; see [`Message::blocks`].
    #[serde(deserialize_with = "lenient::raw_json")]
    pub content: Option<Box<RawValue>>,
    /// The response's usage; the same in each of its lines.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub usage: Option<Usage>,
    /// The parsed blocks, cached by [`Message::blocks`].
    #[serde(skip)]
    pub parsed_blocks: OnceLock<Vec<ContentBlock>>,
}

/// Tokens of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens outside the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub input_tokens: Option<u64>,
    /// Input tokens written to the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub output_tokens: Option<u64>,
}

/// Token counts of a compaction.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactMetadata {
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub pre_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub post_tokens: Option<u64>,
}

/// One content block of a message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContentBlock {
    /// `text`, `thinking`, `tool_use`, `tool_result`, `image`.
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    pub kind: Option<String>,
    /// The text of a text block.
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub text: Option<String>,
    /// The id of a tool_use.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub id: Option<String>,
    /// The tool of a tool_use.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub name: Option<String>,
    /// The input of a tool_use.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub input: crate::tool::ToolInput,
    /// The call that a tool_result belongs to.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub tool_use_id: Option<String>,
    /// True if that call failed.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub is_error: bool,
    /// The content of a tool_result: a text or blocks.
    #[serde(deserialize_with = "lenient::raw_json")]
    pub content: Option<Box<RawValue>>,
}

/// A change to a file, as Edit and Write report it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileChange {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub file_path: Option<String>,
    /// The hunks; empty for a new file.
    #[serde(deserialize_with = "lenient::readable_elements")]
    pub structured_patch: Vec<Hunk>,
}

/// The position of one hunk in the new file.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hunk {
    /// The first line.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub new_start: Option<u64>,
}

impl TranscriptEntry {
    /// Parses one line. Returns `None` if it is truncated or not an object.
    pub fn parse(bytes: &[u8]) -> Option<TranscriptEntry> {
        crate::parse_json_object(bytes).ok()
    }

    /// Parses only the fields that are needed for the usage, and skips the content, which can be long. If a field differs
    /// from the client's usual form, parses the whole line leniently.
    pub fn parse_usage_only(bytes: &[u8]) -> Option<TranscriptEntry> {
        let text = std::str::from_utf8(bytes).ok();
        let line = text.and_then(|text| serde_json::from_str::<UsageLine<'_>>(text).ok());
        line.map_or_else(|| TranscriptEntry::parse(bytes), |line| Some(line.into()))
    }

    /// Returns true for an assistant line with nonzero input tokens in the main conversation. Lines of subagents, API errors
    /// and synthetic messages do not count.
    pub fn has_nonzero_main_conversation_usage(&self) -> bool {
        self.kind.as_deref() == Some("assistant")
            && !self.is_sidechain
            && !self.is_api_error_message
            // The client writes an API error as an assistant line whose usage is all zero (2.1.329).
            && self.message.model.as_deref() != Some("<synthetic>")
            && self.message.usage.is_some_and(|usage| usage.total_input_tokens() > 0)
    }

    /// Returns the token counts of a compaction if this line marks one in the main conversation.
    pub fn compaction_metadata(&self) -> Option<CompactMetadata> {
        (self.subtype.as_deref() == Some("compact_boundary") && !self.is_sidechain)
            .then_some(self.compact_metadata)
    }

    /// Returns the change to a file that this tool result reports.
    pub fn file_change(&self) -> Option<FileChange> {
        let change: FileChange = lenient::parse_unless_list_or_null(self.tool_use_result.as_deref()?)?;
        (change.file_path.is_some() && self.tool_use_result.as_deref()?.get().contains("\"structuredPatch\""))
            .then_some(change)
    }

    /// Every line that [`TranscriptEntry::has_nonzero_main_conversation_usage`] or
    /// [`TranscriptEntry::compaction_metadata`] accepts contains one of these markers. Checked before parsing.
    pub const USAGE_MARKERS: [&'static str; 2] = ["\"assistant\"", "\"compact_boundary\""];
}

/// The line that the client writes for a file that the user mentioned with `@` (2.1.329).
#[derive(Default, Deserialize)]
#[serde(default)]
struct AttachmentLine {
    #[serde(deserialize_with = "lenient::field_or_default")]
    attachment: AttachedFile,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AttachedFile {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    filename: Option<String>,
}

/// Returns the paths of the files whose content this transcript line adds to the conversation: files that the Read tool
/// opens, or a file that the user mentioned with `@`.
pub fn read_or_attached_file_paths(line_bytes: &[u8]) -> Vec<String> {
    let Some(line) = TranscriptEntry::parse(line_bytes) else { return Vec::new() };
    match line.kind.as_deref() {
        Some("assistant") => line.message.blocks().iter().filter_map(ContentBlock::read_tool_path).collect(),
        Some("attachment") => {
            let attachment =
                crate::parse_json_object::<AttachmentLine>(line_bytes).unwrap_or_default().attachment;
            let is_file = matches!(attachment.kind.as_deref(), Some("file" | "already_read_file"));
            attachment.filename.filter(|_| is_file).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

impl Message {
    /// Returns the blocks of the message, parsed once and cached. A plain text is one text block.
    pub fn blocks(&self) -> &[ContentBlock] {
        self.parsed_blocks.get_or_init(|| self.parse_blocks())
    }

    fn parse_blocks(&self) -> Vec<ContentBlock> {
        let Some(content) = self.content.as_deref() else { return Vec::new() };
        if let Some(text) = lenient::decode_string_lossy(content) {
            return vec![ContentBlock {
                kind: Some("text".to_owned()),
                text: Some(text),
                ..ContentBlock::default()
            }];
        }
        lenient::raw_elements(content).into_iter().filter_map(lenient::parse_unless_list_or_null).collect()
    }
}

impl ContentBlock {
    /// Returns the path of the file that a Read call opens.
    fn read_tool_path(&self) -> Option<String> {
        let is_read_call = self.kind.as_deref() == Some("tool_use") && self.name.as_deref() == Some("Read");
        self.input.file_path.clone().filter(|_| is_read_call)
    }

    /// Returns the text of a tool_result, its blocks joined.
    pub fn result_text(&self) -> String {
        let message = Message { content: self.content.clone(), ..Message::default() };
        message.parse_blocks().into_iter().filter_map(|block| block.text).collect::<Vec<_>>().join("\n")
    }
}

impl Usage {
    /// Returns the total input, from which the client computes its own `used_percentage`.
    pub fn total_input_tokens(&self) -> u64 {
        [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    }

    /// Returns the output tokens, or 0 if they are unknown.
    pub fn output_tokens_or_zero(&self) -> u64 {
        self.output_tokens.unwrap_or(0)
    }
}
