//! The simulated agent reads our texts by patterns. These tests check that each pattern matches the current
//! wording; otherwise the agent would overlook what it is told without any error.

use plimsoll_domain::prompt::{PromptContext, render_prompt_block};
use plimsoll_domain::resume::Staleness;
use plimsoll_domain::state::{
    Checkpoint, FileInProgress, ItemWork, PlanItems, ProjectAtStart, RunOptions, SessionOutcomes,
};
use plimsoll_domain::{Level, RunState, promise};
use plimsoll_policy::messages;
use plimsoll_research::nights::loop_setups::{LOOP_SETUPS, LoopKind, LoopSetup, find_loop_setup};
use plimsoll_research::nights::simulator::{FileProgress, Knowledge, NotesLocation as NotesIn, Rule};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const HANDOFF: &str = ".claude/handoffs/2026-01-07-1145.md";
const NONCE: &str = "7f3a";
const SESSION: &str = "s-1";

fn promise_line() -> String {
    promise::render_completion_line(&"COMPLETE".parse().expect("a word"), &NONCE.parse().expect("a code"))
}

/// Returns the state of a run at its third iteration, with two items to convert.
fn test_run() -> RunState {
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
        project_at_start: ProjectAtStart {
            started_at: "2026-01-07T11:00:00Z".into(),
            ..ProjectAtStart::default()
        },
        ..RunState::default()
    }
}

fn half_done_checkpoint() -> Checkpoint {
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

fn knowledge_from_prompt(state: &RunState, checkpoint: Option<Checkpoint>) -> Knowledge {
    let resume = checkpoint.map(|checkpoint| (checkpoint, Staleness::default()));
    Knowledge::parse(
        render_prompt_block(
            state,
            &PromptContext { checkpoint_to_resume: resume, ..PromptContext::default() },
        )
        .text(),
    )
}

fn named_item(knowledge: &Knowledge) -> Option<&str> {
    knowledge.named_item.as_deref()
}

#[test]
fn a_prompt_names_the_item_the_promise_and_the_file_for_notes() {
    let knowledge = knowledge_from_prompt(&test_run(), None);
    assert_eq!(named_item(&knowledge), Some("part-3.txt"));
    assert_eq!(knowledge.promise_line, promise_line());
    assert_eq!(
        knowledge.blocked_line,
        promise::render_blocked_line(&NONCE.parse().expect("a code"), "REASON")
    );
    assert_eq!(knowledge.notes_location, Some(NotesIn::UnderItem("fix_plan.md".to_owned())));
    assert_eq!((knowledge.handoff_file, knowledge.is_item_in_progress), (None, false));
    let set_aside = RunState {
        plan_items: PlanItems {
            todo_items: vec!["Convert part-3.txt".to_owned()],
            set_aside_items: vec!["Convert part-3.txt".to_owned()],
            ..PlanItems::default()
        },
        ..test_run()
    };
    assert!(knowledge_from_prompt(&set_aside, None).is_item_in_progress);
}

#[test]
fn a_refusal_names_the_failures_of_the_test() {
    let refused_run = RunState {
        outcomes: SessionOutcomes {
            refusals: vec!["`./check.sh` exited with 1; it printed:\ntesting items\nFAIL part-2.txt: line 27 is not converted".to_owned()],
            ..SessionOutcomes::default()
        },
        plan_items: PlanItems { todo_items: Vec::new(), ..test_run().plan_items },
        ..test_run()
    };
    let knowledge = knowledge_from_prompt(&refused_run, None);
    assert_eq!(knowledge.failures.keys().collect::<Vec<_>>(), ["part-2.txt"]);
    assert!(knowledge.states_rule(Rule::RepairAll), "{:?}", knowledge.rules);
}

#[test]
fn a_resume_names_the_next_line_and_the_handoff() {
    let knowledge = knowledge_from_prompt(&test_run(), Some(half_done_checkpoint()));
    let progress = FileProgress { next_line: Some(81), line_count: None };
    assert_eq!(
        (knowledge.progress_by_file.get("part-3.txt"), knowledge.handoff_file.as_deref()),
        (Some(&progress), Some(HANDOFF))
    );
}

#[test]
fn messages_name_the_next_item_and_say_when_to_stop() {
    let run = test_run();
    let (word, code) = (&run.options.completion_promise, &run.promise_code);
    let next_item_message = |was_set_aside| {
        messages::render_continue_with_next_item_instructions(
            "Convert part-4.txt",
            1,
            word,
            code,
            was_set_aside,
        )
    };
    let (knowledge, knowledge_of_retried_item) =
        (Knowledge::parse(&next_item_message(false)), Knowledge::parse(&next_item_message(true)));
    assert_eq!(
        (
            named_item(&knowledge),
            knowledge.is_item_in_progress,
            knowledge_of_retried_item.is_item_in_progress
        ),
        (Some("part-4.txt"), false, true)
    );
    assert_eq!(knowledge.promise_line, promise_line());
    assert!(
        Knowledge::parse(&messages::render_checkpoint_instructions(Level::L2, 87, HANDOFF))
            .states_rule(Rule::Stop)
    );
}

/// Returns the prompt of a session of this setup.
fn prompt_text(setup: &LoopSetup) -> String {
    match setup.loop_kind {
        LoopKind::Shell { prompt, .. } => prompt.to_owned(),
        LoopKind::Plimsoll(arguments) => {
            let is_argument = |name: &str| arguments.contains(&name);
            let verify = if is_argument("--verify") { vec!["./check.sh".to_owned()] } else { Vec::new() };
            let options = RunOptions {
                verify_commands: verify,
                allows_several_items_per_session: is_argument("--pack"),
                ..test_run().options
            };
            render_prompt_block(&RunState { options, ..test_run() }, &PromptContext::default())
                .text()
                .to_owned()
        }
    }
}

/// Otherwise a lower price that is due to an additional sentence would be credited to Plimsoll's loop.
#[test]
fn fair_peer_prompts_state_every_rule_of_our_prompts() {
    let knowledge_of = |key: &str| Knowledge::parse(&prompt_text(find_loop_setup(key).expect("a way")));
    for our_setup in LOOP_SETUPS.iter().filter(|setup| matches!(setup.loop_kind, LoopKind::Plimsoll(_))) {
        let our_knowledge = knowledge_of(our_setup.key);
        assert!(
            !our_knowledge.blocked_line.is_empty()
                && our_knowledge.search_command.is_some()
                && our_knowledge.notes_location.is_some(),
            "{our_knowledge:?}"
        );
        for peer in ["bare-sentences", "bare-gate"] {
            let peer_knowledge = knowledge_of(peer);
            assert!(
                our_knowledge.rules.is_subset(&peer_knowledge.rules),
                "{:?} in {:?}",
                our_knowledge.rules,
                peer_knowledge.rules
            );
            assert!(
                !peer_knowledge.blocked_line.is_empty()
                    && peer_knowledge.search_command.is_some()
                    && peer_knowledge.notes_location.is_some(),
                "{peer_knowledge:?}"
            );
        }
    }
}

/// A prompt whose request the agent does not understand would be simulated worse than it is.
#[test]
fn the_agent_notices_the_rules_of_each_prompt() {
    use Rule::{Ask, InspectFirst, KeepTests, LookUp, Notes, OneItem, RepairAll, Search, Test};
    const SENTENCES: &[Rule] =
        &[Notes, InspectFirst, LookUp, Search, OneItem, Test, RepairAll, KeepTests, Ask];
    const OURS: &[Rule] = &[Notes, InspectFirst, LookUp, Search, OneItem, Test, KeepTests, Ask];
    let expected: [(&str, &[Rule], &str, Option<&str>); 10] = [
        (
            "bare",
            &[Notes, InspectFirst, OneItem, Test, RepairAll],
            "<promise>COMPLETE</promise>",
            Some("progress.txt"),
        ),
        ("bare-sentences", SENTENCES, "<promise>COMPLETE</promise>", Some("progress.txt")),
        ("bare-gate", SENTENCES, "<promise>COMPLETE</promise>", Some("progress.txt")),
        (
            "continue",
            &[Notes, InspectFirst, OneItem, Test, RepairAll],
            "<promise>COMPLETE</promise>",
            Some("progress.txt"),
        ),
        (
            "stop-hook",
            &[Notes, InspectFirst, OneItem, Test, RepairAll],
            "<promise>COMPLETE</promise>",
            Some("progress.txt"),
        ),
        (
            "orchestrator",
            &[Notes, InspectFirst, OneItem, Test],
            "LOOP_COMPLETE",
            Some(".ralph/agent/scratchpad.md"),
        ),
        ("frankbria", &[Notes, InspectFirst, OneItem, Test, Ask], "EXIT_SIGNAL: true", Some("AGENT.md")),
        ("plimsoll", OURS, "<promise>COMPLETE 7f3a</promise>", None),
        ("plimsoll-pack", OURS, "<promise>COMPLETE 7f3a</promise>", None),
        ("plimsoll-verify", OURS, "<promise>COMPLETE 7f3a</promise>", None),
    ];
    let keys: Vec<&str> = LOOP_SETUPS.iter().map(|setup| setup.key).collect();
    assert_eq!(expected.map(|(key, ..)| key).as_slice(), keys);
    for (setup, (_, rules, promise, notes_file)) in LOOP_SETUPS.iter().zip(expected) {
        let text = prompt_text(setup);
        let knowledge = Knowledge::parse(&text);
        let failure_message = format!("{}: {:?}\n{text}", setup.key, knowledge.rules);
        assert_eq!(knowledge.rules, rules.iter().copied().collect(), "{failure_message}");
        assert_eq!(knowledge.promise_line, promise, "{failure_message}");
        let notes = notes_file
            .map_or(NotesIn::UnderItem("fix_plan.md".to_owned()), |file| NotesIn::EndOfFile(file.to_owned()));
        assert_eq!(knowledge.notes_location, Some(notes), "{failure_message}");
    }
}

/// Returns the text of one of our hooks for the model, or for the client that summarizes.
fn hook_text(world: &World, hook: &str, event: &str, extra_fields: &Value) -> String {
    let mut payload = json!({"session_id": SESSION, "hook_event_name": event, "cwd": world.project(),
        "transcript_path": world.path("transcript.jsonl")});
    plimsoll_domain::state::merge_keeping_unknown_fields(&mut payload, extra_fields.clone());
    let reply = world.hook(hook, &payload).env("PLIMSOLL_RUN_ID", "r-1").run().expect_success().stdout;
    let context =
        |reply: &Value| reply["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned);
    serde_json::from_str(&reply).ok().and_then(|reply| context(&reply)).unwrap_or(reply)
}

#[test]
fn compaction_texts_name_the_item_and_the_promise() {
    let world = World::new();
    world.write(
        "fix_plan.md",
        "- [x] Convert part-1.txt\n- [ ] Convert part-3.txt\n- [ ] Convert part-4.txt\n",
    );
    world.write_run_state_record_and_ledger(&serde_json::to_value(test_run()).expect("a state"));
    for (hook, event, more) in [
        ("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"})),
        ("plimsoll-session-start", "SessionStart", json!({"source": "compact"})),
    ] {
        let text = hook_text(&world, hook, event, &more);
        let knowledge = Knowledge::parse(&text);
        assert_eq!(named_item(&knowledge), Some("part-3.txt"), "{event}: {text}");
        assert_eq!(knowledge.promise_line, promise_line(), "{event}: {text}");
    }
}
