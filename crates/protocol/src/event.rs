//! Hook payloads: the JSON that the client passes to a hook on standard input.

use crate::lenient;
use crate::tool::{PendingToolCall, ToolCall};
use crate::{MalformedJson, parse_json_object};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One invocation of a hook.
#[derive(Debug, Clone)]
pub struct HookPayload {
    /// The session; `None` if the field is missing, empty or not a string.
    pub session_id: Option<String>,
    /// The session's transcript. In a subagent this is still the *main* transcript.
    pub transcript_path: Option<String>,
    /// The session's current working directory; it changes with `cd`.
    pub cwd: Option<String>,
    /// Set if the event comes from a subagent (or the client's own summarizer).
    pub agent_id: Option<String>,
    /// The type of that subagent; empty for the client's own summarizer.
    pub agent_type: Option<String>,
    /// True if another client sent the event: Codex also runs the hooks of Claude Code's settings.
    pub is_from_other_client: bool,
    pub event: HookEvent,
}

/// The event and its own fields.
#[derive(Debug, Clone)]
pub enum HookEvent {
    /// A session begins, continues after a compaction, or is resumed.
    SessionStart(SessionStart),
    SessionEnd {
        /// `other` for every `-p` ending, `clear`, `prompt_input_exit`.
        reason: Option<String>,
    },
    /// A prompt is submitted, by the user or by the client (task notifications).
    UserPromptSubmit { prompt: Option<String> },
    /// The model is about to call a tool.
    PreToolUse(PendingToolCall),
    /// A subagent starts.
    SubagentStart,
    /// One tool has returned a result.
    PostToolUse(ToolCall),
    /// One tool call has failed.
    PostToolUseFailure(ToolCall),
    /// All tools of one model message have returned.
    PostToolBatch(Vec<ToolCall>),
    /// The model has ended its turn.
    Stop(Stop),
    /// The turn ended with an API error.
    StopFailure(StopFailure),
    /// A subagent (or the client's summarizer) has ended.
    SubagentStop(Stop),
    /// The client is about to compact.
    PreCompact,
    /// The client has compacted.
    PostCompact,
    /// The user is about to switch to another model.
    PreModelSwitch(ModelSwitch),
    /// An event that this version ignores, with its name.
    Other(String),
}

/// Fields of a session start.
#[derive(Debug, Clone, Default)]
pub struct SessionStart {
    pub source: SessionSource,
    /// The model, with its `[1m]` suffix; with `-p` only after a compaction.
    pub model: Option<String>,
    /// The cost of the first request of a resumed or forked session (2.1.332).
    pub resumed_context: ResumedContext,
}

/// The context of a resumed or forked session, and the price of its first request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ResumedContext {
    /// The tokens that the first request sends again.
    pub context_tokens: Option<u64>,
    /// True if the prompt cache has probably expired, so that the first request writes all of these tokens to it again.
    pub is_cache_likely_expired: bool,
    /// The price of writing them to the cache, by the client's price list.
    pub cache_write_usd: Option<f64>,
}

/// Fields of a switch to another model (2.1.332).
#[derive(Debug, Clone, Default)]
pub struct ModelSwitch {
    pub from_model: Option<String>,
    pub to_model: Option<String>,
    /// The tokens that the next request sends again; 0 before the first response.
    pub context_tokens: Option<u64>,
    /// False if the prompt cache of the current model has probably expired, so that the switch loses nothing.
    pub is_cache_warm: Option<bool>,
    /// The price of writing the context to the new model's cache; `None` if the client does not know the model's price.
    pub cache_write_usd: Option<f64>,
    /// How long the client keeps a prompt in the cache: `5m` or `1h`.
    pub cache_ttl: Option<String>,
}

/// Why a session starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionSource {
    /// A new session; also the default for an unknown value.
    #[default]
    Startup,
    /// `--resume` or `--continue`.
    Resume,
    /// `--fork-session`: a new id for an old conversation.
    Fork,
    /// After `/clear`: a new id and transcript.
    Clear,
    /// After a compaction: the same id.
    Compact,
}

/// Fields of the end of a turn.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// True if a hook already made the model continue.
    pub stop_hook_active: bool,
    /// The last text of the model; `None` if there was none.
    pub last_assistant_message: Option<String>,
    /// The tasks that still run in the background.
    pub background_tasks: Vec<BackgroundTask>,
    /// The number of scheduled wakeups.
    pub session_cron_count: usize,
    /// The subagent's own transcript, at SubagentStop.
    pub agent_transcript_path: Option<String>,
}

/// A task that runs in the background.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct BackgroundTask {
    /// `running` while it runs.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub status: Option<String>,
}

/// Fields of a turn that ended with an error.
#[derive(Debug, Clone, Default)]
pub struct StopFailure {
    /// The client's error code, such as `rate_limit` or `server_error`.
    pub error: Option<String>,
    /// The API's error message.
    pub error_details: Option<String>,
    /// The message that the user sees.
    pub last_assistant_message: Option<String>,
}

impl HookPayload {
    /// Parses a hook's standard input. Fails only if it is not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<HookPayload, MalformedJson> {
        let exact_batch = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| serde_json::from_str::<ExactBatch<'_>>(text).ok());
        match exact_batch.and_then(ExactBatch::into_hook_payload) {
            Some(payload) => Ok(payload),
            None => Ok(parse_json_object::<PayloadFields>(bytes)?.into_hook_payload()),
        }
    }

    /// Returns true if the event belongs to a subagent, whose usage is not the session's.
    pub fn is_in_subagent(&self) -> bool {
        self.agent_id.is_some()
    }
}

impl HookEvent {
    /// Returns the client's name for the event.
    pub fn name(&self) -> &str {
        match self {
            HookEvent::SessionStart(_) => "SessionStart",
            HookEvent::SessionEnd { .. } => "SessionEnd",
            HookEvent::UserPromptSubmit { .. } => "UserPromptSubmit",
            HookEvent::PreToolUse(_) => "PreToolUse",
            HookEvent::SubagentStart => "SubagentStart",
            HookEvent::PostToolUse(_) => "PostToolUse",
            HookEvent::PostToolUseFailure(_) => "PostToolUseFailure",
            HookEvent::PostToolBatch(_) => "PostToolBatch",
            HookEvent::Stop(_) => "Stop",
            HookEvent::StopFailure(_) => "StopFailure",
            HookEvent::SubagentStop(_) => "SubagentStop",
            HookEvent::PreCompact => "PreCompact",
            HookEvent::PostCompact => "PostCompact",
            HookEvent::PreModelSwitch(_) => "PreModelSwitch",
            HookEvent::Other(name) => name,
        }
    }

    /// Returns the tool calls that the event reports.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            HookEvent::PostToolBatch(calls) => calls,
            HookEvent::PostToolUse(call) | HookEvent::PostToolUseFailure(call) => std::slice::from_ref(call),
            _ => &[],
        }
    }
}

/// A PostToolBatch exactly as the client writes it, parsed in one pass: it arrives with every message of the model
/// and may contain whole files. All other events, and any batch that differs, are parsed as a [`PayloadFields`].
#[derive(Deserialize)]
struct ExactBatch<'a> {
    hook_event_name: &'a str,
    session_id: &'a str,
    #[serde(borrow)]
    transcript_path: Option<&'a str>,
    #[serde(borrow)]
    cwd: Option<&'a str>,
    #[serde(borrow)]
    agent_id: Option<&'a str>,
    #[serde(borrow)]
    agent_type: Option<&'a str>,
    tool_calls: Vec<lenient::JsonObject<ToolCall>>,
}

impl ExactBatch<'_> {
    fn into_hook_payload(self) -> Option<HookPayload> {
        let non_empty_text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        (self.hook_event_name == "PostToolBatch").then(|| HookPayload {
            session_id: non_empty_text(Some(self.session_id)),
            transcript_path: non_empty_text(self.transcript_path),
            cwd: non_empty_text(self.cwd),
            agent_id: non_empty_text(self.agent_id),
            // An empty type is meaningful: the client's own summarizer ends as a subagent without a type (2.1.329).
            agent_type: self.agent_type.map(str::to_owned),
            // Codex has no PostToolBatch event.
            is_from_other_client: false,
            event: HookEvent::PostToolBatch(
                self.tool_calls.into_iter().map(|lenient::JsonObject(call)| call).collect(),
            ),
        })
    }
}

/// The fields of all events in one flat structure, as the client sends them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PayloadFields {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    hook_event_name: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    session_id: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    transcript_path: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    turn_id: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    cwd: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    agent_id: Option<String>,
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    agent_type: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    source: SessionSource,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    prompt: Option<String>,
    #[serde(deserialize_with = "lenient::readable_elements")]
    tool_calls: Vec<ToolCall>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    tool_name: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient::raw_json")]
    tool_input: Option<Box<RawValue>>,
    #[serde(deserialize_with = "lenient::raw_json")]
    tool_response: Option<Box<RawValue>>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    error: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    error_details: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    stop_hook_active: bool,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    last_assistant_message: Option<String>,
    #[serde(deserialize_with = "lenient::readable_elements")]
    background_tasks: Vec<BackgroundTask>,
    #[serde(deserialize_with = "lenient::readable_elements")]
    session_crons: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    agent_transcript_path: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    from_model: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    to_model: Option<String>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    context_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    prompt_cache_warm: Option<bool>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    prompt_cache_likely_expired: bool,
    #[serde(deserialize_with = "lenient::non_negative_number")]
    estimated_cache_write_usd: Option<f64>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    cache_ttl: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pricing: Option<String>,
}

impl PayloadFields {
    fn into_hook_payload(mut self) -> HookPayload {
        HookPayload {
            is_from_other_client: self.is_from_codex(),
            session_id: self.session_id.take(),
            transcript_path: self.transcript_path.take(),
            cwd: self.cwd.take(),
            agent_id: self.agent_id.take(),
            agent_type: self.agent_type.take(),
            event: self.into_event(),
        }
    }

    /// Detects Codex, which names each session's file `rollout-TIME-ID.jsonl` and adds a `turn_id` to most of its
    /// events. Claude Code (2.1.329) also has that field, in its MessageDisplay event, so `turn_id` counts only if no
    /// transcript is named.
    fn is_from_codex(&self) -> bool {
        match self.transcript_path.as_deref() {
            Some(path) => {
                let file_name = path.rsplit(['/', '\\']).next().unwrap_or(path);
                file_name.starts_with("rollout-") && file_name.ends_with(".jsonl")
            }
            None => self.turn_id.is_some(),
        }
    }

    fn into_event(self) -> HookEvent {
        match self.hook_event_name.as_deref() {
            Some("SessionStart") => HookEvent::SessionStart(SessionStart {
                source: self.source,
                model: self.model,
                resumed_context: ResumedContext {
                    context_tokens: self.context_tokens,
                    is_cache_likely_expired: self.prompt_cache_likely_expired,
                    cache_write_usd: self.estimated_cache_write_usd,
                },
            }),
            Some("SessionEnd") => HookEvent::SessionEnd { reason: self.reason },
            Some("UserPromptSubmit") => HookEvent::UserPromptSubmit { prompt: self.prompt },
            Some("PreToolUse") => HookEvent::PreToolUse(PendingToolCall {
                tool_name: self.tool_name.unwrap_or_default(),
                tool_use_id: self.tool_use_id.unwrap_or_default(),
                tool_input: self.tool_input,
            }),
            Some("SubagentStart") => HookEvent::SubagentStart,
            Some("PostToolUse") => HookEvent::PostToolUse(self.into_tool_call()),
            Some("PostToolUseFailure") => HookEvent::PostToolUseFailure(self.into_tool_call()),
            Some("PostToolBatch") => HookEvent::PostToolBatch(self.tool_calls),
            Some("Stop") => HookEvent::Stop(self.into_stop()),
            Some("SubagentStop") => HookEvent::SubagentStop(self.into_stop()),
            Some("StopFailure") => HookEvent::StopFailure(StopFailure {
                error: self.error,
                error_details: self.error_details,
                last_assistant_message: self.last_assistant_message,
            }),
            Some("PreCompact") => HookEvent::PreCompact,
            Some("PostCompact") => HookEvent::PostCompact,
            Some("PreModelSwitch") => HookEvent::PreModelSwitch(self.into_model_switch()),
            event_name => HookEvent::Other(event_name.unwrap_or_default().to_owned()),
        }
    }

    fn into_tool_call(self) -> ToolCall {
        ToolCall {
            tool_name: self.tool_name,
            tool_use_id: self.tool_use_id,
            tool_input: self
                .tool_input
                .as_deref()
                .and_then(lenient::parse_unless_list_or_null)
                .unwrap_or_default(),
            tool_response: self.tool_response,
        }
    }

    fn into_model_switch(self) -> ModelSwitch {
        // For a model that it does not know, the client reports the price of another one.
        let is_price_of_model = self.pricing.as_deref() != Some("default");
        ModelSwitch {
            from_model: self.from_model,
            to_model: self.to_model,
            context_tokens: self.context_tokens,
            is_cache_warm: self.prompt_cache_warm,
            cache_write_usd: self.estimated_cache_write_usd.filter(|_| is_price_of_model),
            cache_ttl: self.cache_ttl,
        }
    }

    fn into_stop(self) -> Stop {
        Stop {
            stop_hook_active: self.stop_hook_active,
            last_assistant_message: self.last_assistant_message,
            background_tasks: self.background_tasks,
            session_cron_count: self.session_crons.len(),
            agent_transcript_path: self.agent_transcript_path,
        }
    }
}
