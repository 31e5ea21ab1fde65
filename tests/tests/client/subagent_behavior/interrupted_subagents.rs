//! Subagents that are stopped from outside.

use crate::subagent_behavior::harness::{SubagentTestBench, agent_call_step};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_testkit::world::RunningProgram;
use serde_json::Value;
use std::time::Duration;

/// Runs a session whose subagent runs a long command, and stops the session while the command runs.
fn run_and_stop_session(stop: fn(&mut RunningProgram)) -> SubagentTestBench {
    let bench = SubagentTestBench::new(|request| match request.kind {
        RequestKind::Subagent => Step::bash_call("touch begun; sleep 30").with_text("On the way."),
        _ if request.full_text().contains("Go on.") => Step::from_text("Done."),
        _ => agent_call_step("Go."),
    });
    let mut running = bench.session_with_allowed_tools().spawn();
    let has_begun = || bench.world.exists("begun");
    bench.world.wait_until(has_begun, "the frame's command runs");
    stop(&mut running);
    running.wait_or_kill_and_panic(Duration::from_secs(30));
    bench
}

/// Returns the hook calls about the subagent, its Agent call and the session's end.
fn subagent_and_end_calls(bench: &SubagentTestBench) -> Vec<String> {
    bench.hook_call_lines_containing(&["Tool", "Subagent", "Stop", "SessionEnd"])
}

/// Resumes the session and returns the result of the Agent call as the parent then reads it.
fn agent_result_after_resume(bench: &SubagentTestBench) -> String {
    let call_count = bench.hook_calls().len();
    let arguments = ["-p", "Go on.", "--continue", "--model", "opus", "--output-format", "json"];
    let finished = bench.world.claude(&arguments).run();
    assert_eq!(finished.last_result()["result"], "Done.", "{}", finished.stderr);
    let later_calls = bench.hook_calls().split_off(call_count);
    assert_eq!(later_calls[0].payload["source"], "resume");
    assert!(
        later_calls.iter().all(|noted| noted.payload["agent_id"] == Value::Null),
        "nobody wakes the frame"
    );
    let (text, error) = bench.first_tool_result();
    assert!(error, "{text}");
    text
}

const CALLS_BEFORE_STOP: [&str; 3] =
    ["PreToolUse Agent", "SubagentStart a1=frame", "PreToolUse Bash a1=frame"];

#[test]
fn an_interrupted_session_reports_only_its_own_end_to_hooks() {
    let bench = run_and_stop_session(RunningProgram::interrupt);
    assert_eq!(subagent_and_end_calls(&bench), [&CALLS_BEFORE_STOP[..], &["SessionEnd"]].concat());
    let text = agent_result_after_resume(&bench);
    // While it shuts down, the client records the interrupted call as refused. If its grace period ends first, which happens on a
    // busy machine, the call stays without a result, as after SIGTERM.
    let recorded = text.starts_with("The user doesn't want to proceed with this tool use.");
    assert!(recorded || text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_terminated_session_reports_only_its_own_end_to_hooks() {
    let bench = run_and_stop_session(RunningProgram::terminate);
    assert_eq!(subagent_and_end_calls(&bench), [&CALLS_BEFORE_STOP[..], &["SessionEnd"]].concat());
    let text = agent_result_after_resume(&bench);
    assert!(text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_killed_session_reports_nothing_more_to_hooks() {
    let bench = run_and_stop_session(RunningProgram::kill);
    assert_eq!(subagent_and_end_calls(&bench), CALLS_BEFORE_STOP);
    let text = agent_result_after_resume(&bench);
    assert!(text.starts_with("[Tool call interrupted: the session ended before"), "{text}");
}

#[test]
fn a_subagent_stopped_by_a_hook_returns_its_text_without_subagent_stop() {
    let bench = SubagentTestBench::new(|request| match request.kind {
        RequestKind::Subagent => Step::bash_call("echo ran").with_text("On the way."),
        _ if request.all_tool_results().is_empty() => agent_call_step("Go."),
        _ => Step::from_text("Done."),
    });
    let stop = r#"{"continue":false,"stopReason":"enough"}"#;
    bench.print_if_payload_contains("PostToolBatch", r#""agent_id""#, stop);
    bench.run_session();
    assert_eq!(
        bench.hook_call_lines_containing(&["Subagent", "Failure", "PostToolUse Agent"]),
        ["SubagentStart a1=frame", "PostToolUse Agent"]
    );
    let (text, error) = bench.first_tool_result();
    assert!(!error && text.contains("  On the way.") && !text.contains("enough"), "{text}");
    assert_eq!(bench.subagent_requests().len(), 1);
}
