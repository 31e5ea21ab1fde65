//! A session has one record, in whatever folder it works and whether or not its project can be written.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

fn transcript_path(world: &World) -> PathBuf {
    world.home().join("transcript.jsonl")
}

/// Writes a transcript whose last request had this many tokens; the session was started in the project.
fn write_transcript(world: &World, tokens: u64) {
    let prompt_line = json!({
        "type": "user", "isSidechain": false, "cwd": world.project(), "sessionId": SESSION,
        "message": {"role": "user", "content": "Do it."},
    });
    let answer_line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5", "cwd": world.path("src"),
        "timestamp": "2026-01-07T12:00:00.000Z",
        "message": {
            "id": format!("msg_{tokens}"), "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "true"}}],
            "usage": {"input_tokens": 3, "cache_read_input_tokens": tokens - 3, "output_tokens": 50},
        },
    });
    fs::write(transcript_path(world), format!("{prompt_line}\n{answer_line}\n")).expect("a file");
}

fn hook_event(world: &World, name: &str, folder: &Path) -> Value {
    let mut event = json!({
        "session_id": SESSION, "transcript_path": transcript_path(world), "cwd": folder, "hook_event_name": name,
    });
    if name == "PostToolBatch" {
        event["tool_calls"] = json!([{
            "tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "toolu_1", "tool_response": "ok",
        }]);
    }
    event
}

fn announced_marker(finished: &FinishedProgram) -> String {
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    plimsoll_tests::marker_in_user_message(&finished.stdout_json())
}

/// The client's current folder changes with `cd`, and `CLAUDE_PROJECT_DIR` was observed to change, too.
#[test]
fn a_session_that_changes_folders_keeps_its_record_and_is_warned_once() {
    let world = World::new();
    fs::create_dir_all(world.path("src")).expect("a folder");
    let other_project = world.create_project("other");
    let untouched_project = world.create_project_without_plimsoll_files("stranger");
    let hook = |program: &str, name: &str, folder: &Path| {
        let launch = world.hook(program, &hook_event(&world, name, folder)).cwd(folder);
        launch.env("CLAUDE_PROJECT_DIR", folder.display().to_string()).run()
    };
    assert_eq!(announced_marker(&hook("plimsoll-session-start", "SessionStart", &world.project())), "");
    write_transcript(&world, 720_000);
    let batch = |folder: &Path| announced_marker(&hook("plimsoll-post-tool", "PostToolBatch", folder));
    assert_eq!(batch(&world.project()), "CCS_WARNING|L1|72|Context at 72%");
    for folder in [&world.path("src"), &other_project, &untouched_project] {
        assert_eq!(batch(folder), "", "{}", folder.display());
    }
    write_transcript(&world, 870_000);
    assert_eq!(batch(&untouched_project), "CCS_WARNING|L2|87|Context at 87%");
    assert_eq!(batch(&world.project()), "");
    hook("plimsoll-session-end", "SessionEnd", &other_project);
    let record = world.read_json(format!(".claude/plimsoll/sessions/{SESSION}.json"));
    assert_eq!(record["announced"], "L2");
    assert!(record["ended_at"].is_string(), "{record}");
    assert!(world.exists(record["handoff"].as_str().expect("a handoff")));
    for place in [
        other_project.join(".claude/plimsoll/sessions"),
        world.path("src/.claude"),
        world.home().join(".local/state/plimsoll/projects"),
    ] {
        assert!(!place.exists(), "{}", place.display());
    }
}

#[test]
fn session_files_of_a_read_only_project_are_in_the_users_state_folder() {
    let world = World::new();
    let project = world.project().display().to_string();
    let mounted =
        format!("mount --bind {project} {project} && mount -o remount,bind,ro {project} && cd {project}");
    let shell =
        |script: &str| world.command("unshare", &["-rm", "sh", "-c", &format!("{mounted} && {script}")]);
    if shell("! touch x 2> /dev/null").run().code != Some(0) {
        eprintln!("NOT TESTED: no mount of its own can be made here");
        return;
    }
    let hook = |program: &str, payload: &Value| {
        let launch = shell(&format!("exec {}", find_or_build_bin_dir().join(program).display()))
            .stdin(payload.to_string());
        launch.env("CLAUDE_PROJECT_DIR", &project).env("NO_COLOR", "1").run()
    };
    let event_in_project = |name: &str| hook_event(&world, name, &world.project());
    assert_eq!(announced_marker(&hook("plimsoll-session-start", &event_in_project("SessionStart"))), "");
    let batch = || announced_marker(&hook("plimsoll-post-tool", &event_in_project("PostToolBatch")));
    write_transcript(&world, 720_000);
    assert_eq!(batch(), "CCS_WARNING|L1|72|Context at 72%");
    assert_eq!(batch(), "", "once");
    write_transcript(&world, 870_000);
    assert_eq!(batch(), "CCS_WARNING|L2|87|Context at 87%");
    assert_eq!(batch(), "");
    let status = json!({
        "session_id": SESSION, "transcript_path": transcript_path(&world), "cwd": project,
        "model": {"id": "claude-opus-5-5"}, "workspace": {"project_dir": project, "current_dir": project},
        "context_window": {
            "context_window_size": 1_000_000, "used_percentage": 88, "total_input_tokens": 880_000,
            "current_usage": {"input_tokens": 3, "cache_read_input_tokens": 879_997, "output_tokens": 50},
        },
    });
    let line = hook("plimsoll-statusline", &status);
    assert_eq!(line.stderr, "");
    insta::assert_snapshot!(line.stdout, @"claude-opus-5-5 │ project │ ⎇ main │ ▕██████████████████░┃▏ 88% 880k/1M · 87k left");
    let projects = fs::read_dir(world.home().join(".local/state/plimsoll/projects")).expect("a folder");
    let [project_folder] = projects
        .map(|entry| entry.expect("an entry").path())
        .collect::<Vec<_>>()
        .try_into()
        .expect("one project");
    let record = world.read_json(project_folder.join(format!("sessions/{SESSION}.json")));
    assert_eq!(record["announced"], "L2", "{record}");
    assert!(
        Path::new(record["handoff"].as_str().expect("a handoff"))
            .starts_with(project_folder.join("handoffs")),
        "{record}"
    );
    let status_record = world.read_json(project_folder.join(format!("sessions/{SESSION}.status.json")));
    assert_eq!(status_record["used"], 880_000);
    assert!(!world.exists(".claude/plimsoll/sessions"));
}
