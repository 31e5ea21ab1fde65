//! Subagents of subagents.

use crate::subagent_behavior::harness::{SubagentTestBench, agent_call_step, offered_tool_names};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

const DEPTH_VARIABLE: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";

fn depth_of(request: &Request) -> usize {
    let first = request.first_message_text();
    match request.kind {
        RequestKind::Subagent => {
            first.split("Depth ").nth(1).expect("its prompt")[..1].parse().expect("a number")
        }
        _ => 0,
    }
}

/// Starts one more level of subagents for as long as the Agent tool is offered.
fn call_agent_while_offered(request: &Request) -> Step {
    let depth = depth_of(request);
    match request.all_tool_results().is_empty() && offered_tool_names(request).contains(&"Agent") {
        true => agent_call_step(&format!("Depth {}.", depth + 1)),
        false if depth == 0 => Step::from_text("Done."),
        false => Step::from_text(format!("Ended at {depth}.")),
    }
}

/// Returns the greatest depth, and asserts that only the requests at this depth lack the Agent tool.
fn checked_max_depth(bench: &SubagentTestBench) -> usize {
    let requests = bench.subagent_requests();
    let max_depth = requests.iter().map(depth_of).max().expect("frames");
    for request in &requests {
        assert_eq!(
            offered_tool_names(request).contains(&"Agent"),
            depth_of(request) < max_depth,
            "{:?}",
            offered_tool_names(request)
        );
    }
    assert_eq!(bench.payloads_of_event("SubagentStart").len(), max_depth, "one of each depth");
    max_depth
}

#[test]
fn the_default_depth_is_three_and_the_agent_tool_is_absent_at_the_limit() {
    let bench = SubagentTestBench::new(call_agent_while_offered);
    bench.run_session();
    assert_eq!(checked_max_depth(&bench), 3);
}

#[test]
fn project_settings_can_set_a_depth_of_five() {
    for file in [".claude/settings.json", ".claude/settings.local.json"] {
        let bench = SubagentTestBench::new(call_agent_while_offered);
        let settings = json!({"env": {DEPTH_VARIABLE: "5"}});
        if file.contains("local") {
            bench.world.write(file, &settings.to_string());
        } else {
            bench.write_settings(settings);
        }
        bench.run_session();
        assert_eq!(checked_max_depth(&bench), 5, "{file}");
    }
}

#[test]
fn a_settings_file_on_the_command_line_can_set_a_depth_of_five() {
    let bench = SubagentTestBench::new(call_agent_while_offered);
    bench.world.write("more.json", &json!({"env": {DEPTH_VARIABLE: "5"}}).to_string());
    bench
        .session_with_allowed_tools()
        .arg("--settings")
        .arg(bench.world.path("more.json"))
        .run()
        .expect_success();
    assert_eq!(checked_max_depth(&bench), 5);
}

#[test]
fn an_environment_variable_can_set_a_depth_of_five() {
    let bench = SubagentTestBench::new(call_agent_while_offered);
    bench.session_with_allowed_tools().env(DEPTH_VARIABLE, "5").run().expect_success();
    assert_eq!(checked_max_depth(&bench), 5);
}

#[test]
fn tool_events_carry_the_callers_agent_id_and_start_and_stop_their_own() {
    let bench = SubagentTestBench::new(call_agent_while_offered);
    bench.session_with_allowed_tools().env(DEPTH_VARIABLE, "2").run().expect_success();
    assert_eq!(
        bench.hook_call_lines_containing(&["Agent", "agent", "Batch"]),
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
    let starts = bench.payloads_of_event("SubagentStart");
    let ends = bench.payloads_of_event("PostToolUse");
    assert_eq!(ends[0]["tool_response"]["agentId"], starts[1]["agent_id"], "the call names who it started");
    assert_eq!(ends[1]["tool_response"]["agentId"], starts[0]["agent_id"]);
    for payload in starts.iter().chain(&bench.payloads_of_event("SubagentStop")) {
        assert!(payload["tool_use_id"].is_null(), "neither start nor stop names the call: {payload}");
        assert_eq!(payload["session_id"], ends[0]["session_id"]);
    }
    for payload in bench.payloads_of_event("SubagentStop") {
        let id = payload["agent_id"].as_str().expect("an id");
        let end = format!("/subagents/agent-{id}.jsonl");
        let path = payload["agent_transcript_path"].as_str().expect("a path");
        assert!(path.ends_with(&end), "flat at every depth: {path}");
    }
}
