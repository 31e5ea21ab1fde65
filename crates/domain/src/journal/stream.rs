//! The events that only `plimsoll run --json` prints, with their names and fields there.

use super::event::JournalEvent;
use super::traits::{EventSeverity, LogSource};
use crate::exit_status::ExitStatus;
use crate::level::Level;
use crate::marker::Marker;
use crate::status::RunStatus;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

/// An event of a run, as the stream reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StreamEvent {
    /// A client reported its model and version.
    Client {
        #[serde(default)]
        model: String,
        #[serde(default)]
        version: String,
    },
    /// The model called a tool.
    Tool {
        #[serde(default)]
        name: String,
        /// A short form of the call's arguments.
        #[serde(default)]
        detail: String,
    },
    /// The client retries a request.
    Retry {
        /// The HTTP status; 0 if the API could not be reached.
        #[serde(default)]
        status: u64,
        /// When the retries began, RFC 3339, UTC.
        #[serde(default)]
        since: Timestamp,
    },
    /// The run will end after this session.
    StopRequested,
    /// The client refused tools.
    ToolsDenied {
        #[serde(default)]
        tools: Vec<String>,
        /// The command that allows these tools.
        #[serde(default)]
        command: Option<String>,
    },
    /// The client compacted the session.
    Compacted,
    /// A session's usage changed.
    Reading(ReadingChanged),
    /// The run started to wait.
    Pause {
        /// When it continues, RFC 3339, UTC.
        #[serde(default)]
        until: Timestamp,
        /// The length of the pause.
        #[serde(default)]
        seconds: u64,
        #[serde(default)]
        reason: String,
    },
    /// The run no longer waits.
    #[serde(rename = "pause_over")]
    #[strum(serialize = "pause_over")]
    PauseEnded,
    /// `plimsoll run` ended.
    RunEnded(RunEnded),

    /// An event that the journal also has, perhaps with other fields.
    #[serde(untagged)]
    Journal(JournalEvent),
}

impl StreamEvent {
    /// Returns the name in the stream; empty for an unknown event without a name.
    pub fn name(&self) -> &str {
        match self {
            StreamEvent::Journal(event) => event.name(),
            stream_event => stream_event.into(),
        }
    }

    /// Returns the event's fields, without its name.
    pub fn fields_without_name(&self) -> Map<String, Value> {
        super::event_fields_without_name(self)
    }

    /// Returns how much the event matters to the user.
    pub fn severity(&self) -> EventSeverity {
        match self {
            StreamEvent::Client { .. }
            | StreamEvent::Tool { .. }
            | StreamEvent::StopRequested
            | StreamEvent::Reading(_)
            | StreamEvent::Pause { .. }
            | StreamEvent::PauseEnded => EventSeverity::Routine,
            StreamEvent::Retry { .. } | StreamEvent::ToolsDenied { .. } | StreamEvent::Compacted => {
                EventSeverity::Notice
            }
            StreamEvent::RunEnded(run_end) if run_end.is_failure() => EventSeverity::Alarm,
            StreamEvent::RunEnded(_) => EventSeverity::Routine,
            StreamEvent::Journal(event) => event.traits().severity,
        }
    }

    /// Returns the source from which the log export takes the event; `None` if it is not exported.
    pub fn log_source(&self) -> Option<LogSource> {
        match self {
            // The client exports its tool calls itself.
            StreamEvent::Tool { .. } => None,
            StreamEvent::Client { .. }
            | StreamEvent::Retry { .. }
            | StreamEvent::StopRequested
            | StreamEvent::ToolsDenied { .. }
            | StreamEvent::Compacted
            | StreamEvent::Reading(_)
            | StreamEvent::Pause { .. }
            | StreamEvent::PauseEnded
            | StreamEvent::RunEnded(_) => Some(LogSource::Stream),
            StreamEvent::Journal(event) => event.traits().log_source,
        }
    }
}

impl From<JournalEvent> for StreamEvent {
    fn from(event: JournalEvent) -> StreamEvent {
        StreamEvent::Journal(event)
    }
}

/// The usage of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadingChanged {
    /// The usage that determined the level, in whole percent.
    pub percent: Option<u64>,
    /// The usage that the client itself reports, in whole percent.
    #[serde(rename = "percent_used")]
    pub client_percent: Option<u64>,
    /// The level that was announced to the session.
    #[serde(rename = "level")]
    pub announced_level: Level,
}

/// The end of `plimsoll run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnded {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The number of open items.
    #[serde(rename = "open", skip_serializing_if = "Option::is_none")]
    pub open_count: Option<usize>,
    /// The number of ticked items.
    #[serde(rename = "done", skip_serializing_if = "Option::is_none")]
    pub done_count: Option<usize>,
    /// The run's total cost, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The run's total tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The number of reviews; `None` if there were none.
    #[serde(rename = "reviews", skip_serializing_if = "Option::is_none")]
    pub review_count: Option<u32>,
    /// The part of the cost that reviews caused, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_cost_usd: Option<f64>,
    /// The part of the tokens that reviews caused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_tokens: Option<u64>,
    /// The last verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// Why `plimsoll run` failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub exit_code: u8,
}

impl RunEnded {
    /// Returns true if the exit code means that the run failed: it could not run, its breaker opened, or no
    /// session can succeed.
    pub fn is_failure(&self) -> bool {
        ExitStatus::from_code(self.exit_code).is_some_and(ExitStatus::is_run_failure)
    }
}
