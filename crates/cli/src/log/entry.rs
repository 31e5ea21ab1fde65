//! One line of the journal as it is read back: perhaps an older one than we write, perhaps torn, perhaps no line
//! of ours at all.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use session::text::{clip, one_line};
use store::clock;

/// A line.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// An entry.
    Entry(Entry),
    /// Anything else, as it stands there.
    Foreign(String),
}

/// An entry; what is missing in it reads as absent.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    fields: Map<String, Value>,
}

/// What every entry has, beside its facts.
const COMMON: [&str; 5] = ["at", "event", "run_id", "iteration", "session_id"];
/// How each entry begins.
const BEGINNING: &str = "{\"at\":";
/// No fact needs more room.
const LONGEST: usize = 200;

impl Line {
    /// Reads what stands on one line: mostly one entry, nothing on a blank one. Where a writer was cut off, the
    /// next entry stands behind what it had begun.
    pub(super) fn read(bytes: &[u8]) -> Vec<Line> {
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return Vec::new();
        }
        if let Some(entry) = Entry::parse(&text) {
            return vec![Line::Entry(entry)];
        }
        let behind = text.rfind(BEGINNING).filter(|at| *at > 0);
        match behind.and_then(|at| Some((at, Entry::parse(&text[at..])?))) {
            Some((at, entry)) => vec![Line::Foreign(text[..at].to_owned()), Line::Entry(entry)],
            None => vec![Line::Foreign(text.into_owned())],
        }
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Entry> {
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) if fields.get("event").is_some_and(Value::is_string) => {
                Some(Entry { fields })
            }
            _ => None,
        }
    }

    /// The whole of it.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.fields)
    }

    /// The same of an object that was one.
    pub(super) fn of_value(value: &Value) -> Option<Entry> {
        Entry::parse(&value.to_string())
    }

    /// Its event's name.
    pub(super) fn event(&self) -> &str {
        self.field("event").unwrap_or_default()
    }

    /// The run it belongs to.
    pub(super) fn run_id(&self) -> Option<&str> {
        self.field("run_id")
    }

    /// The session it belongs to.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.field("session_id")
    }

    /// The iteration it belongs to.
    pub(super) fn iteration(&self) -> Option<u64> {
        self.fields.get("iteration")?.as_u64()
    }

    /// When it was written.
    pub(super) fn at(&self) -> Option<DateTime<Utc>> {
        clock::parse(self.field("at")?)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// A fact in words, on one line and not too long; none where it is absent or says nothing.
    pub(super) fn words(&self, name: &str) -> Option<String> {
        let words = match self.fields.get(name)? {
            Value::Null => return None,
            Value::String(words) => words.clone(),
            other => other.to_string(),
        };
        let words = clip(&one_line(&words), LONGEST);
        (!words.is_empty()).then_some(words)
    }

    /// The same in words that are always there.
    pub(super) fn known(&self, name: &str) -> String {
        self.words(name).unwrap_or_else(|| "?".to_owned())
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.fields.get(name)?.as_u64()
    }

    /// An amount.
    pub(super) fn amount(&self, name: &str) -> Option<f64> {
        self.fields.get(name)?.as_f64()
    }

    /// True or false, where it says so.
    pub(super) fn truth(&self, name: &str) -> Option<bool> {
        self.fields.get(name)?.as_bool()
    }

    /// A list of words; empty where it is none.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let list = self.fields.get(name).and_then(Value::as_array);
        let words = list.into_iter().flatten().filter_map(Value::as_str);
        words.map(|words| clip(&one_line(words), LONGEST)).collect()
    }

    /// A fact that is an object.
    pub(super) fn part(&self, name: &str) -> Option<Entry> {
        let fields = self.fields.get(name)?.as_object()?.clone();
        Some(Entry { fields })
    }

    /// All facts, as `name=value`.
    pub(super) fn all(&self) -> String {
        let facts = self.fields.keys().filter(|name| !COMMON.contains(&name.as_str()));
        facts.map(|name| format!("{name}={}", self.known(name))).collect::<Vec<_>>().join(" ")
    }
}
