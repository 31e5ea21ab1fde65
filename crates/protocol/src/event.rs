//! The events: what the client passes to a hook on standard input.

use crate::lenient;
use crate::tool::{Intent, ToolCall};
use crate::{Malformed, parse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One call of a hook: who, where and what.
#[derive(Debug, Clone)]
pub struct Hook {
    /// The session; none if the field is missing, empty or not a text.
    pub session_id: Option<String>,
    /// The session's transcript. In a subagent this is the *main* transcript all the same.
    pub transcript_path: Option<String>,
    /// The session's present working directory; it moves with `cd`.
    pub cwd: Option<String>,
    /// Set when the event comes from inside a subagent (or the client's own summarizer).
    pub agent_id: Option<String>,
    /// The kind of that subagent; empty for the client's own summarizer.
    pub agent_type: Option<String>,
    /// True if the event is of another client: Codex also runs the hooks of Claude Code's settings.
    pub is_of_other_client: bool,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A session begins, continues after a compaction, or is resumed.
    SessionStart(SessionStart),
    /// A session ends.
    SessionEnd {
        /// `other` for every `-p` ending, `clear`, `prompt_input_exit`.
        reason: Option<String>,
    },
    /// A prompt is handed in, by the user or by the client (task notifications).
    UserPromptSubmit {
        /// The prompt.
        prompt: Option<String>,
    },
    /// The model wants to use a tool.
    PreToolUse(Intent),
    /// A subagent begins.
    SubagentStart,
    /// One tool has answered.
    PostToolUse(ToolCall),
    /// One tool has failed.
    PostToolUseFailure(ToolCall),
    /// All tools of one model message have answered.
    PostToolBatch(Vec<ToolCall>),
    /// The model has ended its turn.
    Stop(Stop),
    /// The turn ended by an error of the API.
    StopFailure(StopFailure),
    /// A subagent (or the client's summarizer) has ended.
    SubagentStop(Stop),
    /// The client is about to compact.
    PreCompact,
    /// The client has compacted.
    PostCompact,
    /// An event this version does not act on, by its name.
    Other(String),
}

/// How a session begins.
#[derive(Debug, Clone, Default)]
pub struct SessionStart {
    /// startup, resume, fork, clear or compact.
    pub source: Source,
    /// The model, with its `[1m]` suffix; in `-p` only after a compaction.
    pub model: Option<String>,
}

/// Why a session begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A new session; also what an unknown word is taken for.
    #[default]
    Startup,
    /// `--resume` or `--continue`.
    Resume,
    /// `--fork-session`: a new id over an old conversation.
    Fork,
    /// After `/clear`: a new id and transcript.
    Clear,
    /// After a compaction: the same id.
    Compact,
}

/// The end of a turn.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// True when a hook made the model continue before.
    pub stop_hook_active: bool,
    /// The last words; none if there was no text.
    pub last_assistant_message: Option<String>,
    /// What still runs in the background.
    pub background_tasks: Vec<BackgroundTask>,
    /// How many wakeups are scheduled.
    pub session_crons: usize,
    /// The subagent's own transcript, at SubagentStop.
    pub agent_transcript_path: Option<String>,
}

/// Something that runs in the background.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct BackgroundTask {
    /// `running` while it runs.
    #[serde(deserialize_with = "lenient::text")]
    pub status: Option<String>,
}

/// The end of a turn by an error.
#[derive(Debug, Clone, Default)]
pub struct StopFailure {
    /// The client's word for it, such as `rate_limit` or `server_error`.
    pub error: Option<String>,
    /// The API's own words.
    pub error_details: Option<String>,
    /// What the user is shown.
    pub last_assistant_message: Option<String>,
}

impl Hook {
    /// Reads a hook's standard input; fails only where it is not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<Hook, Malformed> {
        let exact =
            std::str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str::<Batch<'_>>(text).ok());
        match exact.and_then(Batch::into_hook) {
            Some(hook) => Ok(hook),
            None => Ok(parse::<Payload>(bytes)?.into_hook()),
        }
    }

    /// True when the event belongs to a subagent, whose numbers are not the session's.
    pub fn in_subagent(&self) -> bool {
        self.agent_id.is_some()
    }
}

impl Event {
    /// The client's name for the event.
    pub fn name(&self) -> &str {
        match self {
            Event::SessionStart(_) => "SessionStart",
            Event::SessionEnd { .. } => "SessionEnd",
            Event::UserPromptSubmit { .. } => "UserPromptSubmit",
            Event::PreToolUse(_) => "PreToolUse",
            Event::SubagentStart => "SubagentStart",
            Event::PostToolUse(_) => "PostToolUse",
            Event::PostToolUseFailure(_) => "PostToolUseFailure",
            Event::PostToolBatch(_) => "PostToolBatch",
            Event::Stop(_) => "Stop",
            Event::StopFailure(_) => "StopFailure",
            Event::SubagentStop(_) => "SubagentStop",
            Event::PreCompact => "PreCompact",
            Event::PostCompact => "PostCompact",
            Event::Other(name) => name,
        }
    }

    /// The tool calls the event speaks of.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Event::PostToolBatch(calls) => calls,
            Event::PostToolUse(call) | Event::PostToolUseFailure(call) => std::slice::from_ref(call),
            _ => &[],
        }
    }
}

/// A PostToolBatch exactly as the client writes it, read in one go: it comes with every message of the model and
/// may hold whole files. Everything else, and every batch that is different, is read as a [`Payload`].
#[derive(Deserialize)]
struct Batch<'a> {
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
    tool_calls: Vec<lenient::Object<ToolCall>>,
}

impl Batch<'_> {
    fn into_hook(self) -> Option<Hook> {
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        (self.hook_event_name == "PostToolBatch").then(|| Hook {
            session_id: text(Some(self.session_id)),
            transcript_path: text(self.transcript_path),
            cwd: text(self.cwd),
            agent_id: text(self.agent_id),
            // Empty means something: the client's own summarizer ends as a subagent of no type (2.1.329).
            agent_type: self.agent_type.map(str::to_owned),
            // Codex has no such event.
            is_of_other_client: false,
            event: Event::PostToolBatch(
                self.tool_calls.into_iter().map(|lenient::Object(call)| call).collect(),
            ),
        })
    }
}

/// All fields of all events, flat, as they arrive.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    #[serde(deserialize_with = "lenient::text")]
    hook_event_name: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    session_id: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    transcript_path: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    turn_id: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    cwd: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    agent_id: Option<String>,
    #[serde(deserialize_with = "lenient::whole_text")]
    agent_type: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    source: Source,
    #[serde(deserialize_with = "lenient::text")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient::whole_text")]
    prompt: Option<String>,
    #[serde(deserialize_with = "lenient::list")]
    tool_calls: Vec<ToolCall>,
    #[serde(deserialize_with = "lenient::text")]
    tool_name: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient::raw")]
    tool_input: Option<Box<RawValue>>,
    #[serde(deserialize_with = "lenient::raw")]
    tool_response: Option<Box<RawValue>>,
    #[serde(deserialize_with = "lenient::text")]
    error: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    error_details: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    stop_hook_active: bool,
    #[serde(deserialize_with = "lenient::text")]
    last_assistant_message: Option<String>,
    #[serde(deserialize_with = "lenient::list")]
    background_tasks: Vec<BackgroundTask>,
    #[serde(deserialize_with = "lenient::list")]
    session_crons: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "lenient::text")]
    agent_transcript_path: Option<String>,
}

impl Payload {
    fn into_hook(mut self) -> Hook {
        Hook {
            is_of_other_client: self.is_of_codex(),
            session_id: self.session_id.take(),
            transcript_path: self.transcript_path.take(),
            cwd: self.cwd.take(),
            agent_id: self.agent_id.take(),
            agent_type: self.agent_type.take(),
            event: self.into_event(),
        }
    }

    /// Codex names each session's file `rollout-TIME-ID.jsonl`, and most of its events have a `turn_id`. The client (2.1.329) has that
    /// field, too, in its MessageDisplay event: alone it only tells Codex apart where no transcript is named.
    fn is_of_codex(&self) -> bool {
        match self.transcript_path.as_deref() {
            Some(path) => {
                let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
                name.starts_with("rollout-") && name.ends_with(".jsonl")
            }
            None => self.turn_id.is_some(),
        }
    }

    fn into_event(self) -> Event {
        match self.hook_event_name.as_deref() {
            Some("SessionStart") => {
                Event::SessionStart(SessionStart { source: self.source, model: self.model })
            }
            Some("SessionEnd") => Event::SessionEnd { reason: self.reason },
            Some("UserPromptSubmit") => Event::UserPromptSubmit { prompt: self.prompt },
            Some("PreToolUse") => Event::PreToolUse(Intent {
                tool_name: self.tool_name.unwrap_or_default(),
                tool_use_id: self.tool_use_id.unwrap_or_default(),
                tool_input: self.tool_input,
            }),
            Some("SubagentStart") => Event::SubagentStart,
            Some("PostToolUse") => Event::PostToolUse(self.into_call()),
            Some("PostToolUseFailure") => Event::PostToolUseFailure(self.into_call()),
            Some("PostToolBatch") => Event::PostToolBatch(self.tool_calls),
            Some("Stop") => Event::Stop(self.into_stop()),
            Some("SubagentStop") => Event::SubagentStop(self.into_stop()),
            Some("StopFailure") => Event::StopFailure(StopFailure {
                error: self.error,
                error_details: self.error_details,
                last_assistant_message: self.last_assistant_message,
            }),
            Some("PreCompact") => Event::PreCompact,
            Some("PostCompact") => Event::PostCompact,
            other => Event::Other(other.unwrap_or_default().to_owned()),
        }
    }

    fn into_call(self) -> ToolCall {
        ToolCall {
            tool_name: self.tool_name,
            tool_use_id: self.tool_use_id,
            tool_input: self.tool_input.as_deref().and_then(lenient::read).unwrap_or_default(),
            tool_response: self.tool_response,
        }
    }

    fn into_stop(self) -> Stop {
        Stop {
            stop_hook_active: self.stop_hook_active,
            last_assistant_message: self.last_assistant_message,
            background_tasks: self.background_tasks,
            session_crons: self.session_crons.len(),
            agent_transcript_path: self.agent_transcript_path,
        }
    }
}
