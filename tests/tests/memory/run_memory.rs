//! `plimsoll run --memory` with the real client: one memory over all sessions, the root frame is the run.

use crate::frames::harness::pop;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::tick;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{
    ScriptedAgent, events, first_request_of, journal, last_request_of, markers, run, world,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TWO: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";

fn update(step: Step, values: Value) -> Step {
    step.tool("mcp__plimsoll__update_registers", values)
}

fn push(name: &str) -> Step {
    let brief =
        json!({"name": name, "objective": "Look at the dates.", "context": "", "return_spec": "Facts."});
    let call = json!({"subagent_type": "frame", "description": name, "prompt": name});
    Step::default().tool("mcp__plimsoll__push_frame", brief).tool("Agent", call)
}

/// Ticks an item, and notes it.
fn finish(item: &str) -> Step {
    let next = json!({"R1_PLAN": format!("after {item}"), "R7_STATUS": format!("{item} is ticked")});
    update(Step::bash(tick(item)), next)
}

fn completed(world: &World, finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.json(".claude/ralph-state.json")["status"], "completed");
}

#[test]
fn the_next_session_has_the_memory_of_the_last_and_the_root_s_pop_is_the_promise() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        _ if turn.saw("You work in the frame \"look\"") => match turn.step {
            0 => update(Step::bash("echo looking"), json!({"R6_OPEN_QUESTIONS": "Which calendar?"})),
            1 => pop("The dates are Gregorian."),
            _ => Step::text("done"),
        },
        (1, 0) => push("look"),
        (1, 1) => finish("Item one").tool(
            "mcp__plimsoll__heap_alloc",
            json!({"name": "calendar", "content": "Gregorian, UTC", "description": "what dates are"}),
        ),
        (1, _) => Step::text("Item one is done."),
        (2, 0) => finish("Item two"),
        (2, 1) => pop("Both items are done."),
        _ => Step::text("That is all."),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--memory"]);
    completed(&world, &finished);
    let first = first_request_of(&model, 1);
    assert!(first.contains("R0 GOAL: Do the plan."), "{first}");
    assert!(first.contains("`pop_frame` in the root frame means the same as the promise line"), "{first}");
    let second = first_request_of(&model, 2);
    for words in [
        "R0 GOAL: Do the plan.",
        "R1 PLAN: after Item one",
        "R6 OPEN_QUESTIONS: Which calendar?",
        "R7 STATUS: Item one is ticked",
        "- calendar 14 chars",
        "Gregorian, UTC",
    ] {
        assert!(second.contains(words), "{words} in {second}");
    }
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json();
    assert_eq!(memory["done"], "Both items are done.");
    assert_eq!(markers(&journal(&world)).last().map(String::as_str), Some("RALPH_STOP|completed|2 items"));
}

#[test]
fn a_pop_of_the_root_with_open_items_or_failing_commands_is_refused_and_the_memory_goes_on() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => finish("Item one"),
        (1, 1) => pop("I think that is all."),
        (1, 2) => update(Step::default(), json!({"R7_STATUS": "after the pop"})),
        (2, 0) => finish("Item two"),
        (2, 1) => pop("Both are ticked."),
        (3, 0) => Step::bash("touch proof && git add -A && git commit -qm Proof"),
        (3, 1) => pop("Now it is proved."),
        _ => Step::text("That is all."),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--memory", "--verify", "test -e proof"]);
    completed(&world, &finished);
    let first = last_request_of(&model, 1);
    assert!(first.contains("nothing is written until the user writes again"), "{first}");
    let told: Vec<String> = [2, 3].map(|iteration| first_request_of(&model, iteration)).into();
    assert!(told[0].contains("1 item is open in fix_plan.md: \"Item two\""), "{}", told[0]);
    assert!(told[1].contains("verify command `test -e proof`"), "{}", told[1]);
    assert!(told[1].contains("R7 STATUS: Item two is ticked"), "{}", told[1]);
}

#[test]
fn a_clean_of_the_project_takes_no_memory_with_it() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => finish("Item one"),
        (1, _) => Step::text("One."),
        (2, 0) => Step::bash("git clean -fdxq"),
        (2, 1) => Step::bash("echo on"),
        (2, _) => Step::text("I cleaned."),
        (3, 0) => finish("Item two"),
        (3, 1) => pop("Done."),
        _ => Step::text("That is all."),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--memory"]);
    completed(&world, &finished);
    assert!(first_request_of(&model, 3).contains("R7 STATUS: Item one is ticked"));
}

#[test]
fn who_writes_after_a_clean_loses_nothing_of_the_memory() {
    let mut world = world(TWO);
    let alloc = json!({"name": "calendar", "content": "Gregorian, UTC", "description": "what dates are"});
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.step) {
        (1, 0) => finish("Item one").tool("mcp__plimsoll__heap_alloc", alloc.clone()),
        (1, _) => Step::text("One."),
        (2, 0) => update(Step::default(), json!({"R4_CONSTRAINTS": "before the clean"})),
        (2, 1) => Step::bash("git clean -fdxq"),
        // As the rules of the memory ask: with every step.
        (2, 2) => update(Step::bash("echo on"), json!({"R7_STATUS": "after the clean"})),
        (2, _) => Step::text("I cleaned."),
        (3, 0) => finish("Item two"),
        (3, 1) => pop("Done."),
        _ => Step::text("That is all."),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--memory"]);
    completed(&world, &finished);
    let third = first_request_of(&model, 3);
    for words in ["Gregorian, UTC", "R1 PLAN: after Item one", "R7 STATUS: after the clean"] {
        assert!(third.contains(words), "{words} in {third}");
    }
}

#[test]
fn frames_of_a_run_nest_five_deep_without_an_init() {
    let mut world = world("# Plan\n\n- [ ] Item one\n");
    let names = ["one", "two", "three", "four", "five"];
    let model = ScriptedAgent::new(move |turn| {
        let depth = names.iter().rposition(|name| turn.saw(&format!("You work in the frame \"{name}\"")));
        match (depth, turn.step) {
            (None, 0) => push("one"),
            (None, 1) => finish("Item one"),
            (None, _) => Step::text(format!("All done.\n\n{}", turn.promise)),
            (Some(4), 0) | (Some(_), 1) => pop("It is done."),
            (Some(depth), 0) => push(names[depth + 1]),
            _ => Step::text("done"),
        }
    })
    .with_real_client()
    .start(&mut world);
    let finished = run(&world, &["--memory"]);
    completed(&world, &finished);
    let reached = model.requests().iter().any(|request| request.text().contains("at depth 5. Do what"));
    assert!(reached, "the fifth frame was begun");
}

#[test]
fn a_memory_log_that_was_overwritten_does_not_end_the_run() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => finish("Item one"),
        (1, 1) => Step::bash(
            "for f in .claude/plimsoll/memory/*; do test -f $f && echo '{}' > $f; done; ls .claude/plimsoll/memory",
        ),
        (1, _) => Step::text("One."),
        (2, 0) => finish("Item two"),
        (2, 1) => Step::bash("echo on"),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    }).with_real_client().at_real_pace().start(&mut world);
    let finished = run(&world, &["--memory"]);
    completed(&world, &finished);
}

#[test]
fn registers_alone_are_no_progress_and_a_chunk_is() {
    let mut world = world("# Plan\n\n- [ ] Item three\n");
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (2, 0) => {
            Step::default().tool("mcp__plimsoll__heap_alloc", json!({"name": "a", "content": "learned"}))
        }
        (number, 0) => update(Step::bash("ls"), json!({"R7_STATUS": format!("nothing yet, {number}")})),
        _ => Step::text("Nothing yet."),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--memory"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let journal = journal(&world);
    let counts: Vec<&Value> =
        events(&journal, "verdict").iter().map(|entry| &entry["no_change_count"]).collect();
    assert_eq!(counts, [1, 0, 1, 2, 3]);
}

#[test]
fn an_ordinary_session_beside_the_run_pops_no_root() {
    let mut world = world("# Plan\n\n- [ ] Item three\n");
    world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    let model = ScriptedAgent::new(move |turn| match (turn.saw("I am an ordinary person."), turn.step) {
        (true, 0) => pop("I end this."),
        (true, _) => Step::text("Tried."),
        // Long enough for the other session to have its say.
        (false, 0) => Step::bash("sleep 6"),
        (false, 1) => finish("Item three"),
        (false, _) => Step::text(format!("All done.\n\n{}", turn.promise)),
    })
    .with_real_client()
    .start(&mut world);
    let ours = ["run", "--objective", "Do the plan.", "--memory"];
    let clients = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let running = world.plimsoll(&[&ours[..], &clients].concat()).spawn();
    let waiting = Instant::now();
    while model.main_requests().is_empty() && waiting.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let other = world.claude(&["-p", "I am an ordinary person.", "--model", "opus"]).run();
    let finished = running.wait(Duration::from_secs(60));
    assert!(other.stdout.contains("Tried."), "{other:?}");
    let refused = model
        .main_requests()
        .iter()
        .any(|request| request.text().contains("only the run's own session pops it"));
    assert!(refused);
    completed(&world, &finished);
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json();
    assert!(memory["done"].is_null(), "the run ended by its promise line: {memory}");
}

#[test]
fn what_the_memory_needs_is_said_before_anything_is_begun() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(|_| Step::text("nobody asks")).with_real_client().start(&mut world);
    let refused = run_with(&world, &["--memory"], &["--agents", "{}"]);
    insta::assert_snapshot!(world.stable_text(&refused.stderr), @"plimsoll: --memory passes --agents to the client itself: run `plimsoll init --local --memory` once in this project, then give your own after `--`");
    let client = world.write_program("old-client", "#!/bin/sh\necho '2.0.77 (Claude Code)'\n");
    let client = client.display().to_string();
    let refused = world.plimsoll(&["run", "--objective", "x", "--memory", "--client", &client]).run();
    assert_eq!(refused.code, Some(1));
    insta::assert_snapshot!(world.stable_text(&refused.stderr), @"plimsoll: --memory needs Claude Code 2.1.207 or newer, and [PROJECT]/old-client says 2.0.77 (Claude Code)");
    assert!(!world.exists(".claude/ralph-state.json"));
}

fn run_with(world: &World, ours: &[&str], clients: &[&str]) -> Finished {
    let all: Vec<&str> = [&["run", "--objective", "x"], ours, &["--"], clients].concat();
    world.plimsoll(&all).run()
}
