//! Whatever the hook programs are given: a JSON object or nothing on standard output (the status line a line with
//! `?`), exit 0, at most one clear line on standard error, within a second, and nothing lost.

use plimsoll_testkit::world::{Finished, World};
use plimsoll_testkit::{bin_dir, fixtures};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
const RUN: &str = "20260107-090000-dates";

/// Every hook program with an event it acts on.
const HOOKS: [(&str, &str); 5] = [
    ("plimsoll-post-tool", "PostToolBatch"),
    ("plimsoll-stop-gate", "Stop"),
    ("plimsoll-session-start", "SessionStart"),
    ("plimsoll-session-end", "SessionEnd"),
    ("plimsoll-pre-compact", "PreCompact"),
];
const STATUS_LINE: &str = "plimsoll-statusline";

fn programs() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|(program, _)| *program).chain([STATUS_LINE])
}

fn feed(world: &World, program: &str, input: impl Into<Vec<u8>>) -> Finished {
    let project = world.project().display().to_string();
    world.command(bin_dir().join(program), &[]).env("CLAUDE_PROJECT_DIR", project).stdin(input).run()
}

/// So long may one event take, beside much else. What is promised holds of the programs as users get them (nextest's profile
/// `released`); others are built to compile fast.
fn bound() -> Duration {
    let are_released = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "released");
    Duration::from_secs(if are_released { 4 } else { 20 })
}

/// The answer that changes nothing, with so many lines for a person.
fn check(program: &str, finished: &Finished, complaints: usize, what: &str) {
    let scene = format!("{program}, {what}: {finished:?}");
    assert_eq!(finished.code, Some(0), "{scene}");
    assert!(finished.elapsed < bound(), "{scene}");
    match program {
        "plimsoll-pre-compact" => assert_eq!(finished.stdout, "", "{scene}"),
        STATUS_LINE => {
            assert!(finished.stdout.contains('?') && finished.stdout.lines().count() == 1, "{scene}");
        }
        _ => assert_eq!(finished.json(), json!({}), "{scene}"),
    }
    assert_eq!(finished.stderr.lines().count(), complaints, "{scene}");
    for line in finished.stderr.lines() {
        assert!(line.starts_with(&format!("{program}: ")) && line.len() > program.len() + 10, "{scene}");
    }
}

fn payload(world: &World, event: &str) -> Value {
    json!({
        "session_id": SESSION,
        "transcript_path": world.home().join("transcript.jsonl"),
        "cwd": world.project(),
        "hook_event_name": event,
    })
}

/// A transcript whose last answer was sent with so many tokens.
fn transcript(world: &World, tokens: u64) -> PathBuf {
    let line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
        "timestamp": "2026-01-07T11:45:00.000Z", "uuid": "u",
        "message": {
            "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant", "content": [],
            "usage": { "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
        },
    });
    let path = world.home().join("transcript.jsonl");
    world.write(&path, &format!("{line}\n"));
    path
}

/// Every file below a folder with its bytes, locks apart.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "lock") {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// A project with everything in it that could be lost.
fn furnished() -> World {
    let world = World::new();
    transcript(&world, 50_000);
    let start = payload(&world, "SessionStart").to_string();
    check("plimsoll-session-start", &feed(&world, "plimsoll-session-start", start), 0, "furnishing");
    let state =
        json!({ "run_id": RUN, "session_id": SESSION, "status": "running", "iteration": 1, "theirs": [1] });
    world.put_run(&state);
    world.write(".claude/plimsoll/windows.json", r#"{"claude-opus-5-5": 1000000}"#);
    world.write(".claude/plimsoll.json", r#"{"grace_batches": 4}"#);
    world.write("PROMPT.md", "The task.\n");
    world
}

#[test]
fn what_is_not_one_json_object_is_named_and_changes_nothing() {
    let world = furnished();
    let before = files(&world.project());
    let batch = std::fs::read_to_string(fixtures().join("hooks/post_tool_batch.parallel.json")).unwrap();
    let half = batch.get(..batch.len() / 2).unwrap().to_owned();
    let inputs: [(&str, Vec<u8>); 11] = [
        ("empty", Vec::new()),
        ("white space", b" \r\n\t ".to_vec()),
        ("not JSON", b"hello".to_vec()),
        ("truncated", half.into_bytes()),
        ("a list", b"[1, 2, 3]".to_vec()),
        ("a text", b"\"PostToolBatch\"".to_vec()),
        ("null", b"null".to_vec()),
        ("two objects", b"{} {}".to_vec()),
        ("bytes", vec![0xff, 0xfe, 0, 1, 2]),
        ("5 MB of letters", vec![b'x'; 5_000_000]),
        ("5 MB of brackets", [b"{\"tool_calls\":".to_vec(), vec![b'['; 5_000_000]].concat()),
    ];
    for program in programs() {
        for (what, input) in &inputs {
            let finished = feed(&world, program, input.clone());
            check(program, &finished, 1, what);
            assert!(finished.stderr.contains("standard input is "), "{what}: {finished:?}");
        }
    }
    assert_eq!(files(&world.project()), before, "nothing is lost, nothing is left behind");
}

#[test]
fn wrong_types_and_unknown_events_are_passed_over_in_silence() {
    let world = furnished();
    let before = files(&world.project());
    let fields = [
        "session_id",
        "transcript_path",
        "cwd",
        "hook_event_name",
        "agent_id",
        "source",
        "model",
        "reason",
        "trigger",
        "tool_calls",
        "tool_name",
        "tool_input",
        "tool_response",
        "error",
        "stop_hook_active",
        "last_assistant_message",
        "background_tasks",
        "workspace",
        "context_window",
        "cost",
    ];
    let values = [
        json!(null),
        json!(7),
        json!(-1.5),
        json!(true),
        json!([]),
        json!([[1]]),
        json!({}),
        json!({"id": []}),
    ];
    for (program, event) in HOOKS.into_iter().chain([(STATUS_LINE, "Status")]) {
        for value in &values {
            let all: Value = fields.iter().map(|field| ((*field).to_owned(), value.clone())).collect();
            check(program, &feed(&world, program, all.to_string()), 0, &format!("all {value}"));
            let mut named = all;
            named["hook_event_name"] = event.into();
            check(program, &feed(&world, program, named.to_string()), 0, &format!("{event}, all {value}"));
        }
        for event in ["NotYetInvented", "", "posttoolbatch", "PostToolBatch\u{0}", "SubagentStop"] {
            check(program, &feed(&world, program, payload(&world, event).to_string()), 0, event);
        }
    }
    let after = files(&world.project());
    let changed: Vec<&PathBuf> = before.keys().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert_eq!(changed, Vec::<&PathBuf>::new());
}

#[test]
fn ten_megabytes_of_a_batch_are_measured_without_a_wait() {
    let world = furnished();
    let mut batch = payload(&world, "PostToolBatch");
    batch["tool_calls"] =
        json!([{ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_response": "x\n".repeat(2_500_000) }]);
    batch["unheard_of"] = "y".repeat(5_000_000).into();
    let finished = feed(&world, "plimsoll-post-tool", batch.to_string());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.elapsed < bound(), "{:?}", finished.elapsed);
    assert!(finished.json()["systemMessage"].as_str().unwrap().starts_with("CCS_WARNING|"), "{finished:?}");
    for program in programs().filter(|program| *program != "plimsoll-post-tool") {
        check(program, &feed(&world, program, batch.to_string()), 0, "5 MB");
    }
}

#[test]
fn a_transcript_that_is_no_plain_file_is_never_opened() {
    let world = furnished();
    let pipe = world.home().join("pipe");
    world.command("mkfifo", &[pipe.to_str().unwrap()]).run().expect_success();
    for path in [
        "/dev/zero",
        "/dev/tty",
        "/dev/full",
        "/proc",
        "/",
        pipe.to_str().unwrap(),
        world.home().to_str().unwrap(),
    ] {
        for (program, event) in HOOKS {
            let mut input = payload(&world, event);
            input["transcript_path"] = path.into();
            input["tool_calls"] = json!([{ "tool_use_id": "toolu_1" }]);
            let finished = feed(&world, program, input.to_string());
            if program == "plimsoll-pre-compact" {
                assert!(finished.code == Some(0) && finished.stderr.is_empty(), "{path}: {finished:?}");
                assert!(
                    finished.stdout.contains(".claude/handoffs/"),
                    "the checkpoint is written: {finished:?}"
                );
                continue;
            }
            let complaints = usize::from(program == "plimsoll-post-tool");
            check(program, &finished, complaints, path);
            assert!(complaints == 0 || finished.stderr.contains("not a plain file"), "{finished:?}");
        }
    }
    let mut input = payload(&world, "PostToolBatch");
    input["transcript_path"] = "/nowhere/at/all.jsonl".into();
    check(
        "plimsoll-post-tool",
        &feed(&world, "plimsoll-post-tool", input.to_string()),
        0,
        "a missing one is no fault",
    );
}

#[test]
fn every_recorded_payload_is_understood_by_every_program() {
    let world = World::new();
    let project = world.project().display().to_string();
    let home = world.home().display().to_string();
    let mut seen = 0;
    for folder in ["hooks", "statusline"] {
        for entry in std::fs::read_dir(fixtures().join(folder)).unwrap().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let text = text.replace("/home/dev/project", &project).replace("/home/dev", &home);
            for program in programs() {
                let finished = feed(&world, program, text.clone());
                let scene = format!("{program} < {}: {finished:?}", entry.path().display());
                assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{scene}");
                match program {
                    STATUS_LINE if folder == "statusline" => {
                        assert!(finished.stdout.contains('▕'), "{scene}")
                    }
                    STATUS_LINE => assert!(finished.stdout.contains('?'), "{scene}"),
                    "plimsoll-pre-compact" => assert!(!finished.stdout.starts_with('{'), "{scene}"),
                    _ => assert!(finished.json().is_object(), "{scene}"),
                }
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn a_reader_that_is_gone_is_a_normal_end() {
    let world = furnished();
    for (program, event) in HOOKS.into_iter().chain([(STATUS_LINE, "Status")]) {
        world.write("input.json", &payload(&world, event).to_string());
        let path = bin_dir().join(program).display().to_string();
        for line in [
            "\"$0\" < input.json >&-",
            "\"$0\" < input.json > /dev/full",
            "{ sleep 0.05; \"$0\" < input.json; echo $? > code; } | true; sleep 0.2; exit $(cat code)",
            "\"$0\" < input.json >&- 2>&-",
            "\"$0\" <&-",
        ] {
            let finished = world.command("sh", &["-c", line, &path]).run();
            assert_eq!(finished.code, Some(0), "{program}: {line}: {finished:?}");
        }
    }
}

#[test]
fn a_place_that_cannot_be_written_costs_one_line() {
    let (in_project, at_home) = (World::new(), World::untouched());
    // By the copy of its state a run is known whose files in the project are gone.
    in_project.write(".git/plimsoll/ralph-state.json", r#"{"run_id": "r1"}"#);
    std::fs::remove_dir_all(in_project.path(".claude")).expect("it is ours");
    in_project.write(".claude", "not a folder");
    let home = |world: &World| world.home().display().to_string();
    for (world, home, named) in [
        (&in_project, home(&in_project), in_project.project().display().to_string()),
        (&at_home, "/proc/1".to_owned(), "/proc/1".to_owned()),
    ] {
        transcript(world, 50_000);
        for (program, event) in HOOKS {
            let input = payload(world, event).to_string();
            let command = world.command(bin_dir().join(program), &[]).stdin(input);
            let finished = command.env("HOME", home.clone()).run();
            // The gate keeps evidence only for a run, and has nothing to write here.
            check(program, &finished, usize::from(program != "plimsoll-stop-gate"), &named);
        }
        let status = std::fs::read_to_string(fixtures().join("statusline/usage.1m.json")).unwrap();
        let status = status.replace("/home/dev/project", &world.project().display().to_string());
        let line = world.command(bin_dir().join(STATUS_LINE), &[]).stdin(status).env("HOME", home).run();
        assert!(line.code == Some(0) && line.stdout.contains('▕'), "{line:?}");
        assert_eq!(line.stderr.lines().count(), 1, "{line:?}");
    }
    assert_eq!(in_project.read(".claude"), "not a folder");
}

#[test]
fn a_corrupt_record_is_set_aside_and_never_overwritten() {
    let record = format!(".claude/plimsoll/sessions/{SESSION}.json");
    let published = format!(".claude/plimsoll/sessions/{SESSION}.status.json");
    let windows = ".claude/plimsoll/windows.json".to_owned();
    for corrupt in ["{\"session_id\": \"d8e9", "", "[]", "\u{0}\u{0}\u{0}\u{0}"] {
        let world = furnished();
        for file in [&record, &published, &windows] {
            world.write(file, corrupt);
        }
        let finished = feed(&world, "plimsoll-post-tool", payload(&world, "PostToolBatch").to_string());
        check("plimsoll-post-tool", &finished, 0, corrupt);
        assert_eq!(world.json(&record)["percent"], 5, "it goes on with a new one");
        // Readers move nothing; whoever writes the file next does.
        assert_eq!(world.read(&published), corrupt);
        assert_eq!(world.read(&windows), corrupt);
        let status = std::fs::read_to_string(fixtures().join("statusline/usage.1m.json")).unwrap();
        let mut status: Value = serde_json::from_str(&status).unwrap();
        status["session_id"] = SESSION.into();
        status["workspace"]["project_dir"] = world.project().display().to_string().into();
        let finished = feed(&world, STATUS_LINE, status.to_string());
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{corrupt:?}");
        assert_eq!(world.json(&published)["session_id"], SESSION);
        let kept = files(&world.path(".claude/plimsoll"));
        for file in [&record, &published, &windows] {
            let name = format!("{}.corrupt-", world.path(file).display());
            let aside = kept.iter().find(|(path, _)| path.to_string_lossy().starts_with(&name));
            let aside = aside.map(|(_, bytes)| bytes.as_slice());
            assert_eq!(aside, Some(corrupt.as_bytes()), "{file} {corrupt:?}");
        }
    }
}

#[test]
fn a_settings_file_with_a_fault_is_named_and_left_alone() {
    let world = furnished();
    for (text, word) in
        [("{", "EOF"), ("{\"levls\": {}}", "levls"), ("{\"levels\": {\"l1\": 99}}", "rise"), ("[]", "a list")]
    {
        world.write(".claude/plimsoll.json", text);
        for (program, event) in HOOKS {
            let finished = feed(&world, program, payload(&world, event).to_string());
            assert_eq!(finished.code, Some(0), "{finished:?}");
            let complaints: Vec<&str> = finished.stderr.lines().collect();
            assert!(complaints.len() == 1 && complaints[0].contains("plimsoll.json"), "{finished:?}");
            assert!(complaints[0].contains(word), "{finished:?}");
            let known = world.read(".claude/plimsoll/faults.jsonl");
            let last: Value = serde_json::from_str(known.lines().last().unwrap()).unwrap();
            assert_eq!((&last["program"], &last["session_id"]), (&json!(program), &json!(SESSION)));
            assert_eq!(format!("{program}: {}", last["what"].as_str().unwrap()), complaints[0]);
        }
        assert_eq!(world.read(".claude/plimsoll.json"), text);
    }
}

#[test]
fn a_corrupt_state_is_named_and_never_overwritten() {
    for corrupt in ["{\"run_id\": \"2026", "[]", "", "{\"run_id\": [], \"iteration\": \"four\"}"] {
        for (program, event) in HOOKS {
            let world = furnished();
            transcript(&world, 870_000);
            // With the ledger it is mended.
            std::fs::remove_dir_all(world.runs()).unwrap();
            world.write(".claude/ralph-state.json", corrupt);
            let input = payload(&world, event).to_string();
            let project = world.project().display().to_string();
            let command = world.command(bin_dir().join(program), &[]).stdin(input);
            let finished = command.env("PLIMSOLL_RUN_ID", RUN).env("CLAUDE_PROJECT_DIR", project).run();
            let scene = format!("{program} {corrupt:?}: {finished:?}");
            assert_eq!(finished.code, Some(0), "{scene}");
            assert_eq!(finished.stderr.lines().count(), 1, "{scene}");
            assert!(finished.stderr.contains("ralph-state.json"), "{scene}");
            let kept = files(&world.path(".claude"));
            let states = kept.iter().filter(|(path, _)| path.to_string_lossy().contains("ralph-state.json"));
            assert!(
                states.clone().count() == 1 && states.clone().all(|(_, bytes)| bytes == corrupt.as_bytes()),
                "{scene}"
            );
        }
    }
}

#[test]
fn a_hostile_session_id_names_no_file() {
    let long = "x".repeat(10_000);
    for id in ["../../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "a\u{0}b", "é", ".hidden", &long] {
        let world = furnished();
        transcript(&world, 720_000);
        let before = files(world.home().parent().unwrap());
        for (program, event) in HOOKS.into_iter().chain([(STATUS_LINE, "Status")]) {
            let mut input = payload(&world, event);
            input["session_id"] = id.into();
            input["workspace"] = json!({ "project_dir": world.project() });
            let finished = feed(&world, program, input.to_string());
            assert_eq!(
                (finished.code, finished.stderr.as_str()),
                (Some(0), ""),
                "{program} {id:?}: {finished:?}"
            );
        }
        let new: Vec<PathBuf> = files(world.home().parent().unwrap())
            .into_keys()
            .filter(|path| !before.contains_key(path))
            .filter(|path| !path.starts_with(world.path(".claude/handoffs")))
            .filter(|path| !path.starts_with(world.home().join(".local/state/plimsoll/unread")))
            .filter(|path| *path != world.path(".claude/plimsoll/journal.jsonl"))
            .collect();
        assert_eq!(new, Vec::<PathBuf>::new(), "{id:?}");
    }
}

#[test]
fn without_a_home_and_without_a_folder_to_stand_in_all_goes_on() {
    let world = furnished();
    for (program, event) in HOOKS {
        let input = payload(&world, event).to_string();
        let command =
            world.command(bin_dir().join(program), &[]).env_remove("HOME").env_remove("PATH").stdin(input);
        let finished = command.env("CLAUDE_PROJECT_DIR", world.project().display().to_string()).run();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{program}: {finished:?}");

        let path = bin_dir().join(program).display().to_string();
        let line = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\"";
        let mut input = payload(&world, event);
        input["cwd"] = Value::Null;
        let finished = world.command("sh", &["-c", line, &path]).stdin(input.to_string()).run();
        assert_eq!(finished.code, Some(0), "{program}: {finished:?}");
        assert!(finished.stderr.lines().count() <= 1, "{program}: {finished:?}");
    }
    let finished = world.command(bin_dir().join(STATUS_LINE), &[]).env_remove("HOME").stdin("{}").run();
    check(STATUS_LINE, &finished, 0, "no home");
}
