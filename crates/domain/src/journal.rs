//! The journal: one JSON line for each decision of Plimsoll, with the measurements on which it is based.
//! `plimsoll run --json` prints the same lines, plus events that only matter while they happen
//! ([`StreamEvent`]).
//!
//! The file is in the project, so an agent can write it, too. A line that Plimsoll did not write is a
//! [`JournalLine::Foreign`]. An event that this version does not support, or whose fields have other types, is a
//! [`JournalEvent::Unknown`]. Neither is an error.

mod event;
mod event_details;
mod stream;
mod traits;
mod workers;

pub use event::JournalEvent;
pub use event_details::{
    BreakerOpened, CheckpointWritten, IterationClosed, IterationPlanned, LevelReached, LinearDelivered,
    NextStepSizeEstimate, OtherModule, RunStartDetails, SessionEnded, TicksReverted, VerdictReached,
    VerifyCommandsRan, VerifyResult, WipCommit,
};
pub use stream::{ReadingChanged, RunEnded, StreamEvent};
pub use traits::{EventSeverity, EventTraits, LogSource};
pub use workers::{ItemReturned, ItemsMerged, WorkerEnded, WorkerStarted};

use crate::ids::{RunId, SessionId};
use crate::state::RunState;
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One line: an event with its time, run and session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventEntry<E> {
    /// RFC 3339, UTC, with milliseconds; set by the writer. Empty if a line does not state it.
    #[serde(rename = "at", default)]
    pub recorded_at: Timestamp,
    /// The run, if one owns the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The iteration of that run; 0 before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(flatten)]
    pub event: E,
}

/// A line of the journal.
pub type JournalEntry = EventEntry<JournalEvent>;

/// A line of the output of `plimsoll run --json`.
pub type StreamEntry = EventEntry<StreamEvent>;

/// The content of one line of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalLine {
    Entry(Box<JournalEntry>),
    /// Anything else, unchanged.
    Foreign(String),
}

/// The fields that identify an entry, without the details of its event.
#[derive(Deserialize)]
struct EntryIdentity {
    event: String,
    #[serde(default)]
    run_id: Option<RunId>,
    #[serde(default)]
    iteration: Option<u32>,
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// The first characters of each entry.
// `at` is the first field of an entry, so a reader can find an entry after a line that was cut off.
const ENTRY_PREFIX: &str = "{\"at\":";

impl<E> EventEntry<E> {
    /// Creates an entry without a run or a session.
    pub fn new(event: E) -> EventEntry<E> {
        EventEntry { recorded_at: Timestamp::UNKNOWN, run_id: None, iteration: None, session_id: None, event }
    }

    /// Creates an entry about a run, in its current iteration.
    pub fn for_run(state: &RunState, event: E) -> EventEntry<E> {
        EventEntry::new(event).with_run(Some((&state.run_id, state.iteration)))
    }

    /// Creates an entry about a run's current session.
    pub fn for_run_session(state: &RunState, event: E) -> EventEntry<E> {
        EventEntry::for_run(state, event).with_session(state.session_id.as_ref())
    }

    /// Sets the session.
    pub fn with_session(mut self, session_id: Option<&SessionId>) -> EventEntry<E> {
        self.session_id = session_id.cloned();
        self
    }

    /// Sets the run and its iteration.
    pub fn with_run(mut self, run: Option<(&RunId, u32)>) -> EventEntry<E> {
        self.run_id = run.map(|(run_id, _)| run_id.clone());
        self.iteration = run.map(|(_, iteration)| iteration);
        self
    }

    /// Serializes the entry, without a line break.
    pub fn to_line(&self) -> String
    where
        E: Serialize,
    {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the number of the entry's session in its run; `None` outside a run and before its first session.
    pub fn session_number(&self) -> Option<u32> {
        self.iteration.filter(|iteration| *iteration > 0)
    }

    fn parse(text: &str) -> Option<EventEntry<E>>
    where
        E: DeserializeOwned,
    {
        let fields: Value = serde_json::from_str(text).ok()?;
        // serde would accept a number as the index of a variant.
        let has_event_name =
            fields.get("event").is_some_and(|name| name.as_str().is_some_and(|name| !name.is_empty()));
        if has_event_name { serde_json::from_value(fields).ok() } else { None }
    }
}

impl JournalEntry {
    /// Returns true if this line has an event of the same name, in the same run, iteration and session. Only these
    /// fields are parsed, so a hook that calls this does not contain the code that parses every event.
    pub fn has_same_event_name_and_origin(&self, line: &str) -> bool {
        // If a writer was cut off, the next entry follows on the same line.
        let entry_json = &line[line.rfind(ENTRY_PREFIX).unwrap_or(0)..];
        let Ok(identity) = serde_json::from_str::<EntryIdentity>(entry_json) else { return false };
        identity.event == self.event.name()
            && identity.run_id == self.run_id
            && identity.iteration == self.iteration
            && identity.session_id == self.session_id
    }
}

impl StreamEntry {
    /// Parses one line of the output; `None` if it is not an entry.
    pub fn from_line_bytes(bytes: &[u8]) -> Option<StreamEntry> {
        StreamEntry::parse(&String::from_utf8_lossy(bytes))
    }
}

impl From<JournalEntry> for StreamEntry {
    fn from(entry: JournalEntry) -> StreamEntry {
        let JournalEntry { recorded_at, run_id, iteration, session_id, event } = entry;
        StreamEntry { recorded_at, run_id, iteration, session_id, event: event.into() }
    }
}

/// Returns the serialized fields of an event, without its name.
fn event_fields_without_name(event: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(mut fields)) => {
            fields.shift_remove("event");
            fields
        }
        _ => Map::new(),
    }
}

impl JournalLine {
    /// Parses one line of the file: usually one entry, none if it is blank. If a writer was cut off, the line
    /// has a fragment followed by the next entry.
    pub fn parse_line_and_appended_entry(line_bytes: &[u8]) -> Vec<JournalLine> {
        let text = String::from_utf8_lossy(line_bytes);
        if text.trim().is_empty() {
            return Vec::new();
        }
        if let Some(entry) = JournalEntry::parse(&text) {
            return vec![JournalLine::Entry(Box::new(entry))];
        }
        let second_entry_start = text.rfind(ENTRY_PREFIX).filter(|start| *start > 0);
        match second_entry_start
            .and_then(|entry_start| Some((entry_start, JournalEntry::parse(&text[entry_start..])?)))
        {
            Some((entry_start, entry)) => vec![
                JournalLine::Foreign(text[..entry_start].to_owned()),
                JournalLine::Entry(Box::new(entry)),
            ],
            None => vec![JournalLine::Foreign(text.into_owned())],
        }
    }

    /// Returns the entry, if it is one.
    pub fn into_entry(self) -> Option<JournalEntry> {
        match self {
            JournalLine::Entry(entry) => Some(*entry),
            JournalLine::Foreign(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
