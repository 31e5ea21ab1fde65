//! `plimsoll turns erase --secrets`: what older logs hold is found, named by kind and place, and gone from the log, its
//! large pieces, its torn end and what waits; the chain holds, and nothing else is lost.

use crate::crash_points::prepared_world::{Play, Stage};
use crate::crash_points::syscall_trace;
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_store::turn_log::{ErasureRequest, NewRecord};
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const SESSION: &str = "leaky";
const TURNS: &str = ".claude/plimsoll/turns";

/// Drawn by lot, and put together here, so that this file is not taken for a leak.
fn token(mark: &str) -> String {
    format!("{}{mark}{}", "ghp_", "aB3dE5fG7hK9".repeat(3))
}

fn password() -> String {
    ["hunter2", "Hunter2"].concat()
}

fn line(at: usize, mut fields: Value) -> String {
    fields["timestamp"] = json!(format!("2026-01-07T12:00:{at:02}.000Z"));
    fields["isSidechain"] = json!(false);
    format!("{fields}\n")
}

/// A prompt, three turns: a token in the arguments, a password far inside a large result, and nothing.
fn transcript() -> String {
    let mut lines = line(
        1,
        json!({"type": "user", "message": {"role": "user", "content": format!("use {}", token("p"))}}),
    );
    let results = [
        "ok".to_owned(),
        format!("{}postgres://me:{}@db/x\n", "row\n".repeat(3_000), password()),
        "fine".into(),
    ];
    let commands = [format!("push {}", token("a")), "cat env".to_owned(), "make test".to_owned()];
    for (turn, (command, result)) in commands.iter().zip(results).enumerate() {
        let id = format!("toolu_{turn}");
        lines += &line(
            10 * turn + 2,
            json!({"type": "assistant", "message": {
            "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 4}}}),
        );
        lines += &line(
            10 * turn + 3,
            json!({"type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]},
            "toolUseResult": {"stdout": result, "stderr": "", "interrupted": false}}),
        );
    }
    lines
}

/// A session whose log holds secrets in each of the places where one can lie.
fn leaky() -> World {
    let world = World::without_git();
    world.write(format!("{SESSION}.jsonl"), &transcript());
    let end = json!({"session_id": SESSION, "transcript_path": world.path(format!("{SESSION}.jsonl")),
        "cwd": world.project(), "hook_event_name": "SessionEnd", "reason": "other"});
    world.hook("plimsoll-session-end", &end).run().expect_success();
    std::fs::remove_file(world.path(format!("{SESSION}.jsonl"))).unwrap();
    let project = Project::with_local_files(&world.project());
    for session in [SESSION, "only-waiting"] {
        let log = TurnLog::for_session(&project, &SessionId::from(session)).unwrap();
        let held = log.open_writer(Duration::from_secs(5)).unwrap();
        let fields = json!({"text": format!("waits with {}", token("w"))});
        let entry = NewRecord::new(RecordKind::Context, "2026-01-07T13:00:00Z".into());
        let entry = entry.with_content(encode_fields(fields.as_object().unwrap()));
        log.append_or_defer(&entry, Duration::ZERO).unwrap();
        drop(held);
    }
    for name in ["only-waiting.jsonl", "only-waiting.head"] {
        let _ = std::fs::remove_file(world.path(format!("{TURNS}/{name}")));
    }
    world.write(format!("{TURNS}/{SESSION}.torn"), &format!("{{\"content\":\"{}", token("t")));
    world.write(
        format!("{TURNS}/pending/{SESSION}.20260107T130000000000.1.0.json"),
        &format!("half {}", token("h")),
    );
    world.write(format!("{TURNS}/{SESSION}.blobs/{}", "0".repeat(64)), &format!("of nobody {}", token("b")));
    world
}

/// The files below a folder that hold a word.
fn holders(folder: &Path, word: &str, found: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            holders(&path, word, found);
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(word) {
            found.push(path.display().to_string());
        }
    }
}

fn held(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for word in ["ghp_", &password()] {
        holders(&world.path(TURNS), word, &mut found);
    }
    found
}

fn turns(world: &World, arguments: &[&str]) -> Finished {
    world.plimsoll(&[&["turns"], arguments].concat()).env("TZ", "UTC").run()
}

#[test]
fn what_looks_like_a_secret_is_gone_from_log_pieces_and_waiting_files_and_the_chain_holds() {
    let world = leaky();
    assert!(held(&world).len() >= 6, "{:?}", held(&world));
    let listed = turns(&world, &["list"]).expect_success().stdout;

    let shown = turns(&world, &["erase", "--secrets", "--dry-run"]).expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&shown), @"
    leaky#1, text: looks like github-token
    leaky:1, raw_response[0].input.command: looks like github-token
    leaky:1, program: looks like github-token
    leaky:1, tool_calls[0].args.command: looks like github-token
    leaky:2, tool_calls[0].result: looks like url-password
    leaky:2, prints[0]: looks like url-password
    leaky#6, text: looks like github-token
    leaky, 0000000000000000000000000000000000000000000000000000000000000000: looks like github-token
    leaky, leaky.20260107T130000000000.1.0.json: looks like github-token
    leaky, leaky.torn: looks like github-token
    only-wai#1, text: looks like github-token
    2 turns, 3 other records, 3 loose files of 2 sessions held what looks like a secret: github-token (9), url-password (2). Nothing was erased: run it without --dry-run to erase.
    ");
    assert!(held(&world).len() >= 6, "a dry run erases nothing: {:?}", held(&world));
    assert_eq!(turns(&world, &["list"]).expect_success().stdout, listed);

    let done = turns(&world, &["erase", "--secrets"]).expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&done), @"
    leaky#1, text: looks like github-token
    leaky:1, raw_response[0].input.command: looks like github-token
    leaky:1, program: looks like github-token
    leaky:1, tool_calls[0].args.command: looks like github-token
    leaky:2, tool_calls[0].result: looks like url-password
    leaky:2, prints[0]: looks like url-password
    leaky#6, text: looks like github-token
    leaky, 0000000000000000000000000000000000000000000000000000000000000000: looks like github-token
    leaky, leaky.20260107T130000000000.1.0.json: looks like github-token
    leaky, leaky.torn: looks like github-token
    only-wai#1, text: looks like github-token
    2 turns, 3 other records, 3 loose files of 2 sessions held what looks like a secret: github-token (9), url-password (2). Erased here permanently. The client's own transcript still has the contents, until the client deletes it.
    ");
    assert_eq!(held(&world), Vec::<String>::new());
    insta::assert_snapshot!(turns(&world, &["verify"]).expect_success().stdout, @"
    only-waiting  whole: 2 records, 0 turns, 1 erased
      · line 1, record 1: erased
    leaky  whole: 7 records, 3 turns, 4 erased
      · line 1, record 1: erased
      · line 2, record 2: erased
      · line 3, record 3: erased
      · line 6, record 6: erased
    ");
    let after = turns(&world, &["list"]).expect_success().stdout;
    insta::assert_snapshot!(after, @"
    leaky:1       Wed  7 Jan 12:00:03      6  ok           [erased]
    leaky:2       Wed  7 Jan 12:00:13      6  ok           [erased]
    leaky:3       Wed  7 Jan 12:00:23      6  ok           Bash(make test)
    ");

    let again = turns(&world, &["erase", "--secrets"]).expect_success().stdout;
    assert_eq!(again, "Nothing in the turn log looks like a secret.\n");
    assert_eq!(turns(&world, &["list"]).expect_success().stdout, after);
}

#[test]
fn one_session_is_erased_alone_and_turns_and_secrets_are_not_named_together() {
    let world = leaky();
    let done = turns(&world, &["erase", "--secrets", "--session", "only-"]).expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&done), @"
    only-wai#1, text: looks like github-token
    1 other record of 1 session held what looks like a secret: github-token (1). Erased here permanently. The client's own transcript still has the contents, until the client deletes it.
    ");
    assert!(held(&world).iter().all(|path| !path.contains("only-waiting")), "{:?}", held(&world));
    assert!(held(&world).iter().any(|path| path.contains(SESSION)));
    assert_eq!(turns(&world, &["erase", "--secrets", "--session", "nobody"]).code, Some(1));
    let before = held(&world);
    for wrong in [&["erase", "leaky:1", "--secrets"][..], &["erase"], &["erase", "--dry-run"]] {
        assert_eq!(turns(&world, wrong).code, Some(2), "{wrong:?}");
    }
    let shown = turns(&world, &["erase", "leaky:1", "--dry-run"]).expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&shown), @"
    leaky:1 (record 2)
    Nothing was erased: run it without --dry-run to erase.
    ");
    assert_eq!(held(&world), before);
}

#[test]
fn a_line_that_is_no_record_is_left_as_evidence_and_named() {
    let world = leaky();
    let log = format!("{TURNS}/{SESSION}.jsonl");
    let text = world.read(&log);
    let (first, rest) = text.split_once('\n').unwrap();
    world.write(&log, &format!("{first}\nspoiled {}\n{rest}", token("s")));
    let finished = turns(&world, &["erase", "--secrets"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"
    plimsoll: 1 line of a log cannot be read and hold what looks like a secret; nothing was changed there
    hint: `plimsoll turns verify` names them
    ");
    assert!(world.read(&log).contains(&token("s")), "nothing is changed there");
}

/// Kills an erasure before each of its changes, and refuses it each of them. Afterwards the log is as before, or `verify` prints
/// the command that finishes the erasure; then the log is whole, and what was to go is nowhere.
fn interrupt_everywhere(world: World, arguments: &[&str], is_gone: impl Fn(&World) -> bool) {
    let stage = Stage::new(world);
    let play = Play::command(arguments);
    stage.keep();
    let (finished, kills) = syscall_trace::kill_points(&stage, &play);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(is_gone(&stage.world), "nothing was erased: {finished:?}");
    stage.put_back();
    let refusals = syscall_trace::error_points(&stage, &play);
    let mut unfinished = 0;
    let all = kills.iter().map(|point| (point, true)).chain(refusals.iter().map(|point| (point, false)));
    for (point, is_kill) in all {
        stage.put_back();
        let interrupted = match is_kill {
            true => syscall_trace::killed(&stage, &play, point),
            false => syscall_trace::refused(&stage, &play, point, true),
        };
        let place = format!("{point}: {interrupted:?}");
        let verified = turns(&stage.world, &["verify"]);
        assert!(!verified.stdout.contains("NOT WHOLE"), "{place} {verified:?}");
        let commands: Vec<Vec<String>> = verified
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("  plimsoll "))
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
        if verified.code == Some(0) {
            assert!(commands.is_empty(), "{place} {verified:?}");
            // Nothing had begun, or all was done.
            continue;
        }
        unfinished += 1;
        assert!(!commands.is_empty(), "{place} {verified:?}");
        for command in &commands {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            stage.world.plimsoll(&command).run().expect_success();
        }
        assert!(is_gone(&stage.world), "{place}");
        let verified = turns(&stage.world, &["verify"]);
        assert_eq!(verified.code, Some(0), "{place} {verified:?}");
    }
    assert!(unfinished * 2 > kills.len(), "{unfinished} of {} and {}", kills.len(), refusals.len());
}

#[test]
fn an_interrupted_erasure_of_secrets_is_named_and_finished() {
    interrupt_everywhere(leaky(), &["turns", "erase", "--secrets"], |world| held(world).is_empty());
}

#[test]
fn an_interrupted_erasure_in_a_packed_log_is_named_and_finished() {
    let world = leaky();
    for session in [SESSION, "only-waiting"] {
        let log =
            TurnLog::for_session(&Project::with_local_files(&world.project()), &SessionId::from(session))
                .unwrap();
        log.compress_log(Duration::from_secs(5)).unwrap();
    }
    // Nothing that is read, compressed or not, holds one.
    interrupt_everywhere(world, &["turns", "erase", "--secrets"], |world| {
        let found = turns(world, &["erase", "--secrets", "--dry-run"]).expect_success().stdout;
        found == "Nothing in the turn log looks like a secret.\n"
    });
}

#[test]
fn an_interrupted_erasure_of_a_turn_is_named_and_finished() {
    let is_gone = |world: &World| {
        let mut found = Vec::new();
        holders(&world.path(TURNS), &token("a"), &mut found);
        found.is_empty()
    };
    interrupt_everywhere(leaky(), &["turns", "erase", "leaky:1"], is_gone);
}

#[test]
fn two_interrupted_erasures_are_both_named() {
    let world = leaky();
    let project = Project::with_local_files(&world.project());
    let records = [(SESSION.to_owned(), [3].into())].into();
    let one = ErasureRequest { records_by_session: records, ..ErasureRequest::default() };
    let session = Some("it's".to_owned());
    let other =
        ErasureRequest { removes_secrets: true, session_prefix: session, ..ErasureRequest::default() };
    for request in [&one, &other, &one] {
        request.record_start(&project).unwrap();
    }
    let verified = turns(&world, &["verify"]);
    let commands = "  plimsoll turns erase --secrets --session 'it'\\''s'\n  plimsoll turns erase --session leaky record:3\n";
    assert!(verified.code == Some(1) && verified.stdout.ends_with(commands), "{verified:?}");
    turns(&world, &["erase", "--secrets"]).expect_success();
    assert_eq!(ErasureRequest::load_interrupted(&project), [one]);
    turns(&world, &["erase", "--session", SESSION, "record:3"]).expect_success();
    turns(&world, &["verify"]).expect_success();
}
