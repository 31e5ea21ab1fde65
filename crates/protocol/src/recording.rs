//! What the turn log takes from one line of a transcript. Unlike [`crate::transcript`], which reads for figures, this
//! keeps what was said exactly as it is there.

use crate::lenient::{self, Object};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One line: when, and what.
#[derive(Debug, Clone)]
pub struct TranscriptLine {
    /// RFC 3339.
    pub at: Option<String>,
    /// True for a subagent's line: in the session's own transcript only old clients have such.
    pub is_sidechain: bool,
    /// What was said.
    pub what: LineKind,
}

/// What a line says.
#[derive(Debug, Clone)]
pub enum LineKind {
    /// One line of a response: mostly one block of it.
    Answer(Answer),
    /// What tools have answered.
    Results(Vec<ToolResult>),
    /// A prompt, by the user or by the client.
    Prompt {
        /// The words; an image is named, not kept.
        text: String,
        /// True when the client wrote it, and people do not see it.
        is_meta: bool,
    },
    /// The conversation was replaced by a summary.
    Compaction {
        /// `auto` or `manual`.
        trigger: Option<String>,
        /// Tokens before.
        before: Option<u64>,
        /// Tokens after.
        after: Option<u64>,
    },
    /// Words that the client or a hook added for the model.
    Context {
        /// The client's name for it, with the hook's where a hook said it.
        from: String,
        /// The words as the model got them.
        text: String,
    },
    /// The client's own account: the last one of a file is the newest.
    Cost(Cost),
    /// Of a kind that matters to no turn.
    Other,
}

/// One line of a response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// One id for all lines of one response.
    pub id: String,
    /// The model that answered; `<synthetic>` when the client speaks itself.
    pub model: Option<String>,
    /// The model that was asked for, with its `[1m]` suffix.
    pub requested_model: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The blocks of this line, byte for byte.
    pub blocks: Vec<Box<RawValue>>,
    /// What the response cost, byte for byte; the same on each of its lines.
    pub usage: Option<Box<RawValue>>,
    /// The API's id of the request.
    pub request_id: Option<String>,
    /// The client's word for an error of the API, when this line is one.
    pub api_error: Option<String>,
    /// True when the user stopped the response on its way: this is its beginning.
    pub aborted: bool,
}

/// What a tool has answered.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The call.
    pub id: String,
    /// True when it failed.
    pub is_error: bool,
    /// What the model is given: a text or blocks.
    pub content: Option<Content>,
    /// The tool's own object behind it.
    pub behind: Behind,
    /// True when the user, a rule or a hook did not allow the call.
    pub denied: bool,
    /// True when the user stopped the call after it had begun: the client's words are those of a denial.
    pub stopped: bool,
    /// Who decided: `config`, `hook`, `user`, …
    pub decided_by: Option<String>,
}

/// What the model is given back.
#[derive(Debug, Clone)]
pub enum Content {
    /// Read with its line.
    Read(Value),
    /// As it is there, where the line was not as the client writes it.
    Raw(Box<RawValue>),
}

impl From<Value> for Content {
    fn from(value: Value) -> Content {
        Content::Read(value)
    }
}

impl From<&RawValue> for Content {
    fn from(raw: &RawValue) -> Content {
        Content::Raw(raw.to_owned())
    }
}

/// What is behind a tool result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Behind {
    /// What a command printed.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub stdout: Option<String>,
    /// What it printed about its troubles.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub stderr: Option<String>,
    /// True when the user stopped it.
    #[serde(deserialize_with = "lenient::field")]
    pub interrupted: bool,
    /// The subagent that the call started.
    #[serde(deserialize_with = "lenient::text")]
    pub agent_id: Option<String>,
    /// Its kind.
    #[serde(deserialize_with = "lenient::text")]
    pub agent_type: Option<String>,
    /// How long the subagent took.
    #[serde(deserialize_with = "lenient::count")]
    pub total_duration_ms: Option<u64>,
    /// How long a fetch took.
    #[serde(deserialize_with = "lenient::count")]
    pub duration_ms: Option<u64>,
}

/// The client's own account of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cost {
    /// US dollars.
    #[serde(rename = "totalCostUSD", deserialize_with = "lenient::share")]
    pub total_usd: Option<f64>,
    /// By model, as the client writes it.
    #[serde(deserialize_with = "lenient::raw")]
    pub model_usage: Option<Box<RawValue>>,
}

/// What the client notes of a subagent, in a file beside its transcript.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentNote {
    /// Its kind.
    #[serde(deserialize_with = "lenient::text")]
    pub agent_type: Option<String>,
    /// The call that started it.
    #[serde(deserialize_with = "lenient::text")]
    pub tool_use_id: Option<String>,
}

impl AgentNote {
    /// Reads the note; an unreadable one is ignored.
    pub fn parse(bytes: &[u8]) -> AgentNote {
        std::str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// In so many bytes from the beginning of a line the client has said its type, if it is the user's.
const HEAD: usize = 256;
const USER: &str = r#""type":"user""#;

/// The fields of all kinds of lines, cut out and not yet looked at.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "M: Deserialize<'de> + Default"))]
struct Bones<'a, M> {
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
    /// Read with the rest, since it is nearly all of the line.
    message: Option<Object<M>>,
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

/// The fields of a message, likewise.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageBones<'a> {
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

/// The message of a line with results, which are nearly all of it and so read with the rest, too.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Results<'a> {
    #[serde(borrow)]
    content: Vec<Object<BlockBones<'a, Value>>>,
}

/// The fields of a block of a user line, likewise.
#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
struct BlockBones<'a, C> {
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

/// A block that is not yet looked at either.
type RawBlock<'a> = BlockBones<'a, &'a RawValue>;

impl<C> Default for BlockBones<'_, C> {
    fn default() -> Self {
        BlockBones { kind: None, text: None, tool_use_id: None, is_error: None, content: None }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attachment {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    hook_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Decision {
    #[serde(deserialize_with = "lenient::text")]
    decision: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    source: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Compacted {
    #[serde(deserialize_with = "lenient::text")]
    trigger: Option<String>,
    #[serde(deserialize_with = "lenient::count")]
    pre_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    post_tokens: Option<u64>,
}

impl TranscriptLine {
    /// Reads one line; none if it is torn or no object. Invalid UTF-8 is replaced.
    pub fn parse(bytes: &[u8]) -> Option<TranscriptLine> {
        let text = std::str::from_utf8(bytes)
            .map_or_else(|_| String::from_utf8_lossy(bytes), std::borrow::Cow::Borrowed);
        if !text.trim_start().starts_with('{') {
            return None;
        }
        if let Some(line) = with_results(&text) {
            return Some(line);
        }
        let repaired;
        let bones: Bones<'_, MessageBones<'_>> = match serde_json::from_str(&text) {
            Ok(bones) => bones,
            Err(_) => {
                repaired = with_message_as_object(&text)?;
                serde_json::from_str(&repaired).ok()?
            }
        };
        let what = match text_of(bones.kind).as_deref() {
            Some("assistant") => answer(&bones).map(LineKind::Answer),
            Some("user") => user(&bones),
            Some("attachment") => context(&bones),
            Some("system") if text_of(bones.subtype).as_deref() == Some("compact_boundary") => {
                let done: Compacted = bones.compact_metadata.and_then(lenient::read).unwrap_or_default();
                Some(LineKind::Compaction {
                    trigger: done.trigger,
                    before: done.pre_tokens,
                    after: done.post_tokens,
                })
            }
            Some("cost-state") => serde_json::from_str(&text).ok().map(LineKind::Cost),
            _ => None,
        };
        Some(bones.line(what.unwrap_or(LineKind::Other)))
    }
}

/// A line of the user's that holds results, as the client writes it, in one go; none of any other.
fn with_results(text: &str) -> Option<TranscriptLine> {
    // Told by the line's beginning, in which the client says its type: what is tried in vain is read twice.
    let beginning = (HEAD - 3..=HEAD).rev().find_map(|end| text.get(..end))?;
    if !beginning.contains(USER) {
        return None;
    }
    let mut line: Bones<'_, Results<'_>> = serde_json::from_str(text).ok()?;
    let Object(message) = line.message.take()?;
    let results = line.results(message.content.into_iter().map(|Object(block)| block));
    (text_of(line.kind).as_deref() == Some("user") && !results.is_empty())
        .then(|| line.line(LineKind::Results(results)))
}

/// A line whose message is none, which costs it no other field. Of a duplicate key the last one counts.
fn with_message_as_object(line: &str) -> Option<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(line).ok()?;
    let message = fields.remove("message").and_then(|raw| {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
        RawValue::from_string(serde_json::to_string(&fields).ok()?).ok()
    });
    fields.extend(message.as_deref().map(|message| ("message".to_owned(), message)));
    serde_json::to_string(&fields).ok()
}

fn text_of(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(lenient::text_of).filter(|text| !text.is_empty())
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

fn bones<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.filter(|raw| raw.get().starts_with('{'))
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

impl<M> Bones<'_, M> {
    fn line(&self, what: LineKind) -> TranscriptLine {
        TranscriptLine { at: text_of(self.timestamp), is_sidechain: is_true(self.is_sidechain), what }
    }

    /// What tools have answered, of the blocks of the line.
    fn results<'b, C: Into<Content> + 'b>(
        &self,
        blocks: impl Iterator<Item = BlockBones<'b, C>>,
    ) -> Vec<ToolResult> {
        let decision: Decision = self.permission_decision.and_then(lenient::read).unwrap_or_default();
        let refused = decision.decision.as_deref().is_some_and(|decision| decision != "accept");
        let before_run = is_true(self.tool_denial_before_run);
        let by_person = text_of(self.tool_denial_kind).as_deref() == Some("user-rejected");
        blocks
            .filter(|block| text_of(block.kind).as_deref() == Some("tool_result"))
            .filter_map(|block| {
                Some(ToolResult {
                    id: text_of(block.tool_use_id)?,
                    is_error: is_true(block.is_error),
                    content: block.content.map(Into::into),
                    behind: self.tool_use_result.and_then(lenient::read).unwrap_or_default(),
                    denied: refused || before_run,
                    stopped: by_person && !refused && !before_run,
                    decided_by: decision.source.clone(),
                })
            })
            .collect()
    }
}

fn answer(line: &Bones<'_, MessageBones<'_>>) -> Option<Answer> {
    let Object(message) = line.message.as_ref()?;
    let blocks = match message.content {
        Some(content) if content.get().starts_with('[') => {
            lenient::elements(content).into_iter().map(ToOwned::to_owned).collect()
        }
        // A plain text counts as one text block.
        Some(content) if content.get().starts_with('"') => {
            let block = format!(r#"{{"type":"text","text":{}}}"#, content.get());
            RawValue::from_string(block).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let api_error = is_true(line.is_api_error_message)
        .then(|| text_of(line.error).unwrap_or_else(|| "unknown".to_owned()));
    Some(Answer {
        id: text_of(message.id)?,
        model: text_of(message.model),
        requested_model: text_of(line.requested_model),
        stop_reason: text_of(message.stop_reason),
        blocks,
        usage: message.usage.map(ToOwned::to_owned),
        request_id: text_of(line.request_id),
        api_error,
        aborted: is_true(line.is_aborted_mid_stream),
    })
}

fn user(line: &Bones<'_, MessageBones<'_>>) -> Option<LineKind> {
    let Object(message) = line.message.as_ref()?;
    let content = message.content?;
    let blocks: Vec<RawBlock<'_>> = lenient::objects(content);
    let results = line.results(blocks.into_iter());
    if !results.is_empty() {
        return Some(LineKind::Results(results));
    }
    let text = words(content);
    if is_true(line.is_compact_summary) {
        return Some(LineKind::Context { from: "compact_summary".to_owned(), text });
    }
    Some(LineKind::Prompt { text, is_meta: is_true(line.is_meta) })
}

/// The words of a text or of blocks; what has no words is named by its kind.
fn words(content: &RawValue) -> String {
    if let Some(text) = lenient::text_of(content) {
        return text;
    }
    let word = |block: &RawValue| {
        let block: RawBlock<'_> = bones(Some(block));
        block.text.and_then(lenient::text_of).or_else(|| Some(format!("[{}]", text_of(block.kind)?)))
    };
    lenient::elements(content).into_iter().filter_map(word).collect::<Vec<_>>().join("\n")
}

/// Only what was rendered reached the model.
fn context(line: &Bones<'_, MessageBones<'_>>) -> Option<LineKind> {
    let attachment: Attachment = line.attachment.and_then(lenient::read)?;
    let text: Vec<String> = lenient::elements(line.rendered?)
        .into_iter()
        .filter_map(|part| bones::<RawBlock<'_>>(Some(part)).content.map(words))
        .collect();
    let from = [attachment.kind, attachment.hook_name].into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| LineKind::Context { from, text: text.join("\n") })
}

impl ToolResult {
    /// What the model is given, as words.
    pub fn text(&self) -> String {
        match &self.content {
            Some(Content::Read(content)) => words_of(content),
            Some(Content::Raw(content)) => words(content),
            None => String::new(),
        }
    }
}

/// The same of what was read.
fn words_of(content: &Value) -> String {
    let word = |block: &Value| {
        let text = |key: &str| block.get(key)?.as_str().map(str::to_owned);
        text("text").or_else(|| Some(format!("[{}]", text("type").filter(|kind| !kind.is_empty())?)))
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(word).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
