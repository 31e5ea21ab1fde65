//! Compactions, kills, prompts and other sessions that interrupt a frame.

use crate::frames::harness::{
    conversation_of, final_step, play_session, pop_frame_step, push_and_start_step, register_update_step,
    with_frame_push, world_with_memory,
};
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_compaction_in_a_frame_keeps_the_stack_and_repeats_the_brief() {
    let mut child_requests = 0;
    let model = ScriptedModel::start(move |request| {
        if request.kind == RequestKind::Compaction {
            return Step::from_text("<analysis>a</analysis><summary>THE-SUMMARY</summary>");
        }
        let is_child = request.kind == RequestKind::Subagent;
        if !is_child {
            return if request.full_text().contains("calc is done") {
                final_step()
            } else {
                push_and_start_step("calc")
            };
        }
        child_requests += 1;
        match child_requests {
            1 => register_update_step(&[("R7_STATUS", "half of it")]),
            2 => Step::bash_call("echo a-step").with_input_tokens(968_000),
            3 => register_update_step(&[("R2_NEXT", "after the compaction")]),
            4 => pop_frame_step("calc is done"),
            _ => final_step(),
        }
    });
    let world = world_with_memory(&model);
    let finished =
        world.claude(&["-p", "Build the calculator.", "--output-format", "json", "--model", "opus"]).run();
    assert_eq!(finished.last_result()["result"], "done", "{}", finished.stderr);
    let requests = model.requests();
    let compaction_index =
        requests.iter().position(|request| request.kind == RequestKind::Compaction).expect("it compacted");
    let after = &requests[compaction_index + 1];
    for words in ["OBJECTIVE: Create calc.py", "CONTEXT: CONTEXT-OF-calc", "R7 STATUS: half of it"] {
        assert!(after.full_text().contains(words), "{words} after the compaction:\n{}", after.full_text());
    }
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json();
    assert_eq!(
        (&memory["depth"], &memory["registers"]["R3_PHASE"]),
        (&json!(0), &json!("returned from: calc"))
    );
}

/// Returns a model whose frame does not end, and which writes a register when it is told to go on.
fn model_with_endless_frame() -> ScriptedModel {
    ScriptedModel::start(|request| {
        let text = request.text_since_last_assistant_message();
        match conversation_of(request).as_str() {
            "calc" => {
                register_update_step(&[("R7_STATUS", "in the frame")]).with_delay(Duration::from_secs(2))
            }
            _ if request.full_text().contains("Go on.")
                && !text.contains("ok r")
                && !text.contains("at work") =>
            {
                register_update_step(&[("R2_NEXT", "going on")])
            }
            _ if request.full_text().contains("Go on.") => final_step(),
            _ => push_and_start_step("calc"),
        }
    })
}

fn show_memory(world: &World) -> Value {
    world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json()
}

fn kill_in_frame_and_go_on(extra_arguments: &[&str]) -> (World, FinishedProgram) {
    let model = model_with_endless_frame();
    let world = world_with_memory(&model);
    let mut client = world.claude(&["-p", "Build it.", "--model", "opus"]).spawn();
    world.wait_until(|| show_memory(&world)["registers"]["R7_STATUS"] == "in the frame", "a frame");
    client.kill();
    let _ = client.wait_or_kill_and_panic(Duration::from_secs(10));
    let finished = world.claude(&[&["-p", "Go on.", "--model", "opus"], extra_arguments].concat()).run();
    (world, finished)
}

#[test]
fn a_client_killed_in_a_frame_leaves_no_frame_behind() {
    for extra_arguments in [&[][..], &["--continue"], &["--continue", "--fork-session"]] {
        let (world, finished) = kill_in_frame_and_go_on(extra_arguments);
        let memory = show_memory(&world);
        assert_eq!(
            (&memory["depth"], &memory["registers"]["R2_NEXT"], &memory["registers"]["R7_STATUS"]),
            (&json!(0), &json!("going on"), &json!("in the frame")),
            "{extra_arguments:?} {finished:?}"
        );
    }
}

#[test]
fn a_user_message_during_a_frame_does_not_end_the_frame() {
    let model = ScriptedModel::start(|request| {
        let count = request.all_tool_results().len();
        match (conversation_of(request).as_str(), count) {
            ("calc", 0..3) => {
                register_update_step(&[("R7_STATUS", "at it")]).with_delay(Duration::from_secs(1))
            }
            ("calc", 3) => pop_frame_step("calc is done"),
            ("calc", _) => final_step(),
            (_, 0) => push_and_start_step("calc"),
            _ => final_step(),
        }
    });
    let world = world_with_memory(&model);
    let message =
        |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string() + "\n";
    let finished = world
        .claude(&[
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            "opus",
        ])
        .stdin(message("Build it.") + &message("And mind the tests."))
        .run();
    let history =
        world.plimsoll(&["memory", "history", "--json", "-n", "100"]).run().expect_success().stdout_json();
    let closing_changes: Vec<&Value> = history
        .as_array()
        .expect("a list")
        .iter()
        .filter(|change| change["change"]["op"] == "close_frame" || change["change"]["op"] == "pop_frame")
        .collect();
    assert_eq!(closing_changes.len(), 1, "{closing_changes:#?}");
    assert_eq!(closing_changes[0]["change"]["result"], "calc is done", "{closing_changes:#?}\n{finished:?}");
}

#[test]
fn a_parent_that_withdraws_a_frame_is_shown_the_merged_registers() {
    let played = play_session(&[(
        "main",
        vec![
            register_update_step(&[("R2_NEXT", "my-own-plan"), ("R3_PHASE", "planning")]),
            with_frame_push(Step::default(), "calc"),
            pop_frame_step("not needed after all"),
            Step::bash_call("echo on"),
            final_step(),
        ],
    )]);
    let memory = played.memory();
    assert_eq!(
        (&memory["registers"]["R2_NEXT"], &memory["registers"]["R3_PHASE"]),
        (&json!(""), &json!("returned from: calc"))
    );
    let text = played.last_request_of("main").full_text();
    assert!(text.contains("R3 PHASE: returned from: calc"), "the newest value of R3 is in no request");
    assert!(text.contains("R2 NEXT: (empty)"), "nobody said that R2 is empty by now");
}
