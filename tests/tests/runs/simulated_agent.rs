//! The simulated agent of the nights reads our texts by patterns: each pattern finds what it is for in the texts as they are
//! worded now. Without this a night would go on with an agent that overlooks what it is told.

use plimsoll_domain::prompt::{Surroundings, block};
use plimsoll_domain::resume::Staleness;
use plimsoll_domain::state::{AtStart, Checkpoint, FileInProgress, ItemWork, Items, RunOptions};
use plimsoll_domain::{RunState, promise};
use plimsoll_policy::words;
use plimsoll_testkit::night::{Hand, Knowledge};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const HANDOFF: &str = ".claude/handoffs/2026-01-07-1145.md";
const NONCE: &str = "7f3a";
const SESSION: &str = "s-1";

/// A run at its third iteration, with two items to convert.
fn run() -> RunState {
    RunState {
        run_id: "r-1".into(),
        session_id: Some(SESSION.into()),
        nonce: NONCE.to_owned(),
        iteration: 3,
        options: RunOptions {
            task_name: "Parts".to_owned(),
            todo_file: Some("fix_plan.md".to_owned()),
            max_iterations: 9,
            completion_promise: "COMPLETE".to_owned(),
            ..RunOptions::default()
        },
        items: Items {
            todo_items: vec!["Convert part-3.txt".to_owned(), "Convert part-4.txt".to_owned()],
            completed_items: vec!["Convert part-1.txt".to_owned()],
            ..Items::default()
        },
        at_start: AtStart { started_at: "2026-01-07T11:00:00Z".into(), ..AtStart::default() },
        ..RunState::default()
    }
}

fn half_done() -> Checkpoint {
    let file = |path: &str, lines: &str| FileInProgress {
        path: path.to_owned(),
        lines: lines.to_owned(),
        description: "modified, committed".to_owned(),
        ..FileInProgress::default()
    };
    Checkpoint {
        active: true,
        handoff_file: HANDOFF.to_owned(),
        current_todo_item: "Convert part-3.txt".to_owned(),
        files_in_progress: vec![file("part-3.txt", "1-20, 41-80")],
        item_work: ItemWork { own_item: "Convert part-3.txt".to_owned(), ..ItemWork::default() },
        ..Checkpoint::default()
    }
}

fn prompt(state: &RunState, checkpoint: Option<Checkpoint>) -> Knowledge {
    let resume = checkpoint.map(|checkpoint| (checkpoint, Staleness::default()));
    Knowledge::read(block(state, &Surroundings { resume, ..Surroundings::default() }).text())
}

fn at(file: &str, next: Option<u32>) -> Option<Hand> {
    Some(Hand { file: file.to_owned(), next, lines: None })
}

#[test]
fn a_prompt_names_the_item_the_promise_and_the_file_for_notes() {
    let known = prompt(&run(), None);
    assert_eq!(known.hand, at("part-3.txt", None));
    assert_eq!(known.promise, promise::line("COMPLETE", NONCE));
    assert_eq!(known.notes_file.as_deref(), Some("fix_plan.md"));
    assert_eq!((known.handoff, known.is_begun, known.told_to_stop), (None, false, false));
    let set_aside = RunState {
        items: Items {
            todo_items: vec!["Convert part-3.txt".to_owned()],
            set_aside: vec!["Convert part-3.txt".to_owned()],
            ..Items::default()
        },
        ..run()
    };
    assert!(prompt(&set_aside, None).is_begun);
}

#[test]
fn a_resume_names_the_place_and_the_handoff() {
    let known = prompt(&run(), Some(half_done()));
    assert_eq!((known.hand, known.handoff.as_deref()), (at("part-3.txt", Some(81)), Some(HANDOFF)));
}

#[test]
fn messages_name_the_next_item_and_say_when_to_stop() {
    let next = |was_set_aside| words::next_item("Convert part-4.txt", 1, "COMPLETE", NONCE, was_set_aside);
    let (known, again) = (Knowledge::read(&next(false)), Knowledge::read(&next(true)));
    assert_eq!((known.hand, known.is_begun, again.is_begun), (at("part-4.txt", None), false, true));
    assert_eq!(known.promise, promise::line("COMPLETE", NONCE));
    let known = Knowledge::read(&words::wrap_up(87, HANDOFF));
    assert!(known.told_to_stop);
}

/// What a hook of ours says to the model, or to the client that summarizes.
fn said(world: &World, hook: &str, event: &str, more: &Value) -> String {
    let mut payload = json!({"session_id": SESSION, "hook_event_name": event, "cwd": world.project(),
        "transcript_path": world.path("transcript.jsonl")});
    plimsoll_domain::state::merge(&mut payload, more.clone());
    let reply = world.hook(hook, &payload).env("PLIMSOLL_RUN_ID", "r-1").run().expect_success().stdout;
    let context =
        |reply: &Value| reply["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned);
    serde_json::from_str(&reply).ok().and_then(|reply| context(&reply)).unwrap_or(reply)
}

#[test]
fn before_and_after_a_compaction_the_item_and_the_promise_are_named() {
    let world = World::new();
    world.write(
        "fix_plan.md",
        "- [x] Convert part-1.txt\n- [ ] Convert part-3.txt\n- [ ] Convert part-4.txt\n",
    );
    world.put_run(&serde_json::to_value(run()).expect("a state"));
    for (hook, event, more) in [
        ("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"})),
        ("plimsoll-session-start", "SessionStart", json!({"source": "compact"})),
    ] {
        let text = said(&world, hook, event, &more);
        let known = Knowledge::read(&text);
        assert_eq!(known.hand, at("part-3.txt", None), "{event}: {text}");
        assert_eq!(known.promise, promise::line("COMPLETE", NONCE), "{event}: {text}");
    }
}
