//! The call of the Agent tool, before the subagent starts.

use crate::subagent_behavior::harness::{SubagentTestBench, agent_call_input, agent_call_step};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

pub(crate) const AGENT_TOOL_FIELD: &str = r#""tool_name":"Agent""#;

/// Plays a session that pushes one frame; the frame writes text, thinks and runs a command before its final message.
pub(crate) fn answer_with_one_frame(request: &Request) -> Step {
    let has_results = !request.all_tool_results().is_empty();
    match request.kind {
        RequestKind::Subagent if has_results => {
            Step::from_text("Words of the frame.").with_thinking("Thought of the frame.")
        }
        RequestKind::Subagent => Step::bash_call("echo printed-in-the-frame").with_text("Said on the way."),
        _ if has_results => Step::from_text("Done."),
        _ => agent_call_step("Original prompt."),
    }
}

#[test]
fn pre_tool_use_gets_exactly_the_input_that_the_model_sent() {
    let bench = SubagentTestBench::new(answer_with_one_frame);
    bench.run_session();
    let payload = bench.payloads_of_event("PreToolUse").remove(0);
    let mut names: Vec<&str> = payload.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "cwd",
            "effort",
            "hook_event_name",
            "permission_mode",
            "prompt_id",
            "session_id",
            "tool_input",
            "tool_name",
            "tool_use_id",
            "transcript_path",
        ]
    );
    assert_eq!(payload["tool_input"], agent_call_input("Original prompt."));
    assert_eq!(payload["tool_name"], "Agent");
    assert_eq!(payload["tool_use_id"], "toolu_0001_0");
}

#[test]
fn a_subagent_gets_the_rewritten_input_and_its_parent_sees_the_original() {
    let bench = SubagentTestBench::new(|request| match answer_with_one_frame(request) {
        // Without the hook's answer it would run in the background.
        _ if request.kind == RequestKind::Main && request.all_tool_results().is_empty() => Step::default()
            .with_tool_call(
                "Agent",
                json!({"description": "d", "prompt": "Original prompt.", "subagent_type": "frame"}),
            ),
        step => step,
    });
    bench.respond_if_payload_contains(
        "PreToolUse",
        AGENT_TOOL_FIELD,
        json!({"updatedInput": agent_call_input("New prompt.")}),
    );
    bench.run_session();
    let first = bench.first_subagent_request();
    assert!(
        first.first_message_text().ends_with("New prompt.")
            && !first.full_text().contains("Original prompt.")
    );
    let after = bench.payloads_of_event("PostToolUse").pop().expect("it returned");
    assert_eq!(after["tool_input"], agent_call_input("New prompt."));
    assert_eq!(after["tool_response"]["prompt"], "New prompt.");
    assert_eq!(after["tool_response"]["status"], "completed", "it did not go to the background");
    let batch = bench.payloads_of_event("PostToolBatch").pop().expect("the session's");
    assert_eq!(batch["tool_calls"][0]["tool_input"]["prompt"], "Original prompt.");
    let last = bench.model.main_requests().pop().expect("the session goes on").full_text();
    assert!(last.contains("Original prompt.") && !last.contains("New prompt."));
}

#[test]
fn a_rewritten_input_must_contain_all_required_fields() {
    let bench = SubagentTestBench::new(answer_with_one_frame);
    let partial_input = json!({"permissionDecision": "allow", "updatedInput": {"prompt": "New prompt."}});
    bench.respond_if_payload_contains("PreToolUse", AGENT_TOOL_FIELD, partial_input);
    bench.run_session();
    let (text, error) = bench.first_tool_result();
    assert!(error && text.contains("failed schema validation"), "{text}");
    assert!(text.contains("The required parameter `description` is missing"), "{text}");
    assert!(bench.subagent_requests().is_empty());
    let story = ["PreToolUse Agent", "PostToolBatch"];
    assert_eq!(bench.hook_call_lines_containing(&["Tool", "Subagent"]), story, "nothing ran, nothing failed");
}

#[test]
fn a_denied_agent_call_starts_no_subagent_and_the_model_sees_why() {
    let bench = SubagentTestBench::new(answer_with_one_frame);
    let deny = json!({"permissionDecision": "deny", "permissionDecisionReason": "Only after push_frame."});
    bench.respond_if_payload_contains("PreToolUse", AGENT_TOOL_FIELD, deny);
    bench.run_session();
    let denial = "PreToolUse:Agent hook error: Only after push_frame.";
    assert_eq!(bench.first_tool_result(), (denial.to_owned(), true));
    assert_eq!(
        bench.hook_call_lines_containing(&["Tool", "Subagent"]),
        ["PreToolUse Agent", "PostToolBatch"]
    );
    assert_eq!(bench.payloads_of_event("PostToolBatch")[0]["tool_calls"][0]["tool_response"], denial);
}
