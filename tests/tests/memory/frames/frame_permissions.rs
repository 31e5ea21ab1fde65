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
    insta::assert_snapshot!(answers[..4].join("\n"), @r#"
    PreToolUse:Agent hook error: no frame waits to be started: call push_frame first, and start one frame at a time
    ok r1
    PreToolUse:mcp__plimsoll__push_frame hook error: the frame "left" is pushed and waits: start it with Agent(subagent_type "frame", description "left"), or take it back with pop_frame
    PreToolUse:Agent hook error: the frame "left" is pushed and waits: start it with Agent(subagent_type "frame", description "left")
    "#);
    let (returned, refused): (Vec<&String>, Vec<&String>) =
        answers[4..6].iter().partition(|answer| answer.contains("left is done"));
    assert_eq!((returned.len(), refused.len()), (1, 1), "{answers:#?}");
    insta::assert_snapshot!(refused[0], @"PreToolUse:Agent hook error: no frame waits to be started: call push_frame first, and start one frame at a time");
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
    insta::assert_snapshot!(played.answers("EXPLORE").join("\n"), @r#"
    <plimsoll-memory rev="1" frame="root" depth="0"> (of a frame's blocks, the highest rev is current)
    R0 GOAL: g
    </plimsoll-memory>
    PreToolUse:mcp__plimsoll__update_registers hook error: a subagent that is no frame reads the working memory and does not write it: put what you found into your answer
    PreToolUse:mcp__plimsoll__pop_frame hook error: a subagent that is no frame reads the working memory and does not write it: put what you found into your answer
    "#);
    insta::assert_snapshot!(played.answers("HELP")[0], @"PreToolUse:mcp__plimsoll__update_registers hook error: a subagent that is no frame reads the working memory and does not write it: put what you found into your answer");
    let own = played.answers("main");
    assert!(own.iter().any(|answer| answer.contains("EXPLORED")), "its answer is its own: {own:#?}");
    assert!(played.answers("calc").iter().any(|answer| answer.contains("HELPED")));
    assert!(own.iter().any(|answer| answer.contains("calc is done")), "{own:#?}");
    let memory = played.memory();
    assert_eq!((&memory["depth"], &memory["registers"]["R0_GOAL"]), (&json!(0), &json!("g")));
}
