//! An installation for the user alone (`init --user`) writes nothing into a project that has not opted in: the records
//! of its sessions are in the user's state folder.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::parse_hook_reply;
use serde_json::json;
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

/// Returns every file and folder of a project, including git's own, with a checksum of each file's bytes.
fn file_checksums(world: &World, project: &Path) -> Vec<String> {
    let list = "find . -type f -exec cksum {} + ; find . ! -type f";
    let listed = world.command("/bin/sh", &["-c", list]).cwd(project).run().expect_success();
    let mut lines: Vec<String> = listed.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Returns the folders of projects in the user's state folder.
fn project_state_folders(world: &World) -> Vec<PathBuf> {
    let folder = world.home().join(".local/state/plimsoll/projects");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn run_session_start_hook(world: &World, project: &Path, session_id: &str) -> FinishedProgram {
    let payload = json!({"session_id": session_id, "hook_event_name": "SessionStart", "source": "startup",
        "transcript_path": world.home().join("none.jsonl").display().to_string(), "cwd": project});
    world.hook("plimsoll-session-start", &payload).cwd(project).run()
}

#[test]
fn a_session_that_reaches_l2_adds_only_its_tools_files_to_the_project() {
    let mut world = World::without_plimsoll_files();
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.write("notes.txt", "mine\n");
    let before = file_checksums(&world, &world.project());
    let model = ScriptedModel::start(|request| match request.all_tool_results().len() {
        0 => Step::bash_call("echo made > made.txt")
            .with_input_tokens(860_000)
            .with_delay(plimsoll_tests::LIFELIKE_DELAY),
        1 => Step::bash_call("plimsoll status --markdown; plimsoll memory set R2 'Go on.'")
            .with_input_tokens(861_000),
        2 => Step::bash_call("plimsoll turns list; plimsoll memory")
            .with_input_tokens(862_000)
            .with_delay(plimsoll_tests::LIFELIKE_DELAY),
        _ => Step::from_text("Done.").with_input_tokens(863_000),
    });
    world.put_client_on_path_with_model_and_settings(&model);
    let args = ["-p", "Make it.", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&args).run().expect_success();
    let after = file_checksums(&world, &world.project());
    let new: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    assert_eq!((new.len(), after.len()), (1, before.len() + 1), "{new:?}");
    assert!(new[0].ends_with("./made.txt"), "{new:?}");

    let [state_folder] = project_state_folders(&world).try_into().expect("one project's folder");
    assert!(
        state_folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("project-")),
        "{state_folder:?}"
    );
    let handoffs: Vec<_> =
        std::fs::read_dir(state_folder.join("handoffs")).expect("handoffs").flatten().collect();
    let handoff = handoffs.first().expect("a handoff at L2").path();
    let requests = model.main_requests();
    assert!(
        requests[1].full_text().contains(&format!("is ready in {}", handoff.display())),
        "the right path"
    );
    assert!(world.read(&handoff).contains("made.txt"), "{}", world.read(&handoff));
    let results = requests.last().expect("requests").all_tool_results();
    assert!(
        results[1].1.contains("Context Status\n") && results[1].1.contains("L2 (Checkpoint)"),
        "{results:?}"
    );
    assert!(results[2].1.contains("echo made") && results[2].1.contains("Go on."), "{results:?}");
    // `plimsoll turns` shows the same in the project and in a folder below it.
    std::fs::create_dir(world.path("below")).expect("a folder");
    for folder in ["", "below"] {
        let turns = world.plimsoll(&["turns"]).cwd(world.path(folder)).run().expect_success();
        assert!(turns.stdout.contains("echo made"), "{folder}: {turns:?}");
    }
    for file in ["journal.jsonl", "turns", "sessions", "memory"] {
        assert!(state_folder.join(file).exists(), "{file}");
    }
}

#[test]
fn each_project_has_one_state_folder_however_it_is_reached() {
    let world = World::without_plimsoll_files();
    let other = world.create_project_without_plimsoll_files("deep/project");
    std::os::unix::fs::symlink(&other, world.path("link")).expect("a link");
    for (folder, session) in [(world.project(), "one"), (other.clone(), "two"), (world.path("link"), "three")]
    {
        assert_eq!(run_session_start_hook(&world, &folder, session).code, Some(0));
    }
    let state_folders = project_state_folders(&world);
    assert_eq!(state_folders.len(), 2, "{state_folders:?}");
    let folder_index_of_session = |session: &str| {
        let file = format!("sessions/{session}.json");
        state_folders.iter().position(|folder| folder.join(&file).exists()).expect(session)
    };
    assert!(
        folder_index_of_session("one") != folder_index_of_session("two")
            && folder_index_of_session("two") == folder_index_of_session("three")
    );
    assert!(!world.exists(".claude") && !other.join(".claude").exists());
    let state = world.home().join("state");
    let payload = json!({"session_id": "four", "hook_event_name": "SessionStart", "cwd": other});
    world.hook("plimsoll-session-start", &payload).env("XDG_STATE_HOME", state.display().to_string()).run();
    assert!(state.join("plimsoll/projects").is_dir(), "XDG_STATE_HOME is honoured");
}

#[test]
fn a_project_that_opted_in_keeps_our_files_inside_it() {
    let our_hooks =
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/plimsoll-stop-gate"}]}]}});
    let mentions = json!({"permissions": {"allow": ["Bash(plimsoll-post-tool:*)"]}});
    for (file, text, is_opted_in) in [
        (".claude/settings.json", our_hooks.to_string(), true),
        (".claude/settings.local.json", our_hooks.to_string(), true),
        (".claude/settings.json", mentions.to_string(), false),
        (".claude/settings.json", "{".to_owned(), false),
        (".claude/plimsoll.json", "{}".to_owned(), true),
        (".claude/ralph-state.json", r#"{"run_id": "r1"}"#.to_owned(), true),
        (".git/plimsoll/ralph-state.json", r#"{"run_id": "r1"}"#.to_owned(), true),
        (".claude/commands/x.md", "x".to_owned(), false),
    ] {
        let world = World::without_plimsoll_files();
        world.write(file, &text);
        let finished = run_session_start_hook(&world, &world.project(), SESSION);
        assert_eq!(finished.code, Some(0), "{file}: {finished:?}");
        let record = format!(".claude/plimsoll/sessions/{SESSION}.json");
        assert_eq!(
            (world.exists(record), project_state_folders(&world).is_empty()),
            (is_opted_in, is_opted_in),
            "{file}: {text}"
        );
    }
}

/// The user's own settings are not a project's settings, even if the session runs in the home folder.
#[test]
fn a_session_in_the_home_folder_does_not_count_as_opted_in() {
    let world = World::without_plimsoll_files();
    world.plimsoll(&["init", "--user"]).run().expect_success();
    run_session_start_hook(&world, &world.home(), SESSION);
    assert!(!world.home().join(".claude/plimsoll").exists());
    assert_eq!(project_state_folders(&world).len(), 1);
}

#[test]
fn records_made_before_an_installation_stay_readable() {
    let world = World::without_plimsoll_files();
    run_session_start_hook(&world, &world.project(), "earlier");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    run_session_start_hook(&world, &world.project(), "later");
    assert!(world.exists(".claude/plimsoll/sessions/later.json"));
    assert!(!world.exists(".claude/plimsoll/sessions/earlier.json"));
    let verified = || world.plimsoll(&["turns", "verify"]).run().expect_success().stdout;
    insta::assert_snapshot!(verified(), @"
    later  intact: 1 record, 0 turns
    earlier  intact: 1 record, 0 turns
    ");
    // A session that continues in the new place is listed once and is complete.
    run_session_start_hook(&world, &world.project(), "earlier");
    insta::assert_snapshot!(verified(), @"
    earlier  intact: 2 records, 0 turns
    later  intact: 1 record, 0 turns
    ");
}

#[test]
fn without_a_writable_home_hooks_do_no_harm() {
    let world = World::without_plimsoll_files();
    let before = file_checksums(&world, &world.project());
    let batch = json!({"session_id": SESSION, "hook_event_name": "PostToolBatch", "cwd": world.project(),
        "transcript_path": world.home().join("none.jsonl").display().to_string(),
        "tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": "t", "tool_response": "ok"}]});
    let begin = json!({"session_id": SESSION, "hook_event_name": "SessionStart", "cwd": world.project()});
    let end = json!({"session_id": SESSION, "hook_event_name": "SessionEnd", "cwd": world.project()});
    let hooks =
        [("plimsoll-session-start", &begin), ("plimsoll-post-tool", &batch), ("plimsoll-session-end", &end)];
    for (program, payload) in hooks {
        let homeless = world.hook(program, payload).env_remove("HOME").run();
        assert_eq!((homeless.code, parse_hook_reply(&homeless)), (Some(0), json!({})), "{homeless:?}");
        let error = homeless.stderr.strip_prefix(&format!("{program}: "));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(error.unwrap_or(&homeless.stderr)), @"there is no folder for session records of [PROJECT]: neither HOME nor XDG_STATE_HOME is set to an absolute path; set HOME, or run `plimsoll init --local` in the project");
        }
        // HOME is a file here, so nobody, not even root, can write below it.
        let blocked = world.hook(program, payload).env("HOME", world.path("README.md").display().to_string());
        let blocked = blocked.run();
        assert_eq!((blocked.code, parse_hook_reply(&blocked)), (Some(0), json!({})), "{blocked:?}");
    }
    let status = json!({"session_id": SESSION, "workspace": {"project_dir": world.project()},
        "model": {"id": "claude-opus-5", "display_name": "Opus"}});
    let line = world.hook("plimsoll-statusline", &status).env_remove("HOME").run();
    assert!(line.code == Some(0) && line.stdout.contains("Opus"), "{line:?}");
    assert_eq!(file_checksums(&world, &world.project()), before);
}
