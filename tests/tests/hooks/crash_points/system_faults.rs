//! What a machine does besides: a folder that vanishes, a lock that is held for ever, a clock that jumps, a disk that
//! takes half of a line.

use crate::crash_points::files_afterwards;
use crate::crash_points::prepared_projects::{SESSION, Scene};
use crate::crash_points::prepared_world::{Play, Stage};
use fs2::FileExt;
use plimsoll_domain::RunId;
use plimsoll_testkit::bin_dir;
use serde_json::{Value, json};
use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

const RECORD: &str = ".claude/plimsoll/sessions/session-one.json";
const STATE: &str = ".claude/ralph-state.json";

fn sound(stage: &Stage) {
    let faults = files_afterwards::faults(stage, true);
    assert!(faults.is_empty(), "{faults:#?}");
}

fn in_run_at(tokens: u64) -> Scene {
    let scene = Scene::in_run();
    scene.answers(tokens);
    scene
}

/// Held until it is dropped.
fn held(path: std::path::PathBuf) -> File {
    let file = File::options().create(true).truncate(false).write(true).open(path).expect("a lock file");
    FileExt::try_lock_exclusive(&file).expect("nobody holds it");
    file
}

#[test]
fn our_folder_vanishes_between_two_events() {
    let scene = in_run_at(720_000);
    let finished = scene.stage.run(&scene.batch()).expect_success();
    assert!(finished.stdout.contains("CCS_WARNING|L1"), "{finished:?}");
    std::fs::remove_dir_all(scene.stage.world.path(".claude")).expect("it is there");
    scene.answers(870_000);
    let finished = scene.stage.run(&scene.batch());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let finished = scene.stage.run(&scene.stop("I stop."));
    assert!(finished.code.is_some_and(|code| code < 2) && finished.stderr.is_empty(), "{finished:?}");
    let finished =
        scene.stage.run(&scene.event("plimsoll-session-end", "SessionEnd", json!({"reason": "other"})));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    sound(&scene.stage);
    let state = plimsoll_store::state_file::load_state(
        &scene.project(),
        Some(&RunId::from(crate::crash_points::prepared_projects::RUN)),
    )
    .expect("it can be read");
    assert!(state.is_some(), "the run is known by its copy");
}

#[test]
fn our_folder_vanishes_during_an_event() {
    let scene = in_run_at(870_000);
    scene.stage.keep();
    for round in 0..8_u64 {
        scene.stage.put_back();
        let folder = scene.stage.world.path(".claude");
        let racing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(3 * round));
            let _ = std::fs::remove_dir_all(folder);
        });
        let finished = scene.stage.run(&scene.batch());
        racing.join().expect("it only removes");
        // Wherever it was hit: the session goes on, and so does the next event.
        assert!(finished.code == Some(0) && finished.stderr.lines().count() <= 2, "{finished:?}");
        let finished = scene.stage.run(&scene.batch());
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        sound(&scene.stage);
    }
}

#[test]
fn a_session_lock_that_is_held_for_ever_is_waited_for_a_bounded_time() {
    let scene = in_run_at(870_000);
    let lock = held(scene.stage.world.path(RECORD).with_extension("lock"));
    let finished = scene.stage.run(&scene.batch());
    assert_eq!((finished.code, finished.stderr.lines().count()), (Some(0), 1), "{finished:?}");
    insta::assert_snapshot!(scene.stage.world.stable_text(&finished.stderr), @"plimsoll-post-tool: [PROJECT]/.claude/plimsoll/sessions/session-one.lock is locked by another process (waited [DURATION]); try again; if no Plimsoll process is running, another program holds the lock");
    assert!(finished.elapsed < Duration::from_secs(20), "{finished:?}");
    drop(lock);
    let finished = scene.stage.run(&scene.batch());
    assert!(finished.stdout.contains("CCS_CHECKPOINT_TRIGGERED|L2"), "{finished:?}");
    sound(&scene.stage);
}

#[test]
fn at_l3_it_acts_without_any_lock() {
    let scene = in_run_at(960_000);
    let _session = held(scene.stage.world.path(RECORD).with_extension("lock"));
    let _state = held(scene.stage.world.path(".claude/ralph-state.json.lock"));
    let finished = scene.stage.run(&scene.batch());
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.json()["continue"], false);
    assert!(finished.elapsed < Duration::from_secs(30), "{finished:?}");
    let state = scene.stage.world.json(STATE);
    assert_eq!(state["context_checkpoint"]["level"], "L3");
    sound(&scene.stage);
}

#[test]
fn a_memory_that_somebody_holds_is_named() {
    let scene = Scene::ordinary();
    scene.remember();
    let lock = held(scene.stage.world.path(".claude/plimsoll/memory/log.lock"));
    let set = Play::command(&["memory", "set", "next", "More."]);
    let finished = scene.stage.run(&set);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(scene.stage.world.stable_text(&finished.stderr), @"
    plimsoll: [PROJECT]/.claude/plimsoll/memory/log.lock is locked by another process (waited [DURATION])
    hint: try again; if no Plimsoll process is running, another program holds the lock
    ");
    drop(lock);
    scene.stage.run(&set).expect_success();
    sound(&scene.stage);
}

/// There is no way to turn the clock of a static program, so what was written is turned instead.
#[test]
fn a_clock_that_jumps_leaves_no_claim_and_no_turn_behind() {
    for jump in ["2099-01-01T00:00:00.000Z", "1999-01-01T00:00:00.000Z"] {
        let scene = in_run_at(870_000);
        let mut record = scene.stage.world.json(RECORD);
        record["announced"] = "L2".into();
        record["started_at"] = jump.into();
        // The process lives; its claim is from another time.
        record["claim"] = json!({"level": "L2", "percent": 87, "pid": std::process::id(), "at": jump});
        scene.stage.world.write(RECORD, &record.to_string());
        let seconds = if jump.starts_with("20") { 4_000_000_000 } else { 900_000_000 };
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let transcript = File::open(scene.transcript()).expect("it is there");
        transcript.set_times(FileTimes::new().set_modified(moment)).expect("our own file");
        let finished = scene.stage.run(&scene.batch());
        assert!(finished.stdout.contains("CCS_CHECKPOINT_TRIGGERED|L2"), "{jump}: {finished:?}");
        assert!(scene.stage.world.json(RECORD).get("claim").is_none_or(Value::is_null));
        let end = scene.event("plimsoll-session-end", "SessionEnd", json!({"reason": "other"}));
        assert_eq!(scene.stage.run(&end).expect_success().stderr, "");
        let turns = scene.stage.run(&Play::command(&["turns", "list"])).expect_success();
        assert_eq!(turns.stdout.lines().count(), 1, "{turns:?}");
        sound(&scene.stage);
    }
}

/// The system takes as much of a write as fits, and refuses the rest; of a limit for the size of files we know before.
#[test]
fn a_disk_that_takes_half_a_line_loses_that_line_alone() {
    const LIMIT: usize = 64 * 1024;
    let scene = in_run_at(720_000);
    let line = |length: usize| format!("{{\"event\":\"{}\"}}\n", "x".repeat(length - 13));
    scene.stage.world.write(".claude/plimsoll/journal.jsonl", &(line(1_024).repeat(63) + &line(1_024 - 90)));
    let play = scene.batch();
    let program = bin_dir().join("plimsoll-post-tool").display().to_string();
    // Without a trap the system would end a program that goes beyond the limit.
    let limited = format!("ulimit -f {}; exec \"$0\"", LIMIT / 512);
    // Dash counts in blocks of 512 bytes.
    let launch = scene.stage.world.command("dash", &["-c", &limited, &program]).stdin(play.stdin.clone());
    let launch = play.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    let finished = launch.run();
    assert_eq!((finished.code, finished.signal), (Some(0), None), "{finished:?}");
    let journal = scene.stage.world.read(".claude/plimsoll/journal.jsonl");
    assert_eq!(journal.len(), LIMIT - 90, "nothing of a line that does not fit");
    scene
        .stage
        .world
        .write(".claude/plimsoll/journal.jsonl", &format!("{journal}{{\"event\":\"half of a li"));
    scene.answers(870_000);
    scene.stage.run(&scene.batch()).expect_success();
    let journal = plimsoll_store::journal::read_entries(&scene.project()).expect("it can be read");
    let events = journal.iter().map(|entry| entry.event.name());
    let told: Vec<&str> = events.filter(|event| !event.starts_with('x')).collect();
    assert_eq!(told, ["checkpoint"], "of {SESSION}");
}

#[test]
fn no_hook_is_ended_by_a_limit_for_the_size_of_files() {
    for blocks in [0, 1, 2, 4] {
        let scene = in_run_at(870_000);
        let name = |program: &str| bin_dir().join(program).display().to_string();
        let start = json!({"source": "startup"});
        let end = json!({"reason": "other"});
        let compaction = json!({"trigger": "auto"});
        for play in [
            scene.event("plimsoll-session-start", "SessionStart", start),
            scene.batch(),
            scene.event("plimsoll-pre-compact", "PreCompact", compaction),
            scene.stop("I stop."),
            scene.event("plimsoll-session-end", "SessionEnd", end),
        ] {
            let limited = format!("ulimit -f {blocks}; exec \"$0\"");
            let launch = scene.stage.world.command("dash", &["-c", &limited, &name(play.program)]);
            let launch = play
                .env
                .iter()
                .fold(launch.stdin(play.stdin.clone()), |launch, (name, value)| launch.env(name, value));
            let finished = launch.run();
            let program = play.program;
            assert_eq!(finished.signal, None, "{program} {blocks}: {finished:?}");
            assert!(matches!(finished.code, Some(0 | 1)), "{program} {blocks}: {finished:?}");
        }
        let server = scene
            .stage
            .world
            .command("dash", &["-c", &format!("ulimit -f {blocks}; exec \"$0\""), &name("plimsoll-mcp")]);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        let update = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
            {"name": "update_registers", "arguments": {"R2_NEXT": "x".repeat(1_000)}}});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let finished = server.stdin(format!("{call}\n{ready}\n{update}\n")).run();
        assert_eq!(finished.signal, None, "{blocks}: {finished:?}");
        // Without the limit all goes on.
        scene.stage.run(&scene.batch()).expect_success();
        sound(&scene.stage);
    }
}
