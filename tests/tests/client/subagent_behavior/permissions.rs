//! What may run, and which hooks run for it.

use crate::subagent_behavior::harness::{Bench, NOTE, note, push, tools};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// The session writes to its memory, then pushes a frame that does.
fn both_write(request: &Request) -> Step {
    match (request.kind, request.tool_results().len()) {
        (RequestKind::Subagent, 0) => note("by the frame"),
        (RequestKind::Subagent, _) => Step::text("Ended."),
        (_, 0) => note("by the session"),
        (_, 1) => push("Go."),
        _ => Step::text("Done."),
    }
}

/// What the session and the frame were told of their writes.
fn answers(bench: &Bench) -> [String; 2] {
    let of_frame = bench.frame_requests().pop().expect("a frame ran").tool_results().remove(0).1;
    [bench.handed_back().0, of_frame]
}

#[test]
fn a_server_of_the_project_starts_without_approval_and_its_tools_are_there_at_once() {
    let bench = Bench::with_mcp(both_write);
    bench.run();
    assert!(tools(&bench.model.requests()[0]).contains(&NOTE));
    assert!(tools(&bench.first_of_frame()).contains(&NOTE), "a subagent has them too");
    assert_eq!(answers(&bench), ["ok r1", "ok r2"]);
}

#[test]
fn a_memory_call_that_nobody_allowed_is_refused() {
    let bench = Bench::with_mcp(both_write);
    bench.strict_session().run().expect_success();
    let refused = format!("Claude requested permissions to use {NOTE}, but you haven't granted it yet.");
    assert_eq!(answers(&bench), [refused.clone(), refused]);
}

#[test]
fn a_hook_can_allow_a_memory_call_in_the_session_and_in_a_subagent() {
    let bench = Bench::with_mcp(both_write);
    bench.answer_if("PreToolUse", "mcp__plimsoll__", json!({"permissionDecision": "allow"}));
    bench.strict_session().run().expect_success();
    assert_eq!(answers(&bench), ["ok r1", "ok r2"]);
}

#[test]
fn the_settings_of_a_project_can_allow_all_tools_of_a_server() {
    let bench = Bench::with_mcp(both_write);
    bench.settings(json!({"permissions": {"allow": ["mcp__plimsoll"]}}));
    bench.strict_session().run().expect_success();
    assert_eq!(answers(&bench), ["ok r1", "ok r2"]);
}

#[test]
fn a_matcher_with_regex_characters_is_a_regex_and_a_plain_one_is_a_whole_name() {
    let bench = Bench::with_mcp(both_write);
    let entry = |matcher: &str| {
        let command = format!("echo '{matcher}' >> $HOME/matched");
        json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]})
    };
    let regex = "^(mcp__plimsoll__(update_registers|push_frame)|Agent)$";
    let others = ["^(mcp__plimsoll__push_frame|Bash)$", "mcp__plimsoll"];
    let names = format!("{NOTE}|Agent");
    let matchers = [regex, names.as_str(), "mcp__plimsoll__.*", others[0], others[1]];
    bench.settings(json!({"hooks": {"PreToolUse": matchers.map(entry)}}));
    bench.run();
    let matched = std::fs::read_to_string(bench.world.home().join("matched")).expect("some matched");
    let times = |matcher: &str| matched.lines().filter(|line| *line == matcher).count();
    assert_eq!(matchers.map(times), [3, 3, 2, 0, 0], "two writes and one push: {matched}");
}

#[test]
fn the_same_program_runs_once_for_each_list_of_arguments_and_the_first_to_end_is_read_first() {
    let bench = Bench::new(|_| Step::text("Done."));
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
    bench.settings(json!({"hooks": {"SessionStart": groups}}));
    bench.run();
    let text = bench.model.requests()[0].text();
    let said: Vec<&str> = text.lines().filter(|line| line.contains("FROM ")).collect();
    assert!(said[0].starts_with("SessionStart hook additional context: FROM quick"), "one block: {said:?}");
    assert_eq!(said.last(), Some(&"FROM slow 1"), "though it is the first of the settings");
    let mut words: Vec<&str> = said.iter().filter_map(|line| line.split("FROM ").nth(1)).collect();
    words.sort_unstable();
    assert_eq!(words, ["quick 1", "quick 2", "quick 3", "slow 1"], "each once");
}
