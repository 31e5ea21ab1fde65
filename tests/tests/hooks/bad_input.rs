//! On any input, the hook programs print a JSON object or nothing (the status line: a line with `?`), exit with 0, print at most
//! one clear line on standard error, finish within a second, and lose no file.

use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_testkit::{find_or_build_bin_dir, fixtures_dir};
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

fn all_programs() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|(program, _)| *program).chain([STATUS_LINE])
}

fn run_with_input(world: &World, program: &str, input: impl Into<Vec<u8>>) -> FinishedProgram {
    let project = world.project().display().to_string();
    world
        .command(find_or_build_bin_dir().join(program), &[])
        .env("CLAUDE_PROJECT_DIR", project)
        .stdin(input)
        .run()
}

/// Returns how long one event may take on a busy machine. The promised time holds for release builds (nextest's profile
/// `released`); other builds are slower.
fn max_duration() -> Duration {
    let are_released = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "released");
    Duration::from_secs(if are_released { 4 } else { 20 })
}

/// Asserts that the program succeeded in time, that its response changes nothing, and that it printed this many lines on standard
/// error.
fn assert_harmless_response(program: &str, finished: &FinishedProgram, error_line_count: usize, case: &str) {
    let context = format!("{program}, {case}: {finished:?}");
    assert_eq!(finished.code, Some(0), "{context}");
    assert!(finished.elapsed < max_duration(), "{context}");
    match program {
        "plimsoll-pre-compact" => assert_eq!(finished.stdout, "", "{context}"),
        STATUS_LINE => {
            assert!(finished.stdout.contains('?') && finished.stdout.lines().count() == 1, "{context}");
        }
        _ => assert_eq!(finished.stdout_json(), json!({}), "{context}"),
    }
    assert_eq!(finished.stderr.lines().count(), error_line_count, "{context}");
    for line in finished.stderr.lines() {
        assert!(line.starts_with(&format!("{program}: ")) && line.len() > program.len() + 10, "{context}");
    }
}

fn hook_payload(world: &World, event: &str) -> Value {
    json!({
        "session_id": SESSION,
        "transcript_path": world.home().join("transcript.jsonl"),
        "cwd": world.project(),
        "hook_event_name": event,
    })
}

/// Writes a transcript whose last response reports this many input tokens.
fn write_transcript(world: &World, tokens: u64) -> PathBuf {
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

/// Returns the content of every file below a folder, except lock files.
fn read_all_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "lock") {
                files.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// A project with every kind of file that could be lost.
fn world_with_records() -> World {
    let world = World::new();
    write_transcript(&world, 50_000);
    let start = hook_payload(&world, "SessionStart").to_string();
    assert_harmless_response(
        "plimsoll-session-start",
        &run_with_input(&world, "plimsoll-session-start", start),
        0,
        "furnishing",
    );
    let state =
        json!({ "run_id": RUN, "session_id": SESSION, "status": "running", "iteration": 1, "theirs": [1] });
    world.write_run_state_record_and_ledger(&state);
    world.write(".claude/plimsoll/windows.json", r#"{"claude-opus-5-5": 1000000}"#);
    world.write(".claude/plimsoll.json", r#"{"grace_batches": 4}"#);
    world.write("PROMPT.md", "The task.\n");
    world
}

#[test]
fn input_that_is_not_one_json_object_is_reported_and_changes_nothing() {
    let world = world_with_records();
    let before = read_all_files(&world.project());
    let batch = std::fs::read_to_string(fixtures_dir().join("hooks/post_tool_batch.parallel.json")).unwrap();
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
    for program in all_programs() {
        for (case, input) in &inputs {
            let finished = run_with_input(&world, program, input.clone());
            assert_harmless_response(program, &finished, 1, case);
            assert!(finished.stderr.contains("standard input is "), "{case}: {finished:?}");
        }
    }
    assert_eq!(read_all_files(&world.project()), before, "nothing is lost, nothing is left behind");
}

#[test]
fn wrong_types_and_unknown_events_are_ignored_silently() {
    let world = world_with_records();
    let before = read_all_files(&world.project());
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
            let all_fields: Value = fields.iter().map(|field| ((*field).to_owned(), value.clone())).collect();
            assert_harmless_response(
                program,
                &run_with_input(&world, program, all_fields.to_string()),
                0,
                &format!("all {value}"),
            );
            let mut with_event_name = all_fields;
            with_event_name["hook_event_name"] = event.into();
            assert_harmless_response(
                program,
                &run_with_input(&world, program, with_event_name.to_string()),
                0,
                &format!("{event}, all {value}"),
            );
        }
        for event in ["NotYetInvented", "", "posttoolbatch", "PostToolBatch\u{0}", "SubagentStop"] {
            assert_harmless_response(
                program,
                &run_with_input(&world, program, hook_payload(&world, event).to_string()),
                0,
                event,
            );
        }
    }
    let after = read_all_files(&world.project());
    let changed: Vec<&PathBuf> = before.keys().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert_eq!(changed, Vec::<&PathBuf>::new());
}

#[test]
fn ten_megabyte_batch_is_measured_within_the_time_limit() {
    let world = world_with_records();
    let mut batch = hook_payload(&world, "PostToolBatch");
    batch["tool_calls"] =
        json!([{ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_response": "x\n".repeat(2_500_000) }]);
    batch["unheard_of"] = "y".repeat(5_000_000).into();
    let finished = run_with_input(&world, "plimsoll-post-tool", batch.to_string());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.elapsed < max_duration(), "{:?}", finished.elapsed);
    assert!(
        plimsoll_tests::marker_in_user_message(&finished.stdout_json()).starts_with("CCS_WARNING|"),
        "{finished:?}"
    );
    for program in all_programs().filter(|program| *program != "plimsoll-post-tool") {
        assert_harmless_response(program, &run_with_input(&world, program, batch.to_string()), 0, "5 MB");
    }
}

#[test]
fn transcript_that_is_not_a_plain_file_is_never_opened() {
    let world = world_with_records();
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
            let mut input = hook_payload(&world, event);
            input["transcript_path"] = path.into();
            input["tool_calls"] = json!([{ "tool_use_id": "toolu_1" }]);
            let finished = run_with_input(&world, program, input.to_string());
            if program == "plimsoll-pre-compact" {
                assert!(finished.code == Some(0) && finished.stderr.is_empty(), "{path}: {finished:?}");
                assert!(
                    finished.stdout.contains(".claude/handoffs/"),
                    "the checkpoint is written: {finished:?}"
                );
                continue;
            }
            let error_line_count = usize::from(program == "plimsoll-post-tool");
            assert_harmless_response(program, &finished, error_line_count, path);
            assert!(error_line_count == 0 || finished.stderr.contains("not a plain file"), "{finished:?}");
        }
    }
    let mut input = hook_payload(&world, "PostToolBatch");
    input["transcript_path"] = "/nowhere/at/all.jsonl".into();
    assert_harmless_response(
        "plimsoll-post-tool",
        &run_with_input(&world, "plimsoll-post-tool", input.to_string()),
        0,
        "a missing one is no fault",
    );
}

#[test]
fn every_program_accepts_every_recorded_payload() {
    let world = World::new();
    let project = world.project().display().to_string();
    let home = world.home().display().to_string();
    let mut payload_count = 0;
    for folder in ["hooks", "statusline"] {
        for entry in std::fs::read_dir(fixtures_dir().join(folder)).unwrap().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let text = text.replace("/home/dev/project", &project).replace("/home/dev", &home);
            for program in all_programs() {
                let finished = run_with_input(&world, program, text.clone());
                let context = format!("{program} < {}: {finished:?}", entry.path().display());
                assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{context}");
                match program {
                    STATUS_LINE if folder == "statusline" => {
                        assert!(finished.stdout.contains('▕'), "{context}")
                    }
                    STATUS_LINE => assert!(finished.stdout.contains('?'), "{context}"),
                    "plimsoll-pre-compact" => assert!(!finished.stdout.starts_with('{'), "{context}"),
                    _ => assert!(finished.stdout_json().is_object(), "{context}"),
                }
            }
            payload_count += 1;
        }
    }
    assert!(payload_count > 60, "{payload_count}");
}

#[test]
fn closed_or_full_output_is_not_an_error() {
    let world = world_with_records();
    for (program, event) in HOOKS.into_iter().chain([(STATUS_LINE, "Status")]) {
        world.write("input.json", &hook_payload(&world, event).to_string());
        let path = find_or_build_bin_dir().join(program).display().to_string();
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
fn unwritable_folder_costs_one_error_line() {
    let (unwritable_project, unwritable_home) = (World::new(), World::without_plimsoll_files());
    // The copy of the state in `.git` makes the run known although its files in the project are gone.
    unwritable_project.write(".git/plimsoll/ralph-state.json", r#"{"run_id": "r1"}"#);
    std::fs::remove_dir_all(unwritable_project.path(".claude")).expect("it is ours");
    unwritable_project.write(".claude", "not a folder");
    let home = |world: &World| world.home().display().to_string();
    for (world, home, named) in [
        (&unwritable_project, home(&unwritable_project), unwritable_project.project().display().to_string()),
        (&unwritable_home, "/proc/1".to_owned(), "/proc/1".to_owned()),
    ] {
        write_transcript(world, 50_000);
        for (program, event) in HOOKS {
            let input = hook_payload(world, event).to_string();
            let command = world.command(find_or_build_bin_dir().join(program), &[]).stdin(input);
            let finished = command.env("HOME", home.clone()).run();
            // The gate keeps evidence only for a run, and has nothing to write here.
            assert_harmless_response(
                program,
                &finished,
                usize::from(program != "plimsoll-stop-gate"),
                &named,
            );
        }
        let status = std::fs::read_to_string(fixtures_dir().join("statusline/usage.1m.json")).unwrap();
        let status = status.replace("/home/dev/project", &world.project().display().to_string());
        let line = world
            .command(find_or_build_bin_dir().join(STATUS_LINE), &[])
            .stdin(status)
            .env("HOME", home)
            .run();
        assert!(line.code == Some(0) && line.stdout.contains('▕'), "{line:?}");
        assert_eq!(line.stderr.lines().count(), 1, "{line:?}");
    }
    assert_eq!(unwritable_project.read(".claude"), "not a folder");
}

#[test]
fn corrupt_record_is_set_aside_and_never_overwritten() {
    let record = format!(".claude/plimsoll/sessions/{SESSION}.json");
    let published = format!(".claude/plimsoll/sessions/{SESSION}.status.json");
    let windows = ".claude/plimsoll/windows.json".to_owned();
    for corrupt in ["{\"session_id\": \"d8e9", "", "[]", "\u{0}\u{0}\u{0}\u{0}"] {
        let world = world_with_records();
        for file in [&record, &published, &windows] {
            world.write(file, corrupt);
        }
        let finished =
            run_with_input(&world, "plimsoll-post-tool", hook_payload(&world, "PostToolBatch").to_string());
        assert_harmless_response("plimsoll-post-tool", &finished, 0, corrupt);
        assert_eq!(world.read_json(&record)["percent"], 5, "it goes on with a new one");
        // Readers leave a corrupt file in place; the next writer sets it aside.
        assert_eq!(world.read(&published), corrupt);
        assert_eq!(world.read(&windows), corrupt);
        let status = std::fs::read_to_string(fixtures_dir().join("statusline/usage.1m.json")).unwrap();
        let mut status: Value = serde_json::from_str(&status).unwrap();
        status["session_id"] = SESSION.into();
        status["workspace"]["project_dir"] = world.project().display().to_string().into();
        let finished = run_with_input(&world, STATUS_LINE, status.to_string());
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{corrupt:?}");
        assert_eq!(world.read_json(&published)["session_id"], SESSION);
        let files_afterwards = read_all_files(&world.path(".claude/plimsoll"));
        for file in [&record, &published, &windows] {
            let name = format!("{}.corrupt-", world.path(file).display());
            let backup = files_afterwards.iter().find(|(path, _)| path.to_string_lossy().starts_with(&name));
            let backup_bytes = backup.map(|(_, bytes)| bytes.as_slice());
            assert_eq!(backup_bytes, Some(corrupt.as_bytes()), "{file} {corrupt:?}");
        }
    }
}

#[test]
fn invalid_settings_file_is_reported_and_left_unchanged() {
    let world = world_with_records();
    for (text, word) in
        [("{", "EOF"), ("{\"levls\": {}}", "levls"), ("{\"levels\": {\"l1\": 99}}", "rise"), ("[]", "a list")]
    {
        world.write(".claude/plimsoll.json", text);
        for (program, event) in HOOKS {
            let finished = run_with_input(&world, program, hook_payload(&world, event).to_string());
            assert_eq!(finished.code, Some(0), "{finished:?}");
            let error_lines: Vec<&str> = finished.stderr.lines().collect();
            assert!(error_lines.len() == 1 && error_lines[0].contains("plimsoll.json"), "{finished:?}");
            assert!(error_lines[0].contains(word), "{finished:?}");
            let faults = world.read(".claude/plimsoll/faults.jsonl");
            let last: Value = serde_json::from_str(faults.lines().last().unwrap()).unwrap();
            assert_eq!((&last["program"], &last["session_id"]), (&json!(program), &json!(SESSION)));
            assert_eq!(format!("{program}: {}", last["what"].as_str().unwrap()), error_lines[0]);
        }
        assert_eq!(world.read(".claude/plimsoll.json"), text);
    }
}

#[test]
fn corrupt_state_is_reported_and_never_overwritten() {
    for corrupt in ["{\"run_id\": \"2026", "[]", "", "{\"run_id\": [], \"iteration\": \"four\"}"] {
        for (program, event) in HOOKS {
            let world = world_with_records();
            write_transcript(&world, 870_000);
            // The ledger would repair the state.
            std::fs::remove_dir_all(world.runs_folder()).unwrap();
            world.write(".claude/ralph-state.json", corrupt);
            let input = hook_payload(&world, event).to_string();
            let project = world.project().display().to_string();
            let command = world.command(find_or_build_bin_dir().join(program), &[]).stdin(input);
            let finished = command.env("PLIMSOLL_RUN_ID", RUN).env("CLAUDE_PROJECT_DIR", project).run();
            let context = format!("{program} {corrupt:?}: {finished:?}");
            assert_eq!(finished.code, Some(0), "{context}");
            assert_eq!(finished.stderr.lines().count(), 1, "{context}");
            assert!(finished.stderr.contains("ralph-state.json"), "{context}");
            let files_afterwards = read_all_files(&world.path(".claude"));
            let states = files_afterwards
                .iter()
                .filter(|(path, _)| path.to_string_lossy().contains("ralph-state.json"));
            assert!(
                states.clone().count() == 1 && states.clone().all(|(_, bytes)| bytes == corrupt.as_bytes()),
                "{context}"
            );
        }
    }
}

#[test]
fn hostile_session_id_creates_no_file() {
    let long = "x".repeat(10_000);
    for id in ["../../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "a\u{0}b", "é", ".hidden", &long] {
        let world = world_with_records();
        write_transcript(&world, 720_000);
        let before = read_all_files(world.home().parent().unwrap());
        for (program, event) in HOOKS.into_iter().chain([(STATUS_LINE, "Status")]) {
            let mut input = hook_payload(&world, event);
            input["session_id"] = id.into();
            input["workspace"] = json!({ "project_dir": world.project() });
            let finished = run_with_input(&world, program, input.to_string());
            assert_eq!(
                (finished.code, finished.stderr.as_str()),
                (Some(0), ""),
                "{program} {id:?}: {finished:?}"
            );
        }
        let new: Vec<PathBuf> = read_all_files(world.home().parent().unwrap())
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
fn hooks_work_without_home_path_or_current_folder() {
    let world = world_with_records();
    for (program, event) in HOOKS {
        let input = hook_payload(&world, event).to_string();
        let command = world
            .command(find_or_build_bin_dir().join(program), &[])
            .env_remove("HOME")
            .env_remove("PATH")
            .stdin(input);
        let finished = command.env("CLAUDE_PROJECT_DIR", world.project().display().to_string()).run();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{program}: {finished:?}");

        let path = find_or_build_bin_dir().join(program).display().to_string();
        let line = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\"";
        let mut input = hook_payload(&world, event);
        input["cwd"] = Value::Null;
        let finished = world.command("sh", &["-c", line, &path]).stdin(input.to_string()).run();
        assert_eq!(finished.code, Some(0), "{program}: {finished:?}");
        assert!(finished.stderr.lines().count() <= 1, "{program}: {finished:?}");
    }
    let finished =
        world.command(find_or_build_bin_dir().join(STATUS_LINE), &[]).env_remove("HOME").stdin("{}").run();
    assert_harmless_response(STATUS_LINE, &finished, 0, "no home");
}
