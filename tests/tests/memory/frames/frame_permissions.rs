//! What frames and other subagents are not allowed to do.

use crate::frames::harness::{
    final_step, play_session, pop_frame_step, push_and_start_step, register_update_step, with_frame_push,
    with_frame_start,
};
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;

#[test]
fn only_one_frame_waits_at_a_time_and_it_is_started_once_by_name() {
    let step_with_two_pushes = with_frame_push(with_frame_push(Step::default(), "left"), "right");
    let played = play_session(&[
        (
            "main",
            vec![
                with_frame_start(Step::default(), "unpushed"),
                step_with_two_pushes,
                with_frame_start(Step::default(), "wrong"),
                with_frame_start(with_frame_start(Step::default(), "left"), "left"),
                final_step(),
            ],
        ),
        (
            "left",
            vec![
                register_update_step(&[("R2_NEXT", "by left")]),
                pop_frame_step("left is done"),
                final_step(),
            ],
        ),
    ]);
    let answers = played.tool_results_of("main");
    insta::assert_snapshot!(answers[..4].join("\n"), @r#"
    PreToolUse:Agent hook error: no frame is waiting to start: call push_frame first, and start one frame at a time
    ok r1
    PreToolUse:mcp__plimsoll__push_frame hook error: the frame "left" is pushed and waits: start it with Agent(subagent_type "frame", description "left"), or remove it with pop_frame
    PreToolUse:Agent hook error: the frame "left" is pushed and waits: start it with Agent(subagent_type "frame", description "left")
    "#);
    let (returned, refused): (Vec<&String>, Vec<&String>) =
        answers[4..6].iter().partition(|answer| answer.contains("left is done"));
    assert_eq!((returned.len(), refused.len()), (1, 1), "{answers:#?}");
    insta::assert_snapshot!(refused[0], @"PreToolUse:Agent hook error: no frame is waiting to start: call push_frame first, and start one frame at a time");
    assert_eq!(played.requests_of("left").len(), 3, "it worked once");
}

#[test]
fn subagents_that_are_not_frames_can_read_but_not_write_the_memory() {
    let explore_input = json!({"subagent_type": "Explore", "description": "look", "prompt": "EXPLORE the code",
        "run_in_background": false});
    let helper_input = json!({"subagent_type": "general-purpose", "description": "help", "prompt": "HELP me",
        "run_in_background": false});
    let played = play_session(&[
        (
            "main",
            vec![
                register_update_step(&[("R0_GOAL", "g")]),
                Step::default().with_tool_call("Agent", explore_input),
                push_and_start_step("calc"),
                register_update_step(&[("R2_NEXT", "on")]),
                final_step(),
            ],
        ),
        (
            "EXPLORE",
            vec![
                Step::default()
                    .with_tool_call("mcp__plimsoll__memory_show", json!({}))
                    .with_tool_call("mcp__plimsoll__update_registers", json!({"R0_GOAL": "mine"}))
                    .with_tool_call("mcp__plimsoll__pop_frame", json!({"result": "x"})),
                Step::from_text("EXPLORED"),
            ],
        ),
        (
            "calc",
            vec![
                Step::default().with_tool_call("Agent", helper_input),
                pop_frame_step("calc is done"),
                final_step(),
            ],
        ),
        ("HELP", vec![register_update_step(&[("R7_STATUS", "by the helper")]), Step::from_text("HELPED")]),
    ]);
    insta::assert_snapshot!(played.tool_results_of("EXPLORE").join("\n"), @r#"
    <plimsoll-memory rev="1" frame="root" depth="0"> (for each frame, the highest rev is current)
    R0 GOAL: g
    </plimsoll-memory>
    PreToolUse:mcp__plimsoll__update_registers hook error: a subagent without a frame can read the working memory but not write it: put your findings into your answer
    PreToolUse:mcp__plimsoll__pop_frame hook error: a subagent without a frame can read the working memory but not write it: put your findings into your answer
    "#);
    insta::assert_snapshot!(played.tool_results_of("HELP")[0], @"PreToolUse:mcp__plimsoll__update_registers hook error: a subagent without a frame can read the working memory but not write it: put your findings into your answer");
    let main_answers = played.tool_results_of("main");
    assert!(
        main_answers.iter().any(|answer| answer.contains("EXPLORED")),
        "its answer is its own: {main_answers:#?}"
    );
    assert!(played.tool_results_of("calc").iter().any(|answer| answer.contains("HELPED")));
    assert!(main_answers.iter().any(|answer| answer.contains("calc is done")), "{main_answers:#?}");
    let memory = played.memory();
    assert_eq!((&memory["depth"], &memory["registers"]["R0_GOAL"]), (&json!(0), &json!("g")));
}
