//! The call of the Agent tool, before it runs.

use crate::subagent_behavior::harness::{Bench, frame, push};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

pub(crate) const OF_AGENT: &str = r#""tool_name":"Agent""#;

/// A session that pushes one frame, which says, thinks and runs something before its last words.
pub(crate) fn one_frame(request: &Request) -> Step {
    let asked = !request.tool_results().is_empty();
    match request.kind {
        RequestKind::Subagent if asked => Step::text("Words of the frame.").thinking("Thought of the frame."),
        RequestKind::Subagent => Step::bash("echo printed-in-the-frame").say("Said on the way."),
        _ if asked => Step::text("Done."),
        _ => push("Original prompt."),
    }
}

#[test]
fn the_hook_before_the_call_gets_exactly_what_the_model_sent() {
    let bench = Bench::new(one_frame);
    bench.run();
    let payload = bench.noted_of("PreToolUse").remove(0);
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
    assert_eq!(payload["tool_input"], frame("Original prompt."));
    assert_eq!(payload["tool_name"], "Agent");
    assert_eq!(payload["tool_use_id"], "toolu_0001_0");
}

#[test]
fn a_rewritten_input_is_what_the_child_gets_and_the_parent_remembers_its_own() {
    let bench = Bench::new(|request| match one_frame(request) {
        // In the background, were it not for the hook.
        _ if request.kind == RequestKind::Main && request.tool_results().is_empty() => Step::default().tool(
            "Agent",
            json!({"description": "d", "prompt": "Original prompt.", "subagent_type": "frame"}),
        ),
        step => step,
    });
    bench.answer_if("PreToolUse", OF_AGENT, json!({"updatedInput": frame("New prompt.")}));
    bench.run();
    let first = bench.first_of_frame();
    assert!(first.first_text().ends_with("New prompt.") && !first.text().contains("Original prompt."));
    let after = bench.noted_of("PostToolUse").pop().expect("it returned");
    assert_eq!(after["tool_input"], frame("New prompt."));
    assert_eq!(after["tool_response"]["prompt"], "New prompt.");
    assert_eq!(after["tool_response"]["status"], "completed", "it did not go to the background");
    let batch = bench.noted_of("PostToolBatch").pop().expect("the session's");
    assert_eq!(batch["tool_calls"][0]["tool_input"]["prompt"], "Original prompt.");
    let last = bench.model.main_requests().pop().expect("the session goes on").text();
    assert!(last.contains("Original prompt.") && !last.contains("New prompt."));
}

#[test]
fn a_rewritten_input_must_be_the_whole_input() {
    let bench = Bench::new(one_frame);
    let part = json!({"permissionDecision": "allow", "updatedInput": {"prompt": "New prompt."}});
    bench.answer_if("PreToolUse", OF_AGENT, part);
    bench.run();
    let (text, error) = bench.handed_back();
    assert!(error && text.contains("failed schema validation"), "{text}");
    assert!(text.contains("The required parameter `description` is missing"), "{text}");
    assert!(bench.frame_requests().is_empty());
    let story = ["PreToolUse Agent", "PostToolBatch"];
    assert_eq!(bench.story_of(&["Tool", "Subagent"]), story, "nothing ran, nothing failed");
}

#[test]
fn a_denied_call_starts_nobody_and_the_model_sees_the_reason() {
    let bench = Bench::new(one_frame);
    let deny = json!({"permissionDecision": "deny", "permissionDecisionReason": "Only after push_frame."});
    bench.answer_if("PreToolUse", OF_AGENT, deny);
    bench.run();
    let told = "PreToolUse:Agent hook error: Only after push_frame.";
    assert_eq!(bench.handed_back(), (told.to_owned(), true));
    assert_eq!(bench.story_of(&["Tool", "Subagent"]), ["PreToolUse Agent", "PostToolBatch"]);
    assert_eq!(bench.noted_of("PostToolBatch")[0]["tool_calls"][0]["tool_response"], told);
}
