//! What a person or a shell loop calls, and the server.

use crate::crash_points::prepared_projects::{RUN, SESSION, Scene, state, transcript};
use crate::crash_points::prepared_world::Play;
use crate::crash_points::scenario::{Kind, Scenario};
use crate::crash_points::{files_afterwards, syscall_trace};
use plimsoll_domain::RunState;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::state::{IterationPhase, IterationRecord};
use plimsoll_testkit::world::Finished;
use serde_json::json;

fn scenario(name: &'static str, scene: Scene, arguments: &[&str]) -> Scenario {
    Scenario::new(name, Kind::Command, scene.stage, Play::command(arguments))
}

#[test]
fn the_memory_is_written() {
    let chunk = "y".repeat(6_000);
    for (name, arguments) in [
        ("memory set", &["memory", "set", "next", "More."][..]),
        ("memory alloc", &["memory", "alloc", "more", &chunk]),
        ("memory free", &["memory", "free", "spec"]),
    ] {
        let scene = Scene::ordinary();
        scene.remember();
        scenario(name, scene, arguments).check();
    }
}

#[test]
fn the_first_word_of_a_memory() {
    scenario("memory set, the first", Scene::ordinary(), &["memory", "set", "goal", "Build it."]).check();
}

#[test]
fn the_server_writes() {
    let scene = Scene::ordinary();
    scene.remember();
    let call = |id: u32, method: &str, params: serde_json::Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
    };
    let info = json!({"name": "test", "version": "1"});
    let lines = [
        call(
            1,
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}),
        ),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string() + "\n",
        call(2, "tools/call", json!({"name": "update_registers", "arguments": {"R2_NEXT": "More."}})),
    ];
    let play = Play::of("plimsoll-mcp", &[]).stdin(lines.concat());
    Scenario::new("server, one write", Kind::Command, scene.stage, play).check();
}

#[test]
fn a_checkpoint_on_demand() {
    let scene = Scene::in_run();
    scene.answers(500_000);
    scenario("checkpoint", scene, &["checkpoint", "--summary", "Half of it."]).check();
}

/// A shell loop's session has ended; its run has one more to go, or not.
fn ended(plan: &str) -> Scene {
    ended_with(plan, |_| ())
}

fn ended_with(plan: &str, change: impl FnOnce(&mut RunState)) -> Scene {
    let scene = Scene::in_run_with(change);
    scene.stage.world.write("PROMPT.md", "Do the plan.\n");
    scene.answers(500_000);
    scene.stage.world.write("fix_plan.md", plan);
    scene.stage.run(&scene.stop("All done.\n\n<promise>RALPH_DONE abcd1234</promise>"));
    scene
}

#[test]
fn the_last_verdict() {
    let scene = ended("- [x] Item one\n- [x] Item two\n");
    let play = Play::command(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    let scenario = Scenario::new("gate, completed", Kind::Command, scene.stage, play);
    scenario.users(&["PROMPT.md", "fix_plan.md"]).every(4).check();
}

/// What was decided is carried out whenever a kill comes: in the plan, in the state, in what is told.
#[test]
fn a_tick_is_taken_back() {
    let scene = ended_with("- [x] Item one\n- [ ] Item two\n", |state| {
        state.options.verify_commands = vec!["test -e never".to_owned()];
        state.outcomes.passed_verify_commands = state.options.verify_commands.clone();
        state.options.max_iterations = 1;
    });
    let play = Play::command(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    let scenario = Scenario::new("gate, a tick is taken back", Kind::Command, scene.stage, play);
    scenario.users(&["PROMPT.md", "fix_plan.md"]).every(3).check();
}

/// That no review gave a verdict is decided; the plan, the state and the journal follow, and the question is asked once.
#[test]
fn a_tick_without_a_verdict_becomes_a_question() {
    let scene = ended_with("- [x] Item one\n- [ ] Item two\n", |state| {
        state.outcomes.reverted_ticks = Some(RevertedTicks {
            iteration: 1,
            session_id: Some(SESSION.into()),
            items: vec!["Item one".to_owned()],
            question: Some("Is it done?".to_owned()),
            is_pending: true,
            ..RevertedTicks::default()
        });
        state.options.max_iterations = 1;
    });
    let play = Play::command(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    scene.stage.keep();
    scene.stage.run(&play);
    let asked = "- [ ] Item one\n  ? Is it done?\n- [ ] Item two\n";
    assert_eq!(scene.stage.world.read("fix_plan.md"), asked);
    scene.stage.put_back();
    let scenario = Scenario::new("gate, a tick without a verdict", Kind::Command, scene.stage, play);
    scenario.users(&["PROMPT.md", "fix_plan.md"]).every(3).check();
}

/// Kills it everywhere; afterwards every file must be whole, and the next command must say or do this.
fn whole_after_kills(scene: &Scene, play: &Play, every: usize, next: &Play, is_well: fn(&Finished) -> bool) {
    let stage = &scene.stage;
    stage.keep();
    for point in syscall_trace::kill_points(stage, play).1.iter().step_by(every) {
        stage.put_back();
        let killed = syscall_trace::killed(stage, play, point);
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        let faults = files_afterwards::faults(stage, true);
        assert!(faults.is_empty(), "{point}: {faults:?}");
        let finished = stage.run(next);
        assert!(is_well(&finished), "{point}: {finished:?}");
        let faults = files_afterwards::faults(stage, true);
        assert!(faults.is_empty(), "afterwards, {point}: {faults:?}");
    }
}

/// Once the next session is planned the loop goes on with that; its prompt can be written whatever was done of it.
#[test]
fn a_verdict_and_the_next_plan() {
    let scene = ended("- [x] Item one\n- [ ] Item two\n");
    let play = Play::command(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    whole_after_kills(&scene, &play, 3, &Play::command(&["prompt"]), |finished| finished.code == Some(0));
}

/// A run that is there already is gone on with; one that is not begins.
#[test]
fn a_run_starts() {
    let play = Play::command(&["start", "--objective", "Do the plan.", "--name", "Dates"]);
    let is_well = |finished: &Finished| {
        finished.code == Some(0) || finished.stderr.contains("continue with `plimsoll run --resume`")
    };
    whole_after_kills(&Scene::ordinary(), &play, 1, &play, is_well);
}

#[test]
fn a_run_stops() {
    let scene = Scene::in_run();
    scene.stage.world.write("PROMPT.md", "Do the plan.\n");
    scenario("stop", scene, &["stop"]).users(&["PROMPT.md", "fix_plan.md"]).check();
}

#[test]
fn a_prompt_is_written() {
    let scene = Scene::planned();
    scene.stage.world.write("PROMPT.md", "Do the plan.\n");
    scene.create(&RunState {
        iteration_record: IterationRecord {
            iteration: 1,
            phase: IterationPhase::Planned,
            ..IterationRecord::default()
        },
        ..state(IterationPhase::Planned)
    });
    scenario("prompt", scene, &["prompt"]).users(&["PROMPT.md", "fix_plan.md"]).check();
}

/// A session whose turns are not yet in the log, though its record is there.
fn untold() -> Scene {
    let scene = Scene::ordinary();
    scene
        .stage
        .run(&scene.event("plimsoll-session-start", "SessionStart", json!({"source": "startup"})))
        .expect_success();
    let project = scene.stage.world.project().display().to_string();
    let transcript = transcript("parallel_tools").replace("/home/dev/project", &project);
    scene.stage.world.write(scene.transcript(), &transcript);
    scene
}

#[test]
fn turns_are_synchronised() {
    scenario("turns sync", untold(), &["turns", "sync"]).check();
}

#[test]
fn turns_are_erased() {
    let scene = untold();
    scene.stage.run(&Play::command(&["turns", "sync"])).expect_success();
    let turn = format!("{}:1", &SESSION[..8]);
    scenario("turns erase", scene, &["turns", "erase", &turn]).check();
}
