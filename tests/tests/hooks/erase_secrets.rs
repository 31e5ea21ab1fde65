//! `plimsoll turns erase --secrets` finds the secrets in older logs, names each by kind and place, and removes it from
//! the log, its large pieces, its torn end and its pending records. The hash chain stays valid, and nothing else is
//! lost.

use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
use crate::crash_points::syscall_trace;
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_store::turn_log::{ErasureRequest, NewRecord};
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const SESSION: &str = "leaky";
const TURNS: &str = ".claude/plimsoll/turns";

/// Returns a random-looking token. It is put together here so that no scanner takes this file for a leak.
fn token(mark: &str) -> String {
    format!("{}{mark}{}", "ghp_", "aB3dE5fG7hK9".repeat(3))
}

fn password() -> String {
    ["hunter2", "Hunter2"].concat()
}

fn transcript_line(second: usize, mut fields: Value) -> String {
    fields["timestamp"] = json!(format!("2026-01-07T12:00:{second:02}.000Z"));
    fields["isSidechain"] = json!(false);
    format!("{fields}\n")
}

/// Returns a transcript of a prompt and three turns: one with a token in the arguments, one with a password deep inside
/// a large result, and one without a secret.
fn transcript() -> String {
    let mut lines = transcript_line(
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
        lines += &transcript_line(
            10 * turn + 2,
            json!({"type": "assistant", "message": {
            "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 4}}}),
        );
        lines += &transcript_line(
            10 * turn + 3,
            json!({"type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]},
            "toolUseResult": {"stdout": result, "stderr": "", "interrupted": false}}),
        );
    }
    lines
}

/// Returns a world with a session whose log holds a secret in each place where one can be.
fn world_with_secrets_in_log() -> World {
    let world = World::without_git();
    world.write(format!("{SESSION}.jsonl"), &transcript());
    let end = json!({"session_id": SESSION, "transcript_path": world.path(format!("{SESSION}.jsonl")),
        "cwd": world.project(), "hook_event_name": "SessionEnd", "reason": "other"});
    world.hook("plimsoll-session-end", &end).run().expect_success();
    std::fs::remove_file(world.path(format!("{SESSION}.jsonl"))).unwrap();
    let project = Project::with_local_files(&world.project());
    for session in [SESSION, "only-waiting"] {
        let log = TurnLog::for_session_where_started_or_current(&project, &SessionId::from(session)).unwrap();
        let writer = log.open_writer(Duration::from_secs(5)).unwrap();
        let fields = json!({"text": format!("waits with {}", token("w"))});
        let entry = NewRecord::empty_in_main_stream(RecordKind::Context, "2026-01-07T13:00:00Z".into());
        let entry = entry.with_content(encode_fields(fields.as_object().unwrap()));
        log.append_or_write_to_pending_file(&entry, Duration::ZERO).unwrap();
        drop(writer);
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

/// Collects the files below a folder that contain a word.
fn collect_files_containing(folder: &Path, word: &str, files: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect_files_containing(&path, word, files);
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(word) {
            files.push(path.display().to_string());
        }
    }
}

fn files_with_secrets(world: &World) -> Vec<String> {
    let mut files = Vec::new();
    for word in ["ghp_", &password()] {
        collect_files_containing(&world.path(TURNS), word, &mut files);
    }
    files
}

fn run_turns_command(world: &World, arguments: &[&str]) -> FinishedProgram {
    world.plimsoll(&[&["turns"], arguments].concat()).env("TZ", "UTC").run()
}

#[test]
fn erase_secrets_cleans_log_pieces_and_pending_files_and_keeps_the_chain() {
    let world = world_with_secrets_in_log();
    assert!(files_with_secrets(&world).len() >= 6, "{:?}", files_with_secrets(&world));
    let listed = run_turns_command(&world, &["list"]).expect_success().stdout;

    let shown = run_turns_command(&world, &["erase", "--secrets", "--dry-run"]).expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&shown), @"
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
    2 turns, 3 other records, 3 loose files of 2 sessions contained what looks like a secret: github-token (9), url-password (2). Nothing was erased. To erase, run it without --dry-run.
    ");
    assert!(
        files_with_secrets(&world).len() >= 6,
        "a dry run erases nothing: {:?}",
        files_with_secrets(&world)
    );
    assert_eq!(run_turns_command(&world, &["list"]).expect_success().stdout, listed);

    let done = run_turns_command(&world, &["erase", "--secrets"]).expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&done), @"
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
    2 turns, 3 other records, 3 loose files of 2 sessions contained what looks like a secret: github-token (9), url-password (2). Erased here permanently. Claude Code's own transcript keeps the contents until Claude Code deletes it.
    ");
    assert_eq!(files_with_secrets(&world), Vec::<String>::new());
    insta::assert_snapshot!(run_turns_command(&world, &["verify"]).expect_success().stdout, @"
    only-waiting  intact: 2 records, 0 turns, 1 erased
      · line 1, record 1: erased
    leaky  intact: 7 records, 3 turns, 4 erased
      · line 1, record 1: erased
      · line 2, record 2: erased
      · line 3, record 3: erased
      · line 6, record 6: erased
    ");
    let after = run_turns_command(&world, &["list"]).expect_success().stdout;
    insta::assert_snapshot!(after, @"
    leaky:1       Wed  7 Jan 12:00:03      6  ok           [erased]
    leaky:2       Wed  7 Jan 12:00:13      6  ok           [erased]
    leaky:3       Wed  7 Jan 12:00:23      6  ok           Bash(make test)
    ");

    let again = run_turns_command(&world, &["erase", "--secrets"]).expect_success().stdout;
    assert_eq!(again, "Nothing in the turn log looks like a secret.\n");
    assert_eq!(run_turns_command(&world, &["list"]).expect_success().stdout, after);
}

#[test]
fn erase_can_be_limited_to_one_session_and_takes_turns_or_secrets() {
    let world = world_with_secrets_in_log();
    let done =
        run_turns_command(&world, &["erase", "--secrets", "--session", "only-"]).expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&done), @"
    only-wai#1, text: looks like github-token
    1 other record of 1 session contained what looks like a secret: github-token (1). Erased here permanently. Claude Code's own transcript keeps the contents until Claude Code deletes it.
    ");
    assert!(
        files_with_secrets(&world).iter().all(|path| !path.contains("only-waiting")),
        "{:?}",
        files_with_secrets(&world)
    );
    assert!(files_with_secrets(&world).iter().any(|path| path.contains(SESSION)));
    assert_eq!(run_turns_command(&world, &["erase", "--secrets", "--session", "nobody"]).code, Some(1));
    let before = files_with_secrets(&world);
    for wrong in [&["erase", "leaky:1", "--secrets"][..], &["erase"], &["erase", "--dry-run"]] {
        assert_eq!(run_turns_command(&world, wrong).code, Some(2), "{wrong:?}");
    }
    let shown = run_turns_command(&world, &["erase", "leaky:1", "--dry-run"]).expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&shown), @"
    leaky:1 (record 2)
    Nothing was erased. To erase, run it without --dry-run.
    ");
    assert_eq!(files_with_secrets(&world), before);
}

#[test]
fn an_unreadable_log_line_with_a_secret_is_reported_and_left_unchanged() {
    let world = world_with_secrets_in_log();
    let log = format!("{TURNS}/{SESSION}.jsonl");
    let text = world.read(&log);
    let (first, rest) = text.split_once('\n').unwrap();
    world.write(&log, &format!("{first}\nspoiled {}\n{rest}", token("s")));
    let finished = run_turns_command(&world, &["erase", "--secrets"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    warning: 1 line of a log cannot be read but contains what looks like a secret; nothing was changed there
    hint: `plimsoll turns verify` names them
    ");
    assert!(world.read(&log).contains(&token("s")), "nothing is changed there");
}

/// Kills an erasure before each of its changes, and makes each of them fail. Afterwards the log is as before, or
/// `verify` prints the command that finishes the erasure; after that command the log is whole, and the secrets are
/// gone.
fn assert_erasure_survives_interruption_everywhere(
    world: World,
    arguments: &[&str],
    is_erased: impl Fn(&World) -> bool,
) {
    let prepared = PreparedWorld::new(world);
    let invocation = Invocation::plimsoll(arguments);
    prepared.save();
    let (finished, kills) = syscall_trace::trace_kill_points(&prepared, &invocation);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(is_erased(&prepared.world), "nothing was erased: {finished:?}");
    prepared.restore();
    let refusals = syscall_trace::trace_refusable_points(&prepared, &invocation);
    let mut unfinished = 0;
    let points = kills.iter().map(|point| (point, true)).chain(refusals.iter().map(|point| (point, false)));
    for (point, is_kill) in points {
        prepared.restore();
        let interrupted = match is_kill {
            true => syscall_trace::run_killed_before(&prepared, &invocation, point),
            false => syscall_trace::run_with_refused_syscall(&prepared, &invocation, point, true),
        };
        let context = format!("{point}: {interrupted:?}");
        let verified = run_turns_command(&prepared.world, &["verify"]);
        assert!(!verified.stdout.contains("DAMAGED"), "{context} {verified:?}");
        let commands: Vec<Vec<String>> = verified
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("  plimsoll "))
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
        if verified.code == Some(0) {
            assert!(commands.is_empty(), "{context} {verified:?}");
            // The erasure had not begun, or it was complete.
            continue;
        }
        unfinished += 1;
        assert!(!commands.is_empty(), "{context} {verified:?}");
        for command in &commands {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            prepared.world.plimsoll(&command).run().expect_success();
        }
        assert!(is_erased(&prepared.world), "{context}");
        let verified = run_turns_command(&prepared.world, &["verify"]);
        assert_eq!(verified.code, Some(0), "{context} {verified:?}");
    }
    assert!(unfinished * 2 > kills.len(), "{unfinished} of {} and {}", kills.len(), refusals.len());
}

#[test]
fn verify_prints_how_to_finish_an_interrupted_erasure_of_secrets() {
    assert_erasure_survives_interruption_everywhere(
        world_with_secrets_in_log(),
        &["turns", "erase", "--secrets"],
        |world| files_with_secrets(world).is_empty(),
    );
}

#[test]
fn verify_prints_how_to_finish_an_interrupted_erasure_in_a_compressed_log() {
    let world = world_with_secrets_in_log();
    for session in [SESSION, "only-waiting"] {
        let log = TurnLog::for_session_where_started_or_current(
            &Project::with_local_files(&world.project()),
            &SessionId::from(session),
        )
        .unwrap();
        log.compress_log_and_blobs(Duration::from_secs(5)).unwrap();
    }
    // A dry run reads compressed and plain files alike, so it must find no secret anywhere.
    assert_erasure_survives_interruption_everywhere(world, &["turns", "erase", "--secrets"], |world| {
        let dry_run_output =
            run_turns_command(world, &["erase", "--secrets", "--dry-run"]).expect_success().stdout;
        dry_run_output == "Nothing in the turn log looks like a secret.\n"
    });
}

#[test]
fn verify_prints_how_to_finish_an_interrupted_erasure_of_a_turn() {
    let is_erased = |world: &World| {
        let mut files = Vec::new();
        collect_files_containing(&world.path(TURNS), &token("a"), &mut files);
        files.is_empty()
    };
    assert_erasure_survives_interruption_everywhere(
        world_with_secrets_in_log(),
        &["turns", "erase", "leaky:1"],
        is_erased,
    );
}

#[test]
fn verify_prints_the_commands_for_two_interrupted_erasures() {
    let world = world_with_secrets_in_log();
    let project = Project::with_local_files(&world.project());
    let records = [(SESSION.to_owned(), [3].into())].into();
    let turn_request = ErasureRequest { records_by_session: records, ..ErasureRequest::default() };
    let session = Some("it's".to_owned());
    let secrets_request =
        ErasureRequest { removes_secrets: true, session_prefix: session, ..ErasureRequest::default() };
    for request in [&turn_request, &secrets_request, &turn_request] {
        request.record_start(&project).unwrap();
    }
    let verified = run_turns_command(&world, &["verify"]);
    let commands = "  plimsoll turns erase --secrets --session 'it'\\''s'\n  plimsoll turns erase --session leaky record:3\n";
    assert!(verified.code == Some(1) && verified.stdout.ends_with(commands), "{verified:?}");
    run_turns_command(&world, &["erase", "--secrets"]).expect_success();
    assert_eq!(ErasureRequest::load_interrupted(&project), [turn_request]);
    run_turns_command(&world, &["erase", "--session", SESSION, "record:3"]).expect_success();
    run_turns_command(&world, &["verify"]).expect_success();
}
