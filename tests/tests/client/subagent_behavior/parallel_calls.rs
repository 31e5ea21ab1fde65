//! Several calls in one message.

use crate::subagent_behavior::harness::{Bench, NOTE, Noted, frame};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::json;
use std::time::Duration;

const SHOW: &str = "mcp__plimsoll__memory_show";

/// Runs a session whose messages make these calls, one after the other. All messages are of one session: starting a client
/// for each costs far more than what it shows. A frame executes one command, a hook before a call another.
fn run_messages(
    messages: &'static [&'static [&'static str]],
    frame_command: String,
    hook_command: &str,
) -> Bench {
    let bench = Bench::with_mcp(move |request| match request.kind {
        RequestKind::Subagent if request.tool_results().is_empty() => Step::bash(&frame_command),
        RequestKind::Subagent => Step::text("Ended."),
        _ => {
            let known = request.body["messages"].as_array().expect("messages");
            let answered = known.iter().filter(|message| message["role"] == "assistant").count();
            messages.get(answered).map_or(Step::text("Done."), |calls| calls_of_message(calls))
        }
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

fn calls_of_message(calls: &[&str]) -> Step {
    calls.iter().fold(Step::default(), |step, name| {
        let input = match *name {
            "Agent" => frame("Go."),
            NOTE => json!({"R2_NEXT": "this"}),
            _ => json!({}),
        };
        step.tool(*name, input)
    })
}

/// The hooks' calls that belong to each message: up to the session's own batch.
fn by_message(bench: &Bench) -> Vec<Vec<Noted>> {
    let is_batch = |noted: &Noted| noted.event == "PostToolBatch" && noted.payload["agent_id"].is_null();
    bench.noted().split_inclusive(is_batch).map(<[Noted]>::to_vec).collect()
}

/// The session's own tool events and the ends of frames, with the number of the call.
fn order(noted: &[Noted]) -> Vec<String> {
    let told = noted.iter().filter_map(|noted| match noted.payload["tool_use_id"].as_str() {
        Some(id) if noted.payload["agent_id"].is_null() => {
            Some(format!("{} {}", noted.event, &id[id.len() - 1..]))
        }
        _ if noted.event.starts_with("SubagentSt") => Some(noted.event.clone()),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_memory_call_and_a_push_in_one_message_wait_for_each_other() {
    let messages: &[&[&str]] = &[&[NOTE, "Agent"], &["Agent", NOTE], &["Agent", NOTE, "Agent"]];
    let bench = run_messages(messages, "sleep 0.5; echo slow".to_owned(), "sleep 0.3");
    let messages = by_message(&bench);
    assert_eq!(messages.len(), 4, "each message has a batch of its own: {:#?}", bench.story());
    let orders: Vec<Vec<String>> = messages.iter().map(|noted| order(noted)).collect();
    // A memory call before a push has ended before the push is asked for.
    assert_eq!(
        orders[0],
        ["PreToolUse 0", "PostToolUse 0", "PreToolUse 1", "SubagentStart", "SubagentStop", "PostToolUse 1"]
    );
    // A memory call after a push waits until the frame has ended.
    assert_eq!(
        orders[1],
        ["PreToolUse 0", "SubagentStart", "SubagentStop", "PostToolUse 0", "PreToolUse 1", "PostToolUse 1"]
    );
    // A memory call between two pushes keeps them apart.
    assert_eq!(
        orders[2],
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
    let bench = run_messages(&[&["Agent", "Agent"]], both_started, &wait_for_calls("PreToolUse", 2));
    let order = order(&bench.noted());
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
    let bench = run_messages(&[&["Agent", SHOW]], wait_for_calls("PostToolUse", 1), "sleep 0.3");
    let order = order(&bench.noted());
    let position = |event: &str| order.iter().position(|line| line == event).expect("it is there");
    assert!(position("PostToolUse 1") < position("SubagentStop"), "{order:?}");
}
