//! What a child frame knows, and what of it the parent receives.

use crate::frames::harness::{
    final_step, play_session, pop_frame_step, push_and_start_step, register_update_step, with_frame_push,
    with_register_update,
};
use plimsoll_flows::turns::LoggedRecord;
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::Step;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn a_child_starts_clean_and_returns_only_its_report() {
    let alloc_input = json!({"name": "api-spec", "content": "add(a,b)", "description": "the functions"});
    let played = play_session(&[
        (
            "main",
            vec![
                Step::bash_call("echo PARENTS-SECRET"),
                with_register_update(
                    Step::default(),
                    &[
                        ("R0_GOAL", "Build calc"),
                        ("R1_PLAN", "1. calc 2. tests"),
                        ("R4_CONSTRAINTS", "no network"),
                    ],
                )
                .with_tool_call("mcp__plimsoll__heap_alloc", alloc_input),
                push_and_start_step("calc").with_text("PARENTS-WORDS before the child"),
                register_update_step(&[("R2_NEXT", "push the tests")]),
                Step::from_text("All is done."),
            ],
        ),
        (
            "calc",
            vec![
                with_register_update(
                    Step::bash_call("echo CHILDS-SECRET"),
                    &[("R7_STATUS", "wrote calc.py"), ("R6_OPEN_QUESTIONS", "Division by zero?")],
                )
                .with_text("CHILDS-WORDS"),
                with_register_update(Step::default(), &[("R5_ASSUMPTIONS", "python3 is there")])
                    .with_tool_call(
                        "mcp__plimsoll__heap_write",
                        json!({"name": "api-spec", "content": "add, sub"}),
                    ),
                pop_frame_step("Created calc.py; 3 of 3 checks pass."),
                Step::from_text("CHILDS-LAST-WORDS"),
            ],
        ),
    ]);
    assert_eq!(played.finished.last_result()["result"], "All is done.", "{}", played.finished.stderr);

    let child = played.requests_of("calc");
    for (number, request) in child.iter().enumerate() {
        let text = request.full_text();
        for words in ["PARENTS-SECRET", "PARENTS-WORDS", "PARENTS-PROMPT"] {
            assert!(!text.contains(words), "{words} in request {number} of the child");
        }
        for words in [
            "OBJECTIVE: Create calc.py. Verify: python3 calc.py",
            "CONTEXT: CONTEXT-OF-calc",
            "RETURN: Report: files, results",
            "R0 GOAL: Create calc.py",
            "R1 PLAN: 1. calc 2. tests",
            "R3 PHASE: entering: calc",
            "R4 CONSTRAINTS: no network",
            "add(a,b)",
        ] {
            assert!(text.contains(words), "{words} in request {number} of the child:\n{text}");
        }
    }
    let parent = played.last_request_of("main").full_text();
    for words in ["CHILDS-SECRET", "CHILDS-WORDS", "CHILDS-LAST-WORDS", "Bash</tools-used"] {
        assert!(!parent.contains(words), "{words} of the child in the parent's conversation");
    }
    for words in [
        "The frame \"calc\" has returned:",
        "Created calc.py; 3 of 3 checks pass.",
        "R5_ASSUMPTIONS of the child differs from yours and was not merged",
        "R3 PHASE: returned from: calc",
        "R6 OPEN_QUESTIONS: Division by zero?",
        "add, sub",
    ] {
        assert!(parent.contains(words), "{words} in the parent's conversation:\n{parent}");
    }
    let memory = played.memory();
    assert_eq!(memory["depth"], 0);
    assert_eq!(memory["registers"]["R7_STATUS"], "Created calc.py; 3 of 3 checks pass.");
    assert_eq!(memory["registers"]["R2_NEXT"], "push the tests");
    assert_eq!(memory["registers"]["R1_PLAN"], "1. calc 2. tests");
    assert_eq!(memory["registers"]["R5_ASSUMPTIONS"], "", "the parent keeps its own");
}

#[test]
fn every_write_records_the_frame_that_made_it() {
    let played = play_session(&[
        (
            "main",
            vec![
                register_update_step(&[("R1_PLAN", "one, two")]),
                push_and_start_step("one"),
                register_update_step(&[("R1_PLAN", "two")]),
                push_and_start_step("two"),
                register_update_step(&[("R1_PLAN", "nothing")]),
                final_step(),
            ],
        ),
        (
            "one",
            vec![
                register_update_step(&[("R2_NEXT", "by one")]),
                register_update_step(&[("R7_STATUS", "by one")]),
                pop_frame_step("one"),
                final_step(),
            ],
        ),
        (
            "two",
            vec![
                register_update_step(&[("R2_NEXT", "by two")]),
                push_and_start_step("deep"),
                register_update_step(&[("R7_STATUS", "by two")]),
                pop_frame_step("two"),
                final_step(),
            ],
        ),
        ("deep", vec![register_update_step(&[("R2_NEXT", "by deep")]), pop_frame_step("deep"), final_step()]),
    ]);
    let history = played.history();
    let frames_and_values: Vec<(&str, &str)> = history
        .iter()
        .filter(|change| change["change"]["op"] == "update_registers")
        .map(|change| {
            let values = change["change"]["values"].as_object().expect("values");
            let text = values.values().next().and_then(Value::as_str).unwrap_or_default();
            (change["frame"].as_str().unwrap_or("?"), text)
        })
        .collect();
    assert_eq!(
        frames_and_values,
        [
            ("", "one, two"),
            ("one", "by one"),
            ("one", "by one"),
            ("", "two"),
            ("two", "by two"),
            ("deep", "by deep"),
            ("two", "by two"),
            ("", "nothing"),
        ]
    );
    // The client's own transcripts show who made each call.
    let streams = streams_of_calls(&played.world.project());
    for change in history.iter().filter(|change| change["by"] == "mcp") {
        let Some(call) = change["call"].as_str() else { continue };
        let stream = streams.get(call).unwrap_or_else(|| panic!("the call {call} is in no turn"));
        let agent = change["agent"].as_str().unwrap_or("main");
        assert_eq!(stream, agent, "{change}");
    }
    assert!(streams.values().collect::<std::collections::BTreeSet<_>>().len() == 4);
}

/// Returns for each call the stream of the turn that made it.
fn streams_of_calls(project: &Path) -> BTreeMap<String, String> {
    let turns = logged_turns(project);
    let calls = turns.iter().filter_map(|recorded| {
        let stream = &recorded.header.stream;
        Some(recorded.turn()?.tool_calls().iter().map(move |call| (call.id().to_owned(), stream.clone())))
    });
    calls.flatten().collect()
}

/// Reads the turns of the project's one session from its log.
fn logged_turns(project: &Path) -> Vec<LoggedRecord> {
    let project = Project::with_local_files(project);
    let session = &plimsoll_store::sessions::sessions_with_record(&project)[0];
    let log = TurnLog::for_session_where_started_or_current(&project, session).expect("a plain id");
    let lines = log.forward_lines().expect("a log").map(|line| line.expect("a line"));
    lines
        .filter_map(|line| plimsoll_flows::turns::decode_record_keeping_error_in_body(&log, &line))
        .filter(LoggedRecord::is_turn_record)
        .collect()
}

#[test]
fn each_turn_stores_its_final_memory_with_chunks_by_reference() {
    let alloc_input = json!({"name": "api-spec", "content": "add(a,b)", "description": "the functions"});
    let played = play_session(&[
        (
            "main",
            vec![
                register_update_step(&[("R1_PLAN", "one")])
                    .with_tool_call("mcp__plimsoll__heap_alloc", alloc_input),
                push_and_start_step("calc"),
                register_update_step(&[("R1_PLAN", "two")]),
                final_step(),
            ],
        ),
        (
            "calc",
            vec![
                register_update_step(&[("R7_STATUS", "in the child")]),
                pop_frame_step("calc is done"),
                final_step(),
            ],
        ),
    ]);
    let project = played.world.project();
    let memory_of_turn =
        |recorded: &LoggedRecord| recorded.turn().map(|turn| turn.memory().clone()).expect("a turn");
    let turns = logged_turns(&project);
    let memories_of_stream = |is_main: bool| {
        turns.iter().filter(move |turn| (turn.header.stream == "main") == is_main).map(memory_of_turn)
    };
    let main: Vec<_> = memories_of_stream(true).collect();
    let child: Vec<_> = memories_of_stream(false).collect();
    assert_eq!((main.len(), child.len()), (4, 3));
    assert_eq!(main[0]["registers"], json!({"R1_PLAN": "one"}));
    assert!(main.iter().all(|memory| memory["heap"] == json!({"api-spec": "add(a,b)"})), "{main:?}");
    assert_eq!((&main[1]["frame"], &main[1]["depth"]), (&json!(""), &json!(0)), "after the pop");
    assert_eq!(main[2]["registers"]["R1_PLAN"], "two");
    assert_eq!((&child[0]["frame"], &child[0]["depth"]), (&json!("calc"), &json!(1)));
    assert_eq!(child[0]["registers"]["R7_STATUS"], "in the child");
    let entries = std::fs::read_dir(project.join(".claude/plimsoll/turns")).expect("logs").flatten();
    let log_path =
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let log_text = std::fs::read_to_string(log_path.expect("a log")).expect("text");
    let lines_with_reference =
        log_text.lines().filter(|line| line.contains("\"heap\":{\"api-spec\":{\"$blob\""));
    assert_eq!(lines_with_reference.count(), 7, "by reference in each of the turns");
}

#[test]
fn an_unstarted_frame_can_be_withdrawn_or_is_dropped_with_the_turn() {
    let played = play_session(&[(
        "main",
        vec![
            register_update_step(&[("R1_PLAN", "p")]),
            with_frame_push(Step::default(), "calc"),
            register_update_step(&[("R2_NEXT", "too early")]),
            pop_frame_step("not needed after all"),
            register_update_step(&[("R2_NEXT", "on")]),
            with_frame_push(Step::default(), "again"),
            final_step(),
        ],
    )]);
    let answers = played.tool_results_of("main");
    assert!(
        answers[2].contains("start it with Agent(subagent_type \"frame\", description \"calc\")"),
        "{answers:?}"
    );
    assert!(answers[3].starts_with("ok r"), "{answers:?}");
    let memory = played.memory();
    assert_eq!((&memory["depth"], &memory["registers"]["R3_PHASE"]), (&json!(0), &json!("abandoned: again")));
}
