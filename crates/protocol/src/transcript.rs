//! One line of the client's transcript. We read it and never write it.

use crate::lenient;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::OnceLock;

/// One line, whatever its kind; fields that its kind does not have are at their defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Line {
    /// `assistant`, `user`, `system`, `attachment`, and more to come.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    /// `compact_boundary`, `api_error`, `stop_hook_summary`, …
    #[serde(deserialize_with = "lenient::text")]
    pub subtype: Option<String>,
    /// True for a subagent's lines.
    #[serde(deserialize_with = "lenient::field")]
    pub is_sidechain: bool,
    /// True for a line that the client made of an error; its usage is all zero.
    #[serde(deserialize_with = "lenient::field")]
    pub is_api_error_message: bool,
    /// The client's word for that error, as its StopFailure has it.
    #[serde(deserialize_with = "lenient::text")]
    pub error: Option<String>,
    /// The model that was asked for, with the `[1m]` suffix that `message.model` loses.
    #[serde(deserialize_with = "lenient::text")]
    pub requested_model: Option<String>,
    /// When, RFC 3339.
    #[serde(deserialize_with = "lenient::text")]
    pub timestamp: Option<String>,
    /// The version of the client that wrote the line.
    #[serde(deserialize_with = "lenient::text")]
    pub version: Option<String>,
    /// The working directory at that moment.
    #[serde(deserialize_with = "lenient::text")]
    pub cwd: Option<String>,
    /// The message of an assistant or user line.
    #[serde(deserialize_with = "lenient::field")]
    pub message: Message,
    /// What a compaction did.
    #[serde(deserialize_with = "lenient::field")]
    pub compact_metadata: CompactMetadata,
    /// The tool's own object behind a tool result.
    #[serde(deserialize_with = "lenient::raw")]
    pub tool_use_result: Option<Box<RawValue>>,
}

/// An assistant line exactly as the client writes it, with its texts borrowed.
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
    fn from(exact: ExactUsage) -> Usage {
        let ExactUsage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
            exact;
        Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens }
    }
}

impl From<UsageLine<'_>> for Line {
    fn from(line: UsageLine<'_>) -> Line {
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        Line {
            kind: text(Some(line.kind)),
            is_sidechain: line.is_sidechain,
            is_api_error_message: line.is_api_error_message,
            requested_model: text(line.requested_model),
            timestamp: text(line.timestamp),
            version: text(line.version),
            message: Message {
                id: text(line.message.id),
                model: text(line.message.model),
                usage: Some(line.message.usage.into()),
                ..Message::default()
            },
            ..Line::default()
        }
    }
}

/// The message of a line.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    /// One id for all lines of one response.
    #[serde(deserialize_with = "lenient::text")]
    pub id: Option<String>,
    /// The model that answered; `<synthetic>` when the client speaks itself.
    #[serde(deserialize_with = "lenient::text")]
    pub model: Option<String>,
    /// A text, or blocks: see [`Message::blocks`].
    #[serde(deserialize_with = "lenient::raw")]
    pub content: Option<Box<RawValue>>,
    /// What the response cost; the same on every line of one response.
    #[serde(deserialize_with = "lenient::field")]
    pub usage: Option<Usage>,
    /// The blocks, once they have been read: see [`Message::blocks`].
    #[serde(skip)]
    pub known_blocks: OnceLock<Vec<Block>>,
}

/// Tokens of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Sent and not cached.
    #[serde(deserialize_with = "lenient::count")]
    pub input_tokens: Option<u64>,
    /// Sent and written to the cache.
    #[serde(deserialize_with = "lenient::count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Sent and read from the cache.
    #[serde(deserialize_with = "lenient::count")]
    pub cache_read_input_tokens: Option<u64>,
    /// Answered.
    #[serde(deserialize_with = "lenient::count")]
    pub output_tokens: Option<u64>,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactMetadata {
    /// Tokens before.
    #[serde(deserialize_with = "lenient::count")]
    pub pre_tokens: Option<u64>,
    /// Tokens after.
    #[serde(deserialize_with = "lenient::count")]
    pub post_tokens: Option<u64>,
}

/// One block of a message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Block {
    /// `text`, `thinking`, `tool_use`, `tool_result`, `image`.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    /// The words of a text block.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub text: Option<String>,
    /// The id of a tool_use.
    #[serde(deserialize_with = "lenient::text")]
    pub id: Option<String>,
    /// The tool of a tool_use.
    #[serde(deserialize_with = "lenient::text")]
    pub name: Option<String>,
    /// What the tool was asked.
    #[serde(deserialize_with = "lenient::field")]
    pub input: crate::tool::ToolInput,
    /// The call a tool_result answers.
    #[serde(deserialize_with = "lenient::text")]
    pub tool_use_id: Option<String>,
    /// True when that call failed.
    #[serde(deserialize_with = "lenient::field")]
    pub is_error: bool,
    /// What a tool_result says: a text or blocks.
    #[serde(deserialize_with = "lenient::raw")]
    pub content: Option<Box<RawValue>>,
}

/// A change to a file as Edit and Write report it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileChange {
    /// The file.
    #[serde(deserialize_with = "lenient::text")]
    pub file_path: Option<String>,
    /// The hunks; empty for a new file.
    #[serde(deserialize_with = "lenient::list")]
    pub structured_patch: Vec<Hunk>,
}

/// Where one hunk of a change is in the new file.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hunk {
    /// First line.
    #[serde(deserialize_with = "lenient::count")]
    pub new_start: Option<u64>,
}

impl Line {
    /// Reads one line; none if it is torn or not an object.
    pub fn parse(bytes: &[u8]) -> Option<Line> {
        crate::parse(bytes).ok()
    }

    /// Reads what a reading of the usage needs and passes over the content, which can be long. Where a field is
    /// not as the client writes it, the whole line is read with all forgiveness.
    pub fn parse_usage(bytes: &[u8]) -> Option<Line> {
        let text = std::str::from_utf8(bytes).ok();
        let line = text.and_then(|text| serde_json::from_str::<UsageLine<'_>>(text).ok());
        line.map_or_else(|| Line::parse(bytes), |line| Some(line.into()))
    }

    /// True for a line with the main conversation's usage: no subagent, no error, nothing synthetic.
    pub fn speaks_of_usage(&self) -> bool {
        self.kind.as_deref() == Some("assistant")
            && !self.is_sidechain
            && !self.is_api_error_message
            // An error of the API is written as an assistant line whose usage is all zero (2.1.329).
            && self.message.model.as_deref() != Some("<synthetic>")
            && self.message.usage.is_some_and(|usage| usage.input() > 0)
    }

    /// The tokens left after a compaction, if this line is its boundary.
    pub fn compaction(&self) -> Option<CompactMetadata> {
        (self.subtype.as_deref() == Some("compact_boundary") && !self.is_sidechain)
            .then_some(self.compact_metadata)
    }

    /// The change to a file that follows this tool result.
    pub fn file_change(&self) -> Option<FileChange> {
        let change: FileChange = lenient::read(self.tool_use_result.as_deref()?)?;
        (change.file_path.is_some() && self.tool_use_result.as_deref()?.get().contains("\"structuredPatch\""))
            .then_some(change)
    }

    /// The marks by which a line that may matter for the reading is known without parsing it.
    pub const MARKS: [&'static str; 2] = ["\"assistant\"", "\"compact_boundary\""];
}

/// A file that the user mentioned with `@`, as the client attaches it (2.1.329).
#[derive(Default, Deserialize)]
#[serde(default)]
struct AttachmentLine {
    #[serde(deserialize_with = "lenient::field")]
    attachment: AttachedFile,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AttachedFile {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    filename: Option<String>,
}

/// Returns the paths of the files that a line of a transcript gives the model: those that its tool Read opens, and one that the user
/// mentioned with `@`.
pub fn opened_files(bytes: &[u8]) -> Vec<String> {
    let Some(line) = Line::parse(bytes) else { return Vec::new() };
    match line.kind.as_deref() {
        Some("assistant") => line.message.blocks().iter().filter_map(Block::opened_file).collect(),
        Some("attachment") => {
            let attached = crate::parse::<AttachmentLine>(bytes).unwrap_or_default().attachment;
            let is_file = matches!(attached.kind.as_deref(), Some("file" | "already_read_file"));
            attached.filename.filter(|_| is_file).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

impl Message {
    /// The blocks of the message, read once for all who ask; a plain text is one text block.
    pub fn blocks(&self) -> &[Block] {
        self.known_blocks.get_or_init(|| self.read_blocks())
    }

    fn read_blocks(&self) -> Vec<Block> {
        let Some(content) = self.content.as_deref() else { return Vec::new() };
        if let Some(text) = lenient::text_of(content) {
            return vec![Block { kind: Some("text".to_owned()), text: Some(text), ..Block::default() }];
        }
        lenient::elements(content).into_iter().filter_map(lenient::read).collect()
    }
}

impl Block {
    /// The file that a call of Read opens.
    fn opened_file(&self) -> Option<String> {
        let is_read = self.kind.as_deref() == Some("tool_use") && self.name.as_deref() == Some("Read");
        self.input.file_path.clone().filter(|_| is_read)
    }

    /// The words of a tool_result, its blocks joined.
    pub fn result_text(&self) -> String {
        let message = Message { content: self.content.clone(), ..Message::default() };
        message.read_blocks().into_iter().filter_map(|block| block.text).collect::<Vec<_>>().join("\n")
    }
}

impl Usage {
    /// What was sent: the figure the client's own `used_percentage` is made of.
    pub fn input(&self) -> u64 {
        [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    }

    /// What was answered.
    pub fn output(&self) -> u64 {
        self.output_tokens.unwrap_or(0)
    }
}
