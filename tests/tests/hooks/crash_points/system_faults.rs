//! Faults of the machine: our folder vanishes, a lock is never released, the clock jumps, the disk takes only half of a
//! line.

use crate::crash_points::disk_checks;
use crate::crash_points::prepared_projects::{SESSION, SessionFixture};
use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
use fs2::FileExt;
use plimsoll_domain::RunId;
use plimsoll_testkit::find_or_build_bin_dir;
use serde_json::{Value, json};
use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

const RECORD: &str = ".claude/plimsoll/sessions/session-one.json";
const STATE: &str = ".claude/ralph-state.json";

fn assert_no_faults(prepared: &PreparedWorld) {
    let faults = disk_checks::file_faults(prepared, true);
    assert!(faults.is_empty(), "{faults:#?}");
}

fn scene_in_run_with_usage(tokens: u64) -> SessionFixture {
    let fixture = SessionFixture::in_run();
    fixture.write_response(tokens);
    fixture
}

/// Locks the file until the returned handle is dropped.
fn lock_file_exclusively(path: std::path::PathBuf) -> File {
    let file = File::options().create(true).truncate(false).write(true).open(path).expect("a lock file");
    FileExt::try_lock_exclusive(&file).expect("nobody holds it");
    file
}

#[test]
fn hooks_keep_working_when_our_folder_vanishes_between_events() {
    let fixture = scene_in_run_with_usage(720_000);
    let finished = fixture.prepared.run(&fixture.tool_batch()).expect_success();
    assert!(finished.stdout.contains("CCS_WARNING|L1"), "{finished:?}");
    std::fs::remove_dir_all(fixture.prepared.world.path(".claude")).expect("it is there");
    fixture.write_response(870_000);
    let finished = fixture.prepared.run(&fixture.tool_batch());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let finished = fixture.prepared.run(&fixture.stop_event("I stop."));
    assert!(finished.code.is_some_and(|code| code < 2) && finished.stderr.is_empty(), "{finished:?}");
    let finished = fixture.prepared.run(&fixture.hook_invocation(
        "plimsoll-session-end",
        "SessionEnd",
        json!({"reason": "other"}),
    ));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert_no_faults(&fixture.prepared);
    let state = plimsoll_store::state_file::load_state(
        &fixture.store_project(),
        Some(&RunId::from(crate::crash_points::prepared_projects::RUN)),
    )
    .expect("it can be read");
    assert!(state.is_some(), "the run is known by its copy");
}

#[test]
fn hooks_keep_working_when_our_folder_vanishes_during_an_event() {
    let fixture = scene_in_run_with_usage(870_000);
    fixture.prepared.save();
    for round in 0..8_u64 {
        fixture.prepared.restore();
        let folder = fixture.prepared.world.path(".claude");
        let remover = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(3 * round));
            let _ = std::fs::remove_dir_all(folder);
        });
        let finished = fixture.prepared.run(&fixture.tool_batch());
        remover.join().expect("it only removes");
        // Wherever the removal hits, the session continues, and the next event works.
        assert!(finished.code == Some(0) && finished.stderr.lines().count() <= 2, "{finished:?}");
        let finished = fixture.prepared.run(&fixture.tool_batch());
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        assert_no_faults(&fixture.prepared);
    }
}

#[test]
fn a_hook_waits_only_a_bounded_time_for_a_held_session_lock() {
    let fixture = scene_in_run_with_usage(870_000);
    let lock = lock_file_exclusively(fixture.prepared.world.path(RECORD).with_extension("lock"));
    let finished = fixture.prepared.run(&fixture.tool_batch());
    assert_eq!((finished.code, finished.stderr.lines().count()), (Some(0), 1), "{finished:?}");
    insta::assert_snapshot!(fixture.prepared.world.replace_varying_parts_with_placeholders(&finished.stderr), @"plimsoll-post-tool: [PROJECT]/.claude/plimsoll/sessions/session-one.lock is locked by another process (waited [DURATION]); try again; if no Plimsoll process is running, another program holds the lock");
    assert!(finished.elapsed < Duration::from_secs(20), "{finished:?}");
    drop(lock);
    let finished = fixture.prepared.run(&fixture.tool_batch());
    assert!(finished.stdout.contains("CCS_CHECKPOINT_TRIGGERED|L2"), "{finished:?}");
    assert_no_faults(&fixture.prepared);
}

#[test]
fn at_l3_the_hook_ends_the_session_even_if_all_locks_are_held() {
    let fixture = scene_in_run_with_usage(960_000);
    let _session = lock_file_exclusively(fixture.prepared.world.path(RECORD).with_extension("lock"));
    let _state = lock_file_exclusively(fixture.prepared.world.path(".claude/ralph-state.json.lock"));
    let finished = fixture.prepared.run(&fixture.tool_batch());
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.stdout_json()["continue"], false);
    assert!(finished.elapsed < Duration::from_secs(30), "{finished:?}");
    let state = fixture.prepared.world.read_json(STATE);
    assert_eq!(state["context_checkpoint"]["level"], "L3");
    assert_no_faults(&fixture.prepared);
}

#[test]
fn memory_set_names_the_lock_that_another_process_holds() {
    let fixture = SessionFixture::outside_run();
    fixture.write_memory();
    let lock = lock_file_exclusively(fixture.prepared.world.path(".claude/plimsoll/memory/log.lock"));
    let set = Invocation::plimsoll(&["memory", "set", "next", "More."]);
    let finished = fixture.prepared.run(&set);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(fixture.prepared.world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    error: [PROJECT]/.claude/plimsoll/memory/log.lock is locked by another process (waited [DURATION])
    hint: try again; if no Plimsoll process is running, another program holds the lock
    ");
    drop(lock);
    fixture.prepared.run(&set).expect_success();
    assert_no_faults(&fixture.prepared);
}

/// The clock of a static program cannot be changed, so the times in the files are changed instead.
#[test]
fn a_clock_jump_leaves_no_stale_claim_and_loses_no_turn() {
    for jump in ["2099-01-01T00:00:00.000Z", "1999-01-01T00:00:00.000Z"] {
        let fixture = scene_in_run_with_usage(870_000);
        let mut record = fixture.prepared.world.read_json(RECORD);
        record["announced"] = "L2".into();
        record["started_at"] = jump.into();
        // The process is alive, but its claim is from another time.
        record["claim"] = json!({"level": "L2", "percent": 87, "pid": std::process::id(), "at": jump});
        fixture.prepared.world.write(RECORD, &record.to_string());
        let seconds = if jump.starts_with("20") { 4_000_000_000 } else { 900_000_000 };
        let modified_at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let transcript = File::open(fixture.transcript_path()).expect("it is there");
        transcript.set_times(FileTimes::new().set_modified(modified_at)).expect("our own file");
        let finished = fixture.prepared.run(&fixture.tool_batch());
        assert!(finished.stdout.contains("CCS_CHECKPOINT_TRIGGERED|L2"), "{jump}: {finished:?}");
        assert!(fixture.prepared.world.read_json(RECORD).get("claim").is_none_or(Value::is_null));
        let end = fixture.hook_invocation("plimsoll-session-end", "SessionEnd", json!({"reason": "other"}));
        assert_eq!(fixture.prepared.run(&end).expect_success().stderr, "");
        let turns = fixture.prepared.run(&Invocation::plimsoll(&["turns", "list"])).expect_success();
        assert_eq!(turns.stdout.lines().count(), 1, "{turns:?}");
        assert_no_faults(&fixture.prepared);
    }
}

/// The system writes as much as fits and refuses the rest. A limit for the size of files is known before the write.
#[test]
fn a_half_written_journal_line_loses_only_that_line() {
    const LIMIT_BYTES: usize = 64 * 1024;
    let fixture = scene_in_run_with_usage(720_000);
    let line = |length: usize| format!("{{\"event\":\"{}\"}}\n", "x".repeat(length - 13));
    fixture
        .prepared
        .world
        .write(".claude/plimsoll/journal.jsonl", &(line(1_024).repeat(63) + &line(1_024 - 90)));
    let invocation = fixture.tool_batch();
    let program = find_or_build_bin_dir().join("plimsoll-post-tool").display().to_string();
    // A program that does not handle SIGXFSZ is ended by the system when it exceeds the limit.
    let limited = format!("ulimit -f {}; exec \"$0\"", LIMIT_BYTES / 512);
    // Dash counts in blocks of 512 bytes.
    let launch =
        fixture.prepared.world.command("dash", &["-c", &limited, &program]).stdin(invocation.stdin.clone());
    let launch = invocation.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    let finished = launch.run();
    assert_eq!((finished.code, finished.signal), (Some(0), None), "{finished:?}");
    let journal = fixture.prepared.world.read(".claude/plimsoll/journal.jsonl");
    assert_eq!(journal.len(), LIMIT_BYTES - 90, "nothing of a line that does not fit");
    fixture
        .prepared
        .world
        .write(".claude/plimsoll/journal.jsonl", &format!("{journal}{{\"event\":\"half of a li"));
    fixture.write_response(870_000);
    fixture.prepared.run(&fixture.tool_batch()).expect_success();
    let journal = plimsoll_store::journal::read_entries(&fixture.store_project()).expect("it can be read");
    let events = journal.iter().map(|entry| entry.event.name());
    let event_names: Vec<&str> = events.filter(|event| !event.starts_with('x')).collect();
    assert_eq!(event_names, ["checkpoint"], "of {SESSION}");
}

#[test]
fn a_file_size_limit_kills_no_hook_and_no_server() {
    for blocks in [0, 1, 2, 4] {
        let fixture = scene_in_run_with_usage(870_000);
        let program_path = |program: &str| find_or_build_bin_dir().join(program).display().to_string();
        let start = json!({"source": "startup"});
        let end = json!({"reason": "other"});
        let compaction = json!({"trigger": "auto"});
        for invocation in [
            fixture.hook_invocation("plimsoll-session-start", "SessionStart", start),
            fixture.tool_batch(),
            fixture.hook_invocation("plimsoll-pre-compact", "PreCompact", compaction),
            fixture.stop_event("I stop."),
            fixture.hook_invocation("plimsoll-session-end", "SessionEnd", end),
        ] {
            let limited = format!("ulimit -f {blocks}; exec \"$0\"");
            let launch =
                fixture.prepared.world.command("dash", &["-c", &limited, &program_path(invocation.program)]);
            let launch = invocation
                .env
                .iter()
                .fold(launch.stdin(invocation.stdin.clone()), |launch, (name, value)| {
                    launch.env(name, value)
                });
            let finished = launch.run();
            let program = invocation.program;
            assert_eq!(finished.signal, None, "{program} {blocks}: {finished:?}");
            assert!(matches!(finished.code, Some(0 | 1)), "{program} {blocks}: {finished:?}");
        }
        let server = fixture.prepared.world.command(
            "dash",
            &["-c", &format!("ulimit -f {blocks}; exec \"$0\""), &program_path("plimsoll-mcp")],
        );
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        let update = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
            {"name": "update_registers", "arguments": {"R2_NEXT": "x".repeat(1_000)}}});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let finished = server.stdin(format!("{call}\n{ready}\n{update}\n")).run();
        assert_eq!(finished.signal, None, "{blocks}: {finished:?}");
        // Without the limit everything works.
        fixture.prepared.run(&fixture.tool_batch()).expect_success();
        assert_no_faults(&fixture.prepared);
    }
}
