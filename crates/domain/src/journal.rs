//! The journal: one JSON line for each decision of Plimsoll, with the figures behind it. `plimsoll run --json` prints
//! the same lines, and some that only matter while they happen ([`StreamEvent`]).
//!
//! The file is in the project, so an agent can write it too: a line that is not ours is a [`Line::Foreign`], and an
//! event that this version does not know, or whose facts have another shape, is [`JournalEvent::Unknown`]. Neither is an error.

mod event;
mod facts;
mod stream;
mod traits;
mod workers;

pub use event::JournalEvent;
pub use facts::{
    BreakerOpened, CheckpointWritten, IterationClosed, LevelReached, LinearDelivered, Planned, Room,
    RunBegun, SessionEnded, TicksTakenBack, VerdictReached, Verification, Verified, WipCommit,
};
pub use stream::{ReadingChanged, RunEnded, StreamEvent};
pub use traits::{EventTraits, LogSource, Weight};
pub use workers::{Landed, SentBack, WorkerBegan, WorkerEnded};

use crate::ids::{RunId, SessionId};
use crate::state::RunState;
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One line: when, whose, and what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry<E> {
    /// When, RFC 3339 UTC with milliseconds; the writer stamps it. Empty where a line does not say.
    #[serde(default)]
    pub at: Timestamp,
    /// The run, if one owns the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The iteration of that run; 0 before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What happened.
    #[serde(flatten)]
    pub event: E,
}

/// A line of the journal.
pub type JournalEntry = Entry<JournalEvent>;

/// A line of the stream of `plimsoll run --json`.
pub type StreamEntry = Entry<StreamEvent>;

/// What is on one line of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// An entry.
    Entry(Box<JournalEntry>),
    /// Anything else, as it is there.
    Foreign(String),
}

/// Whose a line is, and what it is about.
#[derive(Deserialize)]
struct Head {
    event: String,
    #[serde(default)]
    run_id: Option<RunId>,
    #[serde(default)]
    iteration: Option<u32>,
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// How each entry begins.
// `at` is the first field of an entry, so a reader finds where one begins behind a line that was cut off.
const BEGINNING: &str = "{\"at\":";

impl<E> Entry<E> {
    /// A line about an event, outside a run and no session yet.
    pub fn new(event: E) -> Entry<E> {
        Entry { at: Timestamp::UNKNOWN, run_id: None, iteration: None, session_id: None, event }
    }

    /// A line about an event of a run, in its current iteration.
    pub fn of_run(state: &RunState, event: E) -> Entry<E> {
        Entry::new(event).run(Some((&state.run_id, state.iteration)))
    }

    /// A line about an event of a run's current session.
    pub fn of_run_session(state: &RunState, event: E) -> Entry<E> {
        Entry::of_run(state, event).session(state.session_id.as_ref())
    }

    /// Names the session.
    pub fn session(mut self, session_id: Option<&SessionId>) -> Entry<E> {
        self.session_id = session_id.cloned();
        self
    }

    /// Names the run and its iteration.
    pub fn run(mut self, run: Option<(&RunId, u32)>) -> Entry<E> {
        self.run_id = run.map(|(run_id, _)| run_id.clone());
        self.iteration = run.map(|(_, iteration)| iteration);
        self
    }

    /// The line without its line break.
    pub fn to_line(&self) -> String
    where
        E: Serialize,
    {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The number of its session in the run; none outside of one, and before the first.
    pub fn session_number(&self) -> Option<u32> {
        self.iteration.filter(|iteration| *iteration > 0)
    }

    fn parse(text: &str) -> Option<Entry<E>>
    where
        E: DeserializeOwned,
    {
        let fields: Value = serde_json::from_str(text).ok()?;
        // serde would take a number for the place of the event in the list of all.
        let is_named =
            fields.get("event").is_some_and(|name| name.as_str().is_some_and(|name| !name.is_empty()));
        if is_named { serde_json::from_value(fields).ok() } else { None }
    }
}

impl JournalEntry {
    /// True if this line is about the same kind of event, in the same run, iteration and session. It reads no more of
    /// the line: a hook asks this, and need not know how every event is read.
    pub fn is_told_by(&self, line: &str) -> bool {
        // Where a writer was cut off, the next entry follows what it had begun.
        let entry = &line[line.rfind(BEGINNING).unwrap_or(0)..];
        let Ok(head) = serde_json::from_str::<Head>(entry) else { return false };
        head.event == self.event.name()
            && head.run_id == self.run_id
            && head.iteration == self.iteration
            && head.session_id == self.session_id
    }
}

impl StreamEntry {
    /// Reads one line of the stream; none if it is not one.
    pub fn read(bytes: &[u8]) -> Option<StreamEntry> {
        StreamEntry::parse(&String::from_utf8_lossy(bytes))
    }
}

impl From<JournalEntry> for StreamEntry {
    fn from(entry: JournalEntry) -> StreamEntry {
        let JournalEntry { at, run_id, iteration, session_id, event } = entry;
        StreamEntry { at, run_id, iteration, session_id, event: event.into() }
    }
}

/// The facts of an event, without its name.
fn facts_of(event: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(mut facts)) => {
            facts.shift_remove("event");
            facts
        }
        _ => Map::new(),
    }
}

impl Line {
    /// Reads what is on one line: mostly one entry, nothing on a blank one. Where a writer was cut off, the next
    /// entry follows what it had begun.
    pub fn read(bytes: &[u8]) -> Vec<Line> {
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return Vec::new();
        }
        if let Some(entry) = JournalEntry::parse(&text) {
            return vec![Line::Entry(Box::new(entry))];
        }
        let behind = text.rfind(BEGINNING).filter(|at| *at > 0);
        match behind.and_then(|at| Some((at, JournalEntry::parse(&text[at..])?))) {
            Some((at, entry)) => vec![Line::Foreign(text[..at].to_owned()), Line::Entry(Box::new(entry))],
            None => vec![Line::Foreign(text.into_owned())],
        }
    }

    /// The entry, if it is one.
    pub fn into_entry(self) -> Option<JournalEntry> {
        match self {
            Line::Entry(entry) => Some(*entry),
            Line::Foreign(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
