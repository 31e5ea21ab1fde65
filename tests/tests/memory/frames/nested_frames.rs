//! Frames in frames.

use crate::frames::harness::{delegate, done, play, pop, push};
use plimsoll_testkit::scripted_model::Step;

#[test]
fn five_lie_on_the_root_and_the_sixth_is_refused() {
    let inner = |name: &str, below: &str| vec![delegate(below), pop(&format!("{name} with {below}")), done()];
    let played = play(&[
        ("main", vec![delegate("one"), Step::text("All is done.")]),
        ("one", inner("one", "two")),
        ("two", inner("two", "three")),
        ("three", inner("three", "four")),
        ("four", inner("four", "five")),
        ("five", vec![push(Step::default(), "six"), pop("the bottom"), done()]),
    ]);
    assert_eq!(played.finished.result()["result"], "All is done.", "{}", played.finished.stderr);
    let bottom = played.answers("five");
    assert!(bottom[0].contains("this client starts subagents 5 deep"), "{bottom:#?}");
    for (name, words) in [
        ("four", "the bottom"),
        ("three", "four with five"),
        ("two", "three with four"),
        ("one", "two with three"),
        ("main", "one with two"),
    ] {
        let text = played.last_of(name).text();
        assert!(text.contains(words), "{words} in {name}");
        let deeper = text.contains("the bottom") && name != "four";
        assert!(!deeper, "{name} sees the report of its own child alone");
    }
    let first = played.of("five")[0];
    let tools = first.body["tools"].as_array().expect("tools");
    assert!(tools.iter().all(|tool| tool["name"] != "Agent"), "the client has no deeper subagents");
    assert_eq!(played.memory()["depth"], 0);
}
