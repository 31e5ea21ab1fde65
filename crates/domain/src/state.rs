//! The run's state: `ralph-state.json`. Other people's shell scripts read this shape with jq: keep it.

pub mod checkpoint;
mod document;
mod groups;
mod iteration;
mod lifecycle;
mod read;

pub use checkpoint::{
    BaseRelation, Cause, Check, Checkpoint, CommitRef, EarlierNotes, FileInProgress, ItemWork, short_id,
};
pub use document::merge;
pub use groups::{AtStart, Deliver, Items, Outcomes, RunOptions, Spent, VerifyRun, WorkerOptions};
pub use iteration::{ApiTrouble, HistoryEntry, ItemStart, IterationRecord, Phase, WorktreeFingerprint};
pub use lifecycle::Lifecycle;

use crate::format::Format;
use crate::ids::{RunId, SessionId};
use crate::item_check::ItemCheck;
use crate::item_set;
use crate::promise::PromiseCode;
use crate::question::OpenQuestion;
use crate::size::{ItemCost, MeasuredItem, OpenItemCost};
use crate::subagent_usage::SubagentUsage;
use crate::text::json_text;
use crate::todo::{TodoList, same_item};
use document::{remove_gone_fields, strip_nulls};
use read::History;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Everything that is known about one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(Deserialize), serde(default))]
pub struct RunState {
    /// The format of the file.
    pub format: Format,
    /// What the user asked for: at the start, or with a later `--resume`. No session changes it.
    #[serde(flatten)]
    pub options: RunOptions,
    /// The current session's number, from 1; 0 before the first.
    pub iteration: u32,
    /// How the project stood when the run began.
    #[serde(flatten)]
    pub at_start: AtStart,
    /// The status of the run.
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
    /// What the sessions so far came to: what the breaker and the next prompt go by.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// The items of the plan, and what they took.
    #[serde(flatten)]
    pub items: Items,
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
    pub nonce: PromiseCode,
    /// Grows with every write: a copy that went back in time is known by it.
    pub revision: u64,
    /// The life of the current iteration.
    pub iteration_record: IterationRecord,
    /// What the run has used so far.
    #[serde(flatten)]
    pub spent: Spent,
}

/// What becomes of uncommitted work at a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// It is committed on the run's branch, else on the current one.
    #[default]
    Wip,
    /// It stays as it is.
    Off,
}

/// When the verify commands run. Whatever it is, completion is believed only once they pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyEach {
    /// After each session that ticked an item, and before completion is believed.
    #[default]
    Tick,
    /// Only before completion is believed.
    Promise,
}

/// How many of the last items are remembered with their cost.
const GROWTH_KEPT: usize = 20;

impl RunState {
    /// Reads the state off its text; `null` equals missing.
    pub fn from_text(text: &[u8]) -> Result<RunState, serde_json::Error> {
        // Straight off the text takes a third of the time. What that refuses, such as a `null` or a field that is there twice,
        // the document decides.
        // The letters are checked once for the whole text, not for each of its strings.
        let text = json_text(text)?;
        read::read(text, History::Read).or_else(|_| RunState::from_document(&serde_json::from_str(text)?))
    }

    /// Reads the state with an empty history: the history grows with the run, and hooks do not need it.
    pub fn from_text_without_history(text: &[u8]) -> Result<RunState, serde_json::Error> {
        let state = read::read(json_text(text)?, History::Skip).or_else(|_| RunState::from_text(text))?;
        Ok(RunState { context_history: Vec::new(), ..state })
    }

    /// The same off its document.
    pub fn from_document(document: &Value) -> Result<RunState, serde_json::Error> {
        let mut known = document.clone();
        strip_nulls(&mut known);
        read::read(&known.to_string(), History::Read)
    }

    /// The state as its file holds it where nobody else has put anything there: what [`RunState::write_into`] makes of an empty
    /// document. None where it cannot be written.
    pub fn text(&self) -> Option<String> {
        let mut text = serde_json::to_string_pretty(self).ok()?;
        text.push('\n');
        Some(text)
    }

    /// Writes the state into its document: our fields in their old places, foreign fields untouched.
    pub fn write_into(&self, document: &mut Value) {
        // By way of the text: another serializer would make the hook programs larger.
        let known_document =
            |state: &RunState| -> Option<Value> { serde_json::from_str(&state.text()?).ok() };
        let Some(known) = known_document(self) else { return };
        let earlier = RunState::from_document(document).ok();
        if let Some(earlier) = earlier.as_ref().and_then(known_document) {
            remove_gone_fields(document, &earlier, &known);
        }
        merge(document, known);
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

    /// True if a session with the number of the current iteration has ended already: a limit or an overload interrupted it, and it
    /// did not count.
    pub fn is_iteration_repeated(&self) -> bool {
        let is_ended = |entry: &HistoryEntry| entry.iteration == self.iteration && !entry.ending.is_empty();
        matches!(self.iteration_record.phase, Phase::Planned | Phase::Spawned)
            && self.context_history.iter().any(is_ended)
    }

    /// Takes the plan as it is now.
    pub fn take_items(&mut self, todo: &TodoList) {
        self.items.todo_items = todo.open();
        self.items.completed_items = todo.done();
        // Kept although the list may lose the line: a finished item that is tidied away has not vanished.
        item_set::join(&mut self.items.ever_done, &self.items.completed_items);
        if !self.items.set_aside.is_empty() {
            let open = item_set::set(&self.items.todo_items);
            self.items.set_aside.retain(|item| open.contains(item.as_str()));
        }
        self.take_questions(todo);
    }

    /// Takes the open questions of the plan as it is now. One that is new was asked by the session that works or has just
    /// ended, if there is one.
    pub fn take_questions(&mut self, todo: &TodoList) {
        let iteration = match self.iteration_record.phase {
            Phase::Spawned | Phase::Ended => self.iteration,
            Phase::Planned | Phase::Judged => 0,
        };
        let known = std::mem::take(&mut self.items.parked);
        // Of two that are the same the first counts.
        let by_words =
            known.iter().rev().map(|known| ((known.item.as_str(), known.question.as_str()), known));
        let by_words: HashMap<(&str, &str), &OpenQuestion> = by_words.collect();
        let taken = |(item, question): (&str, &str)| {
            let question = OpenQuestion::kept(question);
            let same = by_words.get(&(item, question.as_str())).copied();
            same.cloned().unwrap_or_else(|| OpenQuestion {
                item: item.to_owned(),
                question,
                iteration,
                told: false,
            })
        };
        self.items.parked = todo.parked().into_iter().map(taken).collect();
    }

    /// True for an item that waits for the user's answer.
    pub fn is_parked(&self, item: &str) -> bool {
        self.items.parked.iter().any(|parked| parked.item == item)
    }

    /// The questions that the current iteration asked.
    pub fn asked_now(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.items.parked.iter().filter(|parked| parked.iteration > 0 && parked.iteration == self.iteration)
    }

    /// Items that were in the list and are gone without ever having been ticked.
    pub fn vanished(&self) -> Vec<&str> {
        // Mostly none is, and all lists are in the order of the plan.
        let (mut open, mut done) =
            (self.items.todo_items.iter().peekable(), self.items.ever_done.iter().peekable());
        let mut is_next = |item: &String| {
            open.next_if(|next| *next == item).or_else(|| done.next_if(|next| *next == item)).is_some()
        };
        if self.items.known_items.iter().all(&mut is_next) {
            return Vec::new();
        }
        let there: HashSet<&str> = item_set::set(self.items.todo_items.iter().chain(&self.items.ever_done));
        self.items.known_items.iter().map(String::as_str).filter(|item| !there.contains(item)).collect()
    }

    /// Returns true if nothing is known of the cost of the current session, although the run has a limit in dollars.
    pub fn cost_is_unknown(&self) -> bool {
        let limits = &self.options.limits;
        let has_limit = limits.max_cost_usd.is_some() || limits.max_cost_per_day_usd.is_some();
        has_limit && self.iteration_record.is_cost_unknown
    }

    /// Items that have been ticked since the current iteration began.
    pub fn ticked_now(&self) -> Vec<String> {
        item_set::without(&self.items.completed_items, &[&self.iteration_record.done_before])
    }

    /// Which of these ticked items the current session ticked: a limit may have brought an earlier one under the same number.
    pub fn ticked_in_session(&self, done: &[String]) -> Vec<String> {
        let IterationRecord { done_before, done_at_start, .. } = &self.iteration_record;
        item_set::without(done, &[done_before, done_at_start])
    }

    /// The check that the user allowed for an item, if it named one when the run began. Words that were added behind the
    /// item since do not make it another one.
    pub fn check_of(&self, item: &str) -> Option<&ItemCheck> {
        let checks = &self.options.plan_checks;
        let is_known = self.items.known_items.iter().any(|known| known == item);
        let exact = checks.iter().find(|check| check.item == item);
        exact.or_else(|| checks.iter().find(|check| !is_known && same_item(item, &check.item)))
    }

    /// What stayed with the subagents of this run.
    pub fn delegated_now(&self) -> SubagentUsage {
        let mut sum = SubagentUsage::default();
        self.context_history.iter().for_each(|entry| sum += entry.delegated);
        sum
    }

    /// What stayed with the subagents of this project's runs so far.
    pub fn delegated(&self) -> SubagentUsage {
        let mut sum = self.at_start.delegated_before;
        sum += self.delegated_now();
        sum
    }

    /// Adds what a session took for an item that is still open; what is no longer open is forgotten.
    pub fn note_begun(&mut self, begun: OpenItemCost) {
        let open = item_set::set(&self.items.todo_items);
        self.items.begun.retain(|known| open.contains(known.item.as_str()));
        match self.items.begun.iter_mut().find(|known| known.item == begun.item) {
            Some(known) => known.tokens = known.tokens.saturating_add(begun.tokens),
            None => self.items.begun.push(begun),
        }
    }

    /// What sessions took for an item before the one that ticks it.
    pub fn take_begun(&mut self, item: &str) -> u64 {
        let place = self.items.begun.iter().position(|known| known.item == item);
        place.map_or(0, |place| self.items.begun.remove(place).tokens)
    }

    /// Forgets what a measured item took. Returns its tokens, which are charged again.
    pub fn forget_growth(&mut self, measured: &MeasuredItem) -> u64 {
        let Some(cost) = measured.cost else { return 0 };
        // Of two that are the same it does not matter which.
        if let Some(place) = self.items.growth.iter().rposition(|known| *known == cost) {
            self.items.growth.remove(place);
        }
        cost.tokens
    }

    /// Remembers what an item took.
    pub fn note_growth(&mut self, growth: ItemCost) {
        self.items.growth.push(growth);
        let too_many = self.items.growth.len().saturating_sub(GROWTH_KEPT);
        self.items.growth.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A state of a real run, with what that run did not meet put in.
    const SAMPLE: &str = include_str!("state/sample.json");

    #[test]
    fn a_state_is_written_as_it_was_read() {
        let document: Value = serde_json::from_str(SAMPLE).unwrap();
        let state = RunState::from_document(&document).unwrap();
        let mut written = json!({});
        state.write_into(&mut written);
        assert_eq!(written, document, "every field of it is known and keeps its value");
        let mut rewritten = document.clone();
        state.write_into(&mut rewritten);
        assert_eq!(rewritten.to_string(), document.to_string(), "and its place");
    }

    #[test]
    fn a_question_belongs_to_the_session_that_asked_it_and_is_forgotten_once_it_is_answered() {
        let mut state = RunState { iteration: 3, ..RunState::default() };
        let take = |state: &mut RunState, phase, plan: &str| {
            state.iteration_record.phase = phase;
            state.take_items(&TodoList::parse(plan));
            let found = state.items.parked.iter().map(|one| (one.question.clone(), one.iteration, one.told));
            found.collect::<Vec<_>>()
        };
        let plan = "- [ ] one\n  ? Who?\n- [ ] two\n- [ ] three\n";
        assert_eq!(take(&mut state, Phase::Judged, plan), [("Who?".to_owned(), 0, false)]);
        let more = plan.replace("two\n", "two\n  ? Where?\n");
        let both = [("Who?".to_owned(), 0, false), ("Where?".to_owned(), 3, false)];
        assert_eq!(take(&mut state, Phase::Ended, &more), both);
        assert_eq!(state.asked_now().map(|one| one.item.as_str()).collect::<Vec<_>>(), ["two"]);
        state.items.parked[1].told = true;
        state.iteration = 4;
        let later = [("Who?".to_owned(), 0, false), ("Where?".to_owned(), 3, true)];
        assert_eq!(take(&mut state, Phase::Ended, &more), later, "a known question stays what it was");
        assert_eq!(state.asked_now().count(), 0);
        let answered = more.replace("Where?\n", "Where?\n  ! Here\n");
        assert_eq!(take(&mut state, Phase::Judged, &answered), [("Who?".to_owned(), 0, false)]);
        let again = answered.replace("Here\n", "Here\n  ? Where?\n");
        let asked = [("Who?".to_owned(), 0, false), ("Where?".to_owned(), 4, false)];
        assert_eq!(take(&mut state, Phase::Ended, &again), asked, "asked again, it is a new question");
        take(&mut state, Phase::Ended, "- [ ] one\n  ? Who?\n");
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
    fn a_field_that_became_empty_leaves_the_document_of_somebody_else() {
        let mut state = RunState::default();
        state.outcomes.protected_needs_user = true;
        state.options.protect = vec!["tests".to_owned()];
        state.context_checkpoint.earlier_handoff = "old.md".to_owned();
        let mut document = json!({"mine": 1, "context_checkpoint": {"theirs": 2}});
        state.write_into(&mut document);
        assert_eq!(RunState::from_document(&document).unwrap(), state);
        state.outcomes.protected_needs_user = false;
        state.options.protect.clear();
        state.context_checkpoint.earlier_handoff.clear();
        state.write_into(&mut document);
        assert_eq!(RunState::from_document(&document).unwrap(), state);
        assert_eq!((&document["mine"], &document["context_checkpoint"]["theirs"]), (&json!(1), &json!(2)));
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
