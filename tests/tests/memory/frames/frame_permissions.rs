//! Who may not.

use crate::frames::harness::{begin, delegate, done, note, play, pop, push};
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;

#[test]
fn one_frame_is_pushed_at_a_time_and_started_once_by_its_name() {
    let both = push(push(Step::default(), "left"), "right");
    let played = play(&[
        (
            "main",
            vec![
                begin(Step::default(), "unpushed"),
                both,
                begin(Step::default(), "wrong"),
                begin(begin(Step::default(), "left"), "left"),
                done(),
            ],
        ),
        ("left", vec![note(&[("R2_NEXT", "by left")]), pop("left is done"), done()]),
    ]);
    let answers = played.answers("main");
    assert!(answers[0].contains("call push_frame first"), "{answers:#?}");
    assert!(answers[1].starts_with("ok r"), "{answers:#?}");
    assert!(answers[2].contains("the frame \"left\" is pushed and waits"), "{answers:#?}");
    assert!(answers[3].contains("description \"left\""), "{answers:#?}");
    let (returned, refused): (Vec<&String>, Vec<&String>) =
        answers[4..6].iter().partition(|answer| answer.contains("left is done"));
    assert_eq!((returned.len(), refused.len()), (1, 1), "{answers:#?}");
    assert!(refused[0].contains("start one frame at a time"), "{answers:#?}");
    assert_eq!(played.of("left").len(), 3, "it worked once");
}

#[test]
fn other_subagents_read_and_leave_the_stack_alone() {
    let explore = json!({"subagent_type": "Explore", "description": "look", "prompt": "EXPLORE the code",
        "run_in_background": false});
    let helper = json!({"subagent_type": "general-purpose", "description": "help", "prompt": "HELP me",
        "run_in_background": false});
    let played = play(&[
        (
            "main",
            vec![
                note(&[("R0_GOAL", "g")]),
                Step::default().tool("Agent", explore),
                delegate("calc"),
                note(&[("R2_NEXT", "on")]),
                done(),
            ],
        ),
        (
            "EXPLORE",
            vec![
                Step::default()
                    .tool("mcp__plimsoll__memory_show", json!({}))
                    .tool("mcp__plimsoll__update_registers", json!({"R0_GOAL": "mine"}))
                    .tool("mcp__plimsoll__pop_frame", json!({"result": "x"})),
                Step::text("EXPLORED"),
            ],
        ),
        ("calc", vec![Step::default().tool("Agent", helper), pop("calc is done"), done()]),
        ("HELP", vec![note(&[("R7_STATUS", "by the helper")]), Step::text("HELPED")]),
    ]);
    let answers = played.answers("EXPLORE");
    assert!(answers[0].contains("R0 GOAL: g"), "{answers:#?}");
    assert!(answers[1].contains("reads the working memory and does not write it"), "{answers:#?}");
    assert!(answers[2].contains("reads the working memory and does not write it"), "{answers:#?}");
    assert!(played.answers("HELP")[0].contains("does not write it"));
    let own = played.answers("main");
    assert!(own.iter().any(|answer| answer.contains("EXPLORED")), "its answer is its own: {own:#?}");
    assert!(played.answers("calc").iter().any(|answer| answer.contains("HELPED")));
    assert!(own.iter().any(|answer| answer.contains("calc is done")), "{own:#?}");
    let memory = played.memory();
    assert_eq!((&memory["depth"], &memory["registers"]["R0_GOAL"]), (&json!(0), &json!("g")));
}
