//! Subagents of subagents.

use crate::subagent_behavior::harness::{Bench, push, tools};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

const LIMIT: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";

fn depth_of(request: &Request) -> usize {
    let first = request.first_text();
    match request.kind {
        RequestKind::Subagent => {
            first.split("Depth ").nth(1).expect("its prompt")[..1].parse().expect("a number")
        }
        _ => 0,
    }
}

/// Everybody pushes one frame deeper while the Agent tool is there.
fn deeper(request: &Request) -> Step {
    let depth = depth_of(request);
    match request.tool_results().is_empty() && tools(request).contains(&"Agent") {
        true => push(&format!("Depth {}.", depth + 1)),
        false if depth == 0 => Step::text("Done."),
        false => Step::text(format!("Ended at {depth}.")),
    }
}

/// How deep it went; at the bottom the Agent tool was absent, above it was there.
fn deepest(bench: &Bench) -> usize {
    let frames = bench.frame_requests();
    let deepest = frames.iter().map(depth_of).max().expect("frames");
    for request in &frames {
        assert_eq!(tools(request).contains(&"Agent"), depth_of(request) < deepest, "{:?}", tools(request));
    }
    assert_eq!(bench.noted_of("SubagentStart").len(), deepest, "one of each depth");
    deepest
}

#[test]
fn three_levels_are_the_default_and_at_the_limit_the_agent_tool_is_absent() {
    let bench = Bench::new(deeper);
    bench.run();
    assert_eq!(deepest(&bench), 3);
}

#[test]
fn the_settings_of_a_project_set_five_levels() {
    for file in [".claude/settings.json", ".claude/settings.local.json"] {
        let bench = Bench::new(deeper);
        let more = json!({"env": {LIMIT: "5"}});
        if file.contains("local") {
            bench.world.write(file, &more.to_string());
        } else {
            bench.settings(more);
        }
        bench.run();
        assert_eq!(deepest(&bench), 5, "{file}");
    }
}

#[test]
fn a_settings_file_of_the_command_line_sets_five_levels() {
    let bench = Bench::new(deeper);
    bench.world.write("more.json", &json!({"env": {LIMIT: "5"}}).to_string());
    bench.session().arg("--settings").arg(bench.world.path("more.json")).run().expect_success();
    assert_eq!(deepest(&bench), 5);
}

#[test]
fn the_environment_sets_five_levels() {
    let bench = Bench::new(deeper);
    bench.session().env(LIMIT, "5").run().expect_success();
    assert_eq!(deepest(&bench), 5);
}

#[test]
fn a_call_carries_its_callers_id_and_a_start_or_stop_its_own_and_never_the_parents() {
    let bench = Bench::new(deeper);
    bench.session().env(LIMIT, "2").run().expect_success();
    assert_eq!(
        bench.story_of(&["Agent", "agent", "Batch"]),
        [
            "PreToolUse Agent",
            "SubagentStart a1=frame",
            "PreToolUse Agent a1=frame",
            "SubagentStart a2=frame",
            "SubagentStop a2=frame",
            "PostToolUse Agent a1=frame",
            "PostToolBatch a1=frame",
            "SubagentStop a1=frame",
            "PostToolUse Agent",
            "PostToolBatch",
        ]
    );
    let starts = bench.noted_of("SubagentStart");
    let ends = bench.noted_of("PostToolUse");
    assert_eq!(ends[0]["tool_response"]["agentId"], starts[1]["agent_id"], "the call names who it started");
    assert_eq!(ends[1]["tool_response"]["agentId"], starts[0]["agent_id"]);
    for payload in starts.iter().chain(&bench.noted_of("SubagentStop")) {
        assert!(payload["tool_use_id"].is_null(), "neither start nor stop names the call: {payload}");
        assert_eq!(payload["session_id"], ends[0]["session_id"]);
    }
    for payload in bench.noted_of("SubagentStop") {
        let id = payload["agent_id"].as_str().expect("an id");
        let end = format!("/subagents/agent-{id}.jsonl");
        let path = payload["agent_transcript_path"].as_str().expect("a path");
        assert!(path.ends_with(&end), "flat at every depth: {path}");
    }
}
