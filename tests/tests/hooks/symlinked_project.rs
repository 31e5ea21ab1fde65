//! The client may name a session's folder by a symbolic link, like `/tmp/project` on macOS, or by the target of the
//! link: it is one session of one project.

use plimsoll_testkit::world::World;
use plimsoll_tests::parse_hook_reply;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

/// Adds symbolic links to the project and the home. Sets `HOME` to the link of the home, and returns the link of the
/// project.
fn with_symlinks(mut world: World) -> (World, PathBuf) {
    let [project, home] = ["project", "home"].map(|folder| {
        let link = world.project().with_file_name(format!("linked {folder}"));
        symlink(world.project().with_file_name(folder), &link).expect("a link");
        link
    });
    world.set_env("HOME", home.display().to_string());
    (world, project)
}

fn append_to_transcript(world: &World, project: &Path, used_tokens: u64) -> String {
    let line = json!({"type": "assistant", "uuid": format!("5e2f8a5c-19ab-43a2-8d2c-{used_tokens:012}"), "isSidechain": false,
        "timestamp": "2026-01-07T11:45:00.000Z", "sessionId": SESSION, "cwd": project, "version": "2.1.329",
        "requestId": "r", "requestedModel": "claude-opus-5-5",
        "message": {"id": format!("m{used_tokens}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": used_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}}});
    let path = world.home().join("transcript.jsonl");
    let earlier_lines = std::fs::read_to_string(&path).unwrap_or_default();
    world.write(&path, &format!("{earlier_lines}{line}\n"));
    path.display().to_string()
}

fn run_hook(world: &World, event: &str, project: &Path, transcript_path: &str) -> Value {
    let (program, fields) = match event {
        "SessionStart" => ("plimsoll-session-start", json!({"source": "startup"})),
        _ => ("plimsoll-post-tool", json!({"tool_calls": []})),
    };
    let mut payload = json!({"session_id": SESSION, "hook_event_name": event, "cwd": project,
        "transcript_path": transcript_path});
    payload.as_object_mut().expect("an object").extend(fields.as_object().cloned().unwrap_or_default());
    let project = project.display().to_string();
    let finished = world.hook(program, &payload).env("CLAUDE_PROJECT_DIR", project).run().expect_success();
    assert_eq!(finished.stderr, "", "{finished:?}");
    parse_hook_reply(&finished)
}

#[test]
fn a_session_named_by_a_symlink_and_by_its_target_is_one_session() {
    for world in [World::new(), World::without_plimsoll_files()] {
        let (world, link) = with_symlinks(world);
        let real = world.project();
        let transcript_path = append_to_transcript(&world, &link, 30_000);
        run_hook(&world, "SessionStart", &link, &transcript_path);
        let transcript_path = append_to_transcript(&world, &real, 720_000);
        let warned = run_hook(&world, "PostToolBatch", &link, &transcript_path).to_string();
        assert!(warned.contains("CCS_WARNING|L1|72|"), "{warned}");
        assert_eq!(
            run_hook(&world, "PostToolBatch", &real, &transcript_path),
            json!({}),
            "it is warned once, by whatever name"
        );
        let transcript_path = append_to_transcript(&world, &real, 870_000);
        let checkpoint = run_hook(&world, "PostToolBatch", &link, &transcript_path).to_string();
        assert!(checkpoint.contains("CCS_WARNING|L2|87|"), "{checkpoint}");
        let count_turns = |folder: &Path| {
            let listed =
                world.plimsoll(&["turns", "list", "--json"]).cwd(folder).run().expect_success().stdout;
            serde_json::from_str::<Value>(&listed).expect("JSON").as_array().map(Vec::len)
        };
        // The last turn is still open.
        assert_eq!((count_turns(&link), count_turns(&real)), (Some(2), Some(2)));
        let handoffs = world.command("find", &["..", "-name", "*.md", "-path", "*handoffs*"]).run().stdout;
        assert_eq!(handoffs.lines().count(), 1, "{handoffs}");
    }
}

/// The user's own `.claude` is in the home folder, and does not make it a project, even if `HOME` is a symbolic link.
#[test]
fn a_home_folder_named_by_a_symlink_is_not_a_project() {
    let (world, _) = with_symlinks(World::without_plimsoll_files());
    let folder = world.home().join("letters");
    std::fs::create_dir_all(world.home().join(".claude")).expect("a folder");
    std::fs::create_dir_all(&folder).expect("a folder");
    let finished = world.plimsoll(&["memory", "set", "R2", "Go on."]).cwd(&folder).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let projects_folder = world.home().join(".local/state/plimsoll/projects");
    let names: Vec<String> = std::fs::read_dir(&projects_folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| name.starts_with("letters-")) && names.len() == 1, "{names:?}");
    assert!(!world.home().join(".claude/plimsoll").exists());
}
