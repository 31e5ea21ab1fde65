//! Where a subagent begins and ends.

use crate::bench::{Bench, push};
use serde_json::json;
use testkit::scripted_model::{RequestKind, Step};

#[test]
fn s1() {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent if request.text().contains("REMINDER") => Step::text("Second end."),
        RequestKind::Subagent => Step::text("First end."),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    bench.answer("SubagentStart", json!({"additionalContext": "BRIEF"}));
    bench.answer("SubagentStop", json!({"additionalContext": "REMINDER"}));
    let finished = bench.ask("Work.");
    bench.show(&finished);
}
