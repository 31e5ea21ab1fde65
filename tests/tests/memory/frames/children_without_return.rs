//! Child frames that end without a report.

use crate::frames::harness::{
    final_step, play_session, pop_frame_step, push_and_start_step, register_update_step, with_register_update,
};
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;

#[test]
fn a_child_without_a_report_is_reminded_once_and_then_has_returned() {
    let played = play_session(&[
        (
            "main",
            vec![
                push_and_start_step("calc"),
                push_and_start_step("tests"),
                register_update_step(&[("R2_NEXT", "on")]),
                final_step(),
            ],
        ),
        (
            "calc",
            vec![
                register_update_step(&[("R7_STATUS", "half")]),
                Step::from_text("I think that is all."),
                pop_frame_step("after all: done"),
                final_step(),
            ],
        ),
        ("tests", vec![Step::from_text("First words."), Step::from_text("LAST-WORDS of tests.")]),
    ]);
    let child_requests = played.requests_of("calc");
    assert!(
        child_requests[2]
            .text_since_last_assistant_message()
            .contains("You have not returned from the frame \"calc\"")
    );
    assert!(!child_requests[3].text_since_last_assistant_message().contains("You have not returned"), "once");
    let answers = played.tool_results_of("main");
    let answer_containing = |words: &str| answers.iter().find(|answer| answer.contains(words));
    assert!(answer_containing("after all: done").is_some(), "{answers:#?}");
    let answer_without_report = answer_containing("The frame \"tests\" ended without a report")
        .unwrap_or_else(|| panic!("{answers:#?}"));
    assert!(
        answer_without_report.contains("LAST-WORDS of tests.")
            && !answer_without_report.contains("First words"),
        "{answer_without_report}"
    );
    assert_eq!(played.requests_of("tests").len(), 2, "reminded once");
    let memory = played.memory();
    assert_eq!(memory["registers"]["R7_STATUS"], "LAST-WORDS of tests.");
    let history = played.history();
    assert!(history.iter().any(|change| change["change"]["how"] == "unpopped"), "{history:#?}");
}

#[test]
fn the_parent_of_a_dead_child_gets_its_status_questions_and_plan() {
    let steps_of_refused_child = || {
        let first = vec![
            with_register_update(
                Step::bash_call("echo work"),
                &[
                    ("R7_STATUS", "line 40 of 90"),
                    ("R1_PLAN", "rest of the lines"),
                    ("R6_OPEN_QUESTIONS", "tabs?"),
                ],
            )
            .with_text("On the way."),
        ];
        // The client retries a refused request several times, in other shapes.
        [first, vec![Step::api_error(400, "bad words"); 20]].concat()
    };
    let steps_of_broken_child = vec![
        register_update_step(&[("R7_STATUS", "near the end")]).with_text("On the way."),
        Step::api_error(500, "broken"),
        Step::api_error(500, "broken"),
        Step::api_error(500, "broken"),
    ];
    let played = play_session(&[
        (
            "main",
            vec![
                push_and_start_step("refused"),
                Step::bash_call("echo between"),
                push_and_start_step("broken"),
                Step::bash_call("echo after"),
                push_and_start_step("whole"),
                final_step(),
            ],
        ),
        ("refused", steps_of_refused_child()),
        ("broken", steps_of_broken_child),
        ("whole", vec![pop_frame_step("whole"), final_step()]),
    ]);
    let main = played.requests_of("main");
    let after_refused = main[1].full_text();
    for words in [
        "R7 STATUS: line 40 of 90",
        "R1 PLAN: rest of the lines",
        "R6 OPEN_QUESTIONS: tabs?",
        "R3 PHASE: abandoned: refused",
    ] {
        assert!(after_refused.contains(words), "{words} in {after_refused}");
    }
    let after_broken = main[3].full_text();
    assert!(after_broken.contains("R7 STATUS: near the end"), "{after_broken}");
    assert!(after_broken.contains("The frame \"broken\" was abandoned"), "{after_broken}");
    assert!(
        played.last_request_of("main").full_text().contains("The frame \"whole\" has returned"),
        "the stack goes on"
    );
    assert_eq!(played.memory()["depth"], json!(0));
}
