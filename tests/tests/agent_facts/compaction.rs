//! A subagent whose own context fills up.

use crate::bench::{Bench, push};
use serde_json::json;
use testkit::scripted_model::{RequestKind, Step};

#[test]
fn a_subagent_compacts_its_own_context() {
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
    for event in ["SessionStart", "SubagentStart", "PostCompact", "SubagentStop"] {
        if event != "SubagentStop" {
        bench.answer(event, json!({"additionalContext": format!("FROM-{event}")}));
        }
    }
    bench.answer_raw("PreCompact", "", "FROM-PreCompact");
    bench.answer_if("SubagentStop", "\"agent_type\":\"\"", json!({"additionalContext": "FROM-SubagentStop"}));
    let finished = bench.ask("Work.");
    bench.show(&finished);
}
