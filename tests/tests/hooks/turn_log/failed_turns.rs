//! How turns fail, in the real client's own words.

use crate::turn_log::harness::{FIRST, ask, check, cost, model, outcomes, price, turns};
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::installed;
use serde_json::json;

/// The user's own hook: no command with this word.
const OWN_HOOK: &str = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"grep -q forbidden && { echo 'not on my watch' >&2; exit 2; }; exit 0"}]}]}}"#;

#[test]
fn arc_010_dbg_002_each_way_a_call_can_fail_is_told_apart() {
    let model = model(vec![
        Step::bash("echo fine; echo trouble >&2")
            .tool("Bash", json!({"command": "echo half; exit 3", "description": "fails"}))
            .thinking("I think,\nso I call.")
            .say("Two at once."),
        Step::default().tool("Nonesuch", json!({"a": 1})),
        Step::default().tool("Read", json!({"file_path": 7})),
        Step::default().tool("Write", json!({"file_path": "new.txt", "content": "x"})),
        Step::bash("echo forbidden"),
        Step::bash("seq 1 3000"),
        Step::text("Done."),
    ]);
    let world = installed(&model);
    ask(&world, FIRST, "Work.").arg("--settings").arg(OWN_HOOK).run().expect_success();
    let records = check(&world, FIRST);
    let expected = ["tool_error", "unknown_tool", "parse_error", "tool_denied", "hook_blocked", "ok", "ok"];
    let words: Vec<_> =
        turns(&records, MAIN_STREAM).iter().filter_map(|turn| turn.turn()?.parsed_failure()).collect();
    assert_eq!(outcomes(&records), expected, "{words:#?}");
    assert_eq!(cost(&records), price(7), "usage is counted once");

    let turns = turns(&records, MAIN_STREAM);
    let first = turns[0].turn().unwrap();
    assert_eq!(first.program().unwrap().lines().count(), 2, "{:?}", first.program());
    let went: Vec<bool> = first.tool_calls().iter().map(plimsoll_domain::turn::ToolCall::is_ok).collect();
    assert_eq!(went, [true, false], "in the order of the calls");
    assert_eq!(first.prints(), ["fine\ntrouble", "half"]);
    let failure = first.parsed_failure().unwrap();
    assert!(failure.message.contains("Exit code 3"), "{failure:?}");
    assert_eq!(failure.calls.len(), 2);
    let blocked = turns[4].turn().unwrap().parsed_failure().unwrap();
    assert!(blocked.message.contains("not on my watch"), "{blocked:?}");
    assert!(turns[4].turn().unwrap().prints().is_empty(), "a command that did not run printed nothing");
    let long = turns[5].turn().unwrap();
    assert!(long.prints()[0].ends_with("2999\n3000"), "whole, though it lies beside the log");
    let last = turns[6].turn().unwrap();
    assert_eq!((last.program(), last.result()), (None, &json!("Done.")));
}

#[test]
fn a_response_that_was_cut_or_declined_is_a_failure_of_the_model() {
    for (stop, reason) in [("max_tokens", "max_tokens"), ("refusal", "refusal")] {
        let model = model(vec![Step::text("I would rather").stop_reason(stop), Step::text("Well, done.")]);
        let world = installed(&model);
        ask(&world, FIRST, "Work.").run();
        let records = check(&world, FIRST);
        assert_eq!(outcomes(&records)[0], reason, "{:#?}", turns(&records, MAIN_STREAM));
    }
}

#[test]
fn errors_of_the_api_are_failed_turns_that_cost_nothing() {
    let cases = [
        (529, "Overloaded", "api_error"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "api_error"),
        (401, "invalid x-api-key", "api_error"),
    ];
    for (status, words, reason) in cases {
        let model = model(vec![Step::bash("echo one"), Step::error(status, words)]);
        let mut world = installed(&model);
        world.set_env("DISABLE_AUTO_COMPACT", "1");
        ask(&world, FIRST, "Work.").run();
        let records = check(&world, FIRST);
        assert_eq!(outcomes(&records), ["ok", reason], "{status}: {:#?}", turns(&records, MAIN_STREAM));
        assert_eq!(cost(&records), price(1));
    }
}
