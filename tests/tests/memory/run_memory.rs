//! `plimsoll run --memory` with the real client: all sessions share one memory, and the root frame is the run.

use crate::frames::harness::pop_frame_step;
use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    ScriptedAgent, events_named, first_request_of_iteration, last_request_of_iteration, read_journal,
    run_with_objective, verdict_markers, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TWO_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";

fn with_register_update(step: Step, values: Value) -> Step {
    step.with_tool_call("mcp__plimsoll__update_registers", values)
}

fn push_and_start_frame(name: &str) -> Step {
    let push_arguments =
        json!({"name": name, "objective": "Look at the dates.", "context": "", "return_spec": "Facts."});
    let agent_arguments = json!({"subagent_type": "frame", "description": name, "prompt": name});
    Step::default()
        .with_tool_call("mcp__plimsoll__push_frame", push_arguments)
        .with_tool_call("Agent", agent_arguments)
}

/// Ticks an item and records it in the registers.
fn tick_and_record(item: &str) -> Step {
    let values = json!({"R1_PLAN": format!("after {item}"), "R7_STATUS": format!("{item} is ticked")});
    with_register_update(Step::bash_call(tick_item_command(item)), values)
}

fn assert_completed(world: &World, finished: &FinishedProgram) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.read_json(".claude/ralph-state.json")["status"], "completed");
}

#[test]
fn sessions_of_a_run_share_its_memory_and_a_root_pop_is_its_promise() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        _ if turn.request_contains("You work in the frame \"look\"") => match turn.assistant_message_count {
            0 => with_register_update(
                Step::bash_call("echo looking"),
                json!({"R6_OPEN_QUESTIONS": "Which calendar?"}),
            ),
            1 => pop_frame_step("The dates are Gregorian."),
            _ => Step::from_text("done"),
        },
        (1, 0) => push_and_start_frame("look"),
        (1, 1) => tick_and_record("Item one").with_tool_call(
            "mcp__plimsoll__heap_alloc",
            json!({"name": "calendar", "content": "Gregorian, UTC", "description": "what dates are"}),
        ),
        (1, _) => Step::from_text("Item one is done."),
        (2, 0) => tick_and_record("Item two"),
        (2, 1) => pop_frame_step("Both items are done."),
        _ => Step::from_text("That is all."),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--memory"]);
    assert_completed(&world, &finished);
    let first_request = first_request_of_iteration(&model, 1);
    assert!(first_request.contains("R0 GOAL: Do the plan."), "{first_request}");
    assert!(
        first_request.contains("`pop_frame` in the root frame means the same as the promise line"),
        "{first_request}"
    );
    let second_request = first_request_of_iteration(&model, 2);
    for text in [
        "R0 GOAL: Do the plan.",
        "R1 PLAN: after Item one",
        "R6 OPEN_QUESTIONS: Which calendar?",
        "R7 STATUS: Item one is ticked",
        "- calendar 14 chars",
        "Gregorian, UTC",
    ] {
        assert!(second_request.contains(text), "{text} in {second_request}");
    }
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json();
    assert_eq!(memory["done"], "Both items are done.");
    assert_eq!(
        verdict_markers(&read_journal(&world)).last().map(String::as_str),
        Some("RALPH_STOP|completed|2 items")
    );
}

#[test]
fn popping_the_root_is_refused_with_open_items_or_failing_commands() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => tick_and_record("Item one"),
        (1, 1) => pop_frame_step("I think that is all."),
        (1, 2) => with_register_update(Step::default(), json!({"R7_STATUS": "after the pop"})),
        (2, 0) => tick_and_record("Item two"),
        (2, 1) => pop_frame_step("Both are ticked."),
        (3, 0) => Step::bash_call("touch proof && git add -A && git commit -qm Proof"),
        (3, 1) => pop_frame_step("Now it is proved."),
        _ => Step::from_text("That is all."),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--memory", "--verify", "test -e proof"]);
    assert_completed(&world, &finished);
    let last_request = last_request_of_iteration(&model, 1);
    assert!(last_request.contains("nothing is written until the user writes again"), "{last_request}");
    let prompts: Vec<String> = [2, 3].map(|iteration| first_request_of_iteration(&model, iteration)).into();
    assert!(prompts[0].contains("1 item is open in fix_plan.md: \"Item two\""), "{}", prompts[0]);
    assert!(prompts[1].contains("verify command `test -e proof`"), "{}", prompts[1]);
    assert!(prompts[1].contains("R7 STATUS: Item two is ticked"), "{}", prompts[1]);
}

#[test]
fn git_clean_does_not_delete_the_memory() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => tick_and_record("Item one"),
        (1, _) => Step::from_text("One."),
        (2, 0) => Step::bash_call("git clean -fdxq"),
        (2, 1) => Step::bash_call("echo on"),
        (2, _) => Step::from_text("I cleaned."),
        (3, 0) => tick_and_record("Item two"),
        (3, 1) => pop_frame_step("Done."),
        _ => Step::from_text("That is all."),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--memory"]);
    assert_completed(&world, &finished);
    assert!(first_request_of_iteration(&model, 3).contains("R7 STATUS: Item one is ticked"));
}

#[test]
fn a_write_after_git_clean_loses_nothing_of_the_memory() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let alloc = json!({"name": "calendar", "content": "Gregorian, UTC", "description": "what dates are"});
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => tick_and_record("Item one").with_tool_call("mcp__plimsoll__heap_alloc", alloc.clone()),
        (1, _) => Step::from_text("One."),
        (2, 0) => with_register_update(Step::default(), json!({"R4_CONSTRAINTS": "before the clean"})),
        (2, 1) => Step::bash_call("git clean -fdxq"),
        // The rules of the memory ask for an update with every step.
        (2, 2) => with_register_update(Step::bash_call("echo on"), json!({"R7_STATUS": "after the clean"})),
        (2, _) => Step::from_text("I cleaned."),
        (3, 0) => tick_and_record("Item two"),
        (3, 1) => pop_frame_step("Done."),
        _ => Step::from_text("That is all."),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--memory"]);
    assert_completed(&world, &finished);
    let third_request = first_request_of_iteration(&model, 3);
    for text in ["Gregorian, UTC", "R1 PLAN: after Item one", "R7 STATUS: after the clean"] {
        assert!(third_request.contains(text), "{text} in {third_request}");
    }
}

#[test]
fn frames_of_a_run_nest_five_deep_without_an_init() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let names = ["one", "two", "three", "four", "five"];
    let model = ScriptedAgent::new(move |turn| {
        let depth = names
            .iter()
            .rposition(|name| turn.request_contains(&format!("You work in the frame \"{name}\"")));
        match (depth, turn.assistant_message_count) {
            (None, 0) => push_and_start_frame("one"),
            (None, 1) => tick_and_record("Item one"),
            (None, _) => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
            (Some(4), 0) | (Some(_), 1) => pop_frame_step("It is done."),
            (Some(depth), 0) => push_and_start_frame(names[depth + 1]),
            _ => Step::from_text("done"),
        }
    })
    .with_real_client()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--memory"]);
    assert_completed(&world, &finished);
    let has_fifth_frame =
        model.requests().iter().any(|request| request.full_text().contains("at depth 5. Do what"));
    assert!(has_fifth_frame, "the fifth frame was begun");
}

#[test]
fn an_overwritten_memory_log_does_not_end_the_run() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => tick_and_record("Item one"),
        (1, 1) => Step::bash_call(
            "for f in .claude/plimsoll/memory/*; do test -f $f && echo '{}' > $f; done; ls .claude/plimsoll/memory",
        ),
        (1, _) => Step::from_text("One."),
        (2, 0) => tick_and_record("Item two"),
        (2, 1) => Step::bash_call("echo on"),
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
    }).with_real_client().with_lifelike_delay().start(&mut world);
    let finished = run_with_objective(&world, &["--memory"]);
    assert_completed(&world, &finished);
}

#[test]
fn register_updates_are_no_progress_but_a_new_chunk_is() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (2, 0) => Step::default()
            .with_tool_call("mcp__plimsoll__heap_alloc", json!({"name": "a", "content": "learned"})),
        (number, 0) => with_register_update(
            Step::bash_call("ls"),
            json!({"R7_STATUS": format!("nothing yet, {number}")}),
        ),
        _ => Step::from_text("Nothing yet."),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--memory"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let journal = read_journal(&world);
    let counts: Vec<&Value> =
        events_named(&journal, "verdict").iter().map(|entry| &entry["no_change_count"]).collect();
    assert_eq!(counts, [1, 0, 1, 2, 3]);
}

#[test]
fn an_ordinary_session_beside_the_run_cannot_pop_the_root_frame() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    let model = ScriptedAgent::new(move |turn| {
        match (turn.request_contains("I am an ordinary person."), turn.assistant_message_count) {
            (true, 0) => pop_frame_step("I end this."),
            (true, _) => Step::from_text("Tried."),
            // Long enough for the other session to try its pop.
            (false, 0) => Step::bash_call("sleep 6"),
            (false, 1) => tick_and_record("Item three"),
            (false, _) => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
        }
    })
    .with_real_client()
    .start(&mut world);
    let run_arguments = ["run", "--objective", "Do the plan.", "--memory"];
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let running = world.plimsoll(&[&run_arguments[..], &client_arguments].concat()).spawn();
    let started_waiting_at = Instant::now();
    while model.main_requests().is_empty() && started_waiting_at.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let other_session = world.claude(&["-p", "I am an ordinary person.", "--model", "opus"]).run();
    let finished = running.wait_or_kill_and_panic(Duration::from_secs(60));
    assert!(other_session.stdout.contains("Tried."), "{other_session:?}");
    let is_pop_refused = model
        .main_requests()
        .iter()
        .any(|request| request.full_text().contains("only the run's own session pops it"));
    assert!(is_pop_refused);
    assert_completed(&world, &finished);
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json();
    assert!(memory["done"].is_null(), "the run ended by its promise line: {memory}");
}

#[test]
fn missing_requirements_of_the_memory_are_reported_before_the_run() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|_| Step::from_text("nobody asks")).with_real_client().start(&mut world);
    let finished = run_with_client_arguments(&world, &["--memory"], &["--agents", "{}"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"error: --memory passes --agents to Claude Code itself: run `plimsoll init --local --memory` once in this project, then give your own after `--`");
    let client = world.write_program("old-client", "#!/bin/sh\necho '2.0.77 (Claude Code)'\n");
    let client = client.display().to_string();
    let finished = world.plimsoll(&["run", "--objective", "x", "--memory", "--client", &client]).run();
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"error: --memory needs Claude Code 2.1.207 or newer, and [PROJECT]/old-client says 2.0.77 (Claude Code)");
    assert!(!world.exists(".claude/ralph-state.json"));
}

fn run_with_client_arguments(
    world: &World,
    run_arguments: &[&str],
    client_arguments: &[&str],
) -> FinishedProgram {
    let command_line: Vec<&str> =
        [&["run", "--objective", "x"], run_arguments, &["--"], client_arguments].concat();
    world.plimsoll(&command_line).run()
}
