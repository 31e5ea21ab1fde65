//! Frames inside frames.

use crate::frames::harness::{
    final_step, play_session, pop_frame_step, push_and_start_step, with_frame_push,
};
use plimsoll_testkit::scripted_model::Step;

#[test]
fn five_nested_frames_are_allowed_and_the_sixth_is_refused() {
    let steps_of_nested_frame = |name: &str, child: &str| {
        vec![push_and_start_step(child), pop_frame_step(&format!("{name} with {child}")), final_step()]
    };
    let played = play_session(&[
        ("main", vec![push_and_start_step("one"), Step::from_text("All is done.")]),
        ("one", steps_of_nested_frame("one", "two")),
        ("two", steps_of_nested_frame("two", "three")),
        ("three", steps_of_nested_frame("three", "four")),
        ("four", steps_of_nested_frame("four", "five")),
        ("five", vec![with_frame_push(Step::default(), "six"), pop_frame_step("the bottom"), final_step()]),
    ]);
    assert_eq!(played.finished.last_result()["result"], "All is done.", "{}", played.finished.stderr);
    let bottom = played.tool_results_of("five");
    assert!(bottom[0].contains("this client starts subagents 5 deep"), "{bottom:#?}");
    for (name, words) in [
        ("four", "the bottom"),
        ("three", "four with five"),
        ("two", "three with four"),
        ("one", "two with three"),
        ("main", "one with two"),
    ] {
        let text = played.last_request_of(name).full_text();
        assert!(text.contains(words), "{words} in {name}");
        let has_deeper_report = text.contains("the bottom") && name != "four";
        assert!(!has_deeper_report, "{name} sees the report of its own child alone");
    }
    let deepest_request = played.requests_of("five")[0];
    let tools = deepest_request.body["tools"].as_array().expect("tools");
    assert!(tools.iter().all(|tool| tool["name"] != "Agent"), "the client has no deeper subagents");
    assert_eq!(played.memory()["depth"], 0);
}
