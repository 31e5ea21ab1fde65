//! The changes that a project's state file may make to a run that this user has started.

use super::Target;
use crate::seeds::text_seeds;
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::state::{Lifecycle, PlanItems, RunOptions, RunSpending};
use plimsoll_domain::{RunState, RunStatus};
use plimsoll_store::authority;
use serde_json::{Map, Value, json};

pub(super) const TARGET: Target =
    Target { name: "authority", check_input, seeds, mutated_input_count: 10_000 };

/// The run as its ledger records it.
fn ledger_state() -> RunState {
    RunState {
        run_id: "r1".into(),
        iteration: 3,
        promise_code: "5f2c".parse().expect("a code"),
        revision: 7,
        lifecycle: Lifecycle::default(),
        options: RunOptions {
            max_iterations: 50,
            verify_commands: vec!["cargo test".into()],
            notify_command: vec!["tell-me".into()],
            client: Some("claude".into()),
            client_arguments: vec!["--model".into(), "opus".into()],
            limits: RunLimits { max_tokens: Some(1_000), max_cost_usd: Some(5.0), ..RunLimits::default() },
            ..RunOptions::default()
        },
        plan_items: PlanItems { known_items: vec!["one".into(), "two".into()], ..PlanItems::default() },
        spending: RunSpending { cost_usd: 1.5, tokens: 500, ..RunSpending::default() },
        ..RunState::default()
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut full = Value::Object(Map::new());
    ledger_state().merge_into_document(&mut full);
    for (key, value) in [
        ("status", json!("completed")),
        ("max_iterations", json!(5_000)),
        ("verify", json!([])),
        ("limits", json!({"max_tokens": 1_000_000, "max_cost_usd": null})),
        ("revision", json!(1_000_000)),
    ] {
        full[key] = value;
    }
    let mut seeds = vec![full.to_string().into_bytes()];
    seeds.extend(text_seeds(&[
        r#"{"run_id":"r1","revision":9,"status":"cancelled","iteration_record":{"iteration":3,"pid":1,"process_started":2,"phase":"spawned"}}"#,
        r#"{"run_id":"r1","revision":8,"session_id":"s9","nonce":"","cost_usd":0,"iteration":0,"known_items":[]}"#,
    ]));
    seeds
}

fn check_input(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(claimed_state) = RunState::from_document(&document) else { return };
    let ledger = ledger_state();
    let merged = authority::merge_permitted_file_changes_into_ledger(ledger.clone(), &claimed_state);
    // These fields start programs, count, or decide when the run is complete.
    let protected_fields = |state: &RunState| {
        let RunState { run_id, promise_code: nonce, options, plan_items: items, .. } = state.clone();
        // A file may claim a smaller limit, because that only ends the run sooner.
        let options = RunOptions { limits: ledger.options.limits.clone(), max_iterations: 0, ..options };
        (run_id, nonce, options, items.known_items)
    };
    assert_eq!(protected_fields(&merged), protected_fields(&ledger));
    assert_eq!(
        (merged.iteration, merged.spending.tokens, merged.spending.cost_usd),
        (ledger.iteration, ledger.spending.tokens, ledger.spending.cost_usd)
    );
    assert_eq!(merged.outcomes.breaker, ledger.outcomes.breaker);
    assert_eq!(
        (merged.iteration_record.pid, merged.iteration_record.process_start_ticks),
        (None, None),
        "a forged pid"
    );
    // The file may end the run sooner, but never extend it.
    assert!(merged.options.max_iterations <= ledger.options.max_iterations);
    assert!(merged.options.limits.max_tokens.is_some_and(|most| most <= 1_000));
    assert!(merged.options.limits.max_cost_usd.is_some_and(|most| most <= 5.0));
    assert!(
        matches!(merged.lifecycle.status(), RunStatus::Running | RunStatus::Canceled),
        "{:?}",
        merged.lifecycle.status()
    );
    assert!(
        merged.lifecycle.status() != RunStatus::Canceled
            || claimed_state.lifecycle.status() == RunStatus::Canceled
    );
    // A run that has ended keeps its status.
    let ended = RunState { lifecycle: Lifecycle::with_status(RunStatus::Completed), ..ledger };
    assert_eq!(
        authority::merge_permitted_file_changes_into_ledger(ended, &claimed_state).lifecycle.status(),
        RunStatus::Completed
    );
}
