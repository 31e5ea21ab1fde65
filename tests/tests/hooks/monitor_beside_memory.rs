//! The monitor and the memory run in one process: nothing that the memory does changes the monitor's message or its
//! timing.

use crate::crash_points::prepared_projects::SessionFixture;
use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
use plimsoll_store::memory;
use plimsoll_testkit::world::FinishedProgram;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Used tokens of a window of a million: below all levels, at the warning, at the checkpoint, at the end.
const USED_TOKENS: [u64; 4] = [100_000, 720_000, 870_000, 970_000];
/// A hook that waits for no lock takes a fraction of a second, even beside others; one that waits for the memory's lock
/// takes three seconds.
const MAX_TIME_WITHOUT_LOCK: Duration = Duration::from_secs(2);

fn with_memory_argument(mut invocation: Invocation) -> Invocation {
    invocation.arguments.push("memory".to_owned());
    invocation
}

fn additional_context(finished: &FinishedProgram) -> String {
    finished.stdout_json()["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

fn set_register(prepared: &PreparedWorld, register: &str, value: &str) {
    prepared.run(&Invocation::plimsoll(&["memory", "set", register, value])).expect_success();
}

/// Returns what the monitor decided: the exit code and the answer, without what the memory added and without the
/// handoff's time.
fn monitor_decision(finished: &FinishedProgram) -> (Option<i32>, Value) {
    let mut response = finished.stdout_json();
    let text = additional_context(finished);
    let monitor_text = text.split("<plimsoll-memory").next().unwrap_or_default().trim_end().to_owned();
    response["hookSpecificOutput"] = json!(monitor_text);
    // The name of a handoff contains the minute.
    let handoff = response["systemMessage"].as_str().and_then(|text| text.split(".claude/handoffs/").nth(1));
    let minute = handoff.and_then(|name| name.get(..15)).unwrap_or_default().to_owned();
    let timeless = if minute.is_empty() {
        response.to_string()
    } else {
        response.to_string().replace(&minute, "(time)")
    };
    (finished.code, serde_json::from_str(&timeless).expect("JSON"))
}

#[test]
fn memory_changes_follow_the_monitors_text_unless_the_session_ends() {
    for (used, is_memory_reported, code) in [
        (USED_TOKENS[0], true, 0),
        (USED_TOKENS[1], true, 0),
        (USED_TOKENS[2], true, 0),
        (USED_TOKENS[3], false, 1),
    ] {
        let fixture = SessionFixture::in_run();
        fixture.write_memory();
        let scene_without_memory = SessionFixture::in_run();
        scene_without_memory.write_response(used);
        fixture.write_response(used);
        let finished_alone = scene_without_memory.prepared.run(&scene_without_memory.tool_batch());
        let finished_with_memory = fixture.prepared.run(&with_memory_argument(fixture.tool_batch()));
        assert_eq!(finished_with_memory.code, Some(code), "{finished_with_memory:?}");
        assert_eq!(monitor_decision(&finished_with_memory), monitor_decision(&finished_alone), "{used}");
        assert_eq!(
            additional_context(&finished_with_memory).contains("R0 GOAL: Build it."),
            is_memory_reported,
            "{used}: {finished_with_memory:?}"
        );
        if is_memory_reported {
            let again = fixture.prepared.run(&with_memory_argument(fixture.tool_batch()));
            assert!(!additional_context(&again).contains("R0 GOAL"), "once: {again:?}");
        }
    }
}

#[test]
fn a_held_memory_lock_does_not_delay_the_monitor() {
    for (used, code) in [(USED_TOKENS[1], 0), (USED_TOKENS[2], 0), (USED_TOKENS[3], 1)] {
        let fixture = SessionFixture::in_run();
        fixture.write_memory();
        fixture.write_response(used);
        let project = fixture.store_project();
        let memory_lock = memory::lock_memory(&project, MAX_TIME_WITHOUT_LOCK).expect("the lock");
        let started_at = Instant::now();
        let finished = fixture.prepared.run(&with_memory_argument(fixture.tool_batch()));
        let elapsed = started_at.elapsed();
        assert!(elapsed < MAX_TIME_WITHOUT_LOCK, "{used}: {elapsed:?}");
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert_eq!(finished.stdout_json()["continue"] == false, code == 1, "{finished:?}");
        assert!(
            finished.stderr.is_empty() && finished.stdout_json()["systemMessage"].is_string(),
            "{finished:?}"
        );
        drop(memory_lock);
        let later = fixture.prepared.run(&with_memory_argument(fixture.tool_batch()));
        assert_eq!(additional_context(&later).contains("R0 GOAL"), code == 0, "{later:?}");
    }
}

#[test]
fn a_damaged_memory_does_not_change_the_monitors_answer() {
    for used in USED_TOKENS {
        let scene_without_memory = SessionFixture::in_run();
        scene_without_memory.write_response(used);
        let decision_alone =
            monitor_decision(&scene_without_memory.prepared.run(&scene_without_memory.tool_batch()));
        for (name, text) in [
            ("log.jsonl", "not a log\n"),
            ("log.jsonl", ""),
            ("log.head", "\0\0\0\0"),
            ("state.json", "{\"memory\":{\"frames\":[]}}"),
            ("seen", "a file"),
            ("log.lock", ""),
        ] {
            let fixture = SessionFixture::in_run();
            fixture.write_memory();
            let path = fixture.store_project().memory_folder().join(name);
            let _ = std::fs::remove_dir_all(&path);
            // A lock file that cannot be opened.
            match name {
                "log.lock" => {
                    let _ = std::fs::remove_file(&path);
                    std::fs::create_dir(&path).unwrap();
                }
                _ => std::fs::write(&path, text).unwrap(),
            }
            fixture.write_response(used);
            let finished_with_memory = fixture.prepared.run(&with_memory_argument(fixture.tool_batch()));
            assert_eq!(
                monitor_decision(&finished_with_memory),
                decision_alone,
                "{used} {name} {text:?}: {finished_with_memory:?}"
            );
        }
    }
}

#[test]
fn a_hook_stays_silent_only_if_the_run_gave_this_session_its_hooks() {
    let fixture = SessionFixture::outside_run();
    fixture.write_response(USED_TOKENS[1]);
    let batch_with_hooks_given_to = |session: &str| {
        let programs = "plimsoll-post-tool plimsoll-memory";
        fixture.tool_batch().env("PLIMSOLL_HOOKS_GIVEN", format!("{session} {programs} memory"))
    };
    let yielded = fixture.prepared.run(&batch_with_hooks_given_to("session-one"));
    assert_eq!(yielded.stdout.trim(), "{}", "{yielded:?}");
    // A project's file can name an entry that the client does not start; such an entry silences nothing.
    fixture.prepared.world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    let warned = fixture.prepared.run(&batch_with_hooks_given_to("another"));
    assert!(
        plimsoll_tests::marker_in_user_message(&warned.stdout_json()).starts_with("CCS_WARNING|L1"),
        "{warned:?}"
    );
}

#[test]
fn a_batch_without_changes_writes_no_memory_file_but_counts_as_a_step() {
    let fixture = SessionFixture::outside_run();
    fixture.write_memory();
    let project = fixture.store_project();
    let batch = || additional_context(&fixture.prepared.run(&with_memory_argument(fixture.tool_batch())));
    assert!(batch().contains("R0 GOAL: Build it."));
    let files = ["log.jsonl", "log.head", "state.json", "seen/session-one.json"];
    let versions =
        || files.map(|name| plimsoll_store::disk::file_change_stamp(&project.memory_folder().join(name)));
    let (before, step) = (versions(), memory::load_memory(&project).unwrap().step_number);
    assert!(before.iter().all(Option::is_some), "{before:?}");
    let memory_lock = memory::lock_memory(&project, MAX_TIME_WITHOUT_LOCK).expect("the lock");
    let started_at = Instant::now();
    assert_eq!([batch(), batch(), batch()], ["", "", ""]);
    assert!(started_at.elapsed() < MAX_TIME_WITHOUT_LOCK, "no lock is awaited: {:?}", started_at.elapsed());
    drop(memory_lock);
    assert_eq!(versions(), before);
    assert_eq!(memory::load_memory(&project).unwrap().step_number, step + 3);
    // A change keeps the step count, and the next batch reports it.
    set_register(&fixture.prepared, "constraints", "Keep the API.");
    assert_eq!(memory::load_memory(&project).unwrap().step_number, step + 3);
    insta::assert_snapshot!(batch(), @r#"
    <plimsoll-memory rev="3"> (what has changed)
    R4 CONSTRAINTS: Keep the API.
    </plimsoll-memory>
    "#);
    // Batches of another session are steps of the same memory, but no calls of this session.
    let other_sessions_batch = || {
        let mut invocation = with_memory_argument(fixture.tool_batch());
        invocation.stdin = invocation.stdin.replace("\"session-one\"", "\"session-two\"");
        additional_context(&fixture.prepared.run(&invocation))
    };
    assert!(other_sessions_batch().contains("R0 GOAL"));
    (0..20).for_each(|_| assert_eq!(other_sessions_batch(), ""));
    assert_eq!(memory::load_memory(&project).unwrap().step_number, step + 3 + 1 + 21);
    let calls: Vec<String> = (0..30).map(|_| batch()).collect();
    let calls_with_text: Vec<usize> = (0..30).filter(|place| !calls[*place].is_empty()).collect();
    assert_eq!(calls_with_text.len(), 1, "all registers after 25 calls: {calls_with_text:?}");
    assert!(
        (19..25).contains(&calls_with_text[0]) && calls[calls_with_text[0]].contains("R4 CONSTRAINTS"),
        "{calls_with_text:?}"
    );
}

/// Returns how often a batch waits for the disk, or `None` if strace is missing.
fn count_syncs_of_batch(fixture: &SessionFixture) -> Option<usize> {
    let log = fixture.prepared.world.home().join("syncs");
    let invocation = with_memory_argument(fixture.tool_batch());
    let program = plimsoll_testkit::find_or_build_bin_dir().join(invocation.program).display().to_string();
    let strace_arguments = [
        "-qq",
        "-e",
        "trace=fsync,fdatasync,syncfs,sync",
        "-o",
        &log.display().to_string(),
        &program,
        "memory",
    ]
    .map(str::to_owned);
    let words: Vec<&str> = strace_arguments.iter().map(String::as_str).collect();
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        println!("NOT MEASURED: strace is missing");
        return None;
    }
    fixture.prepared.world.command("strace", &words).stdin(invocation.stdin).run().expect_success();
    let calls = std::fs::read_to_string(log).unwrap();
    // Without `syncfs`, a volume is synced by `sync`, which does not wait on macOS, and then `fsync` of a folder.
    Some(calls.lines().filter(|line| !line.starts_with("sync(")).count())
}

/// Returns the transcript lines of a turn that is later than all changes of the memory.
fn transcript_turn(number: u32) -> String {
    let line = |kind: &str, second: u8, message: Value| {
        json!({"type": kind, "isSidechain": false, "uuid": "u", "message": message,
            "timestamp": format!("2099-01-07T11:4{number}:0{second}.000Z"),
            "toolUseResult": {"stdout": "ok", "stderr": ""}})
    };
    let usage = json!({"input_tokens": USED_TOKENS[0], "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 1});
    let id = format!("toolu_{number}");
    let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let assistant_line = line(
        "assistant",
        1,
        json!({"id": format!("msg_{number}"), "type": "message", "model": "claude-opus-5-5", "role": "assistant",
            "content": [call], "stop_reason": "tool_use", "usage": usage}),
    );
    let result_line = line("user", 2, json!({"role": "user", "content": [result]}));
    format!("{assistant_line}\n{result_line}\n")
}

#[test]
fn the_next_turn_writes_a_deleted_piece_of_the_memory_again() {
    let fixture = SessionFixture::outside_run();
    let content = "what a chunk holds, long enough for a piece of its own ".repeat(20);
    let op = plimsoll_domain::memory::MemoryOp::HeapAlloc {
        name: "a".into(),
        content,
        description: String::new(),
    };
    memory::apply_changes_atomically(&fixture.store_project(), "test", &[op]).expect("room for it");
    let log = plimsoll_store::TurnLog::for_session_where_started_or_current(
        &fixture.store_project(),
        &"session-one".into(),
    )
    .expect("a log");
    let record_turns = |turns: u32| {
        let lines: String = (1..=turns).map(transcript_turn).collect();
        fixture.prepared.world.write(fixture.transcript_path(), &lines);
        let mut batch = with_memory_argument(fixture.tool_batch());
        batch.stdin = batch.stdin.replace("toolu_1", &format!("toolu_{turns}"));
        fixture.prepared.run(&batch).expect_success();
        let report = log.verify().unwrap();
        (report.turn_count, report.is_intact())
    };
    assert_eq!(record_turns(1), (1, true));
    let folder = log.path().with_extension("blobs");
    let blob_files =
        || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let [piece] = &blob_files()[..] else { panic!("{:?}", blob_files()) };
    std::fs::remove_file(piece).unwrap();
    assert_eq!(record_turns(2), (2, true));
    assert_eq!(blob_files(), std::slice::from_ref(piece));
    // While the piece is there, the next turn refers to it without reading the memory.
    fixture.prepared.world.write(".claude/plimsoll/memory/state.json", "");
    assert_eq!(record_turns(3), (3, true));
}

#[test]
fn the_first_turn_of_a_full_memory_syncs_at_most_three_times() {
    let fixture = SessionFixture::outside_run();
    let project = fixture.store_project();
    for number in 0..32 {
        let content = format!("{number:03}").repeat(240);
        let op = plimsoll_domain::memory::MemoryOp::HeapAlloc {
            name: format!("chunk-{number}"),
            content,
            description: String::new(),
        };
        memory::apply_changes_atomically(&project, "test", &[op]).expect("room for it");
    }
    fixture.prepared.world.write(fixture.transcript_path(), &transcript_turn(1));
    let Some(first) = count_syncs_of_batch(&fixture) else { return };
    // All pieces at once, their names, and the record that names them.
    assert!(first <= 3, "{first}");
    let log = plimsoll_store::TurnLog::for_session_where_started_or_current(&project, &"session-one".into())
        .expect("a log");
    let report = log.verify().unwrap();
    assert!(report.is_intact() && report.turn_count == 1, "{report:?}");
    assert_eq!(
        std::fs::read_dir(log.path().with_extension("blobs")).unwrap().count(),
        32,
        "a file for each chunk"
    );
    assert_eq!(count_syncs_of_batch(&fixture), Some(0), "nothing is new");
}
