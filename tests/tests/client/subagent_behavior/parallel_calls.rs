//! Several tool calls in one message.

use crate::subagent_behavior::harness::{
    HookCall, SubagentTestBench, UPDATE_REGISTERS_TOOL, agent_call_input,
};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::json;
use std::time::Duration;

const MEMORY_SHOW_TOOL: &str = "mcp__plimsoll__memory_show";

/// Runs one session whose messages make these calls, one message after another. Each subagent runs one shell command,
/// and the hook before each call runs another. All messages share a session, because starting a client is slow.
fn run_messages(
    messages: &'static [&'static [&'static str]],
    frame_command: String,
    hook_command: &str,
) -> SubagentTestBench {
    let bench = SubagentTestBench::with_mcp_server(move |request| match request.kind {
        RequestKind::Subagent if request.all_tool_results().is_empty() => Step::bash_call(&frame_command),
        RequestKind::Subagent => Step::from_text("Ended."),
        _ => {
            let request_messages = request.body["messages"].as_array().expect("messages");
            let response_count =
                request_messages.iter().filter(|message| message["role"] == "assistant").count();
            messages.get(response_count).map_or(Step::from_text("Done."), |calls| step_with_calls(calls))
        }
    });
    bench.run_script_if_payload_contains("PreToolUse", "", hook_command);
    bench.run_session();
    bench
}

/// The timeout of [`wait_for_calls`].
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns a shell command that waits until a hook was called this many times. Calls that run one after the other wait
/// until the timeout, so the tests do not depend on the speed of the machine.
fn wait_for_calls(event: &str, count: usize) -> String {
    let tries = WAIT_TIMEOUT.as_millis() / 50;
    format!(
        "for try in $(seq {tries}); do \
         [ $(ls $HOME/hooks/noted | grep -c -- -{event}.json) -lt {count} ] || break; sleep 0.05; done"
    )
}

fn step_with_calls(calls: &[&str]) -> Step {
    calls.iter().fold(Step::default(), |step, name| {
        let input = match *name {
            "Agent" => agent_call_input("Go."),
            UPDATE_REGISTERS_TOOL => json!({"R2_NEXT": "this"}),
            _ => json!({}),
        };
        step.with_tool_call(*name, input)
    })
}

/// Groups the hook calls by message: each group ends with the session's own PostToolBatch.
fn calls_by_message(bench: &SubagentTestBench) -> Vec<Vec<HookCall>> {
    let is_batch = |call: &HookCall| call.event == "PostToolBatch" && call.payload["agent_id"].is_null();
    bench.hook_calls().split_inclusive(is_batch).map(<[HookCall]>::to_vec).collect()
}

/// Returns the session's own tool events, with the index of the call, and the starts and stops of subagents.
fn tool_and_subagent_events(calls: &[HookCall]) -> Vec<String> {
    let events = calls.iter().filter_map(|noted| match noted.payload["tool_use_id"].as_str() {
        Some(id) if noted.payload["agent_id"].is_null() => {
            Some(format!("{} {}", noted.event, &id[id.len() - 1..]))
        }
        _ if noted.event.starts_with("SubagentSt") => Some(noted.event.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn a_writing_memory_call_and_an_agent_call_run_one_after_the_other() {
    let messages: &[&[&str]] = &[
        &[UPDATE_REGISTERS_TOOL, "Agent"],
        &["Agent", UPDATE_REGISTERS_TOOL],
        &["Agent", UPDATE_REGISTERS_TOOL, "Agent"],
    ];
    let bench = run_messages(messages, "sleep 0.5; echo slow".to_owned(), "sleep 0.3");
    let messages = calls_by_message(&bench);
    assert_eq!(messages.len(), 4, "each message has a batch of its own: {:#?}", bench.render_hook_calls());
    let events: Vec<Vec<String>> = messages.iter().map(|noted| tool_and_subagent_events(noted)).collect();
    // A memory call before an Agent call ends before the Agent call starts.
    assert_eq!(
        events[0],
        ["PreToolUse 0", "PostToolUse 0", "PreToolUse 1", "SubagentStart", "SubagentStop", "PostToolUse 1"]
    );
    // A memory call after an Agent call waits until the subagent has ended.
    assert_eq!(
        events[1],
        ["PreToolUse 0", "SubagentStart", "SubagentStop", "PostToolUse 0", "PreToolUse 1", "PostToolUse 1"]
    );
    // A memory call between two Agent calls keeps them apart.
    assert_eq!(
        events[2],
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
fn two_agent_calls_in_one_message_run_concurrently_with_their_hooks() {
    let both_started = wait_for_calls("SubagentStart", 2);
    let bench = run_messages(&[&["Agent", "Agent"]], both_started, &wait_for_calls("PreToolUse", 2));
    let events = tool_and_subagent_events(&bench.hook_calls());
    let position = |event: &str| events.iter().position(|line| line == event).expect("it is there");
    assert!(events[..2].iter().all(|line| line.starts_with("PreToolUse")), "{events:?}");
    let starts: Vec<usize> = (0..events.len()).filter(|n| events[*n] == "SubagentStart").collect();
    assert_eq!(starts.len(), 2);
    assert!(starts[1] < position("SubagentStop"), "both run before one ends: {events:?}");
    let hook_start_times: Vec<u64> = bench
        .hook_calls()
        .iter()
        .filter(|noted| noted.event == "PreToolUse")
        .map(|noted| noted.started_at_nanos)
        .collect();
    let interval = Duration::from_nanos(hook_start_times[1] - hook_start_times[0]);
    assert!(interval < WAIT_TIMEOUT, "the second hook began while the first ran: {hook_start_times:?}");
    assert_eq!(
        bench.hook_call_lines_containing(&["PostToolBatch"]).last().map(String::as_str),
        Some("PostToolBatch")
    );
}

/// The client recognizes a tool that only reads by the server's `readOnlyHint`.
#[test]
fn a_read_only_memory_call_runs_while_the_subagent_runs() {
    let bench = run_messages(&[&["Agent", MEMORY_SHOW_TOOL]], wait_for_calls("PostToolUse", 1), "sleep 0.3");
    let events = tool_and_subagent_events(&bench.hook_calls());
    let position = |event: &str| events.iter().position(|line| line == event).expect("it is there");
    assert!(position("PostToolUse 1") < position("SubagentStop"), "{events:?}");
}
