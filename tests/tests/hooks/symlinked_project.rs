//! What the client says of a session may name its folder by a link, as `/tmp/project` on macOS, or by what that leads to: it is
//! one session of one project.

use plimsoll_testkit::world::World;
use plimsoll_tests::reply;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

/// Other names for the project and the home; the home's is in the environment.
fn behind_links(mut world: World) -> (World, PathBuf) {
    let [project, home] = ["project", "home"].map(|folder| {
        let link = world.project().with_file_name(format!("linked {folder}"));
        symlink(world.project().with_file_name(folder), &link).expect("a link");
        link
    });
    world.set_env("HOME", home.display().to_string());
    (world, project)
}

fn transcript(world: &World, project: &Path, tokens: u64) -> String {
    let line = json!({"type": "assistant", "uuid": format!("5e2f8a5c-19ab-43a2-8d2c-{tokens:012}"), "isSidechain": false,
        "timestamp": "2026-01-07T11:45:00.000Z", "sessionId": SESSION, "cwd": project, "version": "2.1.329",
        "requestId": "r", "requestedModel": "claude-opus-5-5",
        "message": {"id": format!("m{tokens}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}}});
    let path = world.home().join("transcript.jsonl");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    world.write(&path, &format!("{before}{line}\n"));
    path.display().to_string()
}

fn hook(world: &World, event: &str, project: &Path, transcript: &str) -> Value {
    let (program, more) = match event {
        "SessionStart" => ("plimsoll-session-start", json!({"source": "startup"})),
        _ => ("plimsoll-post-tool", json!({"tool_calls": []})),
    };
    let mut payload = json!({"session_id": SESSION, "hook_event_name": event, "cwd": project,
        "transcript_path": transcript});
    payload.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    let project = project.display().to_string();
    let finished = world.hook(program, &payload).env("CLAUDE_PROJECT_DIR", project).run().expect_success();
    assert_eq!(finished.stderr, "", "{finished:?}");
    reply(&finished)
}

#[test]
fn a_session_that_is_named_by_a_link_and_without_it_is_one_session() {
    for world in [World::new(), World::untouched()] {
        let (world, link) = behind_links(world);
        let real = world.project();
        let text = transcript(&world, &link, 30_000);
        hook(&world, "SessionStart", &link, &text);
        let text = transcript(&world, &real, 720_000);
        let warned = hook(&world, "PostToolBatch", &link, &text).to_string();
        assert!(warned.contains("CCS_WARNING|L1|72|"), "{warned}");
        assert_eq!(
            hook(&world, "PostToolBatch", &real, &text),
            json!({}),
            "it is warned once, by whatever name"
        );
        let text = transcript(&world, &real, 870_000);
        let checkpoint = hook(&world, "PostToolBatch", &link, &text).to_string();
        assert!(checkpoint.contains("CCS_WARNING|L2|87|"), "{checkpoint}");
        let turns = |folder: &Path| {
            let listed =
                world.plimsoll(&["turns", "list", "--json"]).cwd(folder).run().expect_success().stdout;
            serde_json::from_str::<Value>(&listed).expect("JSON").as_array().map(Vec::len)
        };
        // The last one is still open.
        assert_eq!((turns(&link), turns(&real)), (Some(2), Some(2)));
        let handoffs = world.command("find", &["..", "-name", "*.md", "-path", "*handoffs*"]).run().stdout;
        assert_eq!(handoffs.lines().count(), 1, "{handoffs}");
    }
}

/// The user's own `.claude` lies in the home, and makes no project of it: also where HOME says it by a link.
#[test]
fn a_home_that_is_named_by_a_link_is_no_project() {
    let (world, _) = behind_links(World::untouched());
    let folder = world.home().join("letters");
    std::fs::create_dir_all(world.home().join(".claude")).expect("a folder");
    std::fs::create_dir_all(&folder).expect("a folder");
    let begun = world.plimsoll(&["memory", "set", "R2", "Go on."]).cwd(&folder).run();
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let kept = world.home().join(".local/state/plimsoll/projects");
    let names: Vec<String> = std::fs::read_dir(&kept)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| name.starts_with("letters-")) && names.len() == 1, "{names:?}");
    assert!(!world.home().join(".claude/plimsoll").exists());
}
