//! The client shows a preview of what a hook says where it is too long: nothing of ours ever is.

use crate::memory_in_requests::harness::{Act, FULL, Stage, alloc, delegate, done, look, note, pop, rewrite};
use plimsoll_domain::memory::{HARD_LIMIT_UTF16_UNITS, Register};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

/// 2 UTF-16 units each: the largest that a register of so many characters can be.
fn wide(count: usize) -> String {
    "🦀".repeat(count)
}

/// Three chunks that fill the heap to its hard limit, but for a few units.
fn fill(stage: &Stage, letter: &str) {
    for name in ["large-1", "large-2", "large-3"] {
        stage.write(&[
            "alloc",
            name,
            &letter.repeat(HARD_LIMIT_UTF16_UNITS / 3 - 5),
            "--description",
            &"d".repeat(80),
        ]);
    }
}

fn heap_units(stage: &Stage) -> usize {
    stage.memory().heap.iter().map(|chunk| chunk.content.encode_utf16().count()).sum()
}

#[test]
fn a_full_heap_is_told_whole_at_the_start_after_a_compaction_and_when_a_session_goes_on() {
    let stage = Stage::new(&[(
        "main",
        vec![
            look(),
            Step::bash("echo full").usage(FULL).into(),
            look(),
            done(),
            // The session goes on, after another has written.
            look(),
            done(),
        ],
    )]);
    fill(&stage, "x");
    for register in Register::ALL {
        stage.write(&["set", register.key(), &wide(register.max_chars())]);
    }
    assert!(heap_units(&stage) > HARD_LIMIT_UTF16_UNITS - 100);
    let first = stage.play("Work.", &[]).result();
    assert_eq!(first["result"], "done");
    stage.write(&["write", "large-2", &"y".repeat(9_000 - 1_100)]);
    let id = first["session_id"].as_str().expect("an id");
    assert_eq!(stage.play("Go on.", &["--resume", id]).result()["result"], "done");
    assert_eq!(stage.model.requests_of(RequestKind::Compaction).len(), 1);
    stage.seen("main", |seen| {
        assert_eq!(seen.len(), 6);
        let wholes = |request: &Request| request.text().matches("(of a frame's blocks").count();
        assert_eq!([0, 1, 2, 3, 4].map(|place| wholes(&seen[place].request)), [1, 1, 1, 1, 2]);
    });
}

#[test]
fn a_frame_gets_a_full_heap_with_its_brief_and_again_after_its_compaction() {
    let push = json!({"name": "large", "objective": "o".repeat(4_000), "context": "c".repeat(10_000),
        "return_spec": "r".repeat(2_000)});
    let agent = json!({"subagent_type": "frame", "description": "large", "prompt": "p"});
    let report = wide(10_000);
    let stage = Stage::new(&[
        (
            "main",
            vec![
                Step::default().tool("mcp__plimsoll__push_frame", push).tool("Agent", agent).into(),
                look(),
                look(),
                done(),
            ],
        ),
        (
            "large",
            vec![
                Step::bash("echo large").usage(870_000).into(),
                Step::bash("echo full").usage(FULL).into(),
                look(),
                pop(&report),
                done(),
            ],
        ),
    ]);
    fill(&stage, "x");
    assert_eq!(stage.play("Work.", &[]).result()["result"], "done");
    let lengths = stage.seen("large", |seen| {
        assert_eq!(seen.iter().filter(|seen| seen.depth.is_some()).count(), 4);
        let whole = |seen: &&&crate::memory_in_requests::harness::Seen| {
            seen.request.text().contains(&"c".repeat(10_000))
        };
        seen.iter().filter(whole).count()
    });
    assert_eq!(lengths, 2, "the context is whole in the brief; after the compaction it is cut to one entry");
    let told = stage.seen("main", |seen| seen[1].request.text().contains(&report));
    assert!(told, "the report is told whole");
}

/// Of a heap within its soft limit every change fits one hook's text. Above it a frame may return with more: two
/// hooks hear of its end.
#[test]
fn a_frame_that_has_written_nearly_two_entries_returns_and_its_parent_knows_them_at_once() {
    let step = Step::default;
    let content = |letter: &str| letter.repeat(8_500);
    let stage = Stage::new(&[
        ("main", vec![note(&[("R1_PLAN", "p")]), delegate("busy"), look(), done()]),
        (
            "busy",
            vec![
                Act::from(alloc(alloc(step(), "a", &content("a")), "b", "short")),
                rewrite(step(), "b", &content("b")).into(),
                note(&[("R6_OPEN_QUESTIONS", &"q".repeat(600))]),
                pop(&"r".repeat(300)),
                done(),
            ],
        ),
    ]);
    assert_eq!(stage.play("Work.", &[]).result()["result"], "done");
}

/// What is more than one hook may say comes in whole pieces with the next events, and the first says so.
#[test]
fn what_another_writes_in_a_moment_beyond_one_entry_is_announced_and_comes_piece_by_piece() {
    let content = |letter: &str| letter.repeat(7_000);
    let stage = Stage::new(&[(
        "main",
        vec![
            look()
                .meanwhile(&["alloc", "a", &content("a")])
                .meanwhile(&["alloc", "b", &content("b")])
                .meanwhile(&["alloc", "c", &content("c")]),
            look(),
            look(),
            done(),
        ],
    )]);
    stage.client("Work.", &[]).run().expect_success();
    stage.seen("main", |seen| {
        let has = |place: usize| {
            let text = seen[place].request.text();
            ["a", "b", "c"].map(|letter| text.contains(&content(letter)))
        };
        assert_eq!([0, 1, 2, 3].map(has), [[false; 3], [true, false, false], [true, true, false], [true; 3]]);
        let announced =
            |place: usize| seen[place].request.text().matches("the rest comes with your next calls").count();
        assert_eq!([0, 1, 2, 3].map(announced), [0, 1, 2, 2]);
        assert!(!seen[3].request.text().contains("<persisted-output>"));
    });
}
