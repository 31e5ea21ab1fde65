//! The run's state: `ralph-state.json`. Other people's shell scripts read this shape with jq: keep it.

use crate::level::Level;
use crate::status::Status;
use crate::verdict::{Ending, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that is known about one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// A short name for people.
    pub task_name: String,
    /// What is to be done.
    pub objective: String,
    /// The present session's number, from 1; 0 before the first.
    pub iteration: u32,
    /// RFC 3339 UTC.
    pub started_at: String,
    /// Where the run stands.
    pub status: Status,
    /// Iterations in a row without progress.
    pub no_change_count: u32,
    /// What the project looked like after the last iteration.
    pub last_diff_hash: String,
    /// Fingerprints of the last errors.
    pub error_hashes: Vec<String>,
    /// The run ends after so many sessions.
    pub max_iterations: u32,
    /// The word of the promise.
    pub completion_promise: String,
    /// Open items.
    pub todo_items: Vec<String>,
    /// Ticked items.
    pub completed_items: Vec<String>,
    /// The last checkpoint; `active` until a prompt has carried it on.
    pub context_checkpoint: Checkpoint,
    /// One entry an iteration.
    pub context_history: Vec<HistoryEntry>,
    /// The run's id.
    pub run_id: String,
    /// The session that owns the run; no other acts on it.
    pub session_id: Option<String>,
    /// What makes the promise of this run unlike any other text.
    pub nonce: String,
    /// Grows with every write: a copy that went back in time is known by it.
    pub revision: u64,
    /// The to-do file, relative to the project; none without one.
    pub todo_file: Option<String>,
    /// Commands that must pass before completion is believed.
    pub verify: Vec<String>,
    /// Items that were known at the start; none may vanish unticked.
    pub known_items: Vec<String>,
    /// The life of the present iteration.
    pub iteration_record: IterationRecord,
    /// The gate's last word.
    pub last_verdict: Option<Verdict>,
    /// Why the last promise was refused; the next prompt carries it.
    pub refusals: Vec<String>,
    /// US dollars spent by all sessions, as the client reckons them.
    pub cost_usd: f64,
    /// The client, as the user named it; none where nobody did.
    pub client: Option<String>,
    /// What the user passes on to the client: `run --resume` uses it again.
    pub client_arguments: Vec<String>,
    /// True when PROMPT.md is ours as a whole (the run was started with an objective).
    pub prompt_made: bool,
    /// When the run ended, RFC 3339 UTC.
    pub ended_at: Option<String>,
}

/// The last checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// True until a prompt has carried it on.
    pub active: bool,
    /// Why it was written.
    pub cause: Cause,
    /// The level at that moment.
    pub level: Level,
    /// The deciding figure at that moment, whole percent.
    pub percent_at_checkpoint: Option<u64>,
    /// The client's own figure at that moment, whole percent.
    pub percent_used: Option<u64>,
    /// RFC 3339 UTC.
    pub timestamp: String,
    /// The handoff, relative to the project.
    pub handoff_file: String,
    /// What the session says it was doing: a claim, unverified.
    pub resume_summary: String,
    /// Files with uncommitted changes.
    pub files_in_progress: Vec<FileInProgress>,
    /// The first open item.
    pub current_todo_item: String,
    /// How far the session says it came: a claim, unverified.
    pub progress_on_item: String,
    /// The iteration it belongs to.
    pub iteration: u32,
    /// HEAD at that moment, to tell whether the handoff is stale.
    pub head: Option<String>,
}

/// Why a checkpoint was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A level was reached.
    #[default]
    Level,
    /// A person or the model asked for it.
    Manual,
    /// The client was about to compact.
    Compact,
    /// The next item would not have fitted.
    Budget,
    /// The session ended in the middle of its work.
    Crash,
}

impl Cause {
    /// As it stands in the file.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Level => "level",
            Cause::Manual => "manual",
            Cause::Compact => "compact",
            Cause::Budget => "budget",
            Cause::Crash => "crash",
        }
    }
}

/// A file with uncommitted changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileInProgress {
    /// Relative to the project.
    pub path: String,
    /// Changed lines in the new file, such as `45-120`; several ranges are separated by `, `.
    pub lines: String,
    /// What kind of change.
    pub description: String,
}

/// What one iteration came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryEntry {
    /// Its number.
    pub iteration: u32,
    /// Its highest deciding figure, whole percent; 0 when none was read.
    pub peak_percent: u64,
    /// True when it ended at a checkpoint.
    pub checkpoint: bool,
}

/// The life of one iteration, written before each step, so that a kill between two is recoverable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationRecord {
    /// Its number.
    pub iteration: u32,
    /// How far it has come.
    pub phase: Phase,
    /// The process of its client, once it is known.
    pub pid: Option<u32>,
    /// When that process began, in the system's own ticks: with the pid it names one process for ever.
    pub process_started: Option<u64>,
    /// RFC 3339 UTC.
    pub started_at: Option<String>,
    /// RFC 3339 UTC.
    pub ended_at: Option<String>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Items that were ticked before it began.
    pub done_before: Vec<String>,
    /// True when its prompt resumes a checkpoint.
    pub resuming: bool,
    /// True once SessionStart has spoken: our hooks run in it.
    pub hooks_seen: bool,
    /// US dollars, as the client reckons them.
    pub cost_usd: f64,
    /// True once it is in the history, the progress file and the handoff.
    pub closed: bool,
}

/// How far an iteration has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has been planned yet, or the last one is judged.
    #[default]
    Judged,
    /// Its prompt is written.
    Planned,
    /// Its client has been started.
    Spawned,
    /// Its client has ended.
    Ended,
}

fn owns(run: &str, session: Option<&str>, run_id: Option<&str>, session_id: Option<&str>) -> bool {
    let same = |ours: &str, theirs: Option<&str>| !ours.is_empty() && theirs == Some(ours);
    same(run, run_id) && same(session.unwrap_or_default(), session_id)
}

impl RunState {
    /// Reads the state off its document; `null` equals missing.
    pub fn from_document(document: &Value) -> Result<RunState, serde_json::Error> {
        let mut known = document.clone();
        strip_nulls(&mut known);
        serde_json::from_value(known)
    }

    /// Writes the state into its document: our fields in their old places, foreign fields untouched.
    pub fn write_into(&self, document: &mut Value) {
        if let Ok(known) = serde_json::to_value(self) {
            merge(document, known);
        }
    }

    /// True when this session owns the run. An empty or missing id never matches.
    pub fn is_owned_by(&self, run_id: Option<&str>, session_id: Option<&str>) -> bool {
        owns(&self.run_id, self.session_id.as_deref(), run_id, session_id)
    }

    /// The highest figure noted for an iteration.
    pub fn note_history(&mut self, entry: HistoryEntry) {
        match self.context_history.iter_mut().find(|known| known.iteration == entry.iteration) {
            Some(known) => {
                known.peak_percent = known.peak_percent.max(entry.peak_percent);
                known.checkpoint |= entry.checkpoint;
            }
            None => self.context_history.push(entry),
        }
    }
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// Lays known fields over a document. Objects are merged; in lists an element keeps its foreign fields while
/// it is the same thing, which is known by its first field.
pub fn merge(document: &mut Value, known: Value) {
    match (document, known) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                match old.get_mut(&key) {
                    Some(place) => merge(place, value),
                    None => {
                        old.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            old.truncate(new.len());
            for (index, value) in new.into_iter().enumerate() {
                match old.get_mut(index) {
                    Some(place) if is_same_thing(place, &value) => merge(place, value),
                    Some(place) => *place = value,
                    None => old.push(value),
                }
            }
        }
        (place, value) => *place = value,
    }
}

fn is_same_thing(old: &Value, new: &Value) -> bool {
    let Some((key, value)) = new.as_object().and_then(|fields| fields.iter().next()) else { return false };
    old.get(key) == Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_and_key_order_survive_a_rewrite() {
        let mut document = json!({
            "zebra": {"b": 1, "a": [1.5, null]},
            "iteration": 4,
            "context_history": [{"iteration": 1, "peak_percent": 45, "checkpoint": false, "note": "mine"}],
            "context_checkpoint": {"who": "me", "active": true},
            "status": "running"
        });
        let mut state = RunState::from_document(&document).unwrap();
        state.iteration = 5;
        state.note_history(HistoryEntry { iteration: 2, peak_percent: 62, checkpoint: true });
        state.write_into(&mut document);
        let keys: Vec<_> = document.as_object().unwrap().keys().take(5).cloned().collect();
        assert_eq!(keys, ["zebra", "iteration", "context_history", "context_checkpoint", "status"]);
        assert_eq!(document["zebra"], json!({"b": 1, "a": [1.5, null]}));
        assert_eq!(document["iteration"], 5);
        assert_eq!(document["context_history"][0]["note"], "mine");
        assert_eq!(document["context_history"][1]["peak_percent"], 62);
        assert_eq!(document["context_checkpoint"]["who"], "me");
        assert_eq!(RunState::from_document(&document).unwrap(), state);
    }

    #[test]
    fn a_session_owns_a_run_only_by_both_ids_and_never_by_empty_ones() {
        let mut state =
            RunState { run_id: "r1".into(), session_id: Some("s1".into()), ..RunState::default() };
        assert!(state.is_owned_by(Some("r1"), Some("s1")));
        assert!(!state.is_owned_by(Some("r1"), Some("s2")));
        assert!(!state.is_owned_by(None, Some("s1")));
        assert!(!state.is_owned_by(Some("r1"), None));
        state.session_id = None;
        assert!(!state.is_owned_by(Some("r1"), Some("")));
        state.run_id = String::new();
        state.session_id = Some(String::new());
        assert!(!state.is_owned_by(Some(""), Some("")));
    }

    #[test]
    fn the_shape_that_other_peoples_scripts_read_is_there() {
        let mut document = json!({});
        RunState::default().write_into(&mut document);
        for field in [
            "task_name",
            "objective",
            "iteration",
            "started_at",
            "status",
            "no_change_count",
            "last_diff_hash",
            "error_hashes",
            "max_iterations",
            "completion_promise",
            "todo_items",
            "completed_items",
            "context_checkpoint",
            "context_history",
        ] {
            assert!(document.get(field).is_some(), "{field}");
        }
        for field in [
            "active",
            "level",
            "percent_at_checkpoint",
            "timestamp",
            "handoff_file",
            "resume_summary",
            "files_in_progress",
            "current_todo_item",
            "progress_on_item",
        ] {
            assert!(document["context_checkpoint"].get(field).is_some(), "{field}");
        }
    }
}
