//! The state of a run, and fields of other programs in the same file.

use super::Target;
use crate::seeds::text_seeds;
use plimsoll_domain::RunState;
use plimsoll_domain::limits::{DayCost, TodaysSpending};
use plimsoll_domain::state::{Checkpoint, FileInProgress, merge_keeping_unknown_fields};
use plimsoll_domain::state::{PlanItems, RunOptions, RunSpending, WorkerOptions};
use plimsoll_policy::current_item::current_unparked_item;
use serde_json::{Map, Value};

pub(super) const TARGET: Target = Target { name: "state", check_input, seeds, mutated_input_count: 10_000 };

fn seeds() -> Vec<Vec<u8>> {
    let files = vec![FileInProgress {
        path: "src/a.rs".into(),
        touched_lines: "3-9".into(),
        description: "modified".into(),
        ..FileInProgress::default()
    }];
    let mut state = RunState {
        iteration: 2,
        run_id: "r1".into(),
        session_id: Some("s1".into()),
        context_checkpoint: Checkpoint { active: true, files_in_progress: files, ..Checkpoint::default() },
        options: RunOptions { task_name: "Dates".into(), ..RunOptions::default() },
        plan_items: PlanItems {
            todo_items: vec!["two".into()],
            completed_items: vec!["one".into()],
            ..PlanItems::default()
        },
        spending: RunSpending { cost_usd: 0.1, ..RunSpending::default() },
        ..RunState::default()
    };
    state.history_entry_or_insert(1).peak_percent = 87;
    state.history_entry_or_insert(2);
    let mut full = Value::Object(Map::new());
    state.merge_into_document(&mut full);
    let mut seeds = vec![full.to_string().into_bytes()];
    seeds.extend(text_seeds(&[
        r#"{"mine":1,"run_id":"r","last_verdict":{"verdict":"pause","reason":"limit","until":null,"mine":2}}"#,
        r#"{"last_verdict":{"verdict":"stop","status":"completed","reason":"x"},"iteration_record":{"phase":"ended","ending":{"ending":"crashed","detail":"x"}}}"#,
        r#"{"context_history":[{"iteration":1,"peak_percent":5,"mine":true},{"iteration":2}],"growth":[{"tokens":5,"size":"simple"}],"cost_usd":1e-7}"#,
        r#"{"status":"max_iterations","limits":{"cost_usd":5.5},"quota":{},"breaker":{}}"#,
    ]));
    seeds
}

fn check_input(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    if !document.is_object() {
        return;
    }
    let Ok(state) = RunState::from_document(&document) else { return };
    assert_readers_agree(bytes, &state);
    let mut written = document.clone();
    state.merge_into_document(&mut written);
    let reread = RunState::from_document(&written).expect("what we wrote");
    assert_eq!(reread, state, "read, written, read");
    let mut rewritten = written.clone();
    reread.merge_into_document(&mut rewritten);
    assert_eq!(rewritten, written, "written again");
    let known_fields = plimsoll_fields();
    for (key, value) in document.as_object().into_iter().flatten() {
        assert!(written.get(key).is_some(), "{key} is still there");
        if !known_fields.contains_key(key) {
            assert_eq!(written.get(key), Some(value), "others' {key}");
        }
    }
    let keys = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    let (keys_before, keys_after) = (keys(&document).unwrap_or_default(), keys(&written).unwrap_or_default());
    assert!(keys_after.starts_with(&keys_before), "in its old places");
    let mut merged = document.clone();
    merge_keeping_unknown_fields(&mut merged, document.clone());
    assert_eq!(merged, document, "laid over itself");
    assert!(!state.is_owned_by(Some(&"".into()), Some(&"".into())) && !state.is_owned_by(None, None));
    let PlanItems { todo_items, ever_ticked_items: ever_done, known_items, .. } = &state.plan_items;
    let is_open_or_done = |item: &&String| todo_items.contains(item) || ever_done.contains(item);
    let missing: Vec<&String> = known_items.iter().filter(|item| !is_open_or_done(item)).collect();
    assert_eq!(state.items_removed_without_being_ticked(), missing);
    let _ = (state.items_ticked_in_iteration(), current_unparked_item(&state));
    if let Some(verdict) = state.lifecycle.last_verdict() {
        assert!(!verdict.to_marker().to_string().contains('\n'));
    }
}

/// Asserts that all readers agree: a text gives the same state as its parsed document, and leaving out the history changes nothing
/// else.
fn assert_readers_agree(bytes: &[u8], state: &RunState) {
    assert_eq!(RunState::from_json_text(bytes).as_ref().ok(), Some(state));
    let without_history = RunState { context_history: Vec::new(), ..state.clone() };
    assert_eq!(RunState::from_json_text_without_history(bytes).as_ref().ok(), Some(&without_history));
    let (text, ledger) =
        (state.to_json_text().expect("a text"), serde_json::to_string(state).expect("a ledger"));
    assert_eq!(RunState::from_json_text(text.as_bytes()).as_ref().ok(), Some(state));
    assert_eq!(
        RunState::from_json_text_without_history(text.as_bytes()).as_ref().ok(),
        Some(&without_history)
    );
    assert_eq!(
        RunState::from_json_text_without_history(ledger.as_bytes()).as_ref().ok(),
        Some(&without_history)
    );
}

/// Returns Plimsoll's own fields, including those that are left out while they are empty.
fn plimsoll_fields() -> Map<String, Value> {
    let mut state = RunState::default();
    state.options.workers = Some(WorkerOptions::default());
    state.spending.spent_today = Some(TodaysSpending::default());
    state.spending.cost_of_last_day = DayCost { day: "2026-01-07".into(), ..DayCost::default() };
    match serde_json::to_value(state) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
