//! The run's state, stored in `ralph-state.json`. Users' shell scripts read this file with jq, so its shape must not change.

pub mod checkpoint;
mod document;
mod groups;
mod iteration;
mod lifecycle;
mod parser;

pub use checkpoint::{
    BaseRelation, CheckResult, Checkpoint, CheckpointCause, CommitRef, EarlierNotes, FileInProgress,
    ItemWork, short_id,
};
pub use document::merge_keeping_unknown_fields;
pub use groups::{
    DeliveryMode, PlanItems, ProjectAtStart, RunOptions, RunSpending, SessionOutcomes, VerifyRun,
    WorkerOptions,
};
pub use iteration::{
    ApiRetryState, HistoryEntry, ItemStart, IterationPhase, IterationRecord, WorktreeFingerprint,
};
pub use lifecycle::Lifecycle;

use crate::format::FormatVersion;
use crate::ids::{RunId, SessionId};
use crate::item_check::ItemCheck;
use crate::item_set;
use crate::promise::PromiseCode;
use crate::question::OpenQuestion;
use crate::size::{ItemCost, MeasuredItem, OpenItemCost};
use crate::subagent_usage::SubagentUsage;
use crate::text::json_bytes_to_str;
use crate::todo::{TodoList, matches_item_text};
use document::{remove_fields_absent_from_new, remove_null_fields};
use parser::HistoryMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The complete state of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(Deserialize), serde(default))]
pub struct RunState {
    pub format: FormatVersion,
    /// The user's options, set at the start or by a later `--resume`. Sessions never change them.
    #[serde(flatten)]
    pub options: RunOptions,
    /// The current session's number, from 1; 0 before the first.
    pub iteration: u32,
    /// The state of the project when the run began.
    #[serde(flatten)]
    pub project_at_start: ProjectAtStart,
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
    /// Results of the sessions so far. The circuit breaker and the next prompt depend on them.
    #[serde(flatten)]
    pub outcomes: SessionOutcomes,
    /// The items of the plan, and their costs.
    #[serde(flatten)]
    pub plan_items: PlanItems,
    /// The last checkpoint; `active` until a prompt has resumed it.
    pub context_checkpoint: Checkpoint,
    /// Checkpoints of half-done items while another item comes first in the plan; one per item.
    #[serde(rename = "half_done")]
    pub half_done_checkpoints: Vec<Checkpoint>,
    /// One entry per iteration.
    pub context_history: Vec<HistoryEntry>,
    pub run_id: RunId,
    /// The session that owns the run; no other session may act on it.
    pub session_id: Option<SessionId>,
    /// The code that makes the completion promise of this run different from any other text.
    #[serde(rename = "nonce")]
    pub promise_code: PromiseCode,
    /// Increases with every write, so that an older copy of the file can be recognized.
    pub revision: u64,
    /// The progress of the current iteration.
    pub iteration_record: IterationRecord,
    /// The dollars, tokens and seconds that the run has used so far.
    #[serde(flatten)]
    pub spending: RunSpending,
}

/// What happens to uncommitted work at a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointCommitMode {
    /// It is committed to the run's branch, or to the current branch if the run has none.
    #[default]
    Wip,
    /// It stays uncommitted.
    Off,
}

/// When the verify commands run. In every mode they must pass before the run counts as completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyTiming {
    /// After each session that ticked an item, and before completion is accepted.
    #[default]
    #[serde(rename = "tick")]
    AfterTick,
    /// Only before completion is accepted.
    #[serde(rename = "promise")]
    BeforeCompletion,
}

/// How many of the last item costs are kept.
const MAX_KEPT_ITEM_COSTS: usize = 20;

impl RunState {
    /// Parses the state from its JSON text. A `null` counts as a missing field.
    pub fn from_json_text(text: &[u8]) -> Result<RunState, serde_json::Error> {
        // Parsing the text directly takes a third of the time. Text that the fast parser refuses, such as a `null` or a duplicate
        // field, goes through the JSON document instead.
        // UTF-8 is checked once for the whole text, not for each string.
        let text = json_bytes_to_str(text)?;
        parser::parse_state(text, HistoryMode::Read)
            .or_else(|_| RunState::from_document(&serde_json::from_str(text)?))
    }

    /// Parses the state with an empty history. The history grows with the run, and hooks do not need it.
    pub fn from_json_text_without_history(text: &[u8]) -> Result<RunState, serde_json::Error> {
        let state = parser::parse_state(json_bytes_to_str(text)?, HistoryMode::Skip)
            .or_else(|_| RunState::from_json_text(text))?;
        Ok(RunState { context_history: Vec::new(), ..state })
    }

    /// Converts a JSON document into the state. A `null` counts as a missing field.
    pub fn from_document(document: &Value) -> Result<RunState, serde_json::Error> {
        let mut document_without_nulls = document.clone();
        remove_null_fields(&mut document_without_nulls);
        parser::parse_state(&document_without_nulls.to_string(), HistoryMode::Read)
    }

    /// Returns the state as indented JSON with a final line end, without any foreign fields: the same as
    /// [`RunState::merge_into_document`] with an empty document. Returns `None` if it cannot be serialized.
    pub fn to_json_text(&self) -> Option<String> {
        let mut text = serde_json::to_string_pretty(self).ok()?;
        text.push('\n');
        Some(text)
    }

    /// Writes the state into an existing document. The fields of the state keep their positions, and foreign fields stay unchanged.
    pub fn merge_into_document(&self, document: &mut Value) {
        // This goes through text, because a second serializer would make the hook programs larger.
        let state_to_document =
            |state: &RunState| -> Option<Value> { serde_json::from_str(&state.to_json_text()?).ok() };
        let Some(new_document) = state_to_document(self) else { return };
        let earlier_state = RunState::from_document(document).ok();
        if let Some(earlier_document) = earlier_state.as_ref().and_then(state_to_document) {
            remove_fields_absent_from_new(document, &earlier_document, &new_document);
        }
        merge_keeping_unknown_fields(document, new_document);
    }

    /// Returns true if this session owns the run. An empty or missing id never matches.
    pub fn is_owned_by(&self, run_id: Option<&RunId>, session_id: Option<&SessionId>) -> bool {
        let owner = self.session_id.as_ref().filter(|id| !id.is_empty());
        !self.run_id.is_empty() && run_id == Some(&self.run_id) && owner.is_some() && session_id == owner
    }

    /// Returns the history entry of an iteration, and adds one if there is none.
    pub fn history_entry_or_insert(&mut self, iteration: u32) -> &mut HistoryEntry {
        let existing_index = self.context_history.iter().position(|entry| entry.iteration == iteration);
        let index = existing_index.unwrap_or_else(|| {
            self.context_history.push(HistoryEntry { iteration, ..HistoryEntry::default() });
            self.context_history.len() - 1
        });
        &mut self.context_history[index]
    }

    /// Returns true if an earlier session with the number of the current iteration has ended. That happens if a limit or an
    /// overload interrupted a session, which then did not count.
    pub fn has_iteration_number_been_used(&self) -> bool {
        let is_ended = |entry: &HistoryEntry| entry.iteration == self.iteration && !entry.ending.is_empty();
        matches!(self.iteration_record.phase, IterationPhase::Planned | IterationPhase::Spawned)
            && self.context_history.iter().any(is_ended)
    }

    /// Updates open and ticked items, set-aside items and parked questions from the current plan.
    pub fn update_items_and_questions_from_plan(&mut self, plan: &TodoList) {
        self.plan_items.todo_items = plan.open_items();
        self.plan_items.completed_items = plan.ticked_items();
        // Ticked items stay here even if the plan loses the line: removing a finished item is allowed.
        item_set::append_new_items(&mut self.plan_items.ever_ticked_items, &self.plan_items.completed_items);
        if !self.plan_items.set_aside_items.is_empty() {
            let open_items = item_set::to_text_set(&self.plan_items.todo_items);
            self.plan_items.set_aside_items.retain(|item| open_items.contains(item.as_str()));
        }
        self.update_parked_questions_from_plan(plan);
    }

    /// Updates the parked questions from the current plan. A new question is attributed to the session that is running or has
    /// just ended, if there is one.
    pub fn update_parked_questions_from_plan(&mut self, plan: &TodoList) {
        let iteration = match self.iteration_record.phase {
            IterationPhase::Spawned | IterationPhase::Ended => self.iteration,
            IterationPhase::Planned | IterationPhase::Judged => 0,
        };
        let previous_questions = std::mem::take(&mut self.plan_items.parked_questions);
        // The order is reversed so that the first of two equal questions wins.
        let keyed_questions = previous_questions.iter().rev().map(|previous_question| {
            ((previous_question.item.as_str(), previous_question.question.as_str()), previous_question)
        });
        let questions_by_text: HashMap<(&str, &str), &OpenQuestion> = keyed_questions.collect();
        let to_open_question = |(item, question): (&str, &str)| {
            let question = OpenQuestion::clip_question(question);
            let existing_question = questions_by_text.get(&(item, question.as_str())).copied();
            existing_question.cloned().unwrap_or_else(|| OpenQuestion {
                item: item.to_owned(),
                question,
                iteration,
                was_notified: false,
            })
        };
        self.plan_items.parked_questions =
            plan.parked_items_with_questions().into_iter().map(to_open_question).collect();
    }

    /// Returns true if the item waits for the user's answer.
    pub fn is_parked(&self, item: &str) -> bool {
        self.plan_items.parked_questions.iter().any(|parked_question| parked_question.item == item)
    }

    /// Returns the open questions that the current iteration asked.
    pub fn questions_of_current_iteration(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.plan_items.parked_questions.iter().filter(|parked_question| {
            parked_question.iteration > 0 && parked_question.iteration == self.iteration
        })
    }

    /// Returns the items of the original plan that have disappeared from it without ever being ticked.
    pub fn items_removed_without_being_ticked(&self) -> Vec<&str> {
        // Fast path: usually no item is missing, and all lists are in the order of the plan.
        let (mut open_items, mut ticked_items) = (
            self.plan_items.todo_items.iter().peekable(),
            self.plan_items.ever_ticked_items.iter().peekable(),
        );
        let mut is_next_in_plan = |item: &String| {
            open_items
                .next_if(|next| *next == item)
                .or_else(|| ticked_items.next_if(|next| *next == item))
                .is_some()
        };
        if self.plan_items.known_items.iter().all(&mut is_next_in_plan) {
            return Vec::new();
        }
        let open_or_ever_ticked_items: HashSet<&str> = item_set::to_text_set(
            self.plan_items.todo_items.iter().chain(&self.plan_items.ever_ticked_items),
        );
        self.plan_items
            .known_items
            .iter()
            .map(String::as_str)
            .filter(|item| !open_or_ever_ticked_items.contains(item))
            .collect()
    }

    /// Returns true if the run has a limit in dollars, and the cost of the current session is unknown.
    pub fn has_cost_limit_but_unknown_cost(&self) -> bool {
        let limits = &self.options.limits;
        let has_limit = limits.max_cost_usd.is_some() || limits.max_cost_per_day_usd.is_some();
        has_limit && self.iteration_record.is_cost_unknown
    }

    /// Returns the items that have been ticked since the current iteration began.
    pub fn items_ticked_in_iteration(&self) -> Vec<String> {
        item_set::items_not_in(
            &self.plan_items.completed_items,
            &[&self.iteration_record.ticked_before_iteration],
        )
    }

    /// Returns those of the ticked items that the current session ticked. After a limit, an earlier session may have had the same
    /// iteration number.
    pub fn filter_ticked_in_session(&self, ticked_items: &[String]) -> Vec<String> {
        let IterationRecord {
            ticked_before_iteration: before_iteration,
            ticked_before_session: before_session,
            ..
        } = &self.iteration_record;
        item_set::items_not_in(ticked_items, &[before_iteration, before_session])
    }

    /// Returns the check that the user allowed for an item, if the item named one when the run began. The item is still
    /// recognized if text was added after it since then.
    pub fn find_check_allowed_at_run_start(&self, item: &str) -> Option<&ItemCheck> {
        let checks = &self.options.plan_checks;
        let is_original_item = self.plan_items.known_items.iter().any(|known_item| known_item == item);
        let exact_match = checks.iter().find(|check| check.item_text == item);
        exact_match.or_else(|| {
            checks.iter().find(|check| !is_original_item && matches_item_text(item, &check.item_text))
        })
    }

    /// Returns the tokens that stayed in the context windows of this run's subagents.
    pub fn run_subagent_usage(&self) -> SubagentUsage {
        let mut total = SubagentUsage::default();
        self.context_history.iter().for_each(|entry| total += entry.subagent_usage);
        total
    }

    /// Returns the tokens that stayed in the context windows of the subagents of all runs of this project so far.
    pub fn project_subagent_usage(&self) -> SubagentUsage {
        let mut total = self.project_at_start.earlier_subagent_usage;
        total += self.run_subagent_usage();
        total
    }

    /// Adds the cost of a session for an item that is still open. Removes the costs of items that are no longer open.
    pub fn add_open_item_cost_and_drop_closed(&mut self, open_item_cost: OpenItemCost) {
        let open_items = item_set::to_text_set(&self.plan_items.todo_items);
        self.plan_items.open_item_costs.retain(|cost| open_items.contains(cost.item.as_str()));
        match self.plan_items.open_item_costs.iter_mut().find(|cost| cost.item == open_item_cost.item) {
            Some(existing_cost) => {
                existing_cost.tokens = existing_cost.tokens.saturating_add(open_item_cost.tokens);
            }
            None => self.plan_items.open_item_costs.push(open_item_cost),
        }
    }

    /// Removes the recorded cost of an open item and returns it in tokens: the cost of the sessions before the one that ticks it.
    pub fn remove_open_item_tokens(&mut self, item: &str) -> u64 {
        let index = self.plan_items.open_item_costs.iter().position(|cost| cost.item == item);
        index.map_or(0, |position| self.plan_items.open_item_costs.remove(position).tokens)
    }

    /// Removes the recorded cost of a measured item, if it is still recorded. Returns the item's tokens, so
    /// that they can be charged again; 0 if its cost is unknown.
    pub fn remove_item_cost_returning_tokens(&mut self, measured_item: &MeasuredItem) -> u64 {
        let Some(cost) = measured_item.cost else { return 0 };
        // Equal costs are interchangeable, so any of them may be removed.
        if let Some(index) =
            self.plan_items.item_costs.iter().rposition(|recorded_cost| *recorded_cost == cost)
        {
            self.plan_items.item_costs.remove(index);
        }
        cost.tokens
    }

    /// Records the cost of an item, and drops the oldest costs above the limit.
    pub fn record_item_cost(&mut self, item_cost: ItemCost) {
        self.plan_items.item_costs.push(item_cost);
        let excess_count = self.plan_items.item_costs.len().saturating_sub(MAX_KEPT_ITEM_COSTS);
        self.plan_items.item_costs.drain(..excess_count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The state of a real run, completed with fields that the run did not use.
    const SAMPLE: &str = include_str!("state/sample.json");

    #[test]
    fn a_state_survives_a_round_trip_through_its_document() {
        let document: Value = serde_json::from_str(SAMPLE).unwrap();
        let state = RunState::from_document(&document).unwrap();
        let mut written = json!({});
        state.merge_into_document(&mut written);
        assert_eq!(written, document, "every field of it is known and keeps its value");
        let mut rewritten = document.clone();
        state.merge_into_document(&mut rewritten);
        assert_eq!(rewritten.to_string(), document.to_string(), "and its place");
    }

    #[test]
    fn a_question_belongs_to_the_session_that_asked_it_until_it_is_answered() {
        let mut state = RunState { iteration: 3, ..RunState::default() };
        let update_in_phase = |state: &mut RunState, phase, plan: &str| {
            state.iteration_record.phase = phase;
            state.update_items_and_questions_from_plan(&TodoList::parse(plan));
            let questions = state
                .plan_items
                .parked_questions
                .iter()
                .map(|question| (question.question.clone(), question.iteration, question.was_notified));
            questions.collect::<Vec<_>>()
        };
        let plan = "- [ ] one\n  ? Who?\n- [ ] two\n- [ ] three\n";
        assert_eq!(
            update_in_phase(&mut state, IterationPhase::Judged, plan),
            [("Who?".to_owned(), 0, false)]
        );
        let more = plan.replace("two\n", "two\n  ? Where?\n");
        let both = [("Who?".to_owned(), 0, false), ("Where?".to_owned(), 3, false)];
        assert_eq!(update_in_phase(&mut state, IterationPhase::Ended, &more), both);
        assert_eq!(
            state.questions_of_current_iteration().map(|question| question.item.as_str()).collect::<Vec<_>>(),
            ["two"]
        );
        state.plan_items.parked_questions[1].was_notified = true;
        state.iteration = 4;
        let later = [("Who?".to_owned(), 0, false), ("Where?".to_owned(), 3, true)];
        assert_eq!(
            update_in_phase(&mut state, IterationPhase::Ended, &more),
            later,
            "a known question stays what it was"
        );
        assert_eq!(state.questions_of_current_iteration().count(), 0);
        let answered = more.replace("Where?\n", "Where?\n  ! Here\n");
        assert_eq!(
            update_in_phase(&mut state, IterationPhase::Judged, &answered),
            [("Who?".to_owned(), 0, false)]
        );
        let again = answered.replace("Here\n", "Here\n  ? Where?\n");
        let asked = [("Who?".to_owned(), 0, false), ("Where?".to_owned(), 4, false)];
        assert_eq!(
            update_in_phase(&mut state, IterationPhase::Ended, &again),
            asked,
            "asked again, it is a new question"
        );
        update_in_phase(&mut state, IterationPhase::Ended, "- [ ] one\n  ? Who?\n");
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
        state.history_entry_or_insert(2).peak_percent = 62;
        state.merge_into_document(&mut document);
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
    fn a_field_that_became_empty_is_removed_from_a_foreign_document() {
        let mut state = RunState::default();
        state.outcomes.protected_needs_user = true;
        state.options.protected_paths = vec!["tests".to_owned()];
        state.context_checkpoint.earlier_handoff = "old.md".to_owned();
        let mut document = json!({"mine": 1, "context_checkpoint": {"theirs": 2}});
        state.merge_into_document(&mut document);
        assert_eq!(RunState::from_document(&document).unwrap(), state);
        state.outcomes.protected_needs_user = false;
        state.options.protected_paths.clear();
        state.context_checkpoint.earlier_handoff.clear();
        state.merge_into_document(&mut document);
        assert_eq!(RunState::from_document(&document).unwrap(), state);
        assert_eq!((&document["mine"], &document["context_checkpoint"]["theirs"]), (&json!(1), &json!(2)));
    }

    #[test]
    fn a_session_owns_a_run_only_if_both_ids_match_and_are_not_empty() {
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
    fn the_fields_that_user_scripts_read_are_written() {
        let mut document = json!({});
        RunState::default().merge_into_document(&mut document);
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
