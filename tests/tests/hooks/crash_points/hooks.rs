//! The hook programs.

use crate::crash_points::prepared_projects::{RUN, SessionFixture, recorded_transcript};
use crate::crash_points::prepared_world::Invocation;
use crate::crash_points::scenario::{ProgramKind, Scenario};
use serde_json::json;

fn check_hook(name: &'static str, fixture: SessionFixture, invocation: Invocation) {
    Scenario::new(name, ProgramKind::Hook, fixture.prepared, invocation)
        .assert_survives_kills_and_io_errors();
}

/// Checks the monitor after a response with this many input tokens.
fn check_monitor_at(name: &'static str, fixture: SessionFixture, tokens: u64) {
    fixture.write_response(tokens);
    let invocation = fixture.tool_batch();
    check_hook(name, fixture, invocation);
}

#[test]
fn monitor_warning_survives_kills_and_io_errors() {
    check_monitor_at("monitor, L1 in a run", SessionFixture::in_run(), 720_000);
}

#[test]
fn monitor_checkpoint_survives_kills_and_io_errors() {
    check_monitor_at("monitor, L2 in a run", SessionFixture::in_run(), 870_000);
}

#[test]
fn monitor_ending_a_session_survives_kills_and_io_errors() {
    check_monitor_at("monitor, L3 in a run", SessionFixture::in_run(), 960_000);
}

#[test]
fn monitor_advice_outside_a_run_survives_kills_and_io_errors() {
    let fixture = SessionFixture::outside_run();
    fixture.write_response(870_000);
    let invocation = fixture.tool_batch();
    let scenario =
        Scenario::new("monitor, L2 in an ordinary session", ProgramKind::Hook, fixture.prepared, invocation);
    // A handoff that could not be written is not retried with every batch.
    scenario
        .allowing_loss_of(&["/HANDOFF", "/handoffs/.gitignore", "/sessions/"])
        .assert_survives_kills_and_io_errors();
}

#[test]
fn gate_after_a_checkpoint_survives_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    fixture.write_response(870_000);
    fixture.prepared.run(&fixture.tool_batch());
    let invocation = fixture.stop_event("I stop here.\n\nSummary: half of it.");
    check_hook("stop gate, after a checkpoint", fixture, invocation);
}

#[test]
fn gate_accepting_or_refusing_a_promise_survives_kills_and_io_errors() {
    for (name, plan) in
        [("stop gate, promise", "- [x] Item one\n"), ("stop gate, refused", "- [ ] Item one\n")]
    {
        let fixture = SessionFixture::in_run();
        fixture.prepared.world.write("fix_plan.md", plan);
        let invocation = fixture.stop_event("All done.\n\n<promise>RALPH_DONE abcd1234</promise>");
        check_hook(name, fixture, invocation);
    }
}

#[test]
fn gate_at_a_usage_limit_survives_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    let failure = json!({"error": "rate_limit", "last_assistant_message": "You've hit your session limit"});
    let invocation = fixture.hook_invocation("plimsoll-stop-gate", "StopFailure", failure);
    check_hook("stop gate, a limit", fixture, invocation);
}

#[test]
fn session_start_hook_survives_kills_and_io_errors() {
    let fixture = SessionFixture::with_planned_iteration();
    let invocation =
        fixture.hook_invocation("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
    check_hook("session start, claims its iteration", fixture, invocation);
    let fixture = SessionFixture::outside_run();
    let invocation =
        fixture.hook_invocation("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
    check_hook("session start, an ordinary session", fixture, invocation);
}

#[test]
fn session_end_hook_survives_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    fixture.write_response(870_000);
    fixture.prepared.run(&fixture.tool_batch());
    fixture.prepared.world.write(fixture.transcript_path(), &recorded_transcript("parallel_tools"));
    let invocation =
        fixture.hook_invocation("plimsoll-session-end", "SessionEnd", json!({"reason": "other"}));
    let name = "session end, many turns and an iteration to close";
    Scenario::new(name, ProgramKind::Hook, fixture.prepared, invocation)
        .with_step(2)
        .assert_survives_kills_and_io_errors();
}

#[test]
fn turn_logging_during_a_session_survives_kills_and_io_errors() {
    let fixture = SessionFixture::outside_run();
    fixture.prepared.world.write(fixture.transcript_path(), &recorded_transcript("natural_sizes"));
    let invocation = fixture.tool_batch();
    // The turns are written in many pieces in the same way, so a sample of the calls is enough.
    Scenario::new("monitor, many turns to take", ProgramKind::Hook, fixture.prepared, invocation)
        .with_step(5)
        .assert_survives_kills_and_io_errors();
}

#[test]
fn compaction_hooks_survive_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    fixture.write_response(870_000);
    let invocation =
        fixture.hook_invocation("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"}));
    check_hook("pre-compact", fixture, invocation);
    let fixture = SessionFixture::in_run();
    fixture.write_response(870_000);
    fixture.prepared.run(&fixture.tool_batch());
    let invocation =
        fixture.hook_invocation("plimsoll-pre-compact", "PostCompact", json!({"trigger": "auto"}));
    check_hook("post-compact", fixture, invocation);
}

#[test]
fn memory_hooks_survive_kills_and_io_errors() {
    let fixture = SessionFixture::outside_run();
    fixture.write_memory();
    let start = json!({"source": "startup"});
    let mut invocation = fixture.hook_invocation("plimsoll-session-start", "SessionStart", start);
    invocation.arguments.push("memory".to_owned());
    fixture.prepared.run(&invocation);
    check_hook("memory, a session starts", fixture, invocation.clone());
    let fixture = SessionFixture::outside_run();
    fixture.write_memory();
    fixture.prepared.run(&fixture.adapt_to_this_world(invocation));
    fixture.prepared.run(&Invocation::plimsoll(&["memory", "set", "next", "Something else."]));
    let calls = json!({"tool_calls": [{"tool_name": "Bash", "tool_use_id": "toolu_1"}]});
    let mut invocation = fixture.hook_invocation("plimsoll-post-tool", "PostToolBatch", calls);
    invocation.arguments.push("memory".to_owned());
    check_hook("memory, news after a batch", fixture, invocation);
}

#[test]
fn frame_hooks_survive_kills_and_io_errors() {
    let call = json!({"tool_name": "Agent", "tool_use_id": "toolu_9",
        "tool_input": {"subagent_type": "frame", "description": "tests", "prompt": "x"}});
    let fixture = SessionFixture::outside_run();
    fixture.write_memory();
    fixture.push_frame("tests");
    let invocation = fixture.hook_invocation("plimsoll-frame", "PreToolUse", call.clone());
    check_hook("frame, the call that begins it", fixture, invocation);
    let agent = json!({"agent_id": "a1b2c3d", "agent_type": "frame"});
    for (name, event) in
        [("frame, a subagent starts", "SubagentStart"), ("frame, a subagent stops", "SubagentStop")]
    {
        let fixture = SessionFixture::outside_run();
        fixture.write_memory();
        fixture.push_frame("tests");
        fixture.prepared.run(&fixture.hook_invocation("plimsoll-frame", "PreToolUse", call.clone()));
        if event == "SubagentStop" {
            fixture.prepared.run(&fixture.hook_invocation("plimsoll-frame", "SubagentStart", agent.clone()));
        }
        let invocation = fixture.hook_invocation("plimsoll-frame", event, agent.clone());
        if event == "SubagentStop" {
            // The subagent was asked once for a report, and now it ends without one.
            fixture.prepared.run(&invocation);
        }
        check_hook(name, fixture, invocation);
    }
}

#[test]
fn status_line_survives_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    let text = std::fs::read_to_string(plimsoll_testkit::fixtures_dir().join("statusline/usage.1m.json"))
        .expect("a fixture");
    let mut status: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    status["session_id"] = crate::crash_points::prepared_projects::SESSION.into();
    status["workspace"] = json!({"project_dir": fixture.prepared.world.project()});
    let invocation = Invocation::new("plimsoll-statusline", &[]).stdin(status).env("PLIMSOLL_RUN_ID", RUN);
    check_hook("status line", fixture, invocation);
}
