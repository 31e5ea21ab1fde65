//! Several calls in one message.

use crate::agent_facts::bench::{Bench, NOTE, frame};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::json;
use std::time::Duration;

/// Runs a session whose first message makes these calls. A frame takes half a second, a hook before a call a third of one.
fn run_batch(calls: &'static [&str]) -> Bench {
    run_batch_with(calls, "sleep 0.5; echo slow".to_owned(), "sleep 0.3")
}

/// Runs a session whose first message makes these calls, with what a frame's command and the hook before a call execute.
fn run_batch_with(calls: &'static [&str], frame_command: String, hook_command: &str) -> Bench {
    let bench = Bench::with_mcp(move |request| match request.kind {
        RequestKind::Subagent if request.tool_results().is_empty() => Step::bash(&frame_command),
        RequestKind::Subagent => Step::text("Ended."),
        _ if request.tool_results().is_empty() => calls.iter().fold(Step::default(), |step, name| {
            let input = match *name {
                "Agent" => frame("Go."),
                NOTE => json!({"R2_NEXT": "this"}),
                _ => json!({}),
            };
            step.tool(*name, input)
        }),
        _ => Step::text("Done."),
    });
    bench.answer_with("PreToolUse", "", hook_command);
    bench.run();
    bench
}

/// How long [`wait_for_calls`] waits at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a shell command that waits until a hook was called this many times. What runs one after the other waits in
/// vain, so that a test needs to know nothing of how fast the machine is.
fn wait_for_calls(event: &str, count: usize) -> String {
    let tries = PATIENCE.as_millis() / 50;
    format!(
        "for try in $(seq {tries}); do \
         [ $(ls $HOME/hooks/noted | grep -c -- -{event}.json) -lt {count} ] || break; sleep 0.05; done"
    )
}

/// The session's own tool events and the ends of frames, with the number of the call.
fn order(bench: &Bench) -> Vec<String> {
    let noted = bench.noted().into_iter().zip(bench.story());
    let told = noted.filter_map(|(noted, line)| match noted.payload["tool_use_id"].as_str() {
        Some(id) if noted.payload["agent_id"].is_null() => {
            Some(format!("{} {}", noted.event, &id[id.len() - 1..]))
        }
        _ if line.starts_with("SubagentSt") => Some(noted.event),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_memory_call_before_a_push_has_ended_before_the_push_is_asked_for() {
    let bench = run_batch(&[NOTE, "Agent"]);
    assert_eq!(
        order(&bench),
        ["PreToolUse 0", "PostToolUse 0", "PreToolUse 1", "SubagentStart", "SubagentStop", "PostToolUse 1"]
    );
}

#[test]
fn a_memory_call_after_a_push_waits_until_the_frame_has_ended() {
    let bench = run_batch(&["Agent", NOTE]);
    assert_eq!(
        order(&bench),
        ["PreToolUse 0", "SubagentStart", "SubagentStop", "PostToolUse 0", "PreToolUse 1", "PostToolUse 1"]
    );
}

#[test]
fn a_memory_call_between_two_pushes_keeps_them_apart() {
    let bench = run_batch(&["Agent", NOTE, "Agent"]);
    assert_eq!(
        order(&bench),
        [
            "PreToolUse 0",
            "SubagentStart",
            "SubagentStop",
            "PostToolUse 0",
            "PreToolUse 1",
            "PostToolUse 1",
            "PreToolUse 2",
            "SubagentStart",
            "SubagentStop",
            "PostToolUse 2",
        ]
    );
}

#[test]
fn two_pushes_side_by_side_run_at_once_and_so_do_their_hooks() {
    let both_started = wait_for_calls("SubagentStart", 2);
    let bench = run_batch_with(&["Agent", "Agent"], both_started, &wait_for_calls("PreToolUse", 2));
    let order = order(&bench);
    let position = |event: &str| order.iter().position(|line| line == event).expect("it is there");
    assert!(order[..2].iter().all(|line| line.starts_with("PreToolUse")), "{order:?}");
    let starts: Vec<usize> = (0..order.len()).filter(|n| order[*n] == "SubagentStart").collect();
    assert_eq!(starts.len(), 2);
    assert!(starts[1] < position("SubagentStop"), "both run before one ends: {order:?}");
    let asked: Vec<u64> =
        bench.noted().iter().filter(|noted| noted.event == "PreToolUse").map(|noted| noted.at).collect();
    let apart = Duration::from_nanos(asked[1] - asked[0]);
    assert!(apart < PATIENCE, "the second hook began while the first ran: {asked:?}");
    assert_eq!(bench.story_of(&["PostToolBatch"]).last().map(String::as_str), Some("PostToolBatch"));
}

/// Which of a server's tools are told apart by their own `readOnlyHint`.
#[test]
fn a_memory_call_that_only_reads_runs_while_the_frame_runs() {
    let calls = &["Agent", "mcp__plimsoll__memory_show"];
    let bench = run_batch_with(calls, wait_for_calls("PostToolUse", 1), "sleep 0.3");
    let order = order(&bench);
    let position = |event: &str| order.iter().position(|line| line == event).expect("it is there");
    assert!(position("PostToolUse 1") < position("SubagentStop"), "{order:?}");
}
