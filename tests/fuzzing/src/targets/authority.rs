//! What a project's state file makes of a run that this user has begun.

use super::Target;
use crate::seeds::texts;
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::state::{Lifecycle, PlanItems, RunOptions, RunSpending};
use plimsoll_domain::{RunState, RunStatus};
use plimsoll_store::authority;
use serde_json::{Map, Value, json};

pub(super) const TARGET: Target = Target { name: "authority", body, seeds, inputs: 10_000 };

/// The run as its ledger has it.
fn known() -> RunState {
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
    known().merge_into_document(&mut full);
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
    seeds.extend(texts(&[
        r#"{"run_id":"r1","revision":9,"status":"cancelled","iteration_record":{"iteration":3,"pid":1,"process_started":2,"phase":"spawned"}}"#,
        r#"{"run_id":"r1","revision":8,"session_id":"s9","nonce":"","cost_usd":0,"iteration":0,"known_items":[]}"#,
    ]));
    seeds
}

fn body(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(claimed) = RunState::from_document(&document) else { return };
    let known = known();
    let held = authority::merge_file_into_ledger(known.clone(), &claimed);
    // What starts a program, counts, or says when all is done.
    let authority = |state: &RunState| {
        let RunState { run_id, promise_code: nonce, options, plan_items: items, .. } = state.clone();
        // A smaller limit ends the run sooner, and may be claimed.
        let options = RunOptions { limits: known.options.limits.clone(), max_iterations: 0, ..options };
        (run_id, nonce, options, items.known_items)
    };
    assert_eq!(authority(&held), authority(&known));
    assert_eq!(
        (held.iteration, held.spending.tokens, held.spending.cost_usd),
        (known.iteration, known.spending.tokens, known.spending.cost_usd)
    );
    assert_eq!(held.outcomes.breaker, known.outcomes.breaker);
    assert_eq!(
        (held.iteration_record.pid, held.iteration_record.process_start_ticks),
        (None, None),
        "a forged pid"
    );
    // It may end sooner, and never later.
    assert!(held.options.max_iterations <= known.options.max_iterations);
    assert!(held.options.limits.max_tokens.is_some_and(|most| most <= 1_000));
    assert!(held.options.limits.max_cost_usd.is_some_and(|most| most <= 5.0));
    assert!(
        matches!(held.lifecycle.status(), RunStatus::Running | RunStatus::Canceled),
        "{:?}",
        held.lifecycle.status()
    );
    assert!(
        held.lifecycle.status() != RunStatus::Canceled || claimed.lifecycle.status() == RunStatus::Canceled
    );
    // A run that has ended stays as it ended.
    let over = RunState { lifecycle: Lifecycle::with_status(RunStatus::Completed), ..known };
    assert_eq!(authority::merge_file_into_ledger(over, &claimed).lifecycle.status(), RunStatus::Completed);
}
