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
    let files = [format!("sessions/{session}.json"), format!("turns/{session}.jsonl")];
    files
        .map(|file| world.path(".claude/plimsoll").join(file))
        .into_iter()
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
    // It is offered the first handoff, which counts as read then.
    begin(&world, "open", "startup", None);
    leave(&world, "unread");
    put_run(&world, "run-1", "mine");
    begin(&world, "mine", "startup", Some("run-1"));
    age(&world, 40);
    leave(&world, "new");

    let refused = world.plimsoll(&["prune"]).run();
    assert!(refused.code == Some(2) && refused.stderr.contains("--older-than 30d"), "{refused:?}");
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
    let status = world.plimsoll(&["doctor"]).run();
    assert!(status.stdout.contains("our records take"), "{status:?}");

    let told = world.plimsoll(&["prune", "--older-than", "30d"]).run().expect_success().stdout;
    assert!(told.starts_with("Removed 4 records") && told.contains("2 unread"), "{told}");
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
