//! What only `plimsoll run --json` prints, under the names and with the facts that the stream has.

use super::event::JournalEvent;
use super::traits::{LogSource, Weight};
use crate::exit_status::ExitStatus;
use crate::level::Level;
use crate::marker::Marker;
use crate::status::Status;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

/// What happens in a run, as its stream tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StreamEvent {
    /// A client has said what it is.
    Client {
        /// The model.
        #[serde(default)]
        model: String,
        /// The client's version.
        #[serde(default)]
        version: String,
    },
    /// The model called a tool.
    Tool {
        /// The tool.
        #[serde(default)]
        name: String,
        /// What it was called with, in brief.
        #[serde(default)]
        detail: String,
    },
    /// The client retries a request.
    Retry {
        /// The HTTP status; 0 if the API could not be reached.
        #[serde(default)]
        status: u64,
        /// Since when, RFC 3339 UTC.
        #[serde(default)]
        since: Timestamp,
    },
    /// The run ends after this session.
    StopRequested,
    /// The client refused tools.
    ToolsDenied {
        /// The tools.
        #[serde(default)]
        tools: Vec<String>,
        /// The command that allows them.
        #[serde(default)]
        command: Option<String>,
    },
    /// The client compacted the session.
    Compacted,
    /// A session's figures changed.
    Reading(ReadingChanged),
    /// The run waits.
    Pause {
        /// Until when, RFC 3339 UTC.
        #[serde(default)]
        until: Timestamp,
        /// How long.
        #[serde(default)]
        seconds: u64,
        /// What for.
        #[serde(default)]
        reason: String,
    },
    /// The run no longer waits.
    PauseOver,
    /// The run's process is done with it.
    RunEnded(RunEnded),

    /// An event that the journal has too, perhaps with other facts.
    #[serde(untagged)]
    Journal(JournalEvent),
}

impl StreamEvent {
    /// Its name in the stream; empty for an unknown event that has none.
    pub fn name(&self) -> &str {
        match self {
            StreamEvent::Journal(event) => event.name(),
            own => own.into(),
        }
    }

    /// Its facts, without its name.
    pub fn facts(&self) -> Map<String, Value> {
        super::facts_of(self)
    }

    /// How much it matters.
    pub fn weight(&self) -> Weight {
        match self {
            StreamEvent::Client { .. }
            | StreamEvent::Tool { .. }
            | StreamEvent::StopRequested
            | StreamEvent::Reading(_)
            | StreamEvent::Pause { .. }
            | StreamEvent::PauseOver => Weight::Usual,
            StreamEvent::Retry { .. } | StreamEvent::ToolsDenied { .. } | StreamEvent::Compacted => {
                Weight::Notice
            }
            StreamEvent::RunEnded(ended) if ended.is_failure() => Weight::Alarm,
            StreamEvent::RunEnded(_) => Weight::Usual,
            StreamEvent::Journal(event) => event.traits().weight,
        }
    }

    /// Where the exported logs take it from; none if they do not have it.
    pub fn log_source(&self) -> Option<LogSource> {
        match self {
            // The client exports its tools itself.
            StreamEvent::Tool { .. } => None,
            StreamEvent::Client { .. }
            | StreamEvent::Retry { .. }
            | StreamEvent::StopRequested
            | StreamEvent::ToolsDenied { .. }
            | StreamEvent::Compacted
            | StreamEvent::Reading(_)
            | StreamEvent::Pause { .. }
            | StreamEvent::PauseOver
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

/// A session's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadingChanged {
    /// The deciding figure, whole percent.
    pub percent: Option<u64>,
    /// The client's own figure, whole percent.
    pub percent_used: Option<u64>,
    /// The level that was announced.
    pub level: Level,
}

/// The end of `plimsoll run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnded {
    /// The run's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How many items are open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<usize>,
    /// How many are ticked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<usize>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// How many reviews there were, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviews: Option<u32>,
    /// What of the cost was for them, US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_cost_usd: Option<f64>,
    /// What of the tokens was for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_tokens: Option<u64>,
    /// The last verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// Why `plimsoll run` failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its exit code.
    pub exit_code: u8,
}

impl RunEnded {
    /// True if the run could not go on, by its exit code: it could not run, its breaker opened, or no session can succeed.
    pub fn is_failure(&self) -> bool {
        ExitStatus::from_code(self.exit_code).is_some_and(ExitStatus::is_fault_of_run)
    }
}
