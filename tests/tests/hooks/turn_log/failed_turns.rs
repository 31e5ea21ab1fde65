//! Turns that fail, with the error messages of the real client.

use crate::turn_log::harness::{
    FIRST, check_log, expected_cost, main_outcomes, model_with_steps, session_launch, total_cost,
    turns_of_stream,
};
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::world_with_hooks;
use serde_json::json;

/// The user's own hook, which blocks every command that contains the word `forbidden`.
const OWN_HOOK: &str = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"grep -q forbidden && { echo 'not on my watch' >&2; exit 2; }; exit 0"}]}]}}"#;

#[test]
fn arc_010_dbg_002_each_kind_of_failed_call_has_its_own_reason() {
    let model = model_with_steps(vec![
        Step::bash_call("echo fine; echo trouble >&2")
            .with_tool_call("Bash", json!({"command": "echo half; exit 3", "description": "fails"}))
            .with_thinking("I think,\nso I call.")
            .with_text("Two at once."),
        Step::default().with_tool_call("Nonesuch", json!({"a": 1})),
        Step::default().with_tool_call("Read", json!({"file_path": 7})),
        Step::default().with_tool_call("Write", json!({"file_path": "new.txt", "content": "x"})),
        Step::bash_call("echo forbidden"),
        Step::bash_call("seq 1 3000"),
        Step::from_text("Done."),
    ]);
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").arg("--settings").arg(OWN_HOOK).run().expect_success();
    let records = check_log(&world, FIRST);
    let expected = ["tool_error", "unknown_tool", "parse_error", "tool_denied", "hook_blocked", "ok", "ok"];
    let failures: Vec<_> = turns_of_stream(&records, MAIN_STREAM)
        .iter()
        .filter_map(|turn| turn.turn()?.parsed_failure())
        .collect();
    assert_eq!(main_outcomes(&records), expected, "{failures:#?}");
    assert_eq!(total_cost(&records), expected_cost(7), "usage is counted once");

    let turns = turns_of_stream(&records, MAIN_STREAM);
    let first = turns[0].turn().unwrap();
    assert_eq!(first.program().unwrap().lines().count(), 2, "{:?}", first.program());
    let call_successes: Vec<bool> =
        first.tool_calls().iter().map(plimsoll_domain::turn::ToolCall::is_ok).collect();
    assert_eq!(call_successes, [true, false], "in the order of the calls");
    assert_eq!(first.prints(), ["fine\ntrouble", "half"]);
    let failure = first.parsed_failure().unwrap();
    assert!(failure.message.contains("Exit code 3"), "{failure:?}");
    assert_eq!(failure.calls.len(), 2);
    let blocked = turns[4].turn().unwrap().parsed_failure().unwrap();
    assert!(blocked.message.contains("not on my watch"), "{blocked:?}");
    assert!(turns[4].turn().unwrap().prints().is_empty(), "a command that did not run printed nothing");
    let turn_with_long_output = turns[5].turn().unwrap();
    assert!(
        turn_with_long_output.prints()[0].ends_with("2999\n3000"),
        "whole, though it lies beside the log"
    );
    let last = turns[6].turn().unwrap();
    assert_eq!((last.program(), last.result()), (None, &json!("Done.")));
}

#[test]
fn a_truncated_or_refused_response_is_a_failed_turn() {
    for (stop_reason, reason) in [("max_tokens", "max_tokens"), ("refusal", "refusal")] {
        let model = model_with_steps(vec![
            Step::from_text("I would rather").with_stop_reason(stop_reason),
            Step::from_text("Well, done."),
        ]);
        let world = world_with_hooks(&model);
        session_launch(&world, FIRST, "Work.").run();
        let records = check_log(&world, FIRST);
        assert_eq!(main_outcomes(&records)[0], reason, "{:#?}", turns_of_stream(&records, MAIN_STREAM));
    }
}

#[test]
fn api_errors_are_failed_turns_that_cost_nothing() {
    let cases = [
        (529, "Overloaded", "api_error"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "api_error"),
        (401, "invalid x-api-key", "api_error"),
    ];
    for (status, message, reason) in cases {
        let model = model_with_steps(vec![Step::bash_call("echo one"), Step::api_error(status, message)]);
        let mut world = world_with_hooks(&model);
        world.set_env("DISABLE_AUTO_COMPACT", "1");
        session_launch(&world, FIRST, "Work.").run();
        let records = check_log(&world, FIRST);
        assert_eq!(
            main_outcomes(&records),
            ["ok", reason],
            "{status}: {:#?}",
            turns_of_stream(&records, MAIN_STREAM)
        );
        assert_eq!(total_cost(&records), expected_cost(1));
    }
}
