//! Start and stop of a subagent, and its restart by a message.

use crate::subagent_behavior::harness::{SubagentTestBench, agent_call_input, agent_call_step};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::{Value, json};

const REMINDER: &str =
    "<system-reminder>\nSubagentStop hook additional context: REMINDER\n</system-reminder>";

fn bench_with_second_end_after_reminder() -> SubagentTestBench {
    SubagentTestBench::new(|request| match request.kind {
        RequestKind::Subagent if request.full_text().contains("REMINDER") => Step::from_text("Second end."),
        RequestKind::Subagent => Step::from_text("First end."),
        _ if request.all_tool_results().is_empty() => agent_call_step("Go."),
        _ => Step::from_text("Done."),
    })
}

#[test]
fn start_context_stays_and_stop_context_makes_a_subagent_go_on_once() {
    let bench = bench_with_second_end_after_reminder();
    bench.respond_to_every_call("SubagentStart", json!({"additionalContext": "BRIEF"}));
    bench.respond_if_payload_contains(
        "SubagentStop",
        r#""stop_hook_active":false"#,
        json!({"additionalContext": "REMINDER"}),
    );
    bench.run_session();
    assert_start_context_is_in_every_request(&bench);
    assert_stop_context_continues_the_subagent_once(&bench);
}

fn assert_start_context_is_in_every_request(bench: &SubagentTestBench) {
    for request in bench.subagent_requests() {
        let messages = request.body["messages"].as_array().expect("messages");
        assert_eq!((&messages[0]["role"], &messages[1]["role"]), (&json!("user"), &json!("system")));
        let context = match &messages[1]["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks[0]["text"].as_str().expect("a text").to_owned(),
        };
        assert!(context.starts_with("SubagentStart hook additional context: BRIEF\n"), "{context}");
    }
    let start = &bench.payloads_of_event("SubagentStart")[0];
    assert_eq!(start["agent_type"], "frame");
    assert!(start["agent_id"].is_string() && start["tool_input"].is_null());
}

fn assert_stop_context_continues_the_subagent_once(bench: &SubagentTestBench) {
    let stops = bench.payloads_of_event("SubagentStop");
    let stop_fields: Vec<_> =
        stops.iter().map(|stop| (&stop["stop_hook_active"], &stop["last_assistant_message"])).collect();
    assert_eq!(stop_fields, [(&json!(false), &json!("First end.")), (&json!(true), &json!("Second end."))]);
    let second = bench.subagent_requests().remove(1);
    let last = second.body["messages"].as_array().expect("messages").last().expect("one");
    assert_eq!((&last["role"], &last["content"][0]["text"]), (&json!("user"), &json!(REMINDER)));
    let (text, _) = bench.first_tool_result();
    assert!(text.contains("  Second end.") && !text.contains("First end."), "{text}");
}

#[test]
fn a_subagent_stop_hook_can_continue_a_subagent_eight_times() {
    let bench = bench_with_second_end_after_reminder();
    bench.respond_to_every_call("SubagentStop", json!({"additionalContext": "REMINDER"}));
    bench.run_session();
    assert_eq!(bench.payloads_of_event("SubagentStop").len(), 9);
    assert_eq!(bench.subagent_requests().len(), 9);
}

#[test]
fn a_message_restarts_an_ended_subagent_under_the_same_id() {
    let bench = SubagentTestBench::new(|request| match request.kind {
        RequestKind::Subagent if request.full_text().contains("MORE") => Step::from_text("Second end."),
        RequestKind::Subagent => Step::from_text("First end."),
        _ if request.full_text().contains("task-notification") => Step::from_text("Done."),
        _ => match request.all_tool_results().as_slice() {
            [] => agent_call_step("Go."),
            [(_, result)] => {
                let id = result.split("agentId: ").nth(1).expect("an id").split(' ').next();
                let message = json!({"to": id, "message": "MORE", "summary": "more"});
                Step::default()
                    .with_tool_call("ToolSearch", json!({"query": "select:SendMessage"}))
                    .with_tool_call("SendMessage", message)
            }
            _ => Step::from_text("I wait."),
        },
    });
    bench.session_with_allowed_tools().run().expect_success();
    let (starts, stops) = (bench.payloads_of_event("SubagentStart"), bench.payloads_of_event("SubagentStop"));
    assert_eq!((starts.len(), stops.len()), (2, 2), "{:#?}", bench.render_hook_calls());
    assert_eq!(starts[0]["agent_id"], starts[1]["agent_id"]);
    assert_eq!(stops[1]["stop_hook_active"], false);
    assert_eq!(stops[1]["last_assistant_message"], "Second end.");
    let sent: Vec<Value> = bench
        .payloads_of_event("PreToolUse")
        .into_iter()
        .filter(|call| call["tool_name"] == "SendMessage")
        .collect();
    assert_eq!(sent[0]["tool_input"]["to"], starts[0]["agent_id"]);
    let returned: Vec<String> = bench.hook_call_lines_containing(&["PostToolUse Agent"]);
    assert_eq!(returned.len(), 1, "its second end is no tool result");
    let prompts = bench.payloads_of_event("UserPromptSubmit");
    let notification = prompts[1]["prompt"].as_str().expect("a prompt");
    assert!(
        notification.contains("<task-notification>") && notification.contains("Second end."),
        "{notification}"
    );
}

#[test]
fn subagent_events_carry_the_requested_agent_type() {
    let bench = SubagentTestBench::new(|request| match request.kind {
        RequestKind::Subagent => Step::from_text("Ended."),
        _ if request.all_tool_results().is_empty() => {
            let mut step = Step::default();
            for kind in ["Explore", "Plan", "general-purpose", "claude", "nobody"] {
                let mut input = agent_call_input("Go.");
                input["subagent_type"] = kind.into();
                step = step.with_tool_call("Agent", input);
            }
            let mut input = agent_call_input("Go.");
            input.as_object_mut().expect("an object").remove("subagent_type");
            step.with_tool_call("Agent", input)
        }
        _ => Step::from_text("Done."),
    });
    bench.run_session();
    for event in ["SubagentStart", "SubagentStop"] {
        let payloads = bench.payloads_of_event(event);
        let mut kinds: Vec<&str> =
            payloads.iter().filter_map(|payload| payload["agent_type"].as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["Explore", "Plan", "claude", "general-purpose", "general-purpose"], "{event}");
    }
    let failed = bench.payloads_of_event("PostToolUseFailure");
    let error = failed[0]["error"].as_str().expect("an error");
    assert!(failed.len() == 1 && error.starts_with("Agent type 'nobody' not found."), "{failed:?}");
}
