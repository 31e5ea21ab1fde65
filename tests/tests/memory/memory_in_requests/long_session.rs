//! A long session: own writes, frames, another writer, and compactions.

use crate::frames::harness::registers;
use crate::memory_in_requests::harness::{
    Act, FULL, Stage, alloc, begin, delegate, done, free, look, note, pop, push, rewrite,
};
use crate::memory_in_requests::token_budget::Budget;
use plimsoll_testkit::scripted_model::{RequestKind, Step};

/// All eight registers, each with these words.
fn all(words: &str) -> Act {
    let keys = [
        "R0_GOAL",
        "R1_PLAN",
        "R2_NEXT",
        "R3_PHASE",
        "R4_CONSTRAINTS",
        "R5_ASSUMPTIONS",
        "R6_OPEN_QUESTIONS",
        "R7_STATUS",
    ];
    let values = keys.map(|key| (key, format!("{words} of {key}\n  with a second line")));
    note(&values.each_ref().map(|(key, text)| (*key, text.as_str())))
}

fn full() -> Act {
    Step::bash("echo a window that is full").usage(FULL).into()
}

fn main_part() -> Vec<Act> {
    let (step, long) = (Step::default, "p".repeat(990) + "END");
    let first = vec![
        look(),
        all("first"),
        note(&[("R1_PLAN", &long), ("R2_NEXT", "cut by its limit")]).meanwhile(&[
            "set",
            "R4",
            "keep the API",
        ]),
        alloc(step(), "spec", "add(a, b)\nsub(a, b)").into(),
        // Both write the same: what was written last is true, whoever wrote it.
        note(&[("R4_CONSTRAINTS", "my own word")]).meanwhile(&["set", "R4", "a word before it"]),
        rewrite(step(), "spec", "add(a, b) only").into(),
        Act::from(registers(alloc(step(), "notes", "one"), &[("R7_STATUS", "")]))
            .meanwhile(&["set", "R2", ""]),
        look().meanwhile(&["write", "notes", "two, by another"]).meanwhile(&["alloc", "hint", "look left"]),
        free(rewrite(step(), "notes", "three, my own"), "spec").into(),
        look().meanwhile(&["free", "hint"]).meanwhile(&["set", "R6", "who?"]),
        alloc(free(step(), "notes"), "notes", "four, anew").into(),
        full().meanwhile(&["set", "R5", "written before the compaction"]),
        look(),
        note(&[("R2_NEXT", "after it")]).meanwhile(&["set", "R3", "testing"]),
    ];
    let frames = vec![
        delegate("one"),
        note(&[("R1_PLAN", "the rest"), ("R2_NEXT", "look")]),
        // Pushed and taken back: the merge has written what the model did not.
        push(step(), "never").into(),
        look(),
        pop("not needed").meanwhile(&["set", "R5", "into the frame that waits"]),
        look(),
        // Pushed and started one after the other, and a subagent that does not return.
        push(step(), "two").into(),
        begin(step(), "two").into(),
        look(),
        full(),
        look().meanwhile(&["alloc", "late", "after the second compaction"]),
        Act::from(Step::default().tool("mcp__plimsoll__memory_show", serde_json::json!({})))
            .meanwhile(&["set", "R0", "new goal"]),
    ];
    // So many that the registers are told again without any change.
    let calm = vec![look(); 26];
    [first, frames, calm, vec![note(&[("R7_STATUS", "at the end")]), done()]].concat()
}

fn parts() -> Vec<(&'static str, Vec<Act>)> {
    let step = Step::default;
    vec![
        ("main", main_part()),
        (
            "one",
            vec![
                note(&[("R1_PLAN", "of one"), ("R5_ASSUMPTIONS", "of one")]).meanwhile(&[
                    "set",
                    "R4",
                    "said to one",
                ]),
                Act::from(rewrite(step(), "notes", "five, by one")).meanwhile(&["alloc", "x", "for one"]),
                delegate("deep"),
                Act::from(Step::bash("echo one goes on").usage(870_000)).meanwhile(&["write", "x", "again"]),
                full().meanwhile(&["set", "R7", "just before one is compacted"]),
                note(&[("R6_OPEN_QUESTIONS", "asked by one")]).meanwhile(&["free", "x"]),
                look(),
                pop("one is done").meanwhile(&["set", "R2", "too late for one"]),
                done(),
            ],
        ),
        (
            "deep",
            vec![
                alloc(step(), "found", "by deep").into(),
                note(&[("R7_STATUS", "deep at work")]).meanwhile(&["set", "R1", "plan for deep"]),
                pop("deep is done"),
                done(),
            ],
        ),
        (
            "two",
            vec![
                note(&[("R7_STATUS", "two at work")]),
                Act::from(Step::text("I stop here.")).meanwhile(&["set", "R6", "while two stops"]),
                Step::text("I have stopped.").into(),
            ],
        ),
    ]
}

#[test]
fn in_every_request_of_a_long_session_its_reader_knows_the_memory_as_it_stands() {
    let stage = Stage::new(&parts());
    let finished = stage.play("Work.", &[]);
    assert_eq!(finished.result()["result"], "done", "{}", finished.stderr);
    let (calls, known, conversations) = stage.seen("", |seen| {
        let known = seen.iter().filter(|seen| seen.depth.is_some()).count();
        (seen.len(), known, ["main", "one", "deep", "two"].map(|who| seen.iter().any(|seen| seen.who == who)))
    });
    assert!(calls >= 60 && known + 4 >= calls, "{known} of {calls} were held against the store");
    assert_eq!(conversations, [true; 4]);
    let summarized = stage.model.requests_of(RequestKind::Compaction);
    let frames = summarized.iter().filter(|request| request.text().contains("You work in the frame")).count();
    assert_eq!((summarized.len(), frames), (3, 1), "two compactions of the session, one in a frame");
    let memory = stage.memory();
    assert_eq!((memory.depth(), memory.heap.len()), (0, 3), "{memory:?}");
    Budget::of(&stage).assert_and_print();
}
