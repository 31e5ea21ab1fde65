//! The run's state: `ralph-state.json`. Other people's shell scripts read this shape with jq: keep it.

mod checkpoint;
mod document;
mod iteration;

pub use checkpoint::{Cause, Check, Checkpoint, CommitRef, FileInProgress, ItemWork, Place, short_id};
pub use document::merge;
pub use iteration::{ApiTrouble, HistoryEntry, IterationRecord, Phase, WorktreeFingerprint};

use crate::breaker::Breaker;
use crate::ids::{RunId, SessionId};
use crate::limits::{Limits, Quota};
use crate::size::{ItemCost, OpenItemCost};
use crate::status::Status;
use crate::subagent_usage::SubagentUsage;
use crate::time::Timestamp;
use crate::todo::TodoList;
use crate::verdict::Verdict;
use document::strip_nulls;
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
    pub started_at: Timestamp,
    /// Where the run stands.
    pub status: Status,
    /// Iterations in a row without progress.
    pub no_change_count: u32,
    /// What the files looked like after the last iteration, apart from ours: two equal ones, nothing has changed.
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
    /// Checkpoints of items that are half done while another one is first in the list, one an item.
    pub half_done: Vec<Checkpoint>,
    /// One entry an iteration.
    pub context_history: Vec<HistoryEntry>,
    /// The run's id.
    pub run_id: RunId,
    /// The session that owns the run; no other acts on it.
    pub session_id: Option<SessionId>,
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
    /// What the last iteration did, in a sentence; empty before the first verdict.
    pub last_action: String,
    /// Why the last promise was refused; the next prompt carries it.
    pub refusals: Vec<String>,
    /// Sessions in a row that should have made the promise and did not, while every item was ticked.
    pub promise_failures: u32,
    /// True when only the exact promise line completes the run (`--strict-promise`).
    pub strict_promise: bool,
    /// US dollars spent by all sessions, as the client reckons them.
    pub cost_usd: f64,
    /// True when a session broke off without a price, so that the cost is reckoned in part, or more than known.
    pub cost_is_reckoned: bool,
    /// Tokens of all sessions, as the client counts them: input, output, cache written and cache read.
    pub tokens: u64,
    /// What the run may use.
    pub limits: Limits,
    /// The client's own quotas, as it last told them.
    pub quota: Quota,
    /// Until when the run waits, RFC 3339 UTC; none while it does not, or where nobody knows.
    pub paused_until: Option<Timestamp>,
    /// Pauses so far.
    pub pauses: u32,
    /// Pauses since the last session that met no limit: each waits longer than the one before.
    pub pauses_in_a_row: u32,
    /// What has gone wrong in a row.
    pub breaker: Breaker,
    /// Items that were ticked at any time: one that is then removed from the list has not vanished.
    pub ever_done: Vec<String>,
    /// Open items that are passed over while others are open: nobody got anywhere with them.
    pub set_aside: Vec<String>,
    /// Verify commands that failed when they were last run.
    pub verify_failing: Vec<String>,
    /// What the last items took.
    pub growth: Vec<ItemCost>,
    /// What sessions took so far for items that are still open.
    pub begun: Vec<OpenItemCost>,
    /// The files that lay in a repository without a commit when the run began: to git an edit of them is a new file.
    pub files_at_start: Vec<String>,
    /// The git folder of the project when the run began, as the file system knows it; empty where there was none. A
    /// repository that was made since is its agent's. None in a run of an older version.
    pub repository_at_start: Option<String>,
    /// What stayed with the subagents of earlier runs in this project.
    pub delegated_before: SubagentUsage,
    /// True when a session may go on with the next item while the window has room for it.
    pub pack: bool,
    /// True when the run's sessions have the working memory: its root frame is the run.
    pub memory: bool,
    /// What becomes of uncommitted work at a checkpoint.
    pub commit: Commit,
    /// A client that says nothing for so long is ended; none for the settings' value.
    pub idle_timeout_seconds: Option<u64>,
    /// The same while a tool runs; none for the settings' value.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments, told of the end and of pauses.
    pub notify: Vec<String>,
    /// The client, as the user named it; none where nobody did.
    pub client: Option<String>,
    /// What the user passes on to the client: `run --resume` uses it again.
    pub client_arguments: Vec<String>,
    /// True when PROMPT.md is ours as a whole (the run was started with an objective).
    pub prompt_made: bool,
    /// Tools that the client has refused in sessions of this run, each once. Also one that is allowed by now.
    pub denied_tools: Vec<String>,
    /// When the run ended, RFC 3339 UTC.
    pub ended_at: Option<Timestamp>,
}

/// What becomes of uncommitted work at a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// It is committed on the current branch.
    #[default]
    Wip,
    /// It stays as it is.
    Off,
}

/// So many of the last items are remembered with what they took.
const GROWTH_KEPT: usize = 20;

/// The item in hand of these open ones: the first that is not set aside, while there is another.
pub fn item_in_hand<'a>(open: &'a [String], set_aside: &[String]) -> Option<&'a String> {
    open.iter().find(|item| !set_aside.contains(item)).or(open.first())
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
    pub fn is_owned_by(&self, run_id: Option<&RunId>, session_id: Option<&SessionId>) -> bool {
        let owner = self.session_id.as_ref().filter(|id| !id.is_empty());
        !self.run_id.is_empty() && run_id == Some(&self.run_id) && owner.is_some() && session_id == owner
    }

    /// The history's entry of an iteration, made if it is not there.
    pub fn history_of(&mut self, iteration: u32) -> &mut HistoryEntry {
        let place = self.context_history.iter().position(|known| known.iteration == iteration);
        let place = place.unwrap_or_else(|| {
            self.context_history.push(HistoryEntry { iteration, ..HistoryEntry::default() });
            self.context_history.len() - 1
        });
        &mut self.context_history[place]
    }

    /// Takes the to-do list as it stands now.
    pub fn take_items(&mut self, todo: &TodoList) {
        self.todo_items = todo.open();
        self.completed_items = todo.done();
        for item in &self.completed_items {
            if !self.ever_done.contains(item) {
                self.ever_done.push(item.clone());
            }
        }
        self.set_aside.retain(|item| self.todo_items.contains(item));
    }

    /// Items that were in the list and are gone without ever having been ticked.
    pub fn vanished(&self) -> Vec<&str> {
        let is_there = |item: &&String| self.todo_items.contains(item) || self.ever_done.contains(item);
        self.known_items.iter().filter(|item| !is_there(item)).map(String::as_str).collect()
    }

    /// True when the present session used tokens and nobody knows their price, though the run has a bound in dollars.
    pub fn cost_is_unknown(&self) -> bool {
        let record = &self.iteration_record;
        self.limits.max_cost_usd.is_some() && record.tokens > 0 && record.cost_usd == 0.0
    }

    /// The item that the present session is about: the first open one that is not set aside, else the first.
    pub fn item_in_hand(&self) -> Option<&String> {
        item_in_hand(&self.todo_items, &self.set_aside)
    }

    /// Items that have been ticked since the present iteration began.
    pub fn ticked_now(&self) -> Vec<String> {
        let before = &self.iteration_record.done_before;
        self.completed_items.iter().filter(|item| !before.contains(item)).cloned().collect()
    }

    /// What stayed with the subagents of this run.
    pub fn delegated_now(&self) -> SubagentUsage {
        let mut sum = SubagentUsage::default();
        self.context_history.iter().for_each(|entry| sum += entry.delegated);
        sum
    }

    /// What stayed with the subagents of this project's runs so far.
    pub fn delegated(&self) -> SubagentUsage {
        let mut sum = self.delegated_before;
        sum += self.delegated_now();
        sum
    }

    /// Adds what a session took for an item that is still open; what is no longer open is forgotten.
    pub fn note_begun(&mut self, begun: OpenItemCost) {
        let open = &self.todo_items;
        self.begun.retain(|known| open.contains(&known.item));
        match self.begun.iter_mut().find(|known| known.item == begun.item) {
            Some(known) => known.tokens = known.tokens.saturating_add(begun.tokens),
            None => self.begun.push(begun),
        }
    }

    /// What sessions took for an item before the one that ticks it.
    pub fn take_begun(&mut self, item: &str) -> u64 {
        let place = self.begun.iter().position(|known| known.item == item);
        place.map_or(0, |place| self.begun.remove(place).tokens)
    }

    /// Remembers what an item took.
    pub fn note_growth(&mut self, growth: ItemCost) {
        self.growth.push(growth);
        let too_many = self.growth.len().saturating_sub(GROWTH_KEPT);
        self.growth.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A state as the version before the present types wrote it: of a real run, with what that run did not meet put in.
    const OLD: &str = include_str!("state/old.json");

    #[test]
    fn a_state_of_an_older_version_is_read_and_loses_nothing() {
        let old: Value = serde_json::from_str(OLD).unwrap();
        let state = RunState::from_document(&old).unwrap();
        let mut written = json!({});
        state.write_into(&mut written);
        assert_eq!(written, old, "every field of it is known and keeps its value");
        let mut document = old.clone();
        state.write_into(&mut document);
        assert_eq!(document.to_string(), old.to_string(), "and its place");
    }

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
        state.history_of(2).peak_percent = 62;
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
        assert!(state.is_owned_by(Some(&"r1".into()), Some(&"s1".into())));
        assert!(!state.is_owned_by(Some(&"r1".into()), Some(&"s2".into())));
        assert!(!state.is_owned_by(None, Some(&"s1".into())));
        assert!(!state.is_owned_by(Some(&"r1".into()), None));
        state.session_id = None;
        assert!(!state.is_owned_by(Some(&"r1".into()), Some(&"".into())));
        state.run_id = RunId::default();
        state.session_id = Some(SessionId::default());
        assert!(!state.is_owned_by(Some(&"".into()), Some(&"".into())));
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
