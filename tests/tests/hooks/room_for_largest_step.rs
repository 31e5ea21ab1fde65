//! L2 leaves room for the largest step of the session. On a window of 200,000 tokens, where the client compacts at
//! 167,000, a session with small steps works on to 147,000; one with large steps stops before its next step could end
//! there.

use plimsoll_testkit::world::World;
use plimsoll_tests::create_run;
use serde_json::json;

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";

/// Returns the levels that are announced in a session with these usages, each with the usage in tokens.
fn announced_levels(usages: &[u64]) -> Vec<(String, u64)> {
    let world = World::new();
    world.write("fix_plan.md", "- [ ] Item one\n");
    create_run(&world, RUN, SESSION);
    let transcript = world.home().join("transcript.jsonl");
    let announced_level = |tokens: &u64| {
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-4-6",
            "timestamp": "2026-01-07T11:45:00.000Z",
            "message": {
                "id": "msg_1", "model": "claude-opus-4-6", "role": "assistant",
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
                "usage": { "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
            },
        });
        world.write(&transcript, &format!("{line}\n"));
        let batch = json!({
            "session_id": SESSION, "transcript_path": transcript, "cwd": world.project(),
            "hook_event_name": "PostToolBatch",
            "tool_calls": [{ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}, "tool_response": "" }],
        });
        let hook = world.hook("plimsoll-post-tool", &batch).env("PLIMSOLL_RUN_ID", RUN);
        let hook = hook.env("CLAUDE_PROJECT_DIR", world.project().display().to_string());
        let reply: serde_json::Value = serde_json::from_str(&hook.run().expect_success().stdout).unwrap();
        let marker = plimsoll_tests::marker_in_user_message(&reply).split('|').nth(1)?.to_owned();
        Some((marker, *tokens))
    };
    usages.iter().filter_map(announced_level).collect()
}

fn owned_levels(levels: &[(&str, u64)]) -> Vec<(String, u64)> {
    levels.iter().map(|(level, tokens)| ((*level).to_owned(), *tokens)).collect()
}

#[test]
fn with_small_steps_the_checkpoint_comes_later_than_with_large_steps() {
    let small = [110_000, 120_000, 129_000, 138_000, 146_000, 147_100];
    assert_eq!(announced_levels(&small), owned_levels(&[("L1", 129_000), ("L2", 147_100)]));
    // A step of 32,000 tokens: L2 is at 135,000 from then on.
    let large = [58_000, 90_000, 110_000, 120_000, 129_000, 138_000];
    assert_eq!(announced_levels(&large), owned_levels(&[("L1", 120_000), ("L2", 138_000)]));
}
