//! The hook programs.

use crate::crash_points::prepared_projects::{RUN, Scene, transcript};
use crate::crash_points::prepared_world::Play;
use crate::crash_points::scenario::{Kind, Scenario};
use serde_json::json;

fn check(name: &'static str, scene: Scene, play: Play) {
    Scenario::new(name, Kind::Hook, scene.stage, play).check();
}

/// A monitor at so many tokens.
fn monitor(name: &'static str, scene: Scene, tokens: u64) {
    scene.answers(tokens);
    let play = scene.batch();
    check(name, scene, play);
}

#[test]
fn the_monitor_warns() {
    monitor("monitor, L1 in a run", Scene::in_run(), 720_000);
}

#[test]
fn the_monitor_checkpoints() {
    monitor("monitor, L2 in a run", Scene::in_run(), 870_000);
}

#[test]
fn the_monitor_ends_a_session() {
    monitor("monitor, L3 in a run", Scene::in_run(), 960_000);
}

#[test]
fn the_monitor_advises() {
    let scene = Scene::ordinary();
    scene.answers(870_000);
    let play = scene.batch();
    let scenario = Scenario::new("monitor, L2 in an ordinary session", Kind::Hook, scene.stage, play);
    // It is not tried again with every batch.
    scenario.may_lose(&["/HANDOFF", "/handoffs/.gitignore", "/sessions/"]).check();
}

#[test]
fn the_gate_after_a_checkpoint() {
    let scene = Scene::in_run();
    scene.answers(870_000);
    scene.stage.run(&scene.batch());
    let play = scene.stop("I stop here.\n\nSummary: half of it.");
    check("stop gate, after a checkpoint", scene, play);
}

#[test]
fn the_gate_at_a_promise_and_at_one_that_is_refused() {
    for (name, plan) in
        [("stop gate, promise", "- [x] Item one\n"), ("stop gate, refused", "- [ ] Item one\n")]
    {
        let scene = Scene::in_run();
        scene.stage.world.write("fix_plan.md", plan);
        let play = scene.stop("All done.\n\n<promise>RALPH_DONE abcd1234</promise>");
        check(name, scene, play);
    }
}

#[test]
fn the_gate_at_a_limit() {
    let scene = Scene::in_run();
    let failure = json!({"error": "rate_limit", "last_assistant_message": "You've hit your session limit"});
    let play = scene.event("plimsoll-stop-gate", "StopFailure", failure);
    check("stop gate, a limit", scene, play);
}

#[test]
fn a_session_starts() {
    let scene = Scene::planned();
    let play = scene.event("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
    check("session start, claims its iteration", scene, play);
    let scene = Scene::ordinary();
    let play = scene.event("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
    check("session start, an ordinary session", scene, play);
}

#[test]
fn a_session_ends() {
    let scene = Scene::in_run();
    scene.answers(870_000);
    scene.stage.run(&scene.batch());
    scene.stage.world.write(scene.transcript(), &transcript("parallel_tools"));
    let play = scene.event("plimsoll-session-end", "SessionEnd", json!({"reason": "other"}));
    let name = "session end, many turns and an iteration to close";
    Scenario::new(name, Kind::Hook, scene.stage, play).every(2).check();
}

#[test]
fn turns_are_taken_in_the_middle_of_a_session() {
    let scene = Scene::ordinary();
    scene.stage.world.write(scene.transcript(), &transcript("natural_sizes"));
    let play = scene.batch();
    // Large pieces, one after the other, each in the same way.
    Scenario::new("monitor, many turns to take", Kind::Hook, scene.stage, play).every(5).check();
}

#[test]
fn the_client_compacts() {
    let scene = Scene::in_run();
    scene.answers(870_000);
    let play = scene.event("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"}));
    check("pre-compact", scene, play);
    let scene = Scene::in_run();
    scene.answers(870_000);
    scene.stage.run(&scene.batch());
    let play = scene.event("plimsoll-pre-compact", "PostCompact", json!({"trigger": "auto"}));
    check("post-compact", scene, play);
}

#[test]
fn the_memory_is_shown() {
    let scene = Scene::ordinary();
    scene.remember();
    let start = json!({"source": "startup"});
    let mut play = scene.event("plimsoll-session-start", "SessionStart", start);
    play.arguments.push("memory".to_owned());
    scene.stage.run(&play);
    check("memory, a session starts", scene, play.clone());
    let scene = Scene::ordinary();
    scene.remember();
    scene.stage.run(&scene.moved(play));
    scene.stage.run(&Play::command(&["memory", "set", "next", "Something else."]));
    let calls = json!({"tool_calls": [{"tool_name": "Bash", "tool_use_id": "toolu_1"}]});
    let mut play = scene.event("plimsoll-post-tool", "PostToolBatch", calls);
    play.arguments.push("memory".to_owned());
    check("memory, news after a batch", scene, play);
}

#[test]
fn a_frame_begins_and_ends() {
    let call = json!({"tool_name": "Agent", "tool_use_id": "toolu_9",
        "tool_input": {"subagent_type": "frame", "description": "tests", "prompt": "x"}});
    let scene = Scene::ordinary();
    scene.remember();
    scene.push_frame("tests");
    let play = scene.event("plimsoll-frame", "PreToolUse", call.clone());
    check("frame, the call that begins it", scene, play);
    let agent = json!({"agent_id": "a1b2c3d", "agent_type": "frame"});
    for (name, event) in
        [("frame, a subagent starts", "SubagentStart"), ("frame, a subagent stops", "SubagentStop")]
    {
        let scene = Scene::ordinary();
        scene.remember();
        scene.push_frame("tests");
        scene.stage.run(&scene.event("plimsoll-frame", "PreToolUse", call.clone()));
        if event == "SubagentStop" {
            scene.stage.run(&scene.event("plimsoll-frame", "SubagentStart", agent.clone()));
        }
        let play = scene.event("plimsoll-frame", event, agent.clone());
        if event == "SubagentStop" {
            // Told once to report, it ends without a report.
            scene.stage.run(&play);
        }
        check(name, scene, play);
    }
}

#[test]
fn the_status_line_publishes() {
    let scene = Scene::in_run();
    let text = std::fs::read_to_string(plimsoll_testkit::fixtures().join("statusline/usage.1m.json"))
        .expect("a fixture");
    let mut status: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    status["session_id"] = crate::crash_points::prepared_projects::SESSION.into();
    status["workspace"] = json!({"project_dir": scene.stage.world.project()});
    let play = Play::of("plimsoll-statusline", &[]).stdin(status).env("PLIMSOLL_RUN_ID", RUN);
    check("status line", scene, play);
}
