//! What a child knows, and what of it comes back.

use crate::frames::harness::{delegate, done, note, play, pop, push, registers};
use plimsoll_flows::turns::LoggedRecord;
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::Step;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn a_child_begins_clean_and_only_what_it_reports_comes_back() {
    let alloc = json!({"name": "api-spec", "content": "add(a,b)", "description": "the functions"});
    let played = play(&[
        (
            "main",
            vec![
                Step::bash("echo PARENTS-SECRET"),
                registers(
                    Step::default(),
                    &[
                        ("R0_GOAL", "Build calc"),
                        ("R1_PLAN", "1. calc 2. tests"),
                        ("R4_CONSTRAINTS", "no network"),
                    ],
                )
                .tool("mcp__plimsoll__heap_alloc", alloc),
                delegate("calc").say("PARENTS-WORDS before the child"),
                note(&[("R2_NEXT", "push the tests")]),
                Step::text("All is done."),
            ],
        ),
        (
            "calc",
            vec![
                registers(
                    Step::bash("echo CHILDS-SECRET"),
                    &[("R7_STATUS", "wrote calc.py"), ("R6_OPEN_QUESTIONS", "Division by zero?")],
                )
                .say("CHILDS-WORDS"),
                registers(Step::default(), &[("R5_ASSUMPTIONS", "python3 is there")])
                    .tool("mcp__plimsoll__heap_write", json!({"name": "api-spec", "content": "add, sub"})),
                pop("Created calc.py; 3 of 3 checks pass."),
                Step::text("CHILDS-LAST-WORDS"),
            ],
        ),
    ]);
    assert_eq!(played.finished.result()["result"], "All is done.", "{}", played.finished.stderr);

    let child = played.of("calc");
    for (number, request) in child.iter().enumerate() {
        let text = request.text();
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
    let parent = played.last_of("main").text();
    for words in ["CHILDS-SECRET", "CHILDS-WORDS", "CHILDS-LAST-WORDS", "Bash</tools-used"] {
        assert!(!parent.contains(words), "{words} of the child in the parent's conversation");
    }
    for words in [
        "The frame \"calc\" has returned:",
        "Created calc.py; 3 of 3 checks pass.",
        "R5_ASSUMPTIONS of the child differs from yours, and is not merged",
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
fn every_write_is_told_apart_by_the_frame_that_made_it() {
    let played = play(&[
        (
            "main",
            vec![
                note(&[("R1_PLAN", "one, two")]),
                delegate("one"),
                note(&[("R1_PLAN", "two")]),
                delegate("two"),
                note(&[("R1_PLAN", "nothing")]),
                done(),
            ],
        ),
        ("one", vec![note(&[("R2_NEXT", "by one")]), note(&[("R7_STATUS", "by one")]), pop("one"), done()]),
        (
            "two",
            vec![
                note(&[("R2_NEXT", "by two")]),
                delegate("deep"),
                note(&[("R7_STATUS", "by two")]),
                pop("two"),
                done(),
            ],
        ),
        ("deep", vec![note(&[("R2_NEXT", "by deep")]), pop("deep"), done()]),
    ]);
    let history = played.history();
    let told: Vec<(&str, &str)> = history
        .iter()
        .filter(|change| change["change"]["op"] == "update_registers")
        .map(|change| {
            let values = change["change"]["values"].as_object().expect("values");
            let text = values.values().next().and_then(Value::as_str).unwrap_or_default();
            (change["frame"].as_str().unwrap_or("?"), text)
        })
        .collect();
    assert_eq!(
        told,
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
    // The client's own transcripts say who made each call.
    let streams = streams_of_calls(&played.world.project());
    for change in history.iter().filter(|change| change["by"] == "mcp") {
        let Some(call) = change["call"].as_str() else { continue };
        let stream = streams.get(call).unwrap_or_else(|| panic!("the call {call} is in no turn"));
        let agent = change["agent"].as_str().unwrap_or("main");
        assert_eq!(stream, agent, "{change}");
    }
    assert!(streams.values().collect::<std::collections::BTreeSet<_>>().len() == 4);
}

/// Of each call the stream of the turn that made it.
fn streams_of_calls(project: &Path) -> BTreeMap<String, String> {
    let turns = turns(project);
    let calls = turns.iter().filter_map(|recorded| {
        let stream = &recorded.header.stream;
        Some(recorded.turn()?.tool_calls().iter().map(move |call| (call.id().to_owned(), stream.clone())))
    });
    calls.flatten().collect()
}

/// The turn log of the project's one session.
fn turns(project: &Path) -> Vec<LoggedRecord> {
    let project = Project::with_local_files(project);
    let session = &plimsoll_store::sessions::sessions_with_record(&project)[0];
    let log = TurnLog::for_session(&project, session).expect("a plain id");
    let lines = log.forward_lines().expect("a log").map(|line| line.expect("a line"));
    lines
        .filter_map(|line| plimsoll_flows::turns::decode_record(&log, &line))
        .filter(LoggedRecord::is_turn_record)
        .collect()
}

#[test]
fn each_turn_keeps_the_memory_of_its_close_and_a_chunk_lies_beside_the_log_once() {
    let alloc = json!({"name": "api-spec", "content": "add(a,b)", "description": "the functions"});
    let played = play(&[
        (
            "main",
            vec![
                note(&[("R1_PLAN", "one")]).tool("mcp__plimsoll__heap_alloc", alloc),
                delegate("calc"),
                note(&[("R1_PLAN", "two")]),
                done(),
            ],
        ),
        ("calc", vec![note(&[("R7_STATUS", "in the child")]), pop("calc is done"), done()]),
    ]);
    let project = played.world.project();
    let kept = |recorded: &LoggedRecord| recorded.turn().map(|turn| turn.memory().clone()).expect("a turn");
    let turns = turns(&project);
    let of =
        |is_main: bool| turns.iter().filter(move |turn| (turn.header.stream == "main") == is_main).map(kept);
    let main: Vec<_> = of(true).collect();
    let child: Vec<_> = of(false).collect();
    assert_eq!((main.len(), child.len()), (4, 3));
    assert_eq!(main[0]["registers"], json!({"R1_PLAN": "one"}));
    assert!(main.iter().all(|memory| memory["heap"] == json!({"api-spec": "add(a,b)"})), "{main:?}");
    assert_eq!((&main[1]["frame"], &main[1]["depth"]), (&json!(""), &json!(0)), "after the pop");
    assert_eq!(main[2]["registers"]["R1_PLAN"], "two");
    assert_eq!((&child[0]["frame"], &child[0]["depth"]), (&json!("calc"), &json!(1)));
    assert_eq!(child[0]["registers"]["R7_STATUS"], "in the child");
    let bytes = std::fs::read_dir(project.join(".claude/plimsoll/turns")).expect("logs").flatten();
    let log = bytes.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let log = std::fs::read_to_string(log.expect("a log")).expect("text");
    let spelled = log.lines().filter(|line| line.contains("\"heap\":{\"api-spec\":{\"$blob\""));
    assert_eq!(spelled.count(), 7, "by reference in each of the turns");
}

#[test]
fn a_frame_that_nobody_started_is_taken_back_or_given_up_with_the_turn() {
    let played = play(&[(
        "main",
        vec![
            note(&[("R1_PLAN", "p")]),
            push(Step::default(), "calc"),
            note(&[("R2_NEXT", "too early")]),
            pop("not needed after all"),
            note(&[("R2_NEXT", "on")]),
            push(Step::default(), "again"),
            done(),
        ],
    )]);
    let answers = played.answers("main");
    assert!(
        answers[2].contains("start it with Agent(subagent_type \"frame\", description \"calc\")"),
        "{answers:?}"
    );
    assert!(answers[3].starts_with("ok r"), "{answers:?}");
    let memory = played.memory();
    assert_eq!((&memory["depth"], &memory["registers"]["R3_PHASE"]), (&json!(0), &json!("abandoned: again")));
}
