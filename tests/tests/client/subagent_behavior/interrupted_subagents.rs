//! A subagent that is stopped from outside.

use crate::subagent_behavior::harness::{Bench, push};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_testkit::world::Running;
use serde_json::Value;
use std::time::Duration;

/// A session whose frame runs a long command, stopped in the middle of it.
fn stopped(stop: fn(&mut Running)) -> Bench {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent => Step::bash("touch begun; sleep 30").say("On the way."),
        _ if request.text().contains("Go on.") => Step::text("Done."),
        _ => push("Go."),
    });
    let mut running = bench.session().spawn();
    let begun = || bench.world.exists("begun");
    bench.world.wait_until(begun, "the frame's command runs");
    stop(&mut running);
    running.wait(Duration::from_secs(30));
    bench
}

/// What the hooks heard of the frame and its call, and of the end.
fn heard(bench: &Bench) -> Vec<String> {
    bench.story_of(&["Tool", "Subagent", "Stop", "SessionEnd"])
}

/// What the parent reads about the call when the session goes on later.
fn read_later(bench: &Bench) -> String {
    let before = bench.noted().len();
    let arguments = ["-p", "Go on.", "--continue", "--model", "opus", "--output-format", "json"];
    let finished = bench.world.claude(&arguments).run();
    assert_eq!(finished.result()["result"], "Done.", "{}", finished.stderr);
    let later = bench.noted().split_off(before);
    assert_eq!(later[0].payload["source"], "resume");
    assert!(later.iter().all(|noted| noted.payload["agent_id"] == Value::Null), "nobody wakes the frame");
    let (text, error) = bench.handed_back();
    assert!(error, "{text}");
    text
}

const BEGUN: [&str; 3] = ["PreToolUse Agent", "SubagentStart a1=frame", "PreToolUse Bash a1=frame"];

#[test]
fn of_an_interrupted_session_the_hooks_hear_only_that_it_ended() {
    let bench = stopped(Running::interrupt);
    assert_eq!(heard(&bench), [&BEGUN[..], &["SessionEnd"]].concat());
    let text = read_later(&bench);
    // While it shuts down, the client records the interrupted call as refused. If its grace period ends first, which happens on a
    // busy machine, the call stays without a result, as after SIGTERM.
    let recorded = text.starts_with("The user doesn't want to proceed with this tool use.");
    assert!(recorded || text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn of_a_terminated_session_the_hooks_hear_only_that_it_ended() {
    let bench = stopped(Running::terminate);
    assert_eq!(heard(&bench), [&BEGUN[..], &["SessionEnd"]].concat());
    let text = read_later(&bench);
    assert!(text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn of_a_killed_session_the_hooks_hear_nothing() {
    let bench = stopped(Running::kill);
    assert_eq!(heard(&bench), BEGUN);
    let text = read_later(&bench);
    assert!(text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_subagent_that_a_hook_stops_hands_back_its_last_words_without_a_stop_of_its_own() {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent => Step::bash("echo ran").say("On the way."),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    let stop = r#"{"continue":false,"stopReason":"enough"}"#;
    bench.answer_raw("PostToolBatch", r#""agent_id""#, stop);
    bench.run();
    assert_eq!(
        bench.story_of(&["Subagent", "Failure", "PostToolUse Agent"]),
        ["SubagentStart a1=frame", "PostToolUse Agent"]
    );
    let (text, error) = bench.handed_back();
    assert!(!error && text.contains("  On the way.") && !text.contains("enough"), "{text}");
    assert_eq!(bench.frame_requests().len(), 1);
}
