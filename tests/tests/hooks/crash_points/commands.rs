//! Commands that a person or a shell loop runs, and the MCP server.

use crate::crash_points::prepared_projects::{RUN, SESSION, SessionFixture, recorded_transcript, run_state};
use crate::crash_points::prepared_world::Invocation;
use crate::crash_points::scenario::{ProgramKind, Scenario};
use crate::crash_points::{disk_checks, syscall_trace};
use plimsoll_domain::RunState;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::state::{IterationPhase, IterationRecord};
use plimsoll_testkit::world::FinishedProgram;
use serde_json::json;

fn command_scenario(name: &'static str, fixture: SessionFixture, arguments: &[&str]) -> Scenario {
    Scenario::new(name, ProgramKind::Command, fixture.prepared, Invocation::plimsoll(arguments))
}

#[test]
fn memory_commands_survive_kills_and_io_errors() {
    let chunk = "y".repeat(6_000);
    for (name, arguments) in [
        ("memory set", &["memory", "set", "next", "More."][..]),
        ("memory alloc", &["memory", "alloc", "more", &chunk]),
        ("memory free", &["memory", "free", "spec"]),
    ] {
        let fixture = SessionFixture::outside_run();
        fixture.write_memory();
        command_scenario(name, fixture, arguments).assert_survives_kills_and_io_errors();
    }
}

#[test]
fn first_memory_write_survives_kills_and_io_errors() {
    command_scenario(
        "memory set, the first",
        SessionFixture::outside_run(),
        &["memory", "set", "goal", "Build it."],
    )
    .assert_survives_kills_and_io_errors();
}

#[test]
fn server_write_survives_kills_and_io_errors() {
    let fixture = SessionFixture::outside_run();
    fixture.write_memory();
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
    let invocation = Invocation::new("plimsoll-mcp", &[]).stdin(lines.concat());
    Scenario::new("server, one write", ProgramKind::Command, fixture.prepared, invocation)
        .assert_survives_kills_and_io_errors();
}

#[test]
fn checkpoint_command_survives_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    fixture.write_response(500_000);
    command_scenario("checkpoint", fixture, &["checkpoint", "--summary", "Half of it."])
        .assert_survives_kills_and_io_errors();
}

/// A session of a shell loop has ended with a promise; `plan` decides whether the run needs another session.
fn fixture_after_session_end(plan: &str) -> SessionFixture {
    fixture_after_session_end_with_state(plan, |_| ())
}

fn fixture_after_session_end_with_state(plan: &str, change: impl FnOnce(&mut RunState)) -> SessionFixture {
    let fixture = SessionFixture::in_run_with(change);
    fixture.prepared.world.write("PROMPT.md", "Do the plan.\n");
    fixture.write_response(500_000);
    fixture.prepared.world.write("fix_plan.md", plan);
    fixture.prepared.run(&fixture.stop_event("All done.\n\n<promise>RALPH_DONE abcd1234</promise>"));
    fixture
}

#[test]
fn final_gate_verdict_survives_kills_and_io_errors() {
    let fixture = fixture_after_session_end("- [x] Item one\n- [x] Item two\n");
    let invocation = Invocation::plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    let scenario = Scenario::new("gate, completed", ProgramKind::Command, fixture.prepared, invocation);
    scenario
        .with_user_files(&["PROMPT.md", "fix_plan.md"])
        .with_step(4)
        .assert_survives_kills_and_io_errors();
}

/// The decision is carried out completely whenever the kill comes: in the plan, in the state and in the output.
#[test]
fn gate_that_unticks_an_item_survives_kills_and_io_errors() {
    let fixture = fixture_after_session_end_with_state("- [x] Item one\n- [ ] Item two\n", |state| {
        state.options.verify_commands = vec!["test -e never".to_owned()];
        state.outcomes.passed_verify_commands = state.options.verify_commands.clone();
        state.options.max_iterations = 1;
    });
    let invocation = Invocation::plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    let scenario =
        Scenario::new("gate, a tick is taken back", ProgramKind::Command, fixture.prepared, invocation);
    scenario
        .with_user_files(&["PROMPT.md", "fix_plan.md"])
        .with_step(3)
        .assert_survives_kills_and_io_errors();
}

/// The missing verdict is already recorded. The plan, the state and the journal follow it, and the question is asked once.
#[test]
fn gate_that_asks_about_a_tick_survives_kills_and_io_errors() {
    let fixture = fixture_after_session_end_with_state("- [x] Item one\n- [ ] Item two\n", |state| {
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
    let invocation = Invocation::plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    fixture.prepared.save();
    fixture.prepared.run(&invocation);
    let expected_plan = "- [ ] Item one\n  ? Is it done?\n- [ ] Item two\n";
    assert_eq!(fixture.prepared.world.read("fix_plan.md"), expected_plan);
    fixture.prepared.restore();
    let scenario =
        Scenario::new("gate, a tick without a verdict", ProgramKind::Command, fixture.prepared, invocation);
    scenario
        .with_user_files(&["PROMPT.md", "fix_plan.md"])
        .with_step(3)
        .assert_survives_kills_and_io_errors();
}

/// Kills the program at every `step`-th change. Afterwards every file must be intact, and `next_command` must finish as expected.
fn assert_files_are_intact_after_kills(
    fixture: &SessionFixture,
    invocation: &Invocation,
    step: usize,
    next_command: &Invocation,
    is_expected: fn(&FinishedProgram) -> bool,
) {
    let prepared = &fixture.prepared;
    prepared.save();
    for point in syscall_trace::trace_kill_points(prepared, invocation).1.iter().step_by(step) {
        prepared.restore();
        let killed = syscall_trace::run_killed_before(prepared, invocation, point);
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        let faults = disk_checks::file_faults(prepared, true);
        assert!(faults.is_empty(), "{point}: {faults:?}");
        let finished = prepared.run(next_command);
        assert!(is_expected(&finished), "{point}: {finished:?}");
        let faults = disk_checks::file_faults(prepared, true);
        assert!(faults.is_empty(), "afterwards, {point}: {faults:?}");
    }
}

/// The shell loop continues with `plimsoll prompt`, which must work whatever part of the planning was done.
#[test]
fn gate_that_plans_the_next_session_survives_kills() {
    let fixture = fixture_after_session_end("- [x] Item one\n- [ ] Item two\n");
    let invocation = Invocation::plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", RUN);
    assert_files_are_intact_after_kills(
        &fixture,
        &invocation,
        3,
        &Invocation::plimsoll(&["prompt"]),
        |finished| finished.code == Some(0),
    );
}

/// A second start either starts the run or says how to continue the one that exists.
#[test]
fn run_start_survives_kills() {
    let invocation = Invocation::plimsoll(&["start", "--objective", "Do the plan.", "--name", "Dates"]);
    let is_expected = |finished: &FinishedProgram| {
        finished.code == Some(0) || finished.stderr.contains("continue with `plimsoll run --resume`")
    };
    assert_files_are_intact_after_kills(
        &SessionFixture::outside_run(),
        &invocation,
        1,
        &invocation,
        is_expected,
    );
}

#[test]
fn run_stop_survives_kills_and_io_errors() {
    let fixture = SessionFixture::in_run();
    fixture.prepared.world.write("PROMPT.md", "Do the plan.\n");
    command_scenario("stop", fixture, &["stop"])
        .with_user_files(&["PROMPT.md", "fix_plan.md"])
        .assert_survives_kills_and_io_errors();
}

#[test]
fn prompt_command_survives_kills_and_io_errors() {
    let fixture = SessionFixture::with_planned_iteration();
    fixture.prepared.world.write("PROMPT.md", "Do the plan.\n");
    fixture.create_state(&RunState {
        iteration_record: IterationRecord {
            iteration: 1,
            phase: IterationPhase::Planned,
            ..IterationRecord::default()
        },
        ..run_state(IterationPhase::Planned)
    });
    command_scenario("prompt", fixture, &["prompt"])
        .with_user_files(&["PROMPT.md", "fix_plan.md"])
        .assert_survives_kills_and_io_errors();
}

/// A session that has a record, but whose turns are not yet in the turn log.
fn fixture_with_unlogged_turns() -> SessionFixture {
    let fixture = SessionFixture::outside_run();
    fixture
        .prepared
        .run(&fixture.hook_invocation("plimsoll-session-start", "SessionStart", json!({"source": "startup"})))
        .expect_success();
    let project = fixture.prepared.world.project().display().to_string();
    let transcript = recorded_transcript("parallel_tools").replace("/home/dev/project", &project);
    fixture.prepared.world.write(fixture.transcript_path(), &transcript);
    fixture
}

#[test]
fn turns_sync_survives_kills_and_io_errors() {
    command_scenario("turns sync", fixture_with_unlogged_turns(), &["turns", "sync"])
        .assert_survives_kills_and_io_errors();
}

#[test]
fn turns_erase_survives_kills_and_io_errors() {
    let fixture = fixture_with_unlogged_turns();
    fixture.prepared.run(&Invocation::plimsoll(&["turns", "sync"])).expect_success();
    let turn = format!("{}:1", &SESSION[..8]);
    command_scenario("turns erase", fixture, &["turns", "erase", &turn])
        .assert_survives_kills_and_io_errors();
}
