//! Nothing that was recorded goes unless the user asks; then the old goes, and never what is still needed.

use plimsoll_testkit::world::World;
use plimsoll_tests::{put_run, world};
use serde_json::{Value, json};
use std::path::PathBuf;

fn hook(world: &World, program: &str, payload: &Value, run: Option<&str>) {
    let mut hook = world.hook(program, payload);
    if let Some(run) = run {
        hook = hook.env("PLIMSOLL_RUN_ID", run);
    }
    hook.run().expect_success();
}

fn begin(world: &World, session: &str, source: &str, run: Option<&str>) {
    let payload = json!({"session_id": session, "hook_event_name": "SessionStart", "source": source});
    hook(world, "plimsoll-session-start", &payload, run);
}

/// A session that is over, with a handoff. It is offered none: its conversation is there.
fn leave(world: &World, session: &str) {
    begin(world, session, "resume", None);
    world.plimsoll(&["checkpoint"]).env("CLAUDE_CODE_SESSION_ID", session).run().expect_success();
    let payload = json!({"session_id": session, "hook_event_name": "SessionEnd", "reason": "other"});
    hook(world, "plimsoll-session-end", &payload, None);
}

/// Makes whatever is recorded so far this old.
fn age(world: &World, days: u32) {
    let command = format!("find .claude -type f -exec touch -d '{days} days ago' {{}} +");
    world.command("/bin/sh", &["-c", &command]).run().expect_success();
}

fn files_of(world: &World, session: &str) -> Vec<PathBuf> {
    let turns = ["jsonl", "jsonl.zst"].map(|ending| format!("turns/{session}.{ending}"));
    [format!("sessions/{session}.json")]
        .into_iter()
        .chain(turns)
        .map(|file| world.path(".claude/plimsoll").join(file))
        .filter(|path| path.exists())
        .collect()
}

fn handoffs(world: &World) -> usize {
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

fn names(list: &Value) -> Vec<String> {
    let all = list.as_array().expect("a list").iter();
    let mut all: Vec<String> = all
        .map(|it| {
            format!("{} {}", it["kind"].as_str().unwrap_or_default(), it["name"].as_str().unwrap_or_default())
        })
        .filter(|name| !name.starts_with("handoff"))
        .collect();
    all.sort();
    all
}

#[test]
fn prune_removes_what_is_old_and_never_what_is_needed() {
    let world = world(plimsoll_tests::ITEMS);
    leave(&world, "old");
    // It is offered the first handoff and opens it, which counts as read then.
    let transcript = world.path("open.jsonl");
    let payload = json!({"session_id": "open", "hook_event_name": "SessionStart", "source": "startup", "transcript_path": transcript});
    hook(&world, "plimsoll-session-start", &payload, None);
    let handoff = world.plimsoll(&["handoffs", "--json"]).run().expect_success().json()[0]["file"].clone();
    let path = world.path(handoff.as_str().expect("a path"));
    world.write(
        "open.jsonl",
        &json!({"type": "attachment", "attachment": {"type": "file", "filename": path}}).to_string(),
    );
    leave(&world, "unread");
    put_run(&world, "run-1", "mine");
    begin(&world, "mine", "startup", Some("run-1"));
    age(&world, 40);
    leave(&world, "new");

    let before = handoffs(&world);
    assert_eq!(before, 3);
    let dry = world
        .plimsoll(&["prune", "--older-than", "30d", "--dry-run", "--json"])
        .run()
        .expect_success()
        .json();
    // The session that named no client and did not end is over by its age.
    assert_eq!(names(&dry["removed"]), ["session old", "session open", "session unread"], "{dry:#}");
    assert_eq!(names(&dry["needed"]), ["session mine"], "{dry:#}");
    assert!(handoffs(&world) == before && files_of(&world, "old").len() == 2, "nothing has gone");
    let doctor = world.plimsoll(&["doctor"]).run().stdout;
    let (_, records) = doctor.split_once("our records take ").expect("the size of the records");
    assert_eq!(without_sizes(records.lines().next().unwrap_or_default()), "[N] KB");
    let told = world.plimsoll(&["prune", "--older-than", "30d"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&without_sizes(&told)), @"
    Removed 4 records ([N] KB):
    session [N] KB 40 days old
    session [N] KB 40 days open
    session [N] KB 40 days unread
    handoff [N] KB 40 days [DATE-TIME].md
    Compressed 1 session (saved [N] KB). [N] KB stay, in any case 1 of the run, 2 unread.
    ");
    for (session, files) in [("old", 0), ("open", 0), ("unread", 0), ("mine", 2), ("new", 2)] {
        assert_eq!(files_of(&world, session).len(), files, "{session}");
    }
    assert_eq!(handoffs(&world), 2, "the unread ones stay, whatever their age");
    assert!(world.exists(".claude/ralph-state.json") && world.exists(".claude/plimsoll/journal.jsonl"));
    world.plimsoll(&["turns", "verify"]).run().expect_success();
    let again = world.plimsoll(&["prune", "--max-size", "1K", "--json"]).run().expect_success().json();
    assert_eq!(names(&again["removed"]), ["session new"], "{again:#}");
}

/// An agent's `git clean` takes the state away, and a session may have a turn log before it has a record.
#[test]
fn what_a_run_or_a_living_session_needs_stays_also_where_the_files_that_say_so_are_gone() {
    let world = world(plimsoll_tests::ITEMS);
    world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    let state = world.json(".claude/ralph-state.json");
    let run_id = state["run_id"].as_str().expect("an id").to_owned();
    world.write(format!(".claude/plimsoll/runs/{run_id}/1.out"), &"what it printed\n".repeat(500));
    std::fs::remove_file(world.path(".claude/ralph-state.json")).expect("the state");
    world.write(".claude/plimsoll/turns/living.jsonl", "{}\n");
    world.write(".claude/plimsoll/turns/left.blobs/piece", "left by a removal that was killed\n");
    world.write(".claude/plimsoll/runs/no-folder", "nobody's\n");
    let old = world.path(".claude/plimsoll/turns/left.blobs/piece").display().to_string();
    world.command("/bin/sh", &["-c", &format!("touch -d '40 days ago' '{old}'")]).run().expect_success();
    let pruned = world.plimsoll(&["prune", "--max-size", "1K", "--json"]).run().expect_success().json();
    assert_eq!(names(&pruned["removed"]), ["session left"], "{pruned:#}");
    let run = format!("run_output {run_id}");
    let needed = names(&pruned["needed"]);
    assert!(needed.iter().any(|name| *name == run || *name == run.replace('_', " ")), "{pruned:#}");
    assert!(needed.contains(&"session living".to_owned()), "{pruned:#}");
    assert!(
        world.exists(format!(".claude/plimsoll/runs/{run_id}/1.out"))
            && world.exists(".claude/plimsoll/turns/living.jsonl")
    );
    assert!(!world.path(".claude/plimsoll/turns/left.blobs").exists());
}

#[test]
fn a_setting_of_the_user_prunes_at_the_end_of_a_session_and_a_projects_file_cannot() {
    let keep = json!({"keep": {"days": 30}});
    let world = World::new();
    leave(&world, "old");
    age(&world, 40);
    world.write(".claude/plimsoll.json", &keep.to_string());
    leave(&world, "one");
    assert_eq!(files_of(&world, "old").len(), 2, "only the user may ask for it");
    world.write_user_settings(&keep);
    leave(&world, "two");
    assert_eq!((files_of(&world, "old").len(), files_of(&world, "one").len()), (0, 2));
}

/// What each `turns` command says of a session.
fn said(world: &World, session: &str) -> Vec<String> {
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
    let said =
        |command: &&[&str]| world.plimsoll(&[&["turns"], *command].concat()).run().expect_success().stdout;
    commands.iter().map(said).collect()
}

fn bytes_below(world: &World, folder: &str) -> u64 {
    let printed = world.command("du", &["--apparent-size", "-sb", folder]).run().expect_success().stdout;
    printed.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a size")
}

/// The turn log of a long session takes more than its transcript; compressed, it takes less, and says the same.
#[test]
fn a_closed_sessions_log_is_compressed_and_every_command_reads_it() {
    let world = World::new();
    let fixture = plimsoll_testkit::workspace_root().join("tests/fixtures/transcripts/natural_sizes.jsonl");
    let transcript = world.home().join("natural.jsonl");
    std::fs::copy(&fixture, &transcript).expect("a copy");
    let sync =
        || world.plimsoll(&["turns", "sync", &transcript.display().to_string()]).run().expect_success();
    sync();
    age(&world, 2);
    let before = said(&world, "natural");
    let turns = ".claude/plimsoll/turns";
    let dry = world.plimsoll(&["prune", "--dry-run"]).run().expect_success().stdout;
    insta::assert_snapshot!(without_sizes(&dry), @"Would compress 1 session. [N] KB stay.");
    assert!(!world.exists(format!("{turns}/natural.jsonl.zst")));
    let told = world.plimsoll(&["prune"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&without_sizes(&told)), @"Compressed 1 session (saved [N] KB). [N] KB stay.");
    assert!(
        !world.exists(format!("{turns}/natural.jsonl")) && world.exists(format!("{turns}/natural.jsonl.zst"))
    );
    let (log, original) = (bytes_below(&world, turns), std::fs::metadata(&transcript).expect("it").len());
    assert!(log < original, "{log} of {original}");
    assert_eq!(said(&world, "natural"), before);
    assert!(world.exists(format!("{turns}/natural.jsonl.zst")), "reading unpacks nothing");

    // The session goes on: what is new follows.
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

/// A hook unpacks the log of a session that is resumed.
#[test]
fn a_session_that_is_resumed_after_it_was_compressed_goes_on_in_its_log() {
    let world = world(plimsoll_tests::ITEMS);
    leave(&world, "one");
    let packed = world.plimsoll(&["prune", "--json"]).run().expect_success().json();
    assert_eq!(packed["packed"], 1, "{packed:#}");
    assert!(world.exists(".claude/plimsoll/turns/one.jsonl.zst"));
    begin(&world, "one", "resume", None);
    assert!(!world.exists(".claude/plimsoll/turns/one.jsonl.zst"));
    let log = world.read(".claude/plimsoll/turns/one.jsonl");
    assert_eq!(log.matches("session_start").count(), 2, "{log}");
    world.plimsoll(&["turns", "verify"]).run().expect_success();
    let again = world.plimsoll(&["prune", "--json"]).run().expect_success().json();
    assert_eq!(again["packed"], 0, "it is open: {again:#}");
}

#[test]
fn a_setting_of_the_user_compresses_at_the_end_of_a_session_and_a_projects_file_cannot() {
    let keep = json!({"keep": {"compress": true}});
    let world = World::new();
    world.write(".claude/plimsoll.json", &keep.to_string());
    leave(&world, "one");
    let packed = |session: &str| world.exists(format!(".claude/plimsoll/turns/{session}.jsonl.zst"));
    assert!(!packed("one"), "only the user may ask for it");
    world.write_user_settings(&keep);
    begin(&world, "open", "startup", None);
    leave(&world, "two");
    assert_eq!(["one", "two", "open"].map(packed), [true, true, false]);
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}
