//! What a project's state file makes of a run that this user has begun.

use super::Target;
use crate::seeds::texts;
use plimsoll_domain::limits::Limits;
use plimsoll_domain::{RunState, Status, authority};
use serde_json::{Map, Value, json};

pub(super) const TARGET: Target = Target { name: "authority", body, seeds, inputs: 10_000 };

/// The run as its ledger has it.
fn known() -> RunState {
    RunState {
        run_id: "r1".into(),
        status: Status::Running,
        iteration: 3,
        max_iterations: 50,
        verify: vec!["cargo test".into()],
        notify: vec!["tell-me".into()],
        client: Some("claude".into()),
        client_arguments: vec!["--model".into(), "opus".into()],
        nonce: "5f2c".into(),
        known_items: vec!["one".into(), "two".into()],
        limits: Limits { max_tokens: Some(1_000), max_cost_usd: Some(5.0), ..Limits::default() },
        cost_usd: 1.5,
        tokens: 500,
        revision: 7,
        ..RunState::default()
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut full = Value::Object(Map::new());
    known().write_into(&mut full);
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
    let held = authority::held(&known, claimed.clone());
    // What starts a program, counts, or says when all is done.
    let authority = |state: &RunState| {
        let RunState { run_id, verify, notify, client, client_arguments, nonce, known_items, .. } =
            state.clone();
        (run_id, verify, notify, client, client_arguments, nonce, known_items)
    };
    assert_eq!(authority(&held), authority(&known));
    assert_eq!((held.iteration, held.tokens, held.cost_usd), (known.iteration, known.tokens, known.cost_usd));
    assert_eq!(held.breaker, known.breaker);
    assert_eq!(
        (held.iteration_record.pid, held.iteration_record.process_started),
        (None, None),
        "a forged pid"
    );
    // It may end sooner, and never later.
    assert!(held.max_iterations <= known.max_iterations);
    assert!(held.limits.max_tokens.is_some_and(|most| most <= 1_000));
    assert!(held.limits.max_cost_usd.is_some_and(|most| most <= 5.0));
    assert!(matches!(held.status, Status::Running | Status::Cancelled), "{:?}", held.status);
    assert!(held.status != Status::Cancelled || claimed.status == Status::Cancelled);
    // A run that has ended stays as it ended.
    let over = RunState { status: Status::Completed, ..known };
    assert_eq!(authority::held(&over, claimed).status, Status::Completed);
}
