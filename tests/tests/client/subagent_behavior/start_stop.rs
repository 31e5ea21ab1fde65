//! Where a subagent begins, ends, and begins again.

use crate::subagent_behavior::harness::{Bench, frame, push};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::{Value, json};

const REMINDER: &str =
    "<system-reminder>\nSubagentStop hook additional context: REMINDER\n</system-reminder>";

fn two_ends() -> Bench {
    Bench::new(|request| match request.kind {
        RequestKind::Subagent if request.text().contains("REMINDER") => Step::text("Second end."),
        RequestKind::Subagent => Step::text("First end."),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    })
}

#[test]
fn what_is_said_at_the_start_of_a_subagent_stays_and_at_its_end_makes_it_go_on_once() {
    let bench = two_ends();
    bench.answer("SubagentStart", json!({"additionalContext": "BRIEF"}));
    bench.answer_if("SubagentStop", r#""stop_hook_active":false"#, json!({"additionalContext": "REMINDER"}));
    bench.run();
    what_the_start_of_a_subagent_says_heads_its_first_request_and_stays(&bench);
    a_subagent_that_is_answered_at_its_end_goes_on_once_and_ends_with_its_last_words(&bench);
}

fn what_the_start_of_a_subagent_says_heads_its_first_request_and_stays(bench: &Bench) {
    for request in bench.frame_requests() {
        let messages = request.body["messages"].as_array().expect("messages");
        assert_eq!((&messages[0]["role"], &messages[1]["role"]), (&json!("user"), &json!("system")));
        let said = match &messages[1]["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks[0]["text"].as_str().expect("a text").to_owned(),
        };
        assert!(said.starts_with("SubagentStart hook additional context: BRIEF\n"), "{said}");
    }
    let start = &bench.noted_of("SubagentStart")[0];
    assert_eq!(start["agent_type"], "frame");
    assert!(start["agent_id"].is_string() && start["tool_input"].is_null());
}

fn a_subagent_that_is_answered_at_its_end_goes_on_once_and_ends_with_its_last_words(bench: &Bench) {
    let stops = bench.noted_of("SubagentStop");
    let seen: Vec<_> =
        stops.iter().map(|stop| (&stop["stop_hook_active"], &stop["last_assistant_message"])).collect();
    assert_eq!(seen, [(&json!(false), &json!("First end.")), (&json!(true), &json!("Second end."))]);
    let second = bench.frame_requests().remove(1);
    let last = second.body["messages"].as_array().expect("messages").last().expect("one");
    assert_eq!((&last["role"], &last["content"][0]["text"]), (&json!("user"), &json!(REMINDER)));
    let (text, _) = bench.handed_back();
    assert!(text.contains("  Second end.") && !text.contains("First end."), "{text}");
}

#[test]
fn a_hook_that_always_answers_is_heard_eight_times() {
    let bench = two_ends();
    bench.answer("SubagentStop", json!({"additionalContext": "REMINDER"}));
    bench.run();
    assert_eq!(bench.noted_of("SubagentStop").len(), 9);
    assert_eq!(bench.frame_requests().len(), 9);
}

#[test]
fn an_ended_subagent_can_be_woken_with_a_message_and_begins_again_under_its_id() {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent if request.text().contains("MORE") => Step::text("Second end."),
        RequestKind::Subagent => Step::text("First end."),
        _ if request.text().contains("task-notification") => Step::text("Done."),
        _ => match request.tool_results().as_slice() {
            [] => push("Go."),
            [(_, result)] => {
                let id = result.split("agentId: ").nth(1).expect("an id").split(' ').next();
                let message = json!({"to": id, "message": "MORE", "summary": "more"});
                Step::default()
                    .tool("ToolSearch", json!({"query": "select:SendMessage"}))
                    .tool("SendMessage", message)
            }
            _ => Step::text("I wait."),
        },
    });
    bench.session().run().expect_success();
    let (starts, stops) = (bench.noted_of("SubagentStart"), bench.noted_of("SubagentStop"));
    assert_eq!((starts.len(), stops.len()), (2, 2), "{:#?}", bench.story());
    assert_eq!(starts[0]["agent_id"], starts[1]["agent_id"]);
    assert_eq!(stops[1]["stop_hook_active"], false);
    assert_eq!(stops[1]["last_assistant_message"], "Second end.");
    let sent: Vec<Value> =
        bench.noted_of("PreToolUse").into_iter().filter(|call| call["tool_name"] == "SendMessage").collect();
    assert_eq!(sent[0]["tool_input"]["to"], starts[0]["agent_id"]);
    let returned: Vec<String> = bench.story_of(&["PostToolUse Agent"]);
    assert_eq!(returned.len(), 1, "its second end is no tool result");
    let prompts = bench.noted_of("UserPromptSubmit");
    let told = prompts[1]["prompt"].as_str().expect("a prompt");
    assert!(told.contains("<task-notification>") && told.contains("Second end."), "{told}");
}

#[test]
fn a_subagents_type_is_the_one_that_was_asked_for() {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent => Step::text("Ended."),
        _ if request.tool_results().is_empty() => {
            let mut step = Step::default();
            for kind in ["Explore", "Plan", "general-purpose", "claude", "nobody"] {
                let mut input = frame("Go.");
                input["subagent_type"] = kind.into();
                step = step.tool("Agent", input);
            }
            let mut input = frame("Go.");
            input.as_object_mut().expect("an object").remove("subagent_type");
            step.tool("Agent", input)
        }
        _ => Step::text("Done."),
    });
    bench.run();
    for event in ["SubagentStart", "SubagentStop"] {
        let payloads = bench.noted_of(event);
        let mut kinds: Vec<&str> =
            payloads.iter().filter_map(|payload| payload["agent_type"].as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["Explore", "Plan", "claude", "general-purpose", "general-purpose"], "{event}");
    }
    let failed = bench.noted_of("PostToolUseFailure");
    let error = failed[0]["error"].as_str().expect("an error");
    assert!(failed.len() == 1 && error.starts_with("Agent type 'nobody' not found."), "{failed:?}");
}
