//! Subagents of subagents.

use crate::bench::{Bench, push};
use serde_json::json;
use testkit::scripted_model::{Request, RequestKind, Step};

const LIMIT: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";

fn may_push(request: &Request) -> bool {
    let tools = request.body["tools"].as_array().unwrap();
    tools.iter().any(|tool| tool["name"] == "Agent")
}

/// Everybody pushes one frame deeper while the Agent tool is there.
fn deeper(request: &Request) -> Step {
    let first = request.first_text();
    let depth: usize = match request.kind {
        RequestKind::Subagent => first.split("Depth ").nth(1).unwrap()[..1].parse().unwrap(),
        _ => 0,
    };
    if !request.tool_results().is_empty() {
        Step::text(format!("Back at {depth}."))
    } else if may_push(request) {
        push(&format!("Depth {}.", depth + 1))
    } else {
        Step::text(format!("Bottom at {depth}."))
    }
}

fn deepest(bench: &Bench) -> usize {
    bench.noted_of("SubagentStart").len()
}

#[test]
fn by_default_three_levels() {
    let bench = Bench::new(deeper);
    let finished = bench.ask("Work.");
    bench.show(&finished);
    eprintln!("DEEPEST default {}", deepest(&bench));
}

#[test]
fn settings_env() {
    let bench = Bench::new(deeper);
    bench.settings(json!({"env": {LIMIT: "5"}}));
    bench.ask("Work.");
    eprintln!("DEEPEST project settings {}", deepest(&bench));
    let bench = Bench::new(deeper);
    bench.session("Work.").arg("--settings").arg(json!({"env": {LIMIT: "5"}}).to_string()).run();
    eprintln!("DEEPEST --settings {}", deepest(&bench));
    let bench = Bench::new(deeper);
    bench.session("Work.").env(LIMIT, "5").run();
    eprintln!("DEEPEST process {}", deepest(&bench));
    let bench = Bench::new(deeper);
    bench.world.write(".claude/settings.local.json", &json!({"env": {LIMIT: "5"}}).to_string());
    bench.ask("Work.");
    eprintln!("DEEPEST local {}", deepest(&bench));
    let bench = Bench::new(deeper);
    bench.session("Work.").env(LIMIT, "9").run();
    eprintln!("DEEPEST process 9: {}", deepest(&bench));
}
