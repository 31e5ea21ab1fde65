//! The example trace of the document that the memory is based on, step by step, with the tools that it names.

use crate::frames::harness::{
    PlayedSession, final_step, play_prepared_session, register_update_step, with_frame_start,
};
use plimsoll_testkit::scripted_model::Step;
use serde_json::{Value, json};

fn with_file_write(step: Step, path: &str, content: &str) -> Step {
    step.with_tool_call("mcp__plimsoll__write_file", json!({"path": path, "content": content}))
}

fn with_command(step: Step, line: &str) -> Step {
    step.with_tool_call("mcp__plimsoll__run_command", json!({"command": line}))
}

fn with_frame_pop(step: Step, result: &str) -> Step {
    step.with_tool_call("mcp__plimsoll__pop_frame", json!({"result": result}))
}

/// Makes two calls in a step, for the registers and for a frame; starting the frame takes a third call, of the client's
/// own tool.
fn update_registers_and_start_frame(values: &[(&str, &str)], name: &str, brief: Value) -> Step {
    let mut brief = brief;
    brief["name"] = json!(name);
    with_frame_start(register_update_step(values).with_tool_call("mcp__plimsoll__push_frame", brief), name)
}

const CALC_SOURCE: &str = "def add(a, b):\n    return a + b\n\n\ndef divide(a, b):\n    if b == 0:\n        raise ValueError('Cannot divide by zero')\n    return a / b\n";
const TEST_SOURCE: &str = "from calc import add, divide\n\nassert add(2, 3) == 5\ntry:\n    divide(1, 0)\nexcept ValueError as error:\n    print(error)\n";

fn play_calculator_session() -> PlayedSession {
    let implement_brief = json!({
        "objective": "Create calc.py with add(a,b) and divide(a,b). divide(a,0) must raise ValueError('Cannot divide by zero'). Verify: python3 -c 'from calc import add; print(add(2,3))'",
        "context": "No dependencies needed, pure Python.",
        "return_spec": "Report: file path, functions implemented, verification result",
    });
    let test_brief = json!({
        "objective": "Create test_calc.py with tests for all functions in calc.py. Run 'python3 test_calc.py' and fix until it passes.",
        "context": "calc.py has: add(a,b), divide(a,b).",
        "return_spec": "Report: number of tests, pass/fail results, any fixes needed",
    });
    let main_steps = vec![
        update_registers_and_start_frame(
            &[
                ("R0_GOAL", "Build calc.py + test_calc.py, all tests pass"),
                ("R1_PLAN", "1. Implement calc.py\n2. Write test_calc.py\n3. Run tests\n4. Fix failures"),
                ("R2_NEXT", "Push frame to implement calc.py"),
                ("R3_PHASE", "planning"),
                ("R7_STATUS", "Step 0: task received, workspace empty"),
            ],
            "implement-calc",
            implement_brief,
        ),
        update_registers_and_start_frame(
            &[
                (
                    "R1_PLAN",
                    "1. ~~Implement calc.py~~ DONE\n2. Write test_calc.py\n3. Run tests\n4. Fix failures",
                ),
                ("R2_NEXT", "Push frame to write and run tests"),
                ("R3_PHASE", "testing"),
                ("R7_STATUS", "calc.py implemented and verified"),
            ],
            "write-tests",
            test_brief,
        ),
        with_frame_pop(
            register_update_step(&[
                ("R2_NEXT", "Pop from root - task complete"),
                ("R7_STATUS", "All tests pass. Task complete."),
            ]),
            "Built calculator module. calc.py: 2 functions. test_calc.py: 2 tests, all passing.",
        ),
        Step::from_text("The calculator is built."),
    ];
    let implement_steps = vec![
        with_file_write(
            register_update_step(&[
                ("R2_NEXT", "Write calc.py"),
                ("R3_PHASE", "implementing"),
                ("R7_STATUS", "Entered"),
            ]),
            "calc.py",
            CALC_SOURCE,
        ),
        with_command(
            register_update_step(&[("R2_NEXT", "Verify")]),
            "python3 -c 'from calc import add; print(add(2,3))'",
        ),
        with_frame_pop(
            register_update_step(&[("R7_STATUS", "Verified: add(2,3)=5")]),
            "Created calc.py with add, divide. Verified: add(2,3)=5.",
        ),
        final_step(),
    ];
    let test_steps = vec![
        with_file_write(register_update_step(&[("R2_NEXT", "Write the tests")]), "test_calc.py", TEST_SOURCE),
        with_command(Step::default(), "python3 test_calc.py"),
        with_frame_pop(Step::default(), "Created test_calc.py with 2 tests. All pass."),
        final_step(),
    ];
    // The server offers its four tools for files and commands only if they are requested.
    play_prepared_session(
        &[("main", main_steps), ("implement-calc", implement_steps), ("write-tests", test_steps)],
        |world| {
            let mut servers = world.read_json(".mcp.json");
            servers["mcpServers"]["plimsoll"]["args"] = json!(["--workspace"]);
            world.write(".mcp.json", &servers.to_string());
        },
        &["--allowedTools", "mcp__plimsoll"],
    )
}

#[test]
fn the_example_trace_runs_as_documented() {
    let played = play_calculator_session();
    assert_eq!(
        played.finished.last_result()["result"],
        "The calculator is built.",
        "{}",
        played.finished.stderr
    );
    let implement_answers = played.tool_results_of("implement-calc");
    assert!(
        implement_answers.iter().any(|answer| answer.contains("exit 0\nstdout:\n5")),
        "{implement_answers:#?}"
    );
    let test_answers = played.tool_results_of("write-tests");
    assert!(test_answers.iter().any(|answer| answer.contains("Cannot divide by zero")), "{test_answers:#?}");
    // Step 5 of the trace: the parent is active again, with the result and its own plan, and decides.
    let fifth_step = played.requests_of("main")[1].full_text();
    for words in [
        "Created calc.py with add, divide. Verified: add(2,3)=5.",
        "R2 NEXT: (empty)",
        "R3 PHASE: returned from: implement-calc",
        "R7 STATUS: Created calc.py with add, divide.",
    ] {
        assert!(fifth_step.contains(words), "{words} in {fifth_step}");
    }
    assert!(!fifth_step.contains("R1 PLAN:"), "its own plan stands in its own call: {fifth_step}");
    let first_test_request = played.requests_of("write-tests")[0].full_text();
    for words in [
        "R0 GOAL: Create test_calc.py",
        "R1 PLAN: 1. ~~Implement calc.py~~ DONE\n 2. Write",
        "R3 PHASE: entering: write-tests",
    ] {
        assert!(first_test_request.contains(words), "{words} in {first_test_request}");
    }
    let memory = played.memory();
    assert_eq!(
        memory["done"],
        "Built calculator module. calc.py: 2 functions. test_calc.py: 2 tests, all passing."
    );
    assert_eq!(memory["registers"]["R0_GOAL"], "Build calc.py + test_calc.py, all tests pass");
    assert!(played.world.exists("calc.py") && played.world.exists("test_calc.py"));
}
