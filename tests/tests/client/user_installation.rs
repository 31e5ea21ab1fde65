//! An installation for the user alone (`init --user`) writes nothing into a project that has not asked for it: what
//! is noted about its sessions lies among the user's state.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::reply;
use serde_json::json;
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

/// Every file and folder of a project with the digest of its bytes, git's own too.
fn tree(world: &World, project: &Path) -> Vec<String> {
    let list = "find . -type f -exec cksum {} + ; find . ! -type f";
    let listed = world.command("/bin/sh", &["-c", list]).cwd(project).run().expect_success();
    let mut lines: Vec<String> = listed.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The folders of projects among the user's state.
fn kept(world: &World) -> Vec<PathBuf> {
    let folder = world.home().join(".local/state/plimsoll/projects");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn start(world: &World, project: &Path, session_id: &str) -> Finished {
    let payload = json!({"session_id": session_id, "hook_event_name": "SessionStart", "source": "startup",
        "transcript_path": world.home().join("none.jsonl").display().to_string(), "cwd": project});
    world.hook("plimsoll-session-start", &payload).cwd(project).run()
}

#[test]
fn a_session_that_reaches_l2_leaves_nothing_in_the_project_but_what_its_tools_did() {
    let mut world = World::untouched();
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.write("notes.txt", "mine\n");
    let before = tree(&world, &world.project());
    let model = ScriptedModel::start(|request| match request.tool_results().len() {
        0 => Step::bash("echo made > made.txt").usage(860_000).delay(plimsoll_tests::LIFELIKE),
        1 => Step::bash("plimsoll status --markdown; plimsoll memory set R2 'Go on.'").usage(861_000),
        2 => {
            Step::bash("plimsoll turns list; plimsoll memory").usage(862_000).delay(plimsoll_tests::LIFELIKE)
        }
        _ => Step::text("Done.").usage(863_000),
    });
    world.use_model(&model);
    let args = ["-p", "Make it.", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&args).run().expect_success();
    let after = tree(&world, &world.project());
    let new: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    assert_eq!((new.len(), after.len()), (1, before.len() + 1), "{new:?}");
    assert!(new[0].ends_with("./made.txt"), "{new:?}");

    let [own] = kept(&world).try_into().expect("one project's folder");
    assert!(own.file_name().is_some_and(|name| name.to_string_lossy().starts_with("project-")), "{own:?}");
    let handoffs: Vec<_> = std::fs::read_dir(own.join("handoffs")).expect("handoffs").flatten().collect();
    let handoff = handoffs.first().expect("a handoff at L2").path();
    let requests = model.main_requests();
    assert!(requests[1].text().contains(&format!("is ready in {}", handoff.display())), "the right path");
    assert!(world.read(&handoff).contains("made.txt"), "{}", world.read(&handoff));
    let results = requests.last().expect("requests").tool_results();
    assert!(
        results[1].1.contains("Context Status\n") && results[1].1.contains("L2 (Checkpoint)"),
        "{results:?}"
    );
    assert!(results[2].1.contains("echo made") && results[2].1.contains("Go on."), "{results:?}");
    // A terminal in the project, and one in a folder below it, see the same.
    std::fs::create_dir(world.path("below")).expect("a folder");
    for folder in ["", "below"] {
        let turns = world.plimsoll(&["turns"]).cwd(world.path(folder)).run().expect_success();
        assert!(turns.stdout.contains("echo made"), "{folder}: {turns:?}");
    }
    for file in ["journal.jsonl", "turns", "sessions", "memory"] {
        assert!(own.join(file).exists(), "{file}");
    }
}

#[test]
fn each_project_has_a_folder_of_its_own_wherever_it_is_reached_from() {
    let world = World::untouched();
    let other = world.untouched_project_at("deep/project");
    std::os::unix::fs::symlink(&other, world.path("link")).expect("a link");
    for (folder, session) in [(world.project(), "one"), (other.clone(), "two"), (world.path("link"), "three")]
    {
        assert_eq!(start(&world, &folder, session).code, Some(0));
    }
    let kept = kept(&world);
    assert_eq!(kept.len(), 2, "{kept:?}");
    let has = |session: &str| {
        let file = format!("sessions/{session}.json");
        kept.iter().position(|folder| folder.join(&file).exists()).expect(session)
    };
    assert!(has("one") != has("two") && has("two") == has("three"));
    assert!(!world.exists(".claude") && !other.join(".claude").exists());
    let state = world.home().join("state");
    let payload = json!({"session_id": "four", "hook_event_name": "SessionStart", "cwd": other});
    world.hook("plimsoll-session-start", &payload).env("XDG_STATE_HOME", state.display().to_string()).run();
    assert!(state.join("plimsoll/projects").is_dir(), "XDG_STATE_HOME is honoured");
}

#[test]
fn who_has_asked_for_it_has_our_files_in_the_project() {
    let ours =
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/plimsoll-stop-gate"}]}]}});
    let mentions = json!({"permissions": {"allow": ["Bash(plimsoll-post-tool:*)"]}});
    for (file, text, inside) in [
        (".claude/settings.json", ours.to_string(), true),
        (".claude/settings.local.json", ours.to_string(), true),
        (".claude/settings.json", mentions.to_string(), false),
        (".claude/settings.json", "{".to_owned(), false),
        (".claude/plimsoll.json", "{}".to_owned(), true),
        (".claude/ralph-state.json", r#"{"run_id": "r1"}"#.to_owned(), true),
        (".git/plimsoll/ralph-state.json", r#"{"run_id": "r1"}"#.to_owned(), true),
        (".claude/commands/x.md", "x".to_owned(), false),
    ] {
        let world = World::untouched();
        world.write(file, &text);
        let finished = start(&world, &world.project(), SESSION);
        assert_eq!(finished.code, Some(0), "{file}: {finished:?}");
        let record = format!(".claude/plimsoll/sessions/{SESSION}.json");
        assert_eq!((world.exists(record), kept(&world).is_empty()), (inside, inside), "{file}: {text}");
    }
}

/// The user's own settings are not a project's, also where a session stands in the home.
#[test]
fn a_session_at_home_is_no_project_that_has_asked() {
    let world = World::untouched();
    world.plimsoll(&["init", "--user"]).run().expect_success();
    start(&world, &world.home(), SESSION);
    assert!(!world.home().join(".claude/plimsoll").exists());
    assert_eq!(kept(&world).len(), 1);
}

#[test]
fn what_was_kept_before_an_installation_stays_readable() {
    let world = World::untouched();
    start(&world, &world.project(), "earlier");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    start(&world, &world.project(), "later");
    assert!(world.exists(".claude/plimsoll/sessions/later.json"));
    assert!(!world.exists(".claude/plimsoll/sessions/earlier.json"));
    let verified = || world.plimsoll(&["turns", "verify"]).run().expect_success().stdout;
    insta::assert_snapshot!(verified(), @"
    later  whole: 1 record, 0 turns
    earlier  whole: 1 record, 0 turns
    ");
    // A session that goes on in the new place is there once, and whole.
    start(&world, &world.project(), "earlier");
    insta::assert_snapshot!(verified(), @"
    earlier  whole: 2 records, 0 turns
    later  whole: 1 record, 0 turns
    ");
}

#[test]
fn without_a_home_or_with_one_that_cannot_be_written_a_hook_does_no_harm() {
    let world = World::untouched();
    let before = tree(&world, &world.project());
    let batch = json!({"session_id": SESSION, "hook_event_name": "PostToolBatch", "cwd": world.project(),
        "transcript_path": world.home().join("none.jsonl").display().to_string(),
        "tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": "t", "tool_response": "ok"}]});
    let begin = json!({"session_id": SESSION, "hook_event_name": "SessionStart", "cwd": world.project()});
    let end = json!({"session_id": SESSION, "hook_event_name": "SessionEnd", "cwd": world.project()});
    let hooks =
        [("plimsoll-session-start", &begin), ("plimsoll-post-tool", &batch), ("plimsoll-session-end", &end)];
    for (program, payload) in hooks {
        let homeless = world.hook(program, payload).env_remove("HOME").run();
        assert_eq!((homeless.code, reply(&homeless)), (Some(0), json!({})), "{homeless:?}");
        let error = homeless.stderr.strip_prefix(&format!("{program}: "));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(error.unwrap_or(&homeless.stderr)), @"there is no folder for session records of [PROJECT]: neither HOME nor XDG_STATE_HOME is set to an absolute path; set HOME, or run `plimsoll init --local` in the project");
        }
        // A file in the place of the folder: nobody, not even root, can write below it.
        let blocked = world.hook(program, payload).env("HOME", world.path("README.md").display().to_string());
        let blocked = blocked.run();
        assert_eq!((blocked.code, reply(&blocked)), (Some(0), json!({})), "{blocked:?}");
    }
    let status = json!({"session_id": SESSION, "workspace": {"project_dir": world.project()},
        "model": {"id": "claude-opus-5", "display_name": "Opus"}});
    let line = world.hook("plimsoll-statusline", &status).env_remove("HOME").run();
    assert!(line.code == Some(0) && line.stdout.contains("Opus"), "{line:?}");
    assert_eq!(tree(&world, &world.project()), before);
}
