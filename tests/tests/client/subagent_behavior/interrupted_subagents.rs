//! Subagents that are stopped from outside.

use crate::subagent_behavior::harness::{Bench, push};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_testkit::world::Running;
use serde_json::Value;
use std::time::Duration;

/// Runs a session whose subagent runs a long command, and stops the session while the command runs.
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

/// Returns the hook calls about the subagent, its Agent call and the session's end.
fn heard(bench: &Bench) -> Vec<String> {
    bench.story_of(&["Tool", "Subagent", "Stop", "SessionEnd"])
}

/// Resumes the session and returns the result of the Agent call as the parent then reads it.
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
fn an_interrupted_session_reports_only_its_own_end_to_hooks() {
    let bench = stopped(Running::interrupt);
    assert_eq!(heard(&bench), [&BEGUN[..], &["SessionEnd"]].concat());
    let text = read_later(&bench);
    // While it shuts down, the client records the interrupted call as refused. If its grace period ends first, which happens on a
    // busy machine, the call stays without a result, as after SIGTERM.
    let recorded = text.starts_with("The user doesn't want to proceed with this tool use.");
    assert!(recorded || text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_terminated_session_reports_only_its_own_end_to_hooks() {
    let bench = stopped(Running::terminate);
    assert_eq!(heard(&bench), [&BEGUN[..], &["SessionEnd"]].concat());
    let text = read_later(&bench);
    assert!(text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_killed_session_reports_nothing_more_to_hooks() {
    let bench = stopped(Running::kill);
    assert_eq!(heard(&bench), BEGUN);
    let text = read_later(&bench);
    assert!(text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_subagent_stopped_by_a_hook_returns_its_text_without_subagent_stop() {
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
