//! The monitor and the memory in one process: nothing that the memory does changes what the monitor says, or when.

use crate::crash_points::prepared_projects::Scene;
use crate::crash_points::prepared_world::{Play, Stage};
use plimsoll_store::memory;
use plimsoll_testkit::world::Finished;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Of a window of a million: in the words of the levels nothing, a warning, a checkpoint, the end.
const USED: [u64; 4] = [100_000, 720_000, 870_000, 970_000];
/// The memory's lock is awaited for three seconds; what waits for nothing takes a fraction of one, even beside others.
const SOON: Duration = Duration::from_secs(2);

fn with_memory(mut play: Play) -> Play {
    play.arguments.push("memory".to_owned());
    play
}

fn context(finished: &Finished) -> String {
    finished.json()["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

fn set(stage: &Stage, register: &str, words: &str) {
    stage.run(&Play::command(&["memory", "set", register, words])).expect_success();
}

/// What the monitor decided: all of the answer but what the memory added to it, with the handoff's time left out.
fn decided(finished: &Finished) -> (Option<i32>, Value) {
    let mut reply = finished.json();
    let text = context(finished);
    let own = text.split("<plimsoll-memory").next().unwrap_or_default().trim_end().to_owned();
    reply["hookSpecificOutput"] = json!(own);
    // A handoff is named by the minute.
    let handoff = reply["systemMessage"].as_str().and_then(|text| text.split(".claude/handoffs/").nth(1));
    let minute = handoff.and_then(|name| name.get(..15)).unwrap_or_default().to_owned();
    let timeless =
        if minute.is_empty() { reply.to_string() } else { reply.to_string().replace(&minute, "(time)") };
    (finished.code, serde_json::from_str(&timeless).expect("JSON"))
}

#[test]
fn the_memorys_news_come_behind_the_monitors_words_and_an_end_leaves_them_out() {
    for (used, is_told, code) in
        [(USED[0], true, 0), (USED[1], true, 0), (USED[2], true, 0), (USED[3], false, 1)]
    {
        let scene = Scene::in_run();
        scene.remember();
        let plain = Scene::in_run();
        plain.answers(used);
        scene.answers(used);
        let alone = plain.stage.run(&plain.batch());
        let both = scene.stage.run(&with_memory(scene.batch()));
        assert_eq!(both.code, Some(code), "{both:?}");
        assert_eq!(decided(&both), decided(&alone), "{used}");
        assert_eq!(context(&both).contains("R0 GOAL: Build it."), is_told, "{used}: {both:?}");
        if is_told {
            let again = scene.stage.run(&with_memory(scene.batch()));
            assert!(!context(&again).contains("R0 GOAL"), "once: {again:?}");
        }
    }
}

#[test]
fn the_memorys_lock_in_another_hand_keeps_no_word_of_the_monitor_waiting() {
    for (used, code) in [(USED[1], 0), (USED[2], 0), (USED[3], 1)] {
        let scene = Scene::in_run();
        scene.remember();
        scene.answers(used);
        let project = scene.project();
        let held = memory::lock_memory(&project, SOON).expect("the lock");
        let began = Instant::now();
        let finished = scene.stage.run(&with_memory(scene.batch()));
        let took = began.elapsed();
        assert!(took < SOON, "{used}: {took:?}");
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert_eq!(finished.json()["continue"] == false, code == 1, "{finished:?}");
        assert!(finished.stderr.is_empty() && finished.json()["systemMessage"].is_string(), "{finished:?}");
        drop(held);
        let later = scene.stage.run(&with_memory(scene.batch()));
        assert_eq!(context(&later).contains("R0 GOAL"), code == 0, "{later:?}");
    }
}

#[test]
fn a_memory_that_is_damaged_changes_no_answer_of_the_monitor() {
    for used in USED {
        let plain = Scene::in_run();
        plain.answers(used);
        let alone = decided(&plain.stage.run(&plain.batch()));
        for (name, text) in [
            ("log.jsonl", "not a log\n"),
            ("log.jsonl", ""),
            ("log.head", "\0\0\0\0"),
            ("state.json", "{\"memory\":{\"frames\":[]}}"),
            ("seen", "a file"),
            ("log.lock", ""),
        ] {
            let scene = Scene::in_run();
            scene.remember();
            let path = scene.project().memory_folder().join(name);
            let _ = std::fs::remove_dir_all(&path);
            // The lock that nobody may open.
            match name {
                "log.lock" => {
                    let _ = std::fs::remove_file(&path);
                    std::fs::create_dir(&path).unwrap();
                }
                _ => std::fs::write(&path, text).unwrap(),
            }
            scene.answers(used);
            let both = scene.stage.run(&with_memory(scene.batch()));
            assert_eq!(decided(&both), alone, "{used} {name} {text:?}: {both:?}");
        }
    }
}

#[test]
fn entries_without_the_memory_yield_only_to_those_that_a_run_gave_to_this_session() {
    let scene = Scene::ordinary();
    scene.answers(USED[1]);
    let given = |session: &str| {
        let programs = "plimsoll-post-tool plimsoll-memory";
        scene.batch().env("PLIMSOLL_HOOKS_GIVEN", format!("{session} {programs} memory"))
    };
    let yielded = scene.stage.run(&given("session-one"));
    assert_eq!(yielded.stdout.trim(), "{}", "{yielded:?}");
    // A project's file can name an entry that the client does not start: it silences nothing.
    scene.stage.world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    let warned = scene.stage.run(&given("another"));
    assert!(
        warned.json()["systemMessage"].as_str().unwrap_or_default().starts_with("CCS_WARNING|L1"),
        "{warned:?}"
    );
}

#[test]
fn a_batch_with_nothing_new_writes_no_file_of_the_memory_and_its_steps_count() {
    let scene = Scene::ordinary();
    scene.remember();
    let project = scene.project();
    let batch = || context(&scene.stage.run(&with_memory(scene.batch())));
    assert!(batch().contains("R0 GOAL: Build it."));
    let files = ["log.jsonl", "log.head", "state.json", "seen/session-one.json"];
    let versions =
        || files.map(|name| plimsoll_store::disk::file_change_stamp(&project.memory_folder().join(name)));
    let (before, step) = (versions(), memory::load_memory(&project).unwrap().step_number);
    assert!(before.iter().all(Option::is_some), "{before:?}");
    let held = memory::lock_memory(&project, SOON).expect("the lock");
    let began = Instant::now();
    assert_eq!([batch(), batch(), batch()], ["", "", ""]);
    assert!(began.elapsed() < SOON, "no lock is awaited: {:?}", began.elapsed());
    drop(held);
    assert_eq!(versions(), before);
    assert_eq!(memory::load_memory(&project).unwrap().step_number, step + 3);
    // A change keeps the count, and is told with the next batch.
    set(&scene.stage, "constraints", "Keep the API.");
    assert_eq!(memory::load_memory(&project).unwrap().step_number, step + 3);
    insta::assert_snapshot!(batch(), @r#"
    <plimsoll-memory rev="3"> (what has changed)
    R4 CONSTRAINTS: Keep the API.
    </plimsoll-memory>
    "#);
    // Another session's batches are steps of the same memory, and no calls of this one.
    let other = || {
        let mut play = with_memory(scene.batch());
        play.stdin = play.stdin.replace("\"session-one\"", "\"session-two\"");
        context(&scene.stage.run(&play))
    };
    assert!(other().contains("R0 GOAL"));
    (0..20).for_each(|_| assert_eq!(other(), ""));
    assert_eq!(memory::load_memory(&project).unwrap().step_number, step + 3 + 1 + 21);
    let calls: Vec<String> = (0..30).map(|_| batch()).collect();
    let told: Vec<usize> = (0..30).filter(|place| !calls[*place].is_empty()).collect();
    assert_eq!(told.len(), 1, "all registers after 25 calls: {told:?}");
    assert!((19..25).contains(&told[0]) && calls[told[0]].contains("R4 CONSTRAINTS"), "{told:?}");
}

/// How often a batch waits for the disk; none where strace is missing.
fn syncs(scene: &Scene) -> Option<usize> {
    let log = scene.stage.world.home().join("syncs");
    let play = with_memory(scene.batch());
    let program = plimsoll_testkit::bin_dir().join(play.program).display().to_string();
    let traced = [
        "-qq",
        "-e",
        "trace=fsync,fdatasync,syncfs,sync",
        "-o",
        &log.display().to_string(),
        &program,
        "memory",
    ]
    .map(str::to_owned);
    let words: Vec<&str> = traced.iter().map(String::as_str).collect();
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        println!("NOT MEASURED: strace is missing");
        return None;
    }
    scene.stage.world.command("strace", &words).stdin(play.stdin).run().expect_success();
    Some(std::fs::read_to_string(log).unwrap().lines().count())
}

/// The lines of a turn, after all changes of the memory.
fn turn(number: u32) -> String {
    let line = |kind: &str, second: u8, message: Value| {
        json!({"type": kind, "isSidechain": false, "uuid": "u", "message": message,
            "timestamp": format!("2099-01-07T11:4{number}:0{second}.000Z"),
            "toolUseResult": {"stdout": "ok", "stderr": ""}})
    };
    let usage = json!({"input_tokens": USED[0], "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 1});
    let id = format!("toolu_{number}");
    let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let asked = line(
        "assistant",
        1,
        json!({"id": format!("msg_{number}"), "type": "message", "model": "claude-opus-5-5", "role": "assistant",
            "content": [call], "stop_reason": "tool_use", "usage": usage}),
    );
    let returned = line("user", 2, json!({"role": "user", "content": [result]}));
    format!("{asked}\n{returned}\n")
}

#[test]
fn a_piece_of_the_memory_that_was_taken_away_is_put_there_again_by_the_next_turn() {
    let scene = Scene::ordinary();
    let content = "what a chunk holds, long enough for a piece of its own ".repeat(20);
    let op = plimsoll_domain::memory::MemoryOp::HeapAlloc {
        name: "a".into(),
        content,
        description: String::new(),
    };
    memory::apply_changes(&scene.project(), "test", &[op]).expect("room for it");
    let log = plimsoll_store::TurnLog::for_session(&scene.project(), &"session-one".into()).expect("a log");
    let record = |turns: u32| {
        let lines: String = (1..=turns).map(turn).collect();
        scene.stage.world.write(scene.transcript(), &lines);
        let mut batch = with_memory(scene.batch());
        batch.stdin = batch.stdin.replace("toolu_1", &format!("toolu_{turns}"));
        scene.stage.run(&batch).expect_success();
        let report = log.verify().unwrap();
        (report.turn_count, report.is_intact())
    };
    assert_eq!(record(1), (1, true));
    let folder = log.path().with_extension("blobs");
    let pieces =
        || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let [piece] = &pieces()[..] else { panic!("{:?}", pieces()) };
    std::fs::remove_file(piece).unwrap();
    assert_eq!(record(2), (2, true));
    assert_eq!(pieces(), std::slice::from_ref(piece));
    // While it is there, the next turn has the same without a look at the memory.
    scene.stage.world.write(".claude/plimsoll/memory/state.json", "");
    assert_eq!(record(3), (3, true));
}

#[test]
fn the_first_turn_of_a_full_memory_waits_for_the_disk_no_more_often_than_a_turn_with_one_large_piece() {
    let scene = Scene::ordinary();
    let project = scene.project();
    for number in 0..32 {
        let content = format!("{number:03}").repeat(240);
        let op = plimsoll_domain::memory::MemoryOp::HeapAlloc {
            name: format!("chunk-{number}"),
            content,
            description: String::new(),
        };
        memory::apply_changes(&project, "test", &[op]).expect("room for it");
    }
    scene.stage.world.write(scene.transcript(), &turn(1));
    let Some(first) = syncs(&scene) else { return };
    // All pieces at once, their names, and the record that names them.
    assert!(first <= 3, "{first}");
    let log = plimsoll_store::TurnLog::for_session(&project, &"session-one".into()).expect("a log");
    let report = log.verify().unwrap();
    assert!(report.is_intact() && report.turn_count == 1, "{report:?}");
    assert_eq!(
        std::fs::read_dir(log.path().with_extension("blobs")).unwrap().count(),
        32,
        "a file for each chunk"
    );
    assert_eq!(syncs(&scene), Some(0), "nothing is new");
}
