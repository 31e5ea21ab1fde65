//! The records of a project may move from the user's state folder into the project, because a command in Claude Code's
//! sandbox can write nowhere else. The turn logs stay: erased turns stay erased, and every log is found. A memory
//! outside the project is never hidden silently.

use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const FIRST_SESSION: &str = "11111111-1111-4111-8111-111111111111";
const NEXT_SESSION: &str = "22222222-2222-4222-8222-222222222222";
const SECRET: &str = "a-word-that-is-erased";

/// Returns the path at which the client keeps a session's transcript.
pub(crate) fn transcript_path(world: &World, session: &str) -> PathBuf {
    world.home().join(format!(".claude/projects/x/{session}.jsonl"))
}

/// Returns a transcript with these answers, of a session that was started in this folder.
pub(crate) fn transcript_text(folder: &Path, session: &str, answers: &[&str]) -> String {
    let prompt = json!({"type": "user", "isSidechain": false, "cwd": folder, "sessionId": session,
        "timestamp": "2026-01-07T12:00:00.000Z", "message": {"role": "user", "content": "Do it."}});
    let answer = |(number, text): (usize, &&str)| {
        json!({"type": "assistant", "isSidechain": false, "cwd": folder, "sessionId": session,
            "timestamp": format!("2026-01-07T12:{:02}:00.000Z", number + 1),
            "message": {"id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-5-5",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                "usage": {"input_tokens": 10, "output_tokens": 5}}})
    };
    let lines = std::iter::once(prompt).chain(answers.iter().enumerate().map(answer));
    lines.map(|line| format!("{line}\n")).collect()
}

fn write_transcript(world: &World, session: &str, answers: &[&str]) {
    world.write(transcript_path(world, session), &transcript_text(&world.project(), session, answers));
}

fn run_hook(world: &World, program: &str, session: &str, mut event: Value) {
    event["session_id"] = json!(session);
    event["transcript_path"] = json!(transcript_path(world, session));
    event["cwd"] = json!(world.project());
    let finished = world.hook(program, &event).run().expect_success();
    assert_eq!(finished.stderr, "");
}

fn start_session(world: &World, session: &str, source: &str) {
    run_hook(
        world,
        "plimsoll-session-start",
        session,
        json!({"hook_event_name": "SessionStart", "source": source}),
    );
}

fn end_session(world: &World, session: &str) {
    run_hook(
        world,
        "plimsoll-session-end",
        session,
        json!({"hook_event_name": "SessionEnd", "reason": "other"}),
    );
}

/// Returns a world with a session that has ended and whose files are in the user's state folder.
fn world_with_ended_session() -> World {
    let world = World::without_plimsoll_files();
    start_session(&world, FIRST_SESSION, "startup");
    write_transcript(&world, FIRST_SESSION, &["One word.", SECRET]);
    end_session(&world, FIRST_SESSION);
    assert!(
        state_folder_of_project(&world).join(format!("turns/{FIRST_SESSION}.jsonl")).exists()
            && !world.exists(".claude/plimsoll")
    );
    world
}

/// Returns the folder of the project's files in the user's state folder.
fn state_folder_of_project(world: &World) -> PathBuf {
    let projects = world.home().join(".local/state/plimsoll/projects");
    let mut folders = fs::read_dir(projects).expect("a folder").map(|entry| entry.expect("an entry").path());
    folders.next().expect("the project's folder")
}

/// Copies files into the project, like a command that can write nowhere else.
fn move_into_project(world: &World, names: &[&str]) {
    for name in names.iter().filter(|name| state_folder_of_project(world).join(name).exists()) {
        let from = state_folder_of_project(world).join(name).display().to_string();
        let script = format!("mkdir -p .claude/plimsoll && cp -r '{from}' .claude/plimsoll/");
        world.command("sh", &["-c", &script]).run().expect_success();
    }
}

const MOVED_RECORDS: [&str; 4] = ["memory", "sessions", "journal.jsonl", "windows.json"];

fn run_turns_command(world: &World, arguments: &[&str]) -> FinishedProgram {
    world.plimsoll(&[&["turns"], arguments].concat()).run()
}

/// Returns our files that contain the secret word.
fn files_with_secret(world: &World) -> Vec<PathBuf> {
    fn search(folder: &Path, files: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                search(&path, files);
            } else if String::from_utf8_lossy(&fs::read(&path).expect("a file")).contains(SECRET) {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    search(&world.path(".claude"), &mut files);
    search(&world.home().join(".local/state"), &mut files);
    files
}

#[test]
fn erased_turns_stay_erased_after_the_records_move_into_the_project() {
    let world = world_with_ended_session();
    run_turns_command(&world, &["erase", "11111111:2"]).expect_success();
    assert_eq!(files_with_secret(&world), [""; 0].map(PathBuf::from));
    move_into_project(&world, &MOVED_RECORDS);
    // The project has no list of unsettled sessions yet: the next session looks at all that have a record.
    start_session(&world, NEXT_SESSION, "startup");
    run_turns_command(&world, &["list"]).expect_success();
    assert_eq!(files_with_secret(&world), [""; 0].map(PathBuf::from));
    // A resumed session continues in the log that it has.
    start_session(&world, FIRST_SESSION, "resume");
    write_transcript(&world, FIRST_SESSION, &["One word.", SECRET, "A third word."]);
    end_session(&world, FIRST_SESSION);
    let verified = run_turns_command(&world, &["verify", "--session", FIRST_SESSION]).expect_success().stdout;
    insta::assert_snapshot!(verified, @"
    11111111-1111-4111-8111-111111111111  intact: 9 records, 3 turns, 1 erased
      · line 4, record 4: erased
    ");
    assert!(!world.exists(format!(".claude/plimsoll/turns/{FIRST_SESSION}.jsonl")));
    assert_eq!(files_with_secret(&world), [""; 0].map(PathBuf::from));
    assert!(
        world.exists(format!(".claude/plimsoll/turns/{NEXT_SESSION}.jsonl")),
        "a new session has its log in the project"
    );
}

/// An earlier version read the transcript into the project a second time.
#[test]
fn a_second_log_outside_the_project_is_erased_verified_and_pruned_too() {
    let world = world_with_ended_session();
    move_into_project(&world, &[&MOVED_RECORDS[..], &["turns"]].concat());
    assert_eq!(files_with_secret(&world).len(), 2);
    run_turns_command(&world, &["erase", "11111111:2"]).expect_success();
    assert_eq!(files_with_secret(&world), [""; 0].map(PathBuf::from));
    let verified = run_turns_command(&world, &["verify"]).expect_success().stdout;
    assert_eq!(verified.matches("2 turns, 1 erased").count(), 2, "{verified}");
    let listed = run_turns_command(&world, &["list"]).expect_success().stdout;
    assert_eq!(listed.lines().count(), 2, "each turn once: {listed}");

    let log = state_folder_of_project(&world).join(format!("turns/{FIRST_SESSION}.jsonl"));
    let text = fs::read_to_string(&log).expect("a log");
    fs::write(&log, text.replacen("One", "Two", 1)).expect("a changed log");
    assert_eq!(run_turns_command(&world, &["verify"]).code, Some(1), "the log outside was changed");

    let age_files_script = "find .claude ~/.local/state -type f -exec touch -d '40 days ago' {} +";
    world.command("sh", &["-c", age_files_script]).run().expect_success();
    world.plimsoll(&["prune", "--older-than", "30d"]).run().expect_success();
    let find_script =
        "find .claude ~/.local/state -name '11111111*' ! -name '*.lock' ! -path '*/unsettled/*'";
    let remaining_files = world.command("sh", &["-c", find_script]).run().expect_success().stdout;
    assert_eq!(remaining_files, "");
}

/// Returns whether the doctor reports a hidden memory, and the result of `memory show`.
fn hidden_memory_finding_and_output(world: &World) -> (bool, FinishedProgram) {
    let doctor = world.plimsoll(&["doctor", "--json"]).run().stdout_json();
    let findings = doctor["findings"].as_array().expect("findings").clone();
    let is_reported = findings.iter().any(|finding| finding["code"] == "disk.hidden_memory");
    (is_reported, world.plimsoll(&["memory", "show"]).run())
}

#[test]
fn a_memory_outside_the_project_is_never_hidden_silently() {
    let world = World::without_plimsoll_files();
    world.plimsoll(&["memory", "set", "R4", "written-outside"]).run().expect_success();
    // An empty folder, which a clone may contain, decides nothing.
    world.write(".claude/plimsoll/.gitignore", "*\n");
    let (is_reported, shown) = hidden_memory_finding_and_output(&world);
    assert!(!is_reported && shown.stderr.is_empty() && shown.stdout.contains("written-outside"), "{shown:?}");
    // Settings in the project do hide the memory outside, and the user is told so.
    world.write(".claude/plimsoll.json", "{}");
    let (is_reported, shown) = hidden_memory_finding_and_output(&world);
    let folder = state_folder_of_project(&world).join("memory").display().to_string();
    assert!(is_reported && shown.stderr.contains(&folder), "{shown:?}");
    assert!(!shown.stdout.contains("written-outside"), "{shown:?}");
    // The command in the hint helps, and a memory that continues from the old one is not another one.
    move_into_project(&world, &["memory"]);
    world.plimsoll(&["memory", "set", "R5", "written-inside"]).run().expect_success();
    let (is_reported, shown) = hidden_memory_finding_and_output(&world);
    assert!(!is_reported && shown.stderr.is_empty(), "{shown:?}");
    assert!(shown.stdout.contains("written-outside") && shown.stdout.contains("written-inside"), "{shown:?}");
}
