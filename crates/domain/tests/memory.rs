//! The working memory: limits, the exact registers after push and pop, and invariants of any sequence of operations.

use plimsoll_domain::memory::{
    AbnormalEnd, FrameOwner, HARD_LIMIT_UTF16_UNITS, HeapPressure, MAX_CHUNK_UTF16_UNITS, MAX_FRAME_DEPTH,
    Memory, MemoryOp, Register, RegisterValues, SOFT_LIMIT_CHARS, render,
};
use proptest::prelude::*;

fn update_registers(values: &[(Register, &str)]) -> MemoryOp {
    let values: RegisterValues =
        values.iter().map(|(register, text)| (*register, (*text).to_owned())).collect();
    MemoryOp::UpdateRegisters { values, strict: false, in_all_frames: false }
}

fn push_frame(name: &str, objective: &str) -> MemoryOp {
    MemoryOp::PushFrame {
        name: name.into(),
        objective: objective.into(),
        context: "c".into(),
        return_spec: "r".into(),
        push_call_id: None,
    }
}

fn pop_frame(result: &str) -> MemoryOp {
    MemoryOp::PopFrame { result: result.into() }
}

fn alloc_chunk(name: &str, content: &str) -> MemoryOp {
    MemoryOp::HeapAlloc { name: name.into(), content: content.into(), description: String::new() }
}

fn register_texts(memory: &Memory) -> [&str; 8] {
    Register::ALL.map(|register| memory.register_text(register))
}

/// Returns a memory whose eight registers hold the prefix followed by `0` to `7`.
fn memory_with_registers(prefix: &str) -> Memory {
    let mut memory = Memory::default();
    let values = Register::ALL.map(|register| (register, format!("{prefix}{}", register.index())));
    let values: Vec<(Register, &str)> =
        values.iter().map(|(register, text)| (*register, text.as_str())).collect();
    assert!(memory.apply(&update_registers(&values)).is_ok());
    memory
}

#[test]
fn a_push_sets_the_registers_of_the_child() {
    let mut memory = memory_with_registers("p");
    memory.apply(&push_frame("implement-calc", "Create calc.py")).unwrap();
    assert_eq!(
        register_texts(&memory),
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
    assert_eq!((memory.depth(), memory.current_frame().context.as_str()), (1, "c"));
}

#[test]
fn a_pop_sets_the_registers_of_the_parent_and_reports_what_differs() {
    let mut memory = memory_with_registers("p");
    memory.apply(&push_frame("tests", "Write tests")).unwrap();
    memory
        .apply(&update_registers(&[
            (Register::Constraints, "c4"),
            (Register::OpenQuestions, "c6"),
            (Register::Plan, "c1"),
        ]))
        .unwrap();
    let report = memory.apply(&pop_frame(&"x".repeat(400))).unwrap();
    let status = "x".repeat(300);
    assert_eq!(
        register_texts(&memory),
        ["p0", "p1", "", "returned from: tests", "p4", "p5", "c6", status.as_str()]
    );
    assert_eq!(
        report.notes,
        [
            "R4_CONSTRAINTS of the child differs from yours and was not merged",
            "R6_OPEN_QUESTIONS replaced (was 2 chars)"
        ]
    );
}

#[test]
fn five_frames_fit_on_the_root_and_a_sixth_is_refused() {
    let mut memory = memory_with_registers("p");
    for depth in 1..=MAX_FRAME_DEPTH {
        memory.apply(&push_frame(&format!("f{depth}"), "o")).unwrap();
    }
    let before = memory.clone();
    let refusal = memory.apply(&push_frame("f6", "o")).unwrap_err().to_string();
    assert!(refusal.contains("the stack is full (5 frames"), "{refusal}");
    assert_eq!(memory, before);
}

#[test]
fn a_long_objective_is_complete_in_the_frame_and_truncated_in_r0() {
    let mut memory = Memory::default();
    let objective = "o".repeat(241);
    memory.apply(&push_frame("f", &objective)).unwrap();
    assert_eq!(memory.current_frame().objective, objective);
    assert_eq!(memory.register_text(Register::Goal), format!("{}…", "o".repeat(239)));
    let mut memory = Memory::default();
    memory.apply(&push_frame("f", &"o".repeat(240))).unwrap();
    assert_eq!(memory.register_text(Register::Goal), "o".repeat(240));
}

#[test]
fn frame_names_must_fit_into_r3() {
    let mut memory = Memory::default();
    assert!(memory.apply(&push_frame(&"n".repeat(46), "o")).is_err());
    assert!(memory.apply(&push_frame("", "o")).is_err() && memory.apply(&push_frame("a\nb", "o")).is_err());
    memory.apply(&push_frame(&"n".repeat(45), "o")).unwrap();
    memory.apply(&pop_frame("done")).unwrap();
    assert_eq!(memory.register_text(Register::Phase), format!("returned from: {}", "n".repeat(45)));
}

#[test]
fn a_text_that_is_too_long_is_truncated_and_reported_or_refused() {
    let mut memory = Memory::default();
    let long = "é".repeat(61);
    let report = memory.apply(&update_registers(&[(Register::Phase, &long)])).unwrap();
    let cut = &report.truncations[0];
    assert_eq!(
        (cut.register.as_str(), cut.max_chars, cut.input_chars, cut.kept_chars, cut.dropped_chars),
        ("R3_PHASE", 60, 61, 60, 1)
    );
    let strict = MemoryOp::UpdateRegisters {
        values: RegisterValues::from([(Register::Phase, long)]),
        strict: true,
        in_all_frames: false,
    };
    let before = memory.clone();
    assert!(
        memory.apply(&strict).unwrap_err().to_string().contains("at most 60 characters, but 61 were given")
    );
    assert_eq!(memory, before);
}

#[test]
fn a_frame_starts_once_is_entered_once_and_is_recorded_on_return() {
    let mut memory = memory_with_registers("p");
    let start =
        |call: &str| MemoryOp::StartFrame { start_call_id: call.into(), owner: FrameOwner::default() };
    let enter = |agent: &str| MemoryOp::EnterFrame { agent: agent.into() };
    assert!(
        memory.apply(&start("c1")).is_err() && memory.apply(&enter("a1")).is_err(),
        "the root is nobody's"
    );
    memory.apply(&push_frame("f", "o")).unwrap();
    assert!(memory.is_waiting_for_agent());
    memory.apply(&start("c1")).unwrap();
    assert!(!memory.is_waiting_for_agent() && memory.apply(&start("c2")).is_err());
    memory.apply(&enter("a1")).unwrap();
    assert!(memory.apply(&enter("a2")).is_err());
    assert_eq!(
        [None, Some("a1"), Some("a2")].map(|agent| memory.frame_depth_of_agent(agent)),
        [Some(0), Some(1), None]
    );
    memory.apply(&pop_frame("all is well")).unwrap();
    let returned = memory.last_returned_frame.clone().unwrap();
    assert_eq!(
        (
            returned.name.as_str(),
            returned.call_id.as_deref(),
            returned.agent_id.as_deref(),
            returned.abnormal_end
        ),
        ("f", Some("c1"), Some("a1"), None)
    );
    assert_eq!((returned.result.as_str(), memory.frame_depth_of_agent(Some("a1"))), ("all is well", None));
}

#[test]
fn a_new_run_begins_with_a_new_root_and_keeps_the_heap() {
    let mut memory = memory_with_registers("p");
    memory.apply(&alloc_chunk("api", "x")).unwrap();
    memory.apply(&push_frame("f", "o")).unwrap();
    memory.apply(&pop_frame("r")).unwrap();
    memory.apply(&pop_frame("done")).unwrap();
    memory.apply(&MemoryOp::BeginRun { objective: "Mend the parser".into() }).unwrap();
    assert_eq!(register_texts(&memory), ["Mend the parser", "", "", "", "", "", "", ""]);
    assert_eq!((memory.root_result.is_none(), memory.depth(), memory.heap.len()), (true, 0, 1));
    assert_eq!(memory.current_frame().objective, "Mend the parser");
}

#[test]
fn an_abandoned_child_hands_over_its_status_questions_and_plan() {
    let mut memory = memory_with_registers("p");
    let abandon_frame =
        || MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::Abandoned, last_message: String::new() };
    memory.apply(&push_frame("nobody", "o")).unwrap();
    memory.apply(&abandon_frame()).unwrap();
    assert_eq!(register_texts(&memory), ["p0", "p1", "p2", "abandoned: nobody", "p4", "p5", "p6", "p7"]);
    memory.apply(&push_frame("f", "o")).unwrap();
    memory.apply(&MemoryOp::StartFrame { start_call_id: "c".into(), owner: FrameOwner::default() }).unwrap();
    memory.apply(&MemoryOp::EnterFrame { agent: "a".into() }).unwrap();
    let register_values = [
        (Register::Plan, "c1"),
        (Register::OpenQuestions, "c6"),
        (Register::Status, "c7"),
        (Register::Assumptions, "c5"),
    ];
    memory.apply(&update_registers(&register_values)).unwrap();
    memory.apply(&abandon_frame()).unwrap();
    assert_eq!(register_texts(&memory), ["p0", "c1", "", "abandoned: f", "p4", "p5", "c6", "c7"]);
    let close_root =
        MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::TurnEndedWithoutPop, last_message: String::new() };
    assert!(memory.apply(&close_root).is_err(), "the root is closed by its own pop alone");
}

#[test]
fn after_the_root_pops_nothing_is_written_until_it_is_reopened() {
    let mut memory = memory_with_registers("p");
    memory.apply(&pop_frame("all done")).unwrap();
    assert_eq!(memory.root_result.as_deref(), Some("all done"));
    assert!(memory.apply(&update_registers(&[(Register::Next, "more")])).is_err());
    memory.apply(&MemoryOp::Reopen).unwrap();
    memory.apply(&update_registers(&[(Register::Next, "more")])).unwrap();
    assert_eq!(register_texts(&memory)[1], "p1", "nothing of it is lost");
}

#[test]
fn the_heap_tracks_sizes_and_steps_and_enforces_its_limits() {
    let mut memory = Memory::default();
    memory.apply(&alloc_chunk("api-spec", &"a".repeat(5_600))).unwrap();
    for _ in 0..4 {
        memory.apply(&MemoryOp::Step).unwrap();
    }
    let report =
        memory.apply(&MemoryOp::HeapWrite { name: "api-spec".into(), content: "b".repeat(8_001) }).unwrap();
    assert_eq!(report.pressure, Some(HeapPressure::Over), "it succeeds and says so");
    let chunk = memory.find_chunk("api-spec").unwrap();
    assert_eq!((chunk.allocated_at_step, chunk.updated_at_step, chunk.char_count()), (0, 4, 8_001));
    memory.apply(&alloc_chunk("two", &"c".repeat(9_000))).unwrap();
    let before = memory.clone();
    let refusal_when_full = memory
        .apply(&alloc_chunk("three", &"d".repeat(HARD_LIMIT_UTF16_UNITS - 17_001 + 1)))
        .unwrap_err()
        .to_string();
    assert!(refusal_when_full.contains("takes at most 24000: free chunks first"), "{refusal_when_full}");
    let refusal_of_long_chunk = memory
        .apply(&alloc_chunk("long", &"😀".repeat(MAX_CHUNK_UTF16_UNITS / 2 + 1)))
        .unwrap_err()
        .to_string();
    assert!(refusal_of_long_chunk.contains("UTF-16 units"), "{refusal_of_long_chunk}");
    for (op, words) in [
        (alloc_chunk("two", "x"), "already exists: rewrite it with heap_write"),
        (
            MemoryOp::HeapWrite { name: "four".into(), content: String::new() },
            "there is no chunk four: there are api-spec, two",
        ),
        (MemoryOp::HeapFree { name: "four".into() }, "there is no chunk four"),
        (alloc_chunk("a b", "x"), "1 to 40 letters"),
        (alloc_chunk("<x>", "x"), "1 to 40 letters"),
        (alloc_chunk("", "x"), "1 to 40 letters"),
    ] {
        let refusal = memory.apply(&op).unwrap_err().to_string();
        assert!(refusal.contains(words), "{words} in {refusal}");
    }
    assert_eq!(memory, before, "a refusal changes nothing");
    memory.apply(&MemoryOp::HeapFree { name: "two".into() }).unwrap();
    assert_eq!(memory.freed_chunks, [("two".to_owned(), memory.revision)]);
    assert_eq!(SOFT_LIMIT_CHARS * 3, HARD_LIMIT_UTF16_UNITS);
}

#[test]
fn registers_of_every_step_are_stale_after_three_steps() {
    let mut memory = memory_with_registers("p");
    let step = |memory: &mut Memory| memory.apply(&MemoryOp::Step).map(|_| ()).unwrap();
    step(&mut memory);
    step(&mut memory);
    assert_eq!(memory.stale_next_and_status_registers(), []);
    step(&mut memory);
    assert_eq!(memory.stale_next_and_status_registers(), [Register::Next, Register::Status]);
    memory.apply(&update_registers(&[(Register::Next, "n")])).unwrap();
    assert_eq!(memory.stale_next_and_status_registers(), [Register::Status]);
}

fn any_op() -> impl Strategy<Value = MemoryOp> {
    let register = || prop::sample::select(Register::ALL.to_vec());
    let name = || "[a-c]{1,2}";
    prop_oneof![
        (prop::collection::btree_map(register(), ".{0,400}", 0..4), any::<bool>(), any::<bool>()).prop_map(
            |(values, strict, everywhere)| MemoryOp::UpdateRegisters {
                values,
                strict,
                in_all_frames: everywhere
            }
        ),
        (".{0,50}", ".{0,300}").prop_map(|(name, objective)| push_frame(&name, &objective)),
        ".{0,400}".prop_map(|result| pop_frame(&result)),
        (any::<bool>(), ".{0,40}").prop_map(|(is_dead, words)| MemoryOp::CloseFrame {
            abnormal_end: if is_dead { AbnormalEnd::Abandoned } else { AbnormalEnd::TurnEndedWithoutPop },
            last_message: words,
        }),
        (name(), ".{0,3000}").prop_map(|(name, content)| alloc_chunk(&name, &content)),
        (name(), ".{0,3000}").prop_map(|(name, content)| MemoryOp::HeapWrite { name, content }),
        name().prop_map(|name| MemoryOp::HeapFree { name }),
        Just(MemoryOp::Step),
        Just(MemoryOp::Reopen),
        "[a-z]{4}".prop_map(|agent| MemoryOp::EnterFrame { agent }),
        "[a-z]{4}"
            .prop_map(|call| MemoryOp::StartFrame { start_call_id: call, owner: FrameOwner::default() }),
        ".{0,300}".prop_map(|objective| MemoryOp::BeginRun { objective }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn accepted_operations_replay_to_the_live_state(ops in prop::collection::vec(any_op(), 0..40)) {
        let mut live = Memory::default();
        let mut accepted = Vec::new();
        for op in &ops {
            let before = live.clone();
            match live.apply(op) {
                Ok(report) => {
                    prop_assert_eq!(report.rev, live.revision);
                    prop_assert!(live.revision >= before.revision);
                    accepted.push(op.clone());
                }
                Err(refusal) => {
                    prop_assert_eq!(&live, &before);
                    prop_assert!(!refusal.to_string().is_empty());
                }
            }
            prop_assert!(live.depth() <= MAX_FRAME_DEPTH);
            prop_assert!(live.heap_size_in_chars() <= HARD_LIMIT_UTF16_UNITS);
            for frame in &live.frames {
                for register in Register::ALL {
                    prop_assert!(frame.registers[register.index()].text.chars().count() <= register.max_chars());
                }
            }
            let counted: usize = live.heap.iter().map(|chunk| chunk.content.chars().count()).sum();
            prop_assert_eq!(live.heap_size_in_chars(), counted);
            let entries = render::pack_chunks_into_entries(&live);
            prop_assert!(entries.len() <= render::MAX_HEAP_ENTRIES);
            prop_assert!(entries.iter().all(|entry| entry.encode_utf16().count() <= render::MAX_ENTRY_UTF16_UNITS));
            prop_assert!(render::render_overview(&live, live.depth()).encode_utf16().count() <= render::MAX_ENTRY_UTF16_UNITS);
        }
        let mut since = 0;
        while since < live.revision {
            let delta = render::render_changes_since(&live, live.depth(), since, &[]);
            prop_assert!(delta.shown_up_to_rev > since);
            prop_assert!(delta.text.is_none_or(|text| text.encode_utf16().count() <= render::MAX_ENTRY_UTF16_UNITS));
            since = delta.shown_up_to_rev;
        }
        prop_assert_eq!(&Memory::replay(&accepted), &live);
        let text = serde_json::to_string(&accepted).unwrap();
        let read: Vec<MemoryOp> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&Memory::replay(&read), &live);
        let snapshot: Memory = serde_json::from_str(&serde_json::to_string(&live).unwrap()).unwrap();
        prop_assert_eq!(&snapshot, &live);
    }

    #[test]
    fn a_register_holds_a_prefix_of_the_given_text(register in prop::sample::select(Register::ALL.to_vec()), text in ".{0,1200}") {
        let mut memory = Memory::default();
        let report = memory.apply(&update_registers(&[(register, &text)])).unwrap();
        let kept = memory.register_text(register);
        prop_assert!(text.starts_with(kept));
        prop_assert_eq!(report.truncations.is_empty(), kept == text);
        // A grapheme of several characters may not fit completely; nothing else is left out.
        prop_assert!(kept == text || kept.chars().count() + 40 > register.max_chars());
    }

    #[test]
    fn as_many_pops_as_pushes_restore_the_registers_of_the_parent(depth in 1usize..=MAX_FRAME_DEPTH, text in "[a-z]{1,60}") {
        let mut memory = memory_with_registers(&text[..1]);
        let before = memory.clone();
        for number in 0..depth {
            memory.apply(&push_frame(&format!("f{number}"), &text)).unwrap();
            memory.apply(&update_registers(&[(Register::Plan, &text), (Register::Constraints, &text), (Register::Assumptions, &text)])).unwrap();
        }
        for _ in 0..depth {
            memory.apply(&pop_frame(&text)).unwrap();
        }
        prop_assert_eq!(memory.depth(), 0);
        for register in [Register::Goal, Register::Plan, Register::Constraints, Register::Assumptions] {
            prop_assert_eq!(memory.register_text(register), before.register_text(register));
        }
        prop_assert_eq!(memory.register_text(Register::Next), "");
        prop_assert_eq!(memory.register_text(Register::Phase), "returned from: f0");
    }
}
