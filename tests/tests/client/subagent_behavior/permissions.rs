//! Permissions of tool calls, and the hooks that run for them.

use crate::subagent_behavior::harness::{
    SubagentTestBench, UPDATE_REGISTERS_TOOL, agent_call_step, offered_tool_names, update_registers_step,
};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Calls a memory tool that writes, first in the session and then in a subagent.
fn write_memory_in_session_and_subagent(request: &Request) -> Step {
    match (request.kind, request.all_tool_results().len()) {
        (RequestKind::Subagent, 0) => update_registers_step("by the frame"),
        (RequestKind::Subagent, _) => Step::from_text("Ended."),
        (_, 0) => update_registers_step("by the session"),
        (_, 1) => agent_call_step("Go."),
        _ => Step::from_text("Done."),
    }
}

/// Returns the results of the memory calls of the session and of the subagent.
fn memory_call_results(bench: &SubagentTestBench) -> [String; 2] {
    let subagent_result =
        bench.subagent_requests().pop().expect("a frame ran").all_tool_results().remove(0).1;
    [bench.first_tool_result().0, subagent_result]
}

#[test]
fn a_project_mcp_server_needs_no_approval_and_offers_its_tools_at_once() {
    let bench = SubagentTestBench::with_mcp_server(write_memory_in_session_and_subagent);
    bench.run_session();
    assert!(offered_tool_names(&bench.model.requests()[0]).contains(&UPDATE_REGISTERS_TOOL));
    assert!(
        offered_tool_names(&bench.first_subagent_request()).contains(&UPDATE_REGISTERS_TOOL),
        "a subagent has them too"
    );
    assert_eq!(memory_call_results(&bench), ["ok r1", "ok r2"]);
}

#[test]
fn a_memory_call_without_permission_is_refused() {
    let bench = SubagentTestBench::with_mcp_server(write_memory_in_session_and_subagent);
    bench.session_without_allowed_tools().run().expect_success();
    let refused = format!(
        "Claude requested permissions to use {UPDATE_REGISTERS_TOOL}, but you haven't granted it yet."
    );
    assert_eq!(memory_call_results(&bench), [refused.clone(), refused]);
}

#[test]
fn a_hook_can_allow_a_memory_call_in_the_session_and_in_a_subagent() {
    let bench = SubagentTestBench::with_mcp_server(write_memory_in_session_and_subagent);
    bench.respond_if_payload_contains(
        "PreToolUse",
        "mcp__plimsoll__",
        json!({"permissionDecision": "allow"}),
    );
    bench.session_without_allowed_tools().run().expect_success();
    assert_eq!(memory_call_results(&bench), ["ok r1", "ok r2"]);
}

#[test]
fn project_settings_can_allow_all_tools_of_a_server() {
    let bench = SubagentTestBench::with_mcp_server(write_memory_in_session_and_subagent);
    bench.write_settings(json!({"permissions": {"allow": ["mcp__plimsoll"]}}));
    bench.session_without_allowed_tools().run().expect_success();
    assert_eq!(memory_call_results(&bench), ["ok r1", "ok r2"]);
}

#[test]
fn a_matcher_is_a_regex_if_it_has_regex_characters_else_a_full_name() {
    let bench = SubagentTestBench::with_mcp_server(write_memory_in_session_and_subagent);
    let entry = |matcher: &str| {
        let command = format!("echo '{matcher}' >> $HOME/matched");
        json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]})
    };
    let regex = "^(mcp__plimsoll__(update_registers|push_frame)|Agent)$";
    let unmatched = ["^(mcp__plimsoll__push_frame|Bash)$", "mcp__plimsoll"];
    let names = format!("{UPDATE_REGISTERS_TOOL}|Agent");
    let matchers = [regex, names.as_str(), "mcp__plimsoll__.*", unmatched[0], unmatched[1]];
    bench.write_settings(json!({"hooks": {"PreToolUse": matchers.map(entry)}}));
    bench.run_session();
    let matched = std::fs::read_to_string(bench.world.home().join("matched")).expect("some matched");
    let match_count = |matcher: &str| matched.lines().filter(|line| *line == matcher).count();
    assert_eq!(matchers.map(match_count), [3, 3, 2, 0, 0], "two writes and one push: {matched}");
}

#[test]
fn equal_hook_commands_run_once_and_output_is_read_in_order_of_completion() {
    let bench = SubagentTestBench::new(|_| Step::from_text("Done."));
    let program = bench.world.home().join("say.sh");
    let script = r#"#!/bin/sh
if [ "$1" = slow ]; then
  # However busy the machine is, the quick ones have ended before.
  for try in $(seq 400); do [ "$(cat $HOME/ended-* 2>/dev/null | wc -l)" -lt 3 ] || break; sleep 0.05; done
  sleep 1
fi
printf '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"FROM %s %s"}}' "$1" "$2"
if [ "$1" = quick ]; then echo > "$HOME/ended-$2"; fi
"#;
    std::fs::write(&program, script).expect("the home is writable");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("our own file");
    let entry = |args: &[&str]| json!({"type": "command", "command": program, "args": args});
    let groups: [Value; 3] = [
        json!({"hooks": [entry(&["slow", "1"]), entry(&["quick", "1"]), entry(&["quick", "1"])]}),
        json!({"hooks": [entry(&["quick", "2"]), entry(&["slow", "1"])]}),
        json!({"matcher": "startup", "hooks": [entry(&["quick", "3"])]}),
    ];
    bench.write_settings(json!({"hooks": {"SessionStart": groups}}));
    bench.run_session();
    let text = bench.model.requests()[0].full_text();
    let context_lines: Vec<&str> = text.lines().filter(|line| line.contains("FROM ")).collect();
    assert!(
        context_lines[0].starts_with("SessionStart hook additional context: FROM quick"),
        "one block: {context_lines:?}"
    );
    assert_eq!(context_lines.last(), Some(&"FROM slow 1"), "though it is the first of the settings");
    let mut hook_outputs: Vec<&str> =
        context_lines.iter().filter_map(|line| line.split("FROM ").nth(1)).collect();
    hook_outputs.sort_unstable();
    assert_eq!(hook_outputs, ["quick 1", "quick 2", "quick 3", "slow 1"], "each once");
}
