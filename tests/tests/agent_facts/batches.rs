//! Several calls in one message.

use crate::bench::{Bench, frame};
use serde_json::json;
use testkit::bin_dir;
use testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use testkit::world::World;

fn batch(name: &str, calls: &[&str]) {
    let names: Vec<String> = calls.iter().map(|c| (*c).to_owned()).collect();
    let model = ScriptedModel::start(move |request| match request.kind {
        RequestKind::Subagent if request.tool_results().is_empty() => Step::bash("sleep 0.8; echo frame-tool-ran"),
        RequestKind::Subagent => Step::text("Ended."),
        _ if request.tool_results().is_empty() => {
            let mut step = Step::default();
            for (n, name) in names.iter().enumerate() {
                step = match name.as_str() {
                    "A" => step.tool("Agent", frame(&format!("Frame {n}."))),
                    _ => step.tool("mcp__plimsoll__update_registers", json!({"R2_NEXT": format!("mcp {n}")})),
                };
            }
            step
        }
        _ => Step::text("Done."),
    });
    let bench = Bench::of(World::without_git(), model);
    let server = bin_dir().join("plimsoll-mcp").display().to_string();
    let config = json!({"mcpServers": {"plimsoll": {"command": server, "alwaysLoad": true}}}).to_string();
    bench.answer_with("PreToolUse", "", "sleep 0.2");
    let finished = bench.session("Work.").arg("--mcp-config").arg(config).arg("--strict-mcp-config").run();
    eprintln!("##### {name} {:?} {}", finished.result()["result"], finished.stderr);
    let noted = bench.noted();
    let start = noted[0].at;
    for (noted, line) in noted.iter().zip(bench.story()) {
        if line.contains("Agent") || line.contains("mcp") || line.contains("Batch") || line.contains("Subagent") {
            eprintln!("{:6} {line} {} {}", (noted.at - start) / 1_000_000, noted.payload["tool_use_id"], noted.payload["duration_ms"]);
        }
    }
}

#[test]
fn b1() {
    batch("mcp A", &["M", "A"]);
    batch("A mcp", &["A", "M"]);
    batch("A A", &["A", "A"]);
    batch("A mcp A", &["A", "M", "A"]);
    batch("mcp mcp", &["M", "M"]);
}
