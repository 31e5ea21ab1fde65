//! The journal: one JSON line for every decision of Plimsoll itself, with the numbers it used.

use serde::Serialize;
use serde_json::{Map, Value};

/// One line of the journal.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// When, RFC 3339 UTC with milliseconds.
    pub at: String,
    /// What was decided: `warning`, `checkpoint`, `verdict`, `spawned`, …
    pub event: String,
    /// The run, if one owns the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The iteration of that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The numbers and reasons.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

impl Entry {
    /// A new line about an event; the writer stamps the time.
    pub fn new(event: &str) -> Entry {
        Entry {
            at: String::new(),
            event: event.to_owned(),
            run_id: None,
            iteration: None,
            session_id: None,
            facts: Map::new(),
        }
    }

    /// Names the session.
    pub fn session(mut self, session_id: Option<&str>) -> Entry {
        self.session_id = session_id.map(str::to_owned);
        self
    }

    /// Names the run and its iteration.
    pub fn run(mut self, run: Option<(&str, u32)>) -> Entry {
        self.run_id = run.map(|(run_id, _)| run_id.to_owned());
        self.iteration = run.map(|(_, iteration)| iteration);
        self
    }

    /// Adds a fact.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Entry {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// The line without its line break.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
