//! A subagent whose own context fills up.

use crate::subagent_behavior::harness::{Bench, push};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::json;

fn full() -> Bench {
    let bench = Bench::new(|request| {
        let text = request.text();
        match (request.kind, text.matches("a-step").count()) {
            (RequestKind::Subagent, _) if text.contains("SUMMARY-OF-WORK") => Step::text("Frame done."),
            (RequestKind::Subagent, 0) => Step::bash("echo a-step").usage(870_000),
            (RequestKind::Subagent, _) => Step::bash("echo a-step").usage(968_000),
            _ if text.contains("Frame done.") => Step::text("Done."),
            _ => push("Fill your window."),
        }
    });
    for event in ["SessionStart", "SubagentStart", "PostCompact"] {
        bench.answer(event, json!({"additionalContext": format!("FROM-{event}")}));
    }
    bench.answer_if("SubagentStop", r#""agent_type":"""#, json!({"additionalContext": "FROM-SUMMARIZER"}));
    bench.answer_raw("PreCompact", "", "FROM-PreCompact");
    bench.run();
    bench
}

#[test]
fn a_subagent_compacts_and_its_hooks_name_it_and_only_what_session_start_says_reaches_it_afterwards() {
    let bench = full();
    the_hooks_of_a_compaction_name_the_subagent(&bench);
    only_what_session_start_says_reaches_a_subagent_after_its_compaction(&bench);
}

fn the_hooks_of_a_compaction_name_the_subagent(bench: &Bench) {
    assert_eq!(
        bench.story_of(&["Compact", "compact", "Subagent", "SessionStart"]),
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
    let main = &bench.noted_of("SessionStart")[0];
    for event in ["PreCompact", "SessionStart", "PostCompact"] {
        let payload = bench.noted_of(event).pop().expect("it fired");
        assert_eq!(payload["session_id"], main["session_id"], "{event}: the session's id");
        assert_eq!(payload["transcript_path"], main["transcript_path"], "{event}: the session's transcript");
    }
    assert_eq!(
        bench.noted_of("PostCompact")[0]["compact_summary"],
        "<analysis>a</analysis><summary>SUMMARY-OF-WORK</summary>"
    );
}

fn only_what_session_start_says_reaches_a_subagent_after_its_compaction(bench: &Bench) {
    let frames = bench.frame_requests();
    let (before, after) = (frames[1].text(), frames[2].text());
    assert!(before.contains("FROM-SubagentStart") && before.contains("Fill your window."));
    assert!(!before.contains("FROM-SessionStart"), "a subagent does not get the session's start");
    assert!(after.contains("SUMMARY-OF-WORK"));
    assert!(after.ends_with("SessionStart hook additional context: FROM-SessionStart"), "{after}");
    for gone in ["FROM-SubagentStart", "Fill your window.", "FROM-PostCompact", "FROM-SUMMARIZER"] {
        assert!(!after.contains(gone), "{gone} in {after}");
    }
    let summarizer = bench.model.requests_of(RequestKind::Compaction).remove(0).last_text();
    assert!(summarizer.contains("FROM-PreCompact"), "{summarizer}");
    let main = bench.model.main_requests().pop().expect("the session goes on").text();
    assert_eq!(main.matches("FROM-").count(), 1, "the session's own start and nothing of the subagent's");
}
