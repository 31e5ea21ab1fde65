//! Compactions, kills, prompts and other sessions in the middle of a frame.

use crate::frames::harness::{delegate, done, note, play, pop, push, who, world};
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_compaction_in_a_frame_leaves_the_stack_alone_and_the_brief_comes_again() {
    let mut seen = 0;
    let model = ScriptedModel::start(move |request| {
        if request.kind == RequestKind::Compaction {
            return Step::text("<analysis>a</analysis><summary>THE-SUMMARY</summary>");
        }
        let is_child = request.kind == RequestKind::Subagent;
        if !is_child {
            return if request.text().contains("calc is done") { done() } else { delegate("calc") };
        }
        seen += 1;
        match seen {
            1 => note(&[("R7_STATUS", "half of it")]),
            2 => Step::bash("echo a-step").usage(968_000),
            3 => note(&[("R2_NEXT", "after the compaction")]),
            4 => pop("calc is done"),
            _ => done(),
        }
    });
    let world = world(&model);
    let finished =
        world.claude(&["-p", "Build the calculator.", "--output-format", "json", "--model", "opus"]).run();
    assert_eq!(finished.result()["result"], "done", "{}", finished.stderr);
    let requests = model.requests();
    let compacted =
        requests.iter().position(|request| request.kind == RequestKind::Compaction).expect("it compacted");
    let after = &requests[compacted + 1];
    for words in ["OBJECTIVE: Create calc.py", "CONTEXT: CONTEXT-OF-calc", "R7 STATUS: half of it"] {
        assert!(after.text().contains(words), "{words} after the compaction:\n{}", after.text());
    }
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json();
    assert_eq!(
        (&memory["depth"], &memory["registers"]["R3_PHASE"]),
        (&json!(0), &json!("returned from: calc"))
    );
}

/// A model whose frame does not come to an end, and which notes a word when it is asked to go on.
fn hanging() -> ScriptedModel {
    ScriptedModel::start(|request| {
        let text = request.last_text();
        match who(request).as_str() {
            "calc" => note(&[("R7_STATUS", "in the frame")]).delay(Duration::from_secs(2)),
            _ if request.text().contains("Go on.") && !text.contains("ok r") && !text.contains("at work") => {
                note(&[("R2_NEXT", "going on")])
            }
            _ if request.text().contains("Go on.") => done(),
            _ => delegate("calc"),
        }
    })
}

fn show(world: &World) -> Value {
    world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json()
}

fn killed_in_a_frame(more: &[&str]) -> (World, Finished) {
    let model = hanging();
    let world = world(&model);
    let mut running = world.claude(&["-p", "Build it.", "--model", "opus"]).spawn();
    world.wait_until(|| show(&world)["registers"]["R7_STATUS"] == "in the frame", "a frame");
    running.kill();
    let _ = running.wait(Duration::from_secs(10));
    let finished = world.claude(&[&["-p", "Go on.", "--model", "opus"], more].concat()).run();
    (world, finished)
}

#[test]
fn a_client_killed_in_a_frame_leaves_no_frame_behind() {
    for more in [&[][..], &["--continue"], &["--continue", "--fork-session"]] {
        let (world, finished) = killed_in_a_frame(more);
        let memory = show(&world);
        assert_eq!(
            (&memory["depth"], &memory["registers"]["R2_NEXT"], &memory["registers"]["R7_STATUS"]),
            (&json!(0), &json!("going on"), &json!("in the frame")),
            "{more:?} {finished:?}"
        );
    }
}

#[test]
fn a_message_of_the_person_in_the_middle_of_a_frame_does_not_end_the_frame() {
    let model = ScriptedModel::start(|request| {
        let count = request.tool_results().len();
        match (who(request).as_str(), count) {
            ("calc", 0..3) => note(&[("R7_STATUS", "at it")]).delay(Duration::from_secs(1)),
            ("calc", 3) => pop("calc is done"),
            ("calc", _) => done(),
            (_, 0) => delegate("calc"),
            _ => done(),
        }
    });
    let world = world(&model);
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
    let history = world.plimsoll(&["memory", "history", "--json", "-n", "100"]).run().expect_success().json();
    let closed: Vec<&Value> = history
        .as_array()
        .expect("a list")
        .iter()
        .filter(|change| change["change"]["op"] == "close_frame" || change["change"]["op"] == "pop_frame")
        .collect();
    assert_eq!(closed.len(), 1, "{closed:#?}");
    assert_eq!(closed[0]["change"]["result"], "calc is done", "{closed:#?}\n{finished:?}");
}

#[test]
fn a_parent_that_takes_a_frame_back_is_told_what_the_merge_wrote() {
    let played = play(&[(
        "main",
        vec![
            note(&[("R2_NEXT", "my-own-plan"), ("R3_PHASE", "planning")]),
            push(Step::default(), "calc"),
            pop("not needed after all"),
            Step::bash("echo on"),
            done(),
        ],
    )]);
    let memory = played.memory();
    assert_eq!(
        (&memory["registers"]["R2_NEXT"], &memory["registers"]["R3_PHASE"]),
        (&json!(""), &json!("returned from: calc"))
    );
    let text = played.last_of("main").text();
    assert!(text.contains("R3 PHASE: returned from: calc"), "the newest value of R3 is in no request");
    assert!(text.contains("R2 NEXT: (empty)"), "nobody said that R2 is empty by now");
}
