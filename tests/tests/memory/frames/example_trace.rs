//! The example trace of the document that the memory grew from, step by step, with the tools that it names.

use crate::frames::harness::{Played, begin, done, note, play_with};
use plimsoll_testkit::scripted_model::Step;
use serde_json::{Value, json};

fn write(step: Step, path: &str, content: &str) -> Step {
    step.tool("mcp__plimsoll__write_file", json!({"path": path, "content": content}))
}

fn command(step: Step, line: &str) -> Step {
    step.tool("mcp__plimsoll__run_command", json!({"command": line}))
}

fn pop(step: Step, result: &str) -> Step {
    step.tool("mcp__plimsoll__pop_frame", json!({"result": result}))
}

/// Two calls in a step: the registers, and a frame (which takes a third, the client's own).
fn delegate(values: &[(&str, &str)], name: &str, brief: Value) -> Step {
    let mut brief = brief;
    brief["name"] = json!(name);
    begin(note(values).tool("mcp__plimsoll__push_frame", brief), name)
}

const CALC: &str = "def add(a, b):\n    return a + b\n\n\ndef divide(a, b):\n    if b == 0:\n        raise ValueError('Cannot divide by zero')\n    return a / b\n";
const TESTS: &str = "from calc import add, divide\n\nassert add(2, 3) == 5\ntry:\n    divide(1, 0)\nexcept ValueError as error:\n    print(error)\n";

fn build_the_calculator() -> Played {
    let implement = json!({
        "objective": "Create calc.py with add(a,b) and divide(a,b). divide(a,0) must raise ValueError('Cannot divide by zero'). Verify: python3 -c 'from calc import add; print(add(2,3))'",
        "context": "No dependencies needed, pure Python.",
        "return_spec": "Report: file path, functions implemented, verification result",
    });
    let tests = json!({
        "objective": "Create test_calc.py with tests for all functions in calc.py. Run 'python3 test_calc.py' and fix until it passes.",
        "context": "calc.py has: add(a,b), divide(a,b).",
        "return_spec": "Report: number of tests, pass/fail results, any fixes needed",
    });
    let main = vec![
        delegate(
            &[
                ("R0_GOAL", "Build calc.py + test_calc.py, all tests pass"),
                ("R1_PLAN", "1. Implement calc.py\n2. Write test_calc.py\n3. Run tests\n4. Fix failures"),
                ("R2_NEXT", "Push frame to implement calc.py"),
                ("R3_PHASE", "planning"),
                ("R7_STATUS", "Step 0: task received, workspace empty"),
            ],
            "implement-calc",
            implement,
        ),
        delegate(
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
            tests,
        ),
        pop(
            note(&[
                ("R2_NEXT", "Pop from root - task complete"),
                ("R7_STATUS", "All tests pass. Task complete."),
            ]),
            "Built calculator module. calc.py: 2 functions. test_calc.py: 2 tests, all passing.",
        ),
        Step::text("The calculator is built."),
    ];
    let implementing = vec![
        write(
            note(&[("R2_NEXT", "Write calc.py"), ("R3_PHASE", "implementing"), ("R7_STATUS", "Entered")]),
            "calc.py",
            CALC,
        ),
        command(note(&[("R2_NEXT", "Verify")]), "python3 -c 'from calc import add; print(add(2,3))'"),
        pop(
            note(&[("R7_STATUS", "Verified: add(2,3)=5")]),
            "Created calc.py with add, divide. Verified: add(2,3)=5.",
        ),
        done(),
    ];
    let testing = vec![
        write(note(&[("R2_NEXT", "Write the tests")]), "test_calc.py", TESTS),
        command(Step::default(), "python3 test_calc.py"),
        pop(Step::default(), "Created test_calc.py with 2 tests. All pass."),
        done(),
    ];
    // The four tools for files and commands are the server's own, where it is asked for them.
    play_with(
        &[("main", main), ("implement-calc", implementing), ("write-tests", testing)],
        |world| {
            let mut servers = world.json(".mcp.json");
            servers["mcpServers"]["plimsoll"]["args"] = json!(["--workspace"]);
            world.write(".mcp.json", &servers.to_string());
        },
        &["--allowedTools", "mcp__plimsoll"],
    )
}

#[test]
fn the_example_trace_runs_as_it_is_written() {
    let played = build_the_calculator();
    assert_eq!(played.finished.result()["result"], "The calculator is built.", "{}", played.finished.stderr);
    let implementing = played.answers("implement-calc");
    assert!(implementing.iter().any(|answer| answer.contains("exit 0\nstdout:\n5")), "{implementing:#?}");
    let testing = played.answers("write-tests");
    assert!(testing.iter().any(|answer| answer.contains("Cannot divide by zero")), "{testing:#?}");
    // Step 5 of the trace: the parent is back, with the result and its own plan, and decides.
    let fifth = played.of("main")[1].text();
    for words in [
        "Created calc.py with add, divide. Verified: add(2,3)=5.",
        "R2 NEXT: (empty)",
        "R3 PHASE: returned from: implement-calc",
        "R7 STATUS: Created calc.py with add, divide.",
    ] {
        assert!(fifth.contains(words), "{words} in {fifth}");
    }
    assert!(!fifth.contains("R1 PLAN:"), "its own plan stands in its own call: {fifth}");
    let second = played.of("write-tests")[0].text();
    for words in [
        "R0 GOAL: Create test_calc.py",
        "R1 PLAN: 1. ~~Implement calc.py~~ DONE\n 2. Write",
        "R3 PHASE: entering: write-tests",
    ] {
        assert!(second.contains(words), "{words} in {second}");
    }
    let memory = played.memory();
    assert_eq!(
        memory["done"],
        "Built calculator module. calc.py: 2 functions. test_calc.py: 2 tests, all passing."
    );
    assert_eq!(memory["registers"]["R0_GOAL"], "Build calc.py + test_calc.py, all tests pass");
    assert!(played.world.exists("calc.py") && played.world.exists("test_calc.py"));
}
