//! Parses transcript lines for the turn log. Unlike [`crate::transcript`], which reads usage, this module keeps the
//! content unchanged.

use crate::handoff_message::HandoffMessageKind;
use crate::lenient::{self, JsonObject};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One transcript line.
#[derive(Debug, Clone)]
pub struct TranscriptLine {
    /// RFC 3339.
    pub timestamp: Option<String>,
    /// True for a subagent's line; only old clients write those into the session's own transcript.
    pub is_sidechain: bool,
    pub kind: TranscriptLineKind,
}

/// The content of a transcript line.
#[derive(Debug, Clone)]
pub enum TranscriptLineKind {
    /// One line of a response: usually one of its blocks.
    Response(ResponsePart),
    /// Results of tool calls.
    ToolResults(Vec<ToolResult>),
    /// A prompt, by the user or by the client.
    Prompt {
        /// The text; an image is replaced with `[image]`.
        text: String,
        /// True if the client wrote the prompt and does not show it to the user.
        is_meta: bool,
    },
    /// The conversation was replaced by a summary.
    Compaction {
        /// `auto` or `manual`.
        trigger: Option<String>,
        /// Tokens before the compaction.
        tokens_before: Option<u64>,
        /// Tokens after the compaction.
        tokens_after: Option<u64>,
    },
    /// Text that the client or a hook added for the model.
    Context {
        /// The client's name for the attachment, followed by the hook's name if a hook added the text.
        source: String,
        /// The text as the model received it.
        text: String,
    },
    /// The client's own cost total; the last one in a file is current.
    SessionCost(SessionCost),
    /// A line that the turn log does not need.
    Other,
}

/// One line of a response.
#[derive(Debug, Clone)]
pub struct ResponsePart {
    /// The response id, identical in all lines of one response.
    pub id: String,
    /// The model that responded; `<synthetic>` if the client wrote the message itself.
    pub model: Option<String>,
    /// The requested model, with its `[1m]` suffix.
    pub requested_model: Option<String>,
    pub stop_reason: Option<String>,
    /// The blocks of this line, byte for byte.
    pub blocks: Vec<Box<RawValue>>,
    /// The response's usage, byte for byte; the same in each of its lines.
    pub usage: Option<Box<RawValue>>,
    /// The API's id of the request.
    pub request_id: Option<String>,
    /// The client's error code, if this line is an API error.
    pub api_error: Option<String>,
    /// True if the user stopped the response, so that only its beginning was recorded.
    pub aborted: bool,
}

/// The result of a tool call.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    pub is_error: bool,
    /// The content for the model: a text or blocks.
    pub content: Option<ToolResultContent>,
    /// The tool's own object for this result.
    pub tool_use_result: ToolUseResult,
    /// True if the user, a rule or a hook denied the call.
    pub denied: bool,
    /// True if the user stopped the call after it had started. The client reports this with the same value as a denial.
    pub stopped_by_user: bool,
    /// The source of the permission decision: `config`, `hook`, `user`, …
    pub decision_source: Option<String>,
}

/// The content of a tool result.
#[derive(Debug, Clone)]
pub enum ToolResultContent {
    /// Parsed together with its line.
    Parsed(Value),
    /// Raw JSON, from a line that differs from the client's usual form.
    Raw(Box<RawValue>),
}

impl From<Value> for ToolResultContent {
    fn from(value: Value) -> ToolResultContent {
        ToolResultContent::Parsed(value)
    }
}

impl From<&RawValue> for ToolResultContent {
    fn from(raw: &RawValue) -> ToolResultContent {
        ToolResultContent::Raw(raw.to_owned())
    }
}

/// The tool's own object for a result (`toolUseResult`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolUseResult {
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub stdout: Option<String>,
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub stderr: Option<String>,
    /// True if the user stopped the command.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub interrupted: bool,
    /// The subagent that the call started.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub agent_id: Option<String>,
    /// The subagent's type.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub agent_type: Option<String>,
    /// How long the subagent took.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub total_duration_ms: Option<u64>,
    /// How long a fetch took.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub duration_ms: Option<u64>,
}

/// The client's own cost total of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionCost {
    #[serde(rename = "totalCostUSD", deserialize_with = "lenient::non_negative_number")]
    pub total_usd: Option<f64>,
    /// Usage by model, as the client writes it.
    #[serde(deserialize_with = "lenient::raw_json")]
    pub model_usage: Option<Box<RawValue>>,
}

/// The client's metadata of a subagent, in a file next to its transcript.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentMetadata {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub agent_type: Option<String>,
    /// The call that started it.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub tool_use_id: Option<String>,
}

impl AgentMetadata {
    /// Parses the metadata. Returns empty metadata if the file does not parse.
    pub fn parse(bytes: &[u8]) -> AgentMetadata {
        std::str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// The source of a summary that the client wrote when it compacted the conversation.
pub const COMPACT_SUMMARY: &str = "compact_summary";
/// The source of a handoff that took the place of such a summary.
pub const HANDOFF_MESSAGE: &str = "handoff";

/// The client writes the type of a user line within this many bytes from the start.
const TYPE_SEARCH_BYTES: usize = 256;
const USER_TYPE_MARKER: &str = r#""type":"user""#;

/// The fields of all kinds of lines, as raw JSON.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "M: Deserialize<'de> + Default"))]
struct RawLineFields<'a, M> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    subtype: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    is_sidechain: Option<&'a RawValue>,
    #[serde(borrow)]
    is_meta: Option<&'a RawValue>,
    #[serde(borrow)]
    is_compact_summary: Option<&'a RawValue>,
    #[serde(borrow)]
    is_api_error_message: Option<&'a RawValue>,
    #[serde(borrow)]
    is_aborted_mid_stream: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    requested_model: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    /// Parsed together with the line, because the message is most of it.
    message: Option<JsonObject<M>>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    permission_decision: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_denial_kind: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_denial_before_run: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    rendered: Option<&'a RawValue>,
    #[serde(borrow)]
    compact_metadata: Option<&'a RawValue>,
}

/// The fields of a message, as raw JSON.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawMessageFields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// The message of a line with tool results. The results are most of the line, so they are parsed together with it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResultMessageFields<'a> {
    #[serde(borrow)]
    content: Vec<JsonObject<RawBlockFields<'a, Value>>>,
}

/// The fields of a block in a user line, as raw JSON.
#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
struct RawBlockFields<'a, C> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
    content: Option<C>,
}

/// A block whose content is raw JSON as well.
type RawBlock<'a> = RawBlockFields<'a, &'a RawValue>;

impl<C> Default for RawBlockFields<'_, C> {
    fn default() -> Self {
        RawBlockFields { kind: None, text: None, tool_use_id: None, is_error: None, content: None }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attachment {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    hook_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PermissionDecision {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    decision: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    source: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CompactionFields {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    trigger: Option<String>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pre_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    post_tokens: Option<u64>,
}

impl TranscriptLine {
    /// Parses one line, replacing invalid UTF-8. Returns `None` if the line is truncated or not a JSON object. A line of an
    /// unknown kind is [`TranscriptLineKind::Other`].
    pub fn parse_utf8_lossy(bytes: &[u8]) -> Option<TranscriptLine> {
        let text = std::str::from_utf8(bytes)
            .map_or_else(|_| String::from_utf8_lossy(bytes), std::borrow::Cow::Borrowed);
        if !text.trim_start().starts_with('{') {
            return None;
        }
        if let Some(line) = parse_tool_result_line_in_one_pass(&text) {
            return Some(line);
        }
        let repaired;
        let fields: RawLineFields<'_, RawMessageFields<'_>> = match serde_json::from_str(&text) {
            Ok(fields) => fields,
            Err(_) => {
                repaired = drop_invalid_message_and_duplicate_keys(&text)?;
                serde_json::from_str(&repaired).ok()?
            }
        };
        let kind = match non_empty_text(fields.kind).as_deref() {
            Some("assistant") => parse_response_line(&fields).map(TranscriptLineKind::Response),
            Some("user") => parse_tool_results_summary_or_prompt(&fields),
            Some("attachment") => parse_rendered_attachment_as_context(&fields),
            Some("system") if non_empty_text(fields.subtype).as_deref() == Some("compact_boundary") => {
                let metadata: CompactionFields =
                    fields.compact_metadata.and_then(lenient::parse_unless_list_or_null).unwrap_or_default();
                Some(TranscriptLineKind::Compaction {
                    trigger: metadata.trigger,
                    tokens_before: metadata.pre_tokens,
                    tokens_after: metadata.post_tokens,
                })
            }
            Some("cost-state") => serde_json::from_str(&text).ok().map(TranscriptLineKind::SessionCost),
            _ => None,
        };
        Some(fields.to_transcript_line(kind.unwrap_or(TranscriptLineKind::Other)))
    }
}

/// Parses a user line with tool results in one pass, if it has exactly the form that the client writes. Returns `None` for
/// any other line.
fn parse_tool_result_line_in_one_pass(text: &str) -> Option<TranscriptLine> {
    // The start of the line is searched for the type first, because after a failed attempt the line is parsed a second
    // time.
    let line_prefix = (TYPE_SEARCH_BYTES - 3..=TYPE_SEARCH_BYTES).rev().find_map(|end| text.get(..end))?;
    if !line_prefix.contains(USER_TYPE_MARKER) {
        return None;
    }
    let mut fields: RawLineFields<'_, ResultMessageFields<'_>> = serde_json::from_str(text).ok()?;
    let JsonObject(message) = fields.message.take()?;
    let results = fields.collect_tool_results(message.content.into_iter().map(|JsonObject(block)| block));
    (non_empty_text(fields.kind).as_deref() == Some("user") && !results.is_empty())
        .then(|| fields.to_transcript_line(TranscriptLineKind::ToolResults(results)))
}

/// Removes a message that is not an object, so that the other fields of the line can be parsed. Of duplicate keys in the
/// line or in the message, keeps the last one.
fn drop_invalid_message_and_duplicate_keys(line: &str) -> Option<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(line).ok()?;
    let message = fields.remove("message").and_then(|raw| {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
        RawValue::from_string(serde_json::to_string(&fields).ok()?).ok()
    });
    fields.extend(message.as_deref().map(|message| ("message".to_owned(), message)));
    serde_json::to_string(&fields).ok()
}

fn non_empty_text(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(lenient::decode_string_lossy).filter(|text| !text.is_empty())
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

fn object_or_default<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.filter(|raw| raw.get().starts_with('{'))
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

impl<M> RawLineFields<'_, M> {
    fn to_transcript_line(&self, kind: TranscriptLineKind) -> TranscriptLine {
        TranscriptLine {
            timestamp: non_empty_text(self.timestamp),
            is_sidechain: is_true(self.is_sidechain),
            kind,
        }
    }

    /// Returns the tool results among the blocks of this line, with the line's permission decision.
    fn collect_tool_results<'b, C: Into<ToolResultContent> + 'b>(
        &self,
        blocks: impl Iterator<Item = RawBlockFields<'b, C>>,
    ) -> Vec<ToolResult> {
        let decision: PermissionDecision =
            self.permission_decision.and_then(lenient::parse_unless_list_or_null).unwrap_or_default();
        let is_refused = decision.decision.as_deref().is_some_and(|decision| decision != "accept");
        let is_denied_before_run = is_true(self.tool_denial_before_run);
        let is_user_rejection = non_empty_text(self.tool_denial_kind).as_deref() == Some("user-rejected");
        blocks
            .filter(|block| non_empty_text(block.kind).as_deref() == Some("tool_result"))
            .filter_map(|block| {
                Some(ToolResult {
                    tool_use_id: non_empty_text(block.tool_use_id)?,
                    is_error: is_true(block.is_error),
                    content: block.content.map(Into::into),
                    tool_use_result: self
                        .tool_use_result
                        .and_then(lenient::parse_unless_list_or_null)
                        .unwrap_or_default(),
                    denied: is_refused || is_denied_before_run,
                    stopped_by_user: is_user_rejection && !is_refused && !is_denied_before_run,
                    decision_source: decision.source.clone(),
                })
            })
            .collect()
    }
}

fn parse_response_line(fields: &RawLineFields<'_, RawMessageFields<'_>>) -> Option<ResponsePart> {
    let JsonObject(message) = fields.message.as_ref()?;
    let blocks = match message.content {
        Some(content) if content.get().starts_with('[') => {
            lenient::raw_elements(content).into_iter().map(ToOwned::to_owned).collect()
        }
        // A string counts as one text block.
        Some(content) if content.get().starts_with('"') => {
            let block = format!(r#"{{"type":"text","text":{}}}"#, content.get());
            RawValue::from_string(block).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let api_error = is_true(fields.is_api_error_message)
        .then(|| non_empty_text(fields.error).unwrap_or_else(|| "unknown".to_owned()));
    Some(ResponsePart {
        id: non_empty_text(message.id)?,
        model: non_empty_text(message.model),
        requested_model: non_empty_text(fields.requested_model),
        stop_reason: non_empty_text(message.stop_reason),
        blocks,
        usage: message.usage.map(ToOwned::to_owned),
        request_id: non_empty_text(fields.request_id),
        api_error,
        aborted: is_true(fields.is_aborted_mid_stream),
    })
}

fn parse_tool_results_summary_or_prompt(
    fields: &RawLineFields<'_, RawMessageFields<'_>>,
) -> Option<TranscriptLineKind> {
    let JsonObject(message) = fields.message.as_ref()?;
    let content = message.content?;
    let blocks: Vec<RawBlock<'_>> = lenient::parse_list_objects_or_defaults(content);
    let results = fields.collect_tool_results(blocks.into_iter());
    if !results.is_empty() {
        return Some(TranscriptLineKind::ToolResults(results));
    }
    let text = raw_content_text_with_placeholders(content);
    if is_true(fields.is_compact_summary) {
        return Some(TranscriptLineKind::Context { source: COMPACT_SUMMARY.to_owned(), text });
    }
    // It stands where a summary would, in the middle of a turn. After `/clear` it is the prompt of the first turn.
    if HandoffMessageKind::of_message(&text) == Some(HandoffMessageKind::Compaction) {
        return Some(TranscriptLineKind::Context { source: HANDOFF_MESSAGE.to_owned(), text });
    }
    Some(TranscriptLineKind::Prompt { text, is_meta: is_true(fields.is_meta) })
}

/// Returns a string, or the texts of an array of blocks joined by newlines. A block without text is replaced with its type
/// in brackets.
fn raw_content_text_with_placeholders(content: &RawValue) -> String {
    if let Some(text) = lenient::decode_string_lossy(content) {
        return text;
    }
    let block_text = |block: &RawValue| {
        let block: RawBlock<'_> = object_or_default(Some(block));
        block
            .text
            .and_then(lenient::decode_string_lossy)
            .or_else(|| Some(format!("[{}]", non_empty_text(block.kind)?)))
    };
    lenient::raw_elements(content).into_iter().filter_map(block_text).collect::<Vec<_>>().join("\n")
}

/// Parses the rendered text of an attachment, which is the only part that the model received. Returns `None` if there is
/// no such text.
fn parse_rendered_attachment_as_context(
    fields: &RawLineFields<'_, RawMessageFields<'_>>,
) -> Option<TranscriptLineKind> {
    let attachment: Attachment = fields.attachment.and_then(lenient::parse_unless_list_or_null)?;
    let texts: Vec<String> = lenient::raw_elements(fields.rendered?)
        .into_iter()
        .filter_map(|part| {
            object_or_default::<RawBlock<'_>>(Some(part)).content.map(raw_content_text_with_placeholders)
        })
        .collect();
    let source = [attachment.kind, attachment.hook_name].into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!texts.is_empty()).then(|| TranscriptLineKind::Context { source, text: texts.join("\n") })
}

impl ToolResult {
    pub fn content_as_text(&self) -> String {
        match &self.content {
            Some(ToolResultContent::Parsed(content)) => parsed_content_text_with_placeholders(content),
            Some(ToolResultContent::Raw(content)) => raw_content_text_with_placeholders(content),
            None => String::new(),
        }
    }
}

/// Returns the text of a parsed string or of parsed blocks, in the form of [`raw_content_text_with_placeholders`].
fn parsed_content_text_with_placeholders(content: &Value) -> String {
    let block_text = |block: &Value| {
        let string_field = |key: &str| block.get(key)?.as_str().map(str::to_owned);
        string_field("text")
            .or_else(|| Some(format!("[{}]", string_field("type").filter(|kind| !kind.is_empty())?)))
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
