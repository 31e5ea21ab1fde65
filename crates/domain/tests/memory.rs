//! The working memory: limits, the tables of push and pop byte for byte, and laws that hold for any sequence of
//! changes.

use plimsoll_domain::memory::{
    CHUNK_UNITS, Closing, DEEPEST, HARD_LIMIT, Memory, Op, Owner, Pressure, Register, SOFT_LIMIT, Values,
    render,
};
use proptest::prelude::*;

fn update(values: &[(Register, &str)]) -> Op {
    let values: Values = values.iter().map(|(register, text)| (*register, (*text).to_owned())).collect();
    Op::UpdateRegisters { values, strict: false, everywhere: false }
}

fn push(name: &str, objective: &str) -> Op {
    Op::PushFrame {
        name: name.into(),
        objective: objective.into(),
        context: "c".into(),
        return_spec: "r".into(),
        call: None,
    }
}

fn pop(result: &str) -> Op {
    Op::PopFrame { result: result.into() }
}

fn alloc(name: &str, content: &str) -> Op {
    Op::HeapAlloc { name: name.into(), content: content.into(), description: String::new() }
}

fn registers(memory: &Memory) -> [&str; 8] {
    Register::ALL.map(|register| memory.register(register))
}

/// A memory whose eight registers are `0` to `7` with a word.
fn written(word: &str) -> Memory {
    let mut memory = Memory::default();
    let values = Register::ALL.map(|register| (register, format!("{word}{}", register.index())));
    let values: Vec<(Register, &str)> =
        values.iter().map(|(register, text)| (*register, text.as_str())).collect();
    assert!(memory.apply(&update(&values)).is_ok());
    memory
}

#[test]
fn a_push_gives_the_child_what_the_table_says() {
    let mut memory = written("p");
    memory.apply(&push("implement-calc", "Create calc.py")).unwrap();
    assert_eq!(
        registers(&memory),
        [
            "Create calc.py",
            "p1",
            "",
            "entering: implement-calc",
            "p4",
            "p5",
            "p6",
            "Entered sub-frame. Starting."
        ]
    );
    assert_eq!((memory.depth(), memory.top().context.as_str()), (1, "c"));
}

#[test]
fn a_pop_gives_the_parent_what_the_table_says_and_names_what_it_did_not_merge() {
    let mut memory = written("p");
    memory.apply(&push("tests", "Write tests")).unwrap();
    memory
        .apply(&update(&[
            (Register::Constraints, "c4"),
            (Register::OpenQuestions, "c6"),
            (Register::Plan, "c1"),
        ]))
        .unwrap();
    let report = memory.apply(&pop(&"x".repeat(400))).unwrap();
    let status = "x".repeat(300);
    assert_eq!(
        registers(&memory),
        ["p0", "p1", "", "returned from: tests", "p4", "p5", "c6", status.as_str()]
    );
    assert_eq!(
        report.notes,
        [
            "R4_CONSTRAINTS of the child differs from yours, and is not merged",
            "R6_OPEN_QUESTIONS replaced (was 2 chars)"
        ]
    );
}

#[test]
fn five_frames_lie_on_the_root_and_a_sixth_is_refused() {
    let mut memory = written("p");
    for depth in 1..=DEEPEST {
        memory.apply(&push(&format!("f{depth}"), "o")).unwrap();
    }
    let before = memory.clone();
    let refusal = memory.apply(&push("f6", "o")).unwrap_err().to_string();
    assert!(refusal.contains("the stack is full: 5 frames"), "{refusal}");
    assert_eq!(memory, before);
}

#[test]
fn a_long_objective_stands_whole_in_the_frame_and_short_in_r0() {
    let mut memory = Memory::default();
    let objective = "o".repeat(241);
    memory.apply(&push("f", &objective)).unwrap();
    assert_eq!(memory.top().objective, objective);
    assert_eq!(memory.register(Register::Goal), format!("{}…", "o".repeat(239)));
    let mut memory = Memory::default();
    memory.apply(&push("f", &"o".repeat(240))).unwrap();
    assert_eq!(memory.register(Register::Goal), "o".repeat(240));
}

#[test]
fn names_of_frames_fit_r3() {
    let mut memory = Memory::default();
    assert!(memory.apply(&push(&"n".repeat(46), "o")).is_err());
    assert!(memory.apply(&push("", "o")).is_err() && memory.apply(&push("a\nb", "o")).is_err());
    memory.apply(&push(&"n".repeat(45), "o")).unwrap();
    memory.apply(&pop("done")).unwrap();
    assert_eq!(memory.register(Register::Phase), format!("returned from: {}", "n".repeat(45)));
}

#[test]
fn what_is_too_long_is_cut_and_said_or_refused_if_asked() {
    let mut memory = Memory::default();
    let long = "é".repeat(61);
    let report = memory.apply(&update(&[(Register::Phase, &long)])).unwrap();
    let cut = &report.cut[0];
    assert_eq!(
        (cut.register.as_str(), cut.limit, cut.given, cut.kept, cut.dropped),
        ("R3_PHASE", 60, 61, 60, 1)
    );
    let strict = Op::UpdateRegisters {
        values: Values::from([(Register::Phase, long)]),
        strict: true,
        everywhere: false,
    };
    let before = memory.clone();
    assert!(
        memory.apply(&strict).unwrap_err().to_string().contains("at most 60 characters, and 61 were given")
    );
    assert_eq!(memory, before);
}

#[test]
fn a_frame_is_started_once_entered_once_and_remembered_when_it_returns() {
    let mut memory = written("p");
    let start = |call: &str| Op::StartFrame { call: call.into(), owner: Owner::default() };
    let enter = |agent: &str| Op::EnterFrame { agent: agent.into() };
    assert!(
        memory.apply(&start("c1")).is_err() && memory.apply(&enter("a1")).is_err(),
        "the root is nobody's"
    );
    memory.apply(&push("f", "o")).unwrap();
    assert!(memory.is_waiting());
    memory.apply(&start("c1")).unwrap();
    assert!(!memory.is_waiting() && memory.apply(&start("c2")).is_err());
    memory.apply(&enter("a1")).unwrap();
    assert!(memory.apply(&enter("a2")).is_err());
    assert_eq!([None, Some("a1"), Some("a2")].map(|agent| memory.depth_of(agent)), [Some(0), Some(1), None]);
    memory.apply(&pop("all is well")).unwrap();
    let returned = memory.returned.clone().unwrap();
    assert_eq!(
        (returned.name.as_str(), returned.call.as_deref(), returned.agent.as_deref(), returned.how),
        ("f", Some("c1"), Some("a1"), None)
    );
    assert_eq!((returned.result.as_str(), memory.depth_of(Some("a1"))), ("all is well", None));
}

#[test]
fn a_run_begins_with_a_root_of_its_own_and_the_heap_stays() {
    let mut memory = written("p");
    memory.apply(&alloc("api", "x")).unwrap();
    memory.apply(&push("f", "o")).unwrap();
    memory.apply(&pop("r")).unwrap();
    memory.apply(&pop("done")).unwrap();
    memory.apply(&Op::BeginRun { objective: "Mend the parser".into() }).unwrap();
    assert_eq!(registers(&memory), ["Mend the parser", "", "", "", "", "", "", ""]);
    assert_eq!((memory.done.is_none(), memory.depth(), memory.heap.len()), (true, 0, 1));
    assert_eq!(memory.top().objective, "Mend the parser");
}

#[test]
fn a_child_that_dies_hands_over_its_status_questions_and_plan() {
    let mut memory = written("p");
    let dead = || Op::CloseFrame { how: Closing::Abandoned, words: String::new() };
    memory.apply(&push("nobody", "o")).unwrap();
    memory.apply(&dead()).unwrap();
    assert_eq!(registers(&memory), ["p0", "p1", "p2", "abandoned: nobody", "p4", "p5", "p6", "p7"]);
    memory.apply(&push("f", "o")).unwrap();
    memory.apply(&Op::StartFrame { call: "c".into(), owner: Owner::default() }).unwrap();
    memory.apply(&Op::EnterFrame { agent: "a".into() }).unwrap();
    let left = [
        (Register::Plan, "c1"),
        (Register::OpenQuestions, "c6"),
        (Register::Status, "c7"),
        (Register::Assumptions, "c5"),
    ];
    memory.apply(&update(&left)).unwrap();
    memory.apply(&dead()).unwrap();
    assert_eq!(registers(&memory), ["p0", "c1", "", "abandoned: f", "p4", "p5", "c6", "c7"]);
    let root = Op::CloseFrame { how: Closing::Unpopped, words: String::new() };
    assert!(memory.apply(&root).is_err(), "the root is closed by its own pop alone");
}

#[test]
fn the_root_pops_once_and_nothing_is_written_until_a_person_speaks() {
    let mut memory = written("p");
    memory.apply(&pop("all done")).unwrap();
    assert_eq!(memory.done.as_deref(), Some("all done"));
    assert!(memory.apply(&update(&[(Register::Next, "more")])).is_err());
    memory.apply(&Op::Reopen).unwrap();
    memory.apply(&update(&[(Register::Next, "more")])).unwrap();
    assert_eq!(registers(&memory)[1], "p1", "nothing of it is lost");
}

#[test]
fn the_heap_keeps_account_ages_and_its_limits() {
    let mut memory = Memory::default();
    memory.apply(&alloc("api-spec", &"a".repeat(5_600))).unwrap();
    for _ in 0..4 {
        memory.apply(&Op::Step).unwrap();
    }
    let report =
        memory.apply(&Op::HeapWrite { name: "api-spec".into(), content: "b".repeat(8_001) }).unwrap();
    assert_eq!(report.pressure, Some(Pressure::Over), "it succeeds and says so");
    let chunk = memory.chunk("api-spec").unwrap();
    assert_eq!((chunk.allocated, chunk.updated, chunk.size()), (0, 4, 8_001));
    memory.apply(&alloc("two", &"c".repeat(9_000))).unwrap();
    let before = memory.clone();
    let full = memory.apply(&alloc("three", &"d".repeat(HARD_LIMIT - 17_001 + 1))).unwrap_err().to_string();
    assert!(full.contains("takes at most 24000: free chunks first"), "{full}");
    let long = memory.apply(&alloc("long", &"😀".repeat(CHUNK_UNITS / 2 + 1))).unwrap_err().to_string();
    assert!(long.contains("UTF-16 units"), "{long}");
    for (op, words) in [
        (alloc("two", "x"), "already exists: rewrite it with heap_write"),
        (
            Op::HeapWrite { name: "four".into(), content: String::new() },
            "there is no chunk four: there are api-spec, two",
        ),
        (Op::HeapFree { name: "four".into() }, "there is no chunk four"),
        (alloc("a b", "x"), "1 to 40 letters"),
        (alloc("<x>", "x"), "1 to 40 letters"),
        (alloc("", "x"), "1 to 40 letters"),
    ] {
        let refusal = memory.apply(&op).unwrap_err().to_string();
        assert!(refusal.contains(words), "{words} in {refusal}");
    }
    assert_eq!(memory, before, "a refusal changes nothing");
    memory.apply(&Op::HeapFree { name: "two".into() }).unwrap();
    assert_eq!(memory.freed, [("two".to_owned(), memory.rev)]);
    assert_eq!(SOFT_LIMIT * 3, HARD_LIMIT);
}

#[test]
fn registers_of_every_step_grow_stale_after_three() {
    let mut memory = written("p");
    let step = |memory: &mut Memory| memory.apply(&Op::Step).map(|_| ()).unwrap();
    step(&mut memory);
    step(&mut memory);
    assert_eq!(memory.stale(), []);
    step(&mut memory);
    assert_eq!(memory.stale(), [Register::Next, Register::Status]);
    memory.apply(&update(&[(Register::Next, "n")])).unwrap();
    assert_eq!(memory.stale(), [Register::Status]);
}

fn any_op() -> impl Strategy<Value = Op> {
    let register = || prop::sample::select(Register::ALL.to_vec());
    let name = || "[a-c]{1,2}";
    prop_oneof![
        (prop::collection::btree_map(register(), ".{0,400}", 0..4), any::<bool>(), any::<bool>())
            .prop_map(|(values, strict, everywhere)| Op::UpdateRegisters { values, strict, everywhere }),
        (".{0,50}", ".{0,300}").prop_map(|(name, objective)| push(&name, &objective)),
        ".{0,400}".prop_map(|result| pop(&result)),
        (any::<bool>(), ".{0,40}").prop_map(|(is_dead, words)| Op::CloseFrame {
            how: if is_dead { Closing::Abandoned } else { Closing::Unpopped },
            words,
        }),
        (name(), ".{0,3000}").prop_map(|(name, content)| alloc(&name, &content)),
        (name(), ".{0,3000}").prop_map(|(name, content)| Op::HeapWrite { name, content }),
        name().prop_map(|name| Op::HeapFree { name }),
        Just(Op::Step),
        Just(Op::Reopen),
        "[a-z]{4}".prop_map(|agent| Op::EnterFrame { agent }),
        "[a-z]{4}".prop_map(|call| Op::StartFrame { call, owner: Owner::default() }),
        ".{0,300}".prop_map(|objective| Op::BeginRun { objective }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_was_accepted_folds_to_the_live_state_and_a_refusal_changes_nothing(ops in prop::collection::vec(any_op(), 0..40)) {
        let mut live = Memory::default();
        let mut accepted = Vec::new();
        for op in &ops {
            let before = live.clone();
            match live.apply(op) {
                Ok(report) => {
                    prop_assert_eq!(report.rev, live.rev);
                    prop_assert!(live.rev >= before.rev);
                    accepted.push(op.clone());
                }
                Err(refusal) => {
                    prop_assert_eq!(&live, &before);
                    prop_assert!(!refusal.to_string().is_empty());
                }
            }
            prop_assert!(live.depth() <= DEEPEST);
            prop_assert!(live.heap_size() <= HARD_LIMIT);
            for frame in &live.frames {
                for register in Register::ALL {
                    prop_assert!(frame.registers[register.index()].text.chars().count() <= register.limit());
                }
            }
            let counted: usize = live.heap.iter().map(|chunk| chunk.content.chars().count()).sum();
            prop_assert_eq!(live.heap_size(), counted);
            let entries = render::entries(&live);
            prop_assert!(entries.len() <= render::ENTRIES);
            prop_assert!(entries.iter().all(|entry| entry.encode_utf16().count() <= render::ENTRY_UNITS));
            prop_assert!(render::overview(&live, live.depth()).encode_utf16().count() <= render::ENTRY_UNITS);
        }
        let mut since = 0;
        while since < live.rev {
            let delta = render::delta(&live, live.depth(), since, &[]);
            prop_assert!(delta.shown_to > since);
            prop_assert!(delta.text.is_none_or(|text| text.encode_utf16().count() <= render::ENTRY_UNITS));
            since = delta.shown_to;
        }
        prop_assert_eq!(&Memory::fold(&accepted), &live);
        let text = serde_json::to_string(&accepted).unwrap();
        let read: Vec<Op> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&Memory::fold(&read), &live);
        let snapshot: Memory = serde_json::from_str(&serde_json::to_string(&live).unwrap()).unwrap();
        prop_assert_eq!(&snapshot, &live);
    }

    #[test]
    fn any_text_in_any_register_is_a_beginning_of_what_was_given(register in prop::sample::select(Register::ALL.to_vec()), text in ".{0,1200}") {
        let mut memory = Memory::default();
        let report = memory.apply(&update(&[(register, &text)])).unwrap();
        let kept = memory.register(register);
        prop_assert!(text.starts_with(kept));
        prop_assert_eq!(report.cut.is_empty(), kept == text);
        // A letter of several characters may not fit whole; no more than that is left out.
        prop_assert!(kept == text || kept.chars().count() + 40 > register.limit());
    }

    #[test]
    fn as_many_pops_as_pushes_leave_the_parents_own_registers(depth in 1usize..=DEEPEST, text in "[a-z]{1,60}") {
        let mut memory = written(&text[..1]);
        let before = memory.clone();
        for number in 0..depth {
            memory.apply(&push(&format!("f{number}"), &text)).unwrap();
            memory.apply(&update(&[(Register::Plan, &text), (Register::Constraints, &text), (Register::Assumptions, &text)])).unwrap();
        }
        for _ in 0..depth {
            memory.apply(&pop(&text)).unwrap();
        }
        prop_assert_eq!(memory.depth(), 0);
        for register in [Register::Goal, Register::Plan, Register::Constraints, Register::Assumptions] {
            prop_assert_eq!(memory.register(register), before.register(register));
        }
        prop_assert_eq!(memory.register(Register::Next), "");
        prop_assert_eq!(memory.register(Register::Phase), "returned from: f0");
    }
}
