//! Children that do not return.

use crate::frames::harness::{delegate, done, note, play, pop, registers};
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;

#[test]
fn who_ends_without_a_report_is_reminded_once_and_then_has_returned() {
    let played = play(&[
        ("main", vec![delegate("calc"), delegate("tests"), note(&[("R2_NEXT", "on")]), done()]),
        (
            "calc",
            vec![
                note(&[("R7_STATUS", "half")]),
                Step::text("I think that is all."),
                pop("after all: done"),
                done(),
            ],
        ),
        ("tests", vec![Step::text("First words."), Step::text("LAST-WORDS of tests.")]),
    ]);
    let reminded = played.of("calc");
    assert!(reminded[2].last_text().contains("You have not returned from the frame \"calc\""));
    assert!(!reminded[3].last_text().contains("You have not returned"), "once");
    let answers = played.answers("main");
    let find = |words: &str| answers.iter().find(|answer| answer.contains(words));
    assert!(find("after all: done").is_some(), "{answers:#?}");
    let unpopped =
        find("The frame \"tests\" ended without a report").unwrap_or_else(|| panic!("{answers:#?}"));
    assert!(unpopped.contains("LAST-WORDS of tests.") && !unpopped.contains("First words"), "{unpopped}");
    assert_eq!(played.of("tests").len(), 2, "reminded once");
    let memory = played.memory();
    assert_eq!(memory["registers"]["R7_STATUS"], "LAST-WORDS of tests.");
    let history = played.history();
    assert!(history.iter().any(|change| change["change"]["how"] == "unpopped"), "{history:#?}");
}

#[test]
fn of_a_child_that_dies_the_parent_gets_status_questions_and_plan() {
    let dying = || {
        let first = vec![
            registers(
                Step::bash("echo work"),
                &[
                    ("R7_STATUS", "line 40 of 90"),
                    ("R1_PLAN", "rest of the lines"),
                    ("R6_OPEN_QUESTIONS", "tabs?"),
                ],
            )
            .say("On the way."),
        ];
        // The client tries a refused request again in several shapes.
        [first, vec![Step::error(400, "bad words"); 20]].concat()
    };
    let broken = vec![
        note(&[("R7_STATUS", "near the end")]).say("On the way."),
        Step::error(500, "broken"),
        Step::error(500, "broken"),
        Step::error(500, "broken"),
    ];
    let played = play(&[
        (
            "main",
            vec![
                delegate("refused"),
                Step::bash("echo between"),
                delegate("broken"),
                Step::bash("echo after"),
                delegate("whole"),
                done(),
            ],
        ),
        ("refused", dying()),
        ("broken", broken),
        ("whole", vec![pop("whole"), done()]),
    ]);
    let main = played.of("main");
    let after_refused = main[1].text();
    for words in [
        "R7 STATUS: line 40 of 90",
        "R1 PLAN: rest of the lines",
        "R6 OPEN_QUESTIONS: tabs?",
        "R3 PHASE: abandoned: refused",
    ] {
        assert!(after_refused.contains(words), "{words} in {after_refused}");
    }
    let after_broken = main[3].text();
    assert!(after_broken.contains("R7 STATUS: near the end"), "{after_broken}");
    assert!(after_broken.contains("The frame \"broken\" was abandoned"), "{after_broken}");
    assert!(played.last_of("main").text().contains("The frame \"whole\" has returned"), "the stack goes on");
    assert_eq!(played.memory()["depth"], json!(0));
}
