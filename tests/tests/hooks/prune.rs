//! No record is removed unless the user asks; then old records are removed, but none that is still needed.

use plimsoll_testkit::world::World;
use plimsoll_tests::{create_run, world_with_plan_and_dates};
use serde_json::{Value, json};
use std::path::PathBuf;

fn run_hook(world: &World, program: &str, payload: &Value, run: Option<&str>) {
    let mut hook = world.hook(program, payload);
    if let Some(run) = run {
        hook = hook.env("PLIMSOLL_RUN_ID", run);
    }
    hook.run().expect_success();
}

fn start_session(world: &World, session: &str, source: &str, run: Option<&str>) {
    let payload = json!({"session_id": session, "hook_event_name": "SessionStart", "source": source});
    run_hook(world, "plimsoll-session-start", &payload, run);
}

/// Runs a session that ends and leaves a handoff. It is resumed, so that it is offered no handoff itself.
fn run_session_with_handoff(world: &World, session: &str) {
    start_session(world, session, "resume", None);
    world.plimsoll(&["checkpoint"]).env("CLAUDE_CODE_SESSION_ID", session).run().expect_success();
    let payload = json!({"session_id": session, "hook_event_name": "SessionEnd", "reason": "other"});
    run_hook(world, "plimsoll-session-end", &payload, None);
}

/// Makes everything that is recorded so far this many days old.
fn age_records(world: &World, days: u32) {
    let command = format!("find .claude -type f -exec touch -d '{days} days ago' {{}} +");
    world.command("/bin/sh", &["-c", &command]).run().expect_success();
}

fn session_files(world: &World, session: &str) -> Vec<PathBuf> {
    let turns = ["jsonl", "jsonl.zst"].map(|ending| format!("turns/{session}.{ending}"));
    [format!("sessions/{session}.json")]
        .into_iter()
        .chain(turns)
        .map(|file| world.path(".claude/plimsoll").join(file))
        .filter(|path| path.exists())
        .collect()
}

fn count_handoffs(world: &World) -> usize {
    std::fs::read_dir(world.path(".claude/handoffs"))
        .expect("handoffs")
        .flatten()
        .filter(|it| it.path().extension().is_some_and(|it| it == "md"))
        .count()
}

/// Returns a text with single blanks, and with `[N]` in place of sizes, which depend on the paths.
fn without_sizes(text: &str) -> String {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.lines().map(line).collect::<Vec<_>>().join("\n");
    let mut parts: Vec<&str> = text.split(" KB").collect();
    let last = parts.pop().unwrap_or_default();
    let without = |part: &str| part.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned();
    parts.into_iter().map(|part| without(part) + "[N] KB").collect::<String>() + last
}

fn kinds_and_names(list: &Value) -> Vec<String> {
    let entries = list.as_array().expect("a list").iter();
    let mut names: Vec<String> = entries
        .map(|entry| {
            format!(
                "{} {}",
                entry["kind"].as_str().unwrap_or_default(),
                entry["name"].as_str().unwrap_or_default()
            )
        })
        .filter(|name| !name.starts_with("handoff"))
        .collect();
    names.sort();
    names
}

#[test]
fn prune_removes_old_records_but_no_run_and_no_unread_handoff() {
    let world = world_with_plan_and_dates(plimsoll_tests::THREE_ITEM_PLAN);
    run_session_with_handoff(&world, "old");
    // This session is offered the first handoff and opens it, so that handoff counts as read.
    let transcript = world.path("open.jsonl");
    let payload = json!({"session_id": "open", "hook_event_name": "SessionStart", "source": "startup", "transcript_path": transcript});
    run_hook(&world, "plimsoll-session-start", &payload, None);
    let handoff =
        world.plimsoll(&["handoffs", "--json"]).run().expect_success().stdout_json()[0]["file"].clone();
    let path = world.path(handoff.as_str().expect("a path"));
    world.write(
        "open.jsonl",
        &json!({"type": "attachment", "attachment": {"type": "file", "filename": path}}).to_string(),
    );
    run_session_with_handoff(&world, "unread");
    create_run(&world, "run-1", "mine");
    start_session(&world, "mine", "startup", Some("run-1"));
    age_records(&world, 40);
    run_session_with_handoff(&world, "new");

    let before = count_handoffs(&world);
    assert_eq!(before, 3);
    let dry_run = world
        .plimsoll(&["prune", "--older-than", "30d", "--dry-run", "--json"])
        .run()
        .expect_success()
        .stdout_json();
    // The session that named no client and did not end counts as over because of its age.
    assert_eq!(
        kinds_and_names(&dry_run["removed"]),
        ["session old", "session open", "session unread"],
        "{dry_run:#}"
    );
    assert_eq!(kinds_and_names(&dry_run["needed"]), ["session mine"], "{dry_run:#}");
    assert!(count_handoffs(&world) == before && session_files(&world, "old").len() == 2, "nothing has gone");
    let doctor = world.plimsoll(&["doctor"]).run().stdout;
    let (_, records) = doctor.split_once("our records take ").expect("the size of the records");
    assert_eq!(without_sizes(records.lines().next().unwrap_or_default()), "[N] KB");
    let output = world.plimsoll(&["prune", "--older-than", "30d"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_sizes(&output)), @"
    Removed 4 records ([N] KB):
    session [N] KB 40 days old
    session [N] KB 40 days open
    session [N] KB 40 days unread
    handoff [N] KB 40 days [DATE-TIME].md
    Compressed 1 session (saved [N] KB). [N] KB stay, in any case 1 of the run, 2 unread.
    ");
    for (session, files) in [("old", 0), ("open", 0), ("unread", 0), ("mine", 2), ("new", 2)] {
        assert_eq!(session_files(&world, session).len(), files, "{session}");
    }
    assert_eq!(count_handoffs(&world), 2, "the unread ones stay, whatever their age");
    assert!(world.exists(".claude/ralph-state.json") && world.exists(".claude/plimsoll/journal.jsonl"));
    world.plimsoll(&["turns", "verify"]).run().expect_success();
    let again = world.plimsoll(&["prune", "--max-size", "1K", "--json"]).run().expect_success().stdout_json();
    assert_eq!(kinds_and_names(&again["removed"]), ["session new"], "{again:#}");
}

/// An agent's `git clean` removes the state, and a session may have a turn log before it has a record.
#[test]
fn prune_keeps_files_of_a_run_or_live_session_whose_state_is_gone() {
    let world = world_with_plan_and_dates(plimsoll_tests::THREE_ITEM_PLAN);
    world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    let state = world.read_json(".claude/ralph-state.json");
    let run_id = state["run_id"].as_str().expect("an id").to_owned();
    world.write(format!(".claude/plimsoll/runs/{run_id}/1.out"), &"what it printed\n".repeat(500));
    std::fs::remove_file(world.path(".claude/ralph-state.json")).expect("the state");
    world.write(".claude/plimsoll/turns/living.jsonl", "{}\n");
    world.write(".claude/plimsoll/turns/left.blobs/piece", "left by a removal that was killed\n");
    world.write(".claude/plimsoll/runs/no-folder", "nobody's\n");
    let old = world.path(".claude/plimsoll/turns/left.blobs/piece").display().to_string();
    world.command("/bin/sh", &["-c", &format!("touch -d '40 days ago' '{old}'")]).run().expect_success();
    let pruned =
        world.plimsoll(&["prune", "--max-size", "1K", "--json"]).run().expect_success().stdout_json();
    assert_eq!(kinds_and_names(&pruned["removed"]), ["session left"], "{pruned:#}");
    let run = format!("run_output {run_id}");
    let needed = kinds_and_names(&pruned["needed"]);
    assert!(needed.iter().any(|name| *name == run || *name == run.replace('_', " ")), "{pruned:#}");
    assert!(needed.contains(&"session living".to_owned()), "{pruned:#}");
    assert!(
        world.exists(format!(".claude/plimsoll/runs/{run_id}/1.out"))
            && world.exists(".claude/plimsoll/turns/living.jsonl")
    );
    assert!(!world.path(".claude/plimsoll/turns/left.blobs").exists());
}

#[test]
fn only_the_users_settings_can_prune_at_the_end_of_a_session() {
    let settings = json!({"keep": {"days": 30}});
    let world = World::new();
    run_session_with_handoff(&world, "old");
    age_records(&world, 40);
    world.write(".claude/plimsoll.json", &settings.to_string());
    run_session_with_handoff(&world, "one");
    assert_eq!(session_files(&world, "old").len(), 2, "only the user may ask for it");
    world.write_plimsoll_user_settings(&settings);
    run_session_with_handoff(&world, "two");
    assert_eq!((session_files(&world, "old").len(), session_files(&world, "one").len()), (0, 2));
}

/// Returns what each `turns` command prints about a session.
fn turns_outputs(world: &World, session: &str) -> Vec<String> {
    let commands: [&[&str]; 8] = [
        &["list", "--session", session, "--all-streams"],
        &["list", "--session", session, "--json"],
        &["show", "1", "--json"],
        &["grep", "line"],
        &["stats", "--session", session],
        &["verify", "--session", session],
        &["export", "--session", session, "--format", "jsonl"],
        &["export", "--session", session, "--format", "otel"],
    ];
    let run_turns_command =
        |command: &&[&str]| world.plimsoll(&[&["turns"], *command].concat()).run().expect_success().stdout;
    commands.iter().map(run_turns_command).collect()
}

fn folder_bytes(world: &World, folder: &str) -> u64 {
    let printed = world.command("du", &["--apparent-size", "-sb", folder]).run().expect_success().stdout;
    printed.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a size")
}

/// The turn log of a long session takes more space than its transcript; compressed, it takes less and reads the same.
#[test]
fn a_closed_sessions_log_is_compressed_and_every_command_reads_it() {
    let world = World::new();
    let fixture = plimsoll_testkit::workspace_root().join("tests/fixtures/transcripts/natural_sizes.jsonl");
    let transcript = world.home().join("natural.jsonl");
    std::fs::copy(&fixture, &transcript).expect("a copy");
    let sync =
        || world.plimsoll(&["turns", "sync", &transcript.display().to_string()]).run().expect_success();
    sync();
    age_records(&world, 2);
    let before = turns_outputs(&world, "natural");
    let turns = ".claude/plimsoll/turns";
    let dry_run = world.plimsoll(&["prune", "--dry-run"]).run().expect_success().stdout;
    insta::assert_snapshot!(without_sizes(&dry_run), @"Would compress 1 session. [N] KB stay.");
    assert!(!world.exists(format!("{turns}/natural.jsonl.zst")));
    let output = world.plimsoll(&["prune"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_sizes(&output)), @"Compressed 1 session (saved [N] KB). [N] KB stay.");
    assert!(
        !world.exists(format!("{turns}/natural.jsonl")) && world.exists(format!("{turns}/natural.jsonl.zst"))
    );
    let (log, original) = (folder_bytes(&world, turns), std::fs::metadata(&transcript).expect("it").len());
    assert!(log < original, "{log} of {original}");
    assert_eq!(turns_outputs(&world, "natural"), before);
    assert!(world.exists(format!("{turns}/natural.jsonl.zst")), "reading unpacks nothing");

    // The session continues: new turns are appended.
    let more = std::fs::read_to_string(&fixture).expect("a transcript");
    let last = more.lines().rfind(|line| line.contains("\"type\":\"assistant\"")).expect("an answer");
    let next = last.replace("\"id\":\"msg_", "\"id\":\"msg_more_");
    std::fs::write(&transcript, format!("{more}{next}\n")).expect("a longer transcript");
    sync();
    assert!(
        world.exists(format!("{turns}/natural.jsonl")) && !world.exists(format!("{turns}/natural.jsonl.zst"))
    );
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}

/// A hook decompresses the log of a session that is resumed.
#[test]
fn a_resumed_session_continues_in_its_decompressed_log() {
    let world = world_with_plan_and_dates(plimsoll_tests::THREE_ITEM_PLAN);
    run_session_with_handoff(&world, "one");
    let pruned = world.plimsoll(&["prune", "--json"]).run().expect_success().stdout_json();
    assert_eq!(pruned["packed"], 1, "{pruned:#}");
    assert!(world.exists(".claude/plimsoll/turns/one.jsonl.zst"));
    start_session(&world, "one", "resume", None);
    assert!(!world.exists(".claude/plimsoll/turns/one.jsonl.zst"));
    let log = world.read(".claude/plimsoll/turns/one.jsonl");
    assert_eq!(log.matches("session_start").count(), 2, "{log}");
    world.plimsoll(&["turns", "verify"]).run().expect_success();
    let again = world.plimsoll(&["prune", "--json"]).run().expect_success().stdout_json();
    assert_eq!(again["packed"], 0, "it is open: {again:#}");
}

#[test]
fn only_the_users_settings_can_compress_at_the_end_of_a_session() {
    let settings = json!({"keep": {"compress": true}});
    let world = World::new();
    world.write(".claude/plimsoll.json", &settings.to_string());
    run_session_with_handoff(&world, "one");
    let is_compressed = |session: &str| world.exists(format!(".claude/plimsoll/turns/{session}.jsonl.zst"));
    assert!(!is_compressed("one"), "only the user may ask for it");
    world.write_plimsoll_user_settings(&settings);
    start_session(&world, "open", "startup", None);
    run_session_with_handoff(&world, "two");
    assert_eq!(["one", "two", "open"].map(is_compressed), [true, true, false]);
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}
