//! The simulated agent of the nights reads our texts by patterns: each pattern finds what it is for in the texts as they are
//! worded now. Without this a night would go on with an agent that overlooks what it is told.

use plimsoll_domain::prompt::{PromptContext, render_prompt_block};
use plimsoll_domain::resume::Staleness;
use plimsoll_domain::state::{ProjectAtStart, Checkpoint, FileInProgress, ItemWork, PlanItems, SessionOutcomes, RunOptions};
use plimsoll_domain::{Level, RunState, promise};
use plimsoll_policy::messages;
use plimsoll_research::nights::simulator::{Knowledge, Notes as NotesIn, Place, Rule};
use plimsoll_research::nights::ways::{Loop, WAYS, Way, way};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const HANDOFF: &str = ".claude/handoffs/2026-01-07-1145.md";
const NONCE: &str = "7f3a";
const SESSION: &str = "s-1";

fn promise_line() -> String {
    promise::render_completion_line(&"COMPLETE".parse().expect("a word"), &NONCE.parse().expect("a code"))
}

/// A run at its third iteration, with two items to convert.
fn run() -> RunState {
    RunState {
        run_id: "r-1".into(),
        session_id: Some(SESSION.into()),
        promise_code: NONCE.parse().expect("a code"),
        iteration: 3,
        options: RunOptions {
            task_name: "Parts".to_owned(),
            todo_file: Some("fix_plan.md".to_owned()),
            max_iterations: 9,
            completion_promise: "COMPLETE".parse().expect("a word"),
            ..RunOptions::default()
        },
        plan_items: PlanItems {
            todo_items: vec!["Convert part-3.txt".to_owned(), "Convert part-4.txt".to_owned()],
            completed_items: vec!["Convert part-1.txt".to_owned()],
            ..PlanItems::default()
        },
        project_at_start: ProjectAtStart { started_at: "2026-01-07T11:00:00Z".into(), ..ProjectAtStart::default() },
        ..RunState::default()
    }
}

fn half_done() -> Checkpoint {
    let file = |path: &str, lines: &str| FileInProgress {
        path: path.to_owned(),
        touched_lines: lines.to_owned(),
        description: "modified, committed".to_owned(),
        ..FileInProgress::default()
    };
    Checkpoint {
        active: true,
        handoff_file: HANDOFF.to_owned(),
        current_todo_item: "Convert part-3.txt".to_owned(),
        files_in_progress: vec![file("part-3.txt", "1-20, 41-80")],
        item_work: ItemWork { session_item: "Convert part-3.txt".to_owned(), ..ItemWork::default() },
        ..Checkpoint::default()
    }
}

fn prompt(state: &RunState, checkpoint: Option<Checkpoint>) -> Knowledge {
    let resume = checkpoint.map(|checkpoint| (checkpoint, Staleness::default()));
    Knowledge::read(render_prompt_block(state, &PromptContext { checkpoint_to_resume: resume, ..PromptContext::default() }).text())
}

fn told(known: &Knowledge) -> Option<&str> {
    known.told.as_deref()
}

#[test]
fn a_prompt_names_the_item_the_promise_and_the_file_for_notes() {
    let known = prompt(&run(), None);
    assert_eq!(told(&known), Some("part-3.txt"));
    assert_eq!(known.promise, promise_line());
    assert_eq!(known.blocked, promise::render_blocked_line(&NONCE.parse().expect("a code"), "REASON"));
    assert_eq!(known.notes, Some(NotesIn::Under("fix_plan.md".to_owned())));
    assert_eq!((known.handoff, known.is_begun), (None, false));
    let set_aside = RunState {
        plan_items: PlanItems {
            todo_items: vec!["Convert part-3.txt".to_owned()],
            set_aside_items: vec!["Convert part-3.txt".to_owned()],
            ..PlanItems::default()
        },
        ..run()
    };
    assert!(prompt(&set_aside, None).is_begun);
}

#[test]
fn a_refusal_names_what_the_test_found() {
    let refused = RunState {
        outcomes: SessionOutcomes {
            refusals: vec!["`./check.sh` exited with 1; it printed:\ntesting items\nFAIL part-2.txt: line 27 is not converted".to_owned()],
            ..SessionOutcomes::default()
        },
        plan_items: PlanItems { todo_items: Vec::new(), ..run().plan_items },
        ..run()
    };
    let known = prompt(&refused, None);
    assert_eq!(known.failing.keys().collect::<Vec<_>>(), ["part-2.txt"]);
    assert!(known.has(Rule::RepairAll), "{:?}", known.rules);
}

#[test]
fn a_resume_names_the_place_and_the_handoff() {
    let known = prompt(&run(), Some(half_done()));
    let place = Place { next: Some(81), lines: None };
    assert_eq!((known.places.get("part-3.txt"), known.handoff.as_deref()), (Some(&place), Some(HANDOFF)));
}

#[test]
fn messages_name_the_next_item_and_say_when_to_stop() {
    let run = run();
    let (word, code) = (&run.options.completion_promise, &run.promise_code);
    let next = |was_set_aside| messages::render_next_item_instructions("Convert part-4.txt", 1, word, code, was_set_aside);
    let (known, again) = (Knowledge::read(&next(false)), Knowledge::read(&next(true)));
    assert_eq!((told(&known), known.is_begun, again.is_begun), (Some("part-4.txt"), false, true));
    assert_eq!(known.promise, promise_line());
    assert!(Knowledge::read(&messages::render_checkpoint_instructions(Level::L2, 87, HANDOFF)).has(Rule::Stop));
}

/// The text that a session of this way is given.
fn prompt_text(way: &Way) -> String {
    match way.run {
        Loop::Shell { prompt, .. } => prompt.to_owned(),
        Loop::Plimsoll(arguments) => {
            let given = |name: &str| arguments.contains(&name);
            let verify = if given("--verify") { vec!["./check.sh".to_owned()] } else { Vec::new() };
            let options = RunOptions { verify_commands: verify, packs_items: given("--pack"), ..run().options };
            render_prompt_block(&RunState { options, ..run() }, &PromptContext::default()).text().to_owned()
        }
    }
}

/// Without this, a price that is lower for a sentence would be credited to the run that has it.
#[test]
fn the_fair_peers_are_told_everything_that_we_tell() {
    let known = |key: &str| Knowledge::read(&prompt_text(way(key).expect("a way")));
    for ours in WAYS.iter().filter(|way| matches!(way.run, Loop::Plimsoll(_))) {
        let ours = known(ours.key);
        assert!(!ours.blocked.is_empty() && ours.search.is_some() && ours.notes.is_some(), "{ours:?}");
        for peer in ["bare-sentences", "bare-gate"] {
            let peer = known(peer);
            assert!(ours.rules.is_subset(&peer.rules), "{:?} in {:?}", ours.rules, peer.rules);
            assert!(!peer.blocked.is_empty() && peer.search.is_some() && peer.notes.is_some(), "{peer:?}");
        }
    }
}

/// What each way's prompt makes the agent notice, by the same rules. One that asks for a thing and is not understood would be
/// played worse than it is.
#[test]
fn each_prompt_is_noticed_for_what_it_asks() {
    use Rule::{Ask, KeepChecks, LookFirst, LookUp, Notes, OneItem, RepairAll, Search, Test};
    const SENTENCES: &[Rule] = &[Notes, LookFirst, LookUp, Search, OneItem, Test, RepairAll, KeepChecks, Ask];
    const OURS: &[Rule] = &[Notes, LookFirst, LookUp, Search, OneItem, Test, KeepChecks, Ask];
    let expected: [(&str, &[Rule], &str, Option<&str>); 10] = [
        (
            "bare",
            &[Notes, LookFirst, OneItem, Test, RepairAll],
            "<promise>COMPLETE</promise>",
            Some("progress.txt"),
        ),
        ("bare-sentences", SENTENCES, "<promise>COMPLETE</promise>", Some("progress.txt")),
        ("bare-gate", SENTENCES, "<promise>COMPLETE</promise>", Some("progress.txt")),
        (
            "continue",
            &[Notes, LookFirst, OneItem, Test, RepairAll],
            "<promise>COMPLETE</promise>",
            Some("progress.txt"),
        ),
        (
            "stop-hook",
            &[Notes, LookFirst, OneItem, Test, RepairAll],
            "<promise>COMPLETE</promise>",
            Some("progress.txt"),
        ),
        (
            "orchestrator",
            &[Notes, LookFirst, OneItem, Test],
            "LOOP_COMPLETE",
            Some(".ralph/agent/scratchpad.md"),
        ),
        ("frankbria", &[Notes, LookFirst, OneItem, Test, Ask], "EXIT_SIGNAL: true", Some("AGENT.md")),
        ("plimsoll", OURS, "<promise>COMPLETE 7f3a</promise>", None),
        ("plimsoll-pack", OURS, "<promise>COMPLETE 7f3a</promise>", None),
        ("plimsoll-verify", OURS, "<promise>COMPLETE 7f3a</promise>", None),
    ];
    let keys: Vec<&str> = WAYS.iter().map(|way| way.key).collect();
    assert_eq!(expected.map(|(key, ..)| key).as_slice(), keys);
    for (way, (_, rules, promise, after)) in WAYS.iter().zip(expected) {
        let text = prompt_text(way);
        let known = Knowledge::read(&text);
        let words = format!("{}: {:?}\n{text}", way.key, known.rules);
        assert_eq!(known.rules, rules.iter().copied().collect(), "{words}");
        assert_eq!(known.promise, promise, "{words}");
        let notes =
            after.map_or(NotesIn::Under("fix_plan.md".to_owned()), |file| NotesIn::After(file.to_owned()));
        assert_eq!(known.notes, Some(notes), "{words}");
    }
}

/// What a hook of ours says to the model, or to the client that summarizes.
fn said(world: &World, hook: &str, event: &str, more: &Value) -> String {
    let mut payload = json!({"session_id": SESSION, "hook_event_name": event, "cwd": world.project(),
        "transcript_path": world.path("transcript.jsonl")});
    plimsoll_domain::state::merge_known_fields(&mut payload, more.clone());
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
        assert_eq!(told(&known), Some("part-3.txt"), "{event}: {text}");
        assert_eq!(known.promise, promise_line(), "{event}: {text}");
    }
}
