//! Codex also runs the hooks of Claude Code's settings. Plimsoll does not measure its sessions: it tells the user so once and
//! records nothing.

use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::fs;

const SESSION: &str = "019b9a3e-7c51-7d20-a1be-f318ff23689b";

/// Returns a hook event as Codex's documentation describes it.
fn hook_event(world: &World, name: &str, fields: &Value) -> Value {
    let rollout =
        world.home().join(format!(".codex/sessions/2026/01/07/rollout-2026-01-07T10-00-00-{SESSION}.jsonl"));
    let mut event = json!({
        "session_id": SESSION, "turn_id": "019b9a3e-7c60", "transcript_path": rollout, "cwd": world.project(),
        "hook_event_name": name, "model": "gpt-5.5-codex", "permission_mode": "default",
    });
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

/// Returns the path of every file of the world outside `.git` folders.
fn files_outside_git(world: &World) -> Vec<String> {
    let finished =
        world.command("find", &["..", "-path", "*/.git", "-prune", "-o", "-type", "f", "-print"]).run();
    let mut files: Vec<String> = finished.expect_success().stdout.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn codex_session_is_not_measured_and_the_user_is_told_once() {
    let world = World::new();
    // A rollout file in Codex's format that reports a window that is nearly full.
    let usage = json!({"timestamp": "2026-01-07T10:00:00.000Z", "type": "event_msg", "payload": {"type": "token_count",
        "info": {"last_token_usage": {"input_tokens": 240_000}, "model_context_window": 272_000}}});
    let start = hook_event(&world, "SessionStart", &json!({"source": "startup", "turn_id": null}));
    let rollout = start["transcript_path"].as_str().expect("a path").to_owned();
    fs::create_dir_all(std::path::Path::new(&rollout).parent().expect("a folder")).expect("a folder");
    fs::write(&rollout, format!("{usage}\n")).expect("a file");
    let call = json!({"tool_name": "Bash", "tool_use_id": "call_1", "tool_input": {"command": "ls"}, "tool_response": "a"});
    let before = files_outside_git(&world);
    let mut outputs = Vec::new();
    for (program, event) in [
        ("plimsoll-session-start", start),
        ("plimsoll-memory", hook_event(&world, "SessionStart", &json!({"source": "startup"}))),
        ("plimsoll-memory", hook_event(&world, "UserPromptSubmit", &json!({"prompt": "Do it."}))),
        ("plimsoll-frame", hook_event(&world, "PreToolUse", &call)),
        ("plimsoll-post-tool", hook_event(&world, "PostToolUse", &call)),
        ("plimsoll-post-tool", hook_event(&world, "PostToolUse", &call)),
        (
            "plimsoll-stop-gate",
            hook_event(
                &world,
                "Stop",
                &json!({"stop_hook_active": false, "last_assistant_message": "Done."}),
            ),
        ),
        ("plimsoll-pre-compact", hook_event(&world, "PreCompact", &json!({"trigger": "auto"}))),
        ("plimsoll-session-end", hook_event(&world, "SessionEnd", &json!({"reason": "other"}))),
    ] {
        let finished = world.hook(program, &event).run();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{program}: {finished:?}");
        match finished.stdout.trim() {
            "" | "{}" => {}
            words => outputs.push((program, words.to_owned())),
        }
    }
    let [("plimsoll-session-start", words)] = outputs.as_slice() else { panic!("{outputs:?}") };
    let reply: Value = serde_json::from_str(words).expect("an object");
    let message = reply["systemMessage"].as_str().expect("for the user");
    insta::assert_snapshot!(message, @"Plimsoll does not measure this session: its hooks were started by another client (Codex), not by Claude Code. There will be no warning and no handoff.");
    assert_eq!(reply.as_object().map(serde_json::Map::len), Some(1), "nothing for the model: {reply}");
    assert_eq!(files_outside_git(&world), before, "nothing is recorded");
}
