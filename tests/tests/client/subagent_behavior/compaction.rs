//! Compaction of a subagent whose context window is full.

use crate::subagent_behavior::harness::{SubagentTestBench, agent_call_step};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::json;

fn run_until_subagent_compacts() -> SubagentTestBench {
    let bench = SubagentTestBench::new(|request| {
        let text = request.full_text();
        match (request.kind, text.matches("a-step").count()) {
            (RequestKind::Subagent, _) if text.contains("SUMMARY-OF-WORK") => Step::from_text("Frame done."),
            (RequestKind::Subagent, 0) => Step::bash_call("echo a-step").with_input_tokens(870_000),
            (RequestKind::Subagent, _) => Step::bash_call("echo a-step").with_input_tokens(968_000),
            _ if text.contains("Frame done.") => Step::from_text("Done."),
            _ => agent_call_step("Fill your window."),
        }
    });
    for event in ["SessionStart", "SubagentStart", "PostCompact"] {
        bench.respond_to_every_call(event, json!({"additionalContext": format!("FROM-{event}")}));
    }
    bench.respond_if_payload_contains(
        "SubagentStop",
        r#""agent_type":"""#,
        json!({"additionalContext": "FROM-SUMMARIZER"}),
    );
    bench.print_if_payload_contains("PreCompact", "", "FROM-PreCompact");
    bench.run_session();
    bench
}

#[test]
fn compaction_hooks_name_the_subagent_and_only_session_start_adds_context() {
    let bench = run_until_subagent_compacts();
    assert_compaction_hooks_name_the_subagent(&bench);
    assert_only_session_start_adds_context_after_compaction(&bench);
}

fn assert_compaction_hooks_name_the_subagent(bench: &SubagentTestBench) {
    assert_eq!(
        bench.hook_call_lines_containing(&["Compact", "compact", "Subagent", "SessionStart"]),
        [
            "SessionStart startup",
            "SubagentStart a1=frame",
            "PreCompact auto a1=frame",
            "SubagentStop a2=",
            "SessionStart compact a1=frame",
            "PostCompact auto a1=frame",
            "SubagentStop a1=frame",
        ]
    );
    let main = &bench.payloads_of_event("SessionStart")[0];
    for event in ["PreCompact", "SessionStart", "PostCompact"] {
        let payload = bench.payloads_of_event(event).pop().expect("it fired");
        assert_eq!(payload["session_id"], main["session_id"], "{event}: the session's id");
        assert_eq!(payload["transcript_path"], main["transcript_path"], "{event}: the session's transcript");
    }
    assert_eq!(
        bench.payloads_of_event("PostCompact")[0]["compact_summary"],
        "<analysis>a</analysis><summary>SUMMARY-OF-WORK</summary>"
    );
}

fn assert_only_session_start_adds_context_after_compaction(bench: &SubagentTestBench) {
    let requests = bench.subagent_requests();
    let (before, after) = (requests[1].full_text(), requests[2].full_text());
    assert!(before.contains("FROM-SubagentStart") && before.contains("Fill your window."));
    assert!(!before.contains("FROM-SessionStart"), "a subagent does not get the session's start");
    assert!(after.contains("SUMMARY-OF-WORK"));
    assert!(after.ends_with("SessionStart hook additional context: FROM-SessionStart"), "{after}");
    for absent_text in ["FROM-SubagentStart", "Fill your window.", "FROM-PostCompact", "FROM-SUMMARIZER"] {
        assert!(!after.contains(absent_text), "{absent_text} in {after}");
    }
    let summarizer =
        bench.model.requests_of_kind(RequestKind::Compaction).remove(0).text_since_last_assistant_message();
    assert!(summarizer.contains("FROM-PreCompact"), "{summarizer}");
    let main = bench.model.main_requests().pop().expect("the session goes on").full_text();
    assert_eq!(main.matches("FROM-").count(), 1, "the session's own start and nothing of the subagent's");
}
