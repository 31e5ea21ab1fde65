//! The records of a project may move from the user's state folder into the project, because a command in Claude Code's sandbox can
//! write nothing else. The turn logs stay: what was erased stays erased, and every log is found. A memory outside is not hidden
//! without a word.

use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const NEXT: &str = "22222222-2222-4222-8222-222222222222";
const SECRET: &str = "a-word-that-is-erased";

/// Where the client keeps a session's transcript.
pub(crate) fn transcript(world: &World, session: &str) -> PathBuf {
    world.home().join(format!(".claude/projects/x/{session}.jsonl"))
}

/// A transcript with these answers, of a session that was started in a folder.
pub(crate) fn transcript_of(folder: &Path, session: &str, answers: &[&str]) -> String {
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
    world.write(transcript(world, session), &transcript_of(&world.project(), session, answers));
}

fn hook(world: &World, program: &str, session: &str, mut event: Value) {
    event["session_id"] = json!(session);
    event["transcript_path"] = json!(transcript(world, session));
    event["cwd"] = json!(world.project());
    let called = world.hook(program, &event).run().expect_success();
    assert_eq!(called.stderr, "");
}

fn begin(world: &World, session: &str, source: &str) {
    hook(
        world,
        "plimsoll-session-start",
        session,
        json!({"hook_event_name": "SessionStart", "source": source}),
    );
}

fn end(world: &World, session: &str) {
    hook(world, "plimsoll-session-end", session, json!({"hook_event_name": "SessionEnd", "reason": "other"}));
}

/// A session that has ended; its files are among the user's state.
fn ended() -> World {
    let world = World::untouched();
    begin(&world, FIRST, "startup");
    write_transcript(&world, FIRST, &["One word.", SECRET]);
    end(&world, FIRST);
    assert!(
        outside(&world).join(format!("turns/{FIRST}.jsonl")).exists() && !world.exists(".claude/plimsoll")
    );
    world
}

/// The folder of the project's files among the user's state.
fn outside(world: &World) -> PathBuf {
    let projects = world.home().join(".local/state/plimsoll/projects");
    let mut folders = fs::read_dir(projects).expect("a folder").map(|entry| entry.expect("an entry").path());
    folders.next().expect("the project's folder")
}

/// Copies files into the project, as a command does that can write nothing else.
fn move_into_project(world: &World, names: &[&str]) {
    for name in names.iter().filter(|name| outside(world).join(name).exists()) {
        let from = outside(world).join(name).display().to_string();
        let script = format!("mkdir -p .claude/plimsoll && cp -r '{from}' .claude/plimsoll/");
        world.command("sh", &["-c", &script]).run().expect_success();
    }
}

const MOVED: [&str; 4] = ["memory", "sessions", "journal.jsonl", "windows.json"];

fn turns(world: &World, arguments: &[&str]) -> Finished {
    world.plimsoll(&[&["turns"], arguments].concat()).run()
}

/// Our files that hold the word.
fn holders(world: &World) -> Vec<PathBuf> {
    fn search(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                search(&path, found);
            } else if String::from_utf8_lossy(&fs::read(&path).expect("a file")).contains(SECRET) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    search(&world.path(".claude"), &mut found);
    search(&world.home().join(".local/state"), &mut found);
    found
}

#[test]
fn what_was_erased_stays_erased_after_the_records_have_moved() {
    let world = ended();
    turns(&world, &["erase", "11111111:2"]).expect_success();
    assert_eq!(holders(&world), [""; 0].map(PathBuf::from));
    move_into_project(&world, &MOVED);
    // There is no list of unsettled sessions in the project yet: the next session looks at all that have a record.
    begin(&world, NEXT, "startup");
    turns(&world, &["list"]).expect_success();
    assert_eq!(holders(&world), [""; 0].map(PathBuf::from));
    // A session that goes on does so in the log that it has.
    begin(&world, FIRST, "resume");
    write_transcript(&world, FIRST, &["One word.", SECRET, "A third word."]);
    end(&world, FIRST);
    let verified = turns(&world, &["verify", "--session", FIRST]).expect_success().stdout;
    insta::assert_snapshot!(verified, @"
    11111111-1111-4111-8111-111111111111  whole: 9 records, 3 turns, 1 erased
      · line 4, record 4: erased
    ");
    assert!(!world.exists(format!(".claude/plimsoll/turns/{FIRST}.jsonl")));
    assert_eq!(holders(&world), [""; 0].map(PathBuf::from));
    assert!(
        world.exists(format!(".claude/plimsoll/turns/{NEXT}.jsonl")),
        "a new session has its log in the project"
    );
}

/// An earlier version read the transcript once more into the project.
#[test]
fn a_log_that_a_session_has_outside_of_the_project_too_is_erased_verified_and_pruned() {
    let world = ended();
    move_into_project(&world, &[&MOVED[..], &["turns"]].concat());
    assert_eq!(holders(&world).len(), 2);
    turns(&world, &["erase", "11111111:2"]).expect_success();
    assert_eq!(holders(&world), [""; 0].map(PathBuf::from));
    let verified = turns(&world, &["verify"]).expect_success().stdout;
    assert_eq!(verified.matches("2 turns, 1 erased").count(), 2, "{verified}");
    let listed = turns(&world, &["list"]).expect_success().stdout;
    assert_eq!(listed.lines().count(), 2, "each turn once: {listed}");

    let log = outside(&world).join(format!("turns/{FIRST}.jsonl"));
    let text = fs::read_to_string(&log).expect("a log");
    fs::write(&log, text.replacen("One", "Two", 1)).expect("a changed log");
    assert_eq!(turns(&world, &["verify"]).code, Some(1), "the log outside was changed");

    let old = "find .claude ~/.local/state -type f -exec touch -d '40 days ago' {} +";
    world.command("sh", &["-c", old]).run().expect_success();
    world.plimsoll(&["prune", "--older-than", "30d"]).run().expect_success();
    let left = "find .claude ~/.local/state -name '11111111*' ! -name '*.lock' ! -path '*/unsettled/*'";
    let left = world.command("sh", &["-c", left]).run().expect_success().stdout;
    assert_eq!(left, "");
}

/// What the doctor finds about the memory, and what `memory show` prints.
fn memory_of(world: &World) -> (bool, Finished) {
    let doctor = world.plimsoll(&["doctor", "--json"]).run().json();
    let findings = doctor["findings"].as_array().expect("findings").clone();
    let is_found = findings.iter().any(|finding| finding["code"] == "disk.hidden_memory");
    (is_found, world.plimsoll(&["memory", "show"]).run())
}

#[test]
fn a_memory_outside_of_the_project_is_not_hidden_without_a_word() {
    let world = World::untouched();
    world.plimsoll(&["memory", "set", "R4", "written-outside"]).run().expect_success();
    // An empty folder, as a clone may bring one, decides nothing.
    world.write(".claude/plimsoll/.gitignore", "*\n");
    let (is_found, shown) = memory_of(&world);
    assert!(!is_found && shown.stderr.is_empty() && shown.stdout.contains("written-outside"), "{shown:?}");
    // Settings in the project do, and are said to.
    world.write(".claude/plimsoll.json", "{}");
    let (is_found, shown) = memory_of(&world);
    let folder = outside(&world).join("memory").display().to_string();
    assert!(is_found && shown.stderr.contains(&folder), "{shown:?}");
    assert!(!shown.stdout.contains("written-outside"), "{shown:?}");
    // What the hint says helps, and a memory that goes on from it is not another one.
    move_into_project(&world, &["memory"]);
    world.plimsoll(&["memory", "set", "R5", "written-inside"]).run().expect_success();
    let (is_found, shown) = memory_of(&world);
    assert!(!is_found && shown.stderr.is_empty(), "{shown:?}");
    assert!(shown.stdout.contains("written-outside") && shown.stdout.contains("written-inside"), "{shown:?}");
}
