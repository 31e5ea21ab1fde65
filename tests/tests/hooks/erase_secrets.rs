//! `plimsoll turns erase --secrets`: what older logs hold is found, named by kind and place, and gone from the log, its
//! large pieces, its torn end and what waits; the chain holds, and nothing else is lost.

use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_store::turn_log::NewRecord;
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
    let project = Project::at(&world.project());
    for session in [SESSION, "only-waiting"] {
        let log = TurnLog::of(&project, &SessionId::from(session)).unwrap();
        let held = log.write(Duration::from_secs(5)).unwrap();
        let fields = json!({"text": format!("waits with {}", token("w"))});
        let entry = NewRecord::new(RecordKind::Context, "2026-01-07T13:00:00Z".into());
        let entry = entry.holding(encode_fields(fields.as_object().unwrap()));
        log.note(&entry, Duration::ZERO).unwrap();
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
    world.plimsoll(&[&["turns"], arguments].concat()).run()
}

#[test]
fn what_looks_like_a_secret_is_gone_from_log_pieces_and_waiting_files_and_the_chain_holds() {
    let world = leaky();
    assert!(held(&world).len() >= 6, "{:?}", held(&world));
    let listed = turns(&world, &["list"]).expect_success().stdout;

    let shown = turns(&world, &["erase", "--secrets", "--dry-run"]).expect_success().stdout;
    assert!(shown.contains("leaky:1, tool_calls[0].args.command: looks like github-token"), "{shown}");
    assert!(shown.contains("looks like url-password") && shown.contains("Nothing was erased"), "{shown}");
    assert!(held(&world).len() >= 6, "a dry run erases nothing: {:?}", held(&world));
    assert_eq!(turns(&world, &["list"]).expect_success().stdout, listed);

    let done = turns(&world, &["erase", "--secrets"]).expect_success().stdout;
    assert!(done.contains("2 turns, 3 other records, 3 loose files of 2 sessions held"), "{done}");
    assert!(done.contains("github-token (") && done.contains("url-password ("), "{done}");
    assert!(done.contains("Erased here permanently"), "{done}");
    assert_eq!(held(&world), Vec::<String>::new());
    for said in [&shown, &done] {
        assert!(!said.contains("ghp_") && !said.contains(&password()), "{said}");
    }
    let verified = turns(&world, &["verify"]).expect_success().stdout;
    assert!(verified.contains("whole: ") && !verified.contains("NOT WHOLE"), "{verified}");
    let after = turns(&world, &["list"]).expect_success().stdout;
    assert!(after.contains("Bash(make test)") && after.matches("[erased]").count() == 2, "{after}");

    let again = turns(&world, &["erase", "--secrets"]).expect_success().stdout;
    assert_eq!(again, "Nothing in the turn log looks like a secret.\n");
    assert_eq!(turns(&world, &["list"]).expect_success().stdout, after);
}

#[test]
fn one_session_is_erased_alone_and_turns_and_secrets_are_not_named_together() {
    let world = leaky();
    let done = turns(&world, &["erase", "--secrets", "--session", "only-"]).expect_success().stdout;
    assert!(done.contains("1 other record of 1 session"), "{done}");
    assert!(held(&world).iter().all(|path| !path.contains("only-waiting")), "{:?}", held(&world));
    assert!(held(&world).iter().any(|path| path.contains(SESSION)));
    assert_eq!(turns(&world, &["erase", "--secrets", "--session", "nobody"]).code, Some(1));
    let before = held(&world);
    for wrong in [&["erase", "leaky:1", "--secrets"][..], &["erase"], &["erase", "--dry-run"]] {
        assert_eq!(turns(&world, wrong).code, Some(2), "{wrong:?}");
    }
    let shown = turns(&world, &["erase", "leaky:1", "--dry-run"]).expect_success().stdout;
    assert!(shown.contains("leaky:1 (record ") && shown.contains("Nothing was erased"), "{shown}");
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
    assert!(finished.stderr.contains("1 line of a log cannot be read") && !finished.stderr.contains("ghp_"));
    assert!(world.read(&log).contains(&token("s")), "nothing is changed there");
}
