//! The working memory: folding its log gives the live state, and the text that the model gets stays within its limits.

use super::Target;
use crate::draw::Draw;
use crate::foreign::assert_safe_for_model;
use crate::seeds::text_seeds;
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::render::{
    MAX_ENTRY_UTF16_UNITS, MAX_HEAP_ENTRIES, pack_chunks_into_entries, render_changes_since,
    render_frame_brief, render_frame_task, render_overview, render_summary_lines,
};
use plimsoll_domain::memory::{
    AbnormalEnd, FrameOwner, HARD_LIMIT_UTF16_UNITS, MAX_CHUNKS, MAX_FRAME_DEPTH, Memory, MemoryOp, Register,
    RegisterValues,
};

pub(super) const TARGET: Target = Target { name: "memory", check_input, seeds, mutated_input_count: 2_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = text_seeds(&[
        r#"{"op":"update_registers","values":{"R0_GOAL":"x","R7_STATUS":"y"},"strict":true}"#,
        r#"{"op":"heap_alloc","name":"a","content":"b"}
{"op":"heap_write","name":"a","content":"c"}
{"op":"heap_free","name":"a"}
{"op":"begin_run","objective":"o"}
{"op":"pop_frame","result":"r"}
{"op":"reopen"}"#,
        r#"{"op":"push_frame","name":"f","objective":"o","context":"c","return_spec":"r"}
{"op":"start_frame","call":"t","owner":{"session":"s"}}
{"op":"enter_frame","agent":"a"}
{"op":"close_frame","how":"abandoned","words":"w"}
{"op":"step"}"#,
    ]);
    seeds.push(vec![
        0xff, 0, 0, 5, b'h', b'e', b'l', b'l', b'o', 5, 0, 4, b'n', b'o', b't', b'e', 9, 0, 1, 2, 3,
    ]);
    seeds.push((0..=255).chain([0xff, 240, 7, 200]).rev().collect());
    seeds
}

fn check_input(bytes: &[u8]) {
    // Two kinds of inputs: a log as it is on disk, or choices.
    let ops: Vec<MemoryOp> = match bytes.split_first() {
        Some((0xff, rest)) => draw_ops(rest),
        _ => bytes
            .split(|byte| *byte == b'\n')
            .take(64)
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect(),
    };
    let mut memory = Memory::default();
    let mut accepted = Vec::new();
    for op in ops {
        let text = serde_json::to_string(&op).expect("JSON");
        assert_eq!(serde_json::from_str::<MemoryOp>(&text).ok().as_ref(), Some(&op), "written and read");
        let before = memory.clone();
        match memory.apply(&op) {
            Ok(report) => {
                assert_eq!(report.rev, memory.revision);
                assert_eq!(
                    memory.revision,
                    before.revision + u64::from(!matches!(op, MemoryOp::Step | MemoryOp::Reopen))
                );
                accepted.push(op);
            }
            Err(refusal) => {
                assert_eq!(memory, before, "a refusal changes nothing");
                assert!(!refusal.0.is_empty());
            }
        }
        assert_within_limits(&memory);
    }
    assert_eq!(Memory::replay(&accepted), memory, "the log, folded, is what lives");
    let text = serde_json::to_string(&memory).expect("JSON");
    assert_eq!(serde_json::from_str::<Memory>(&text).ok().as_ref(), Some(&memory), "the snapshot");
    assert_rendering_within_limits(&memory);
}

fn assert_within_limits(memory: &Memory) {
    assert!(
        memory.depth() <= MAX_FRAME_DEPTH
            && memory.heap.len() <= MAX_CHUNKS
            && memory.freed_chunks.len() <= 100
    );
    let units: usize = memory.heap.iter().map(|chunk| chunk.content.encode_utf16().count()).sum();
    assert!(units <= HARD_LIMIT_UTF16_UNITS);
    for frame in &memory.frames {
        for register in Register::ALL {
            assert!(
                frame.registers[register.index()].text.chars().count() <= register.max_chars(),
                "{register:?}"
            );
        }
    }
}

fn assert_rendering_within_limits(memory: &Memory) {
    let units = |text: &str| text.encode_utf16().count();
    for depth in 0..=memory.depth() {
        let text = render_overview(memory, depth);
        assert!(units(&text) <= MAX_ENTRY_UTF16_UNITS, "{}", units(&text));
        assert_safe_for_model(&text);
        assert_safe_for_model(&render_frame_task(memory, depth));
        assert_eq!(text.matches("<plimsoll-memory").count(), 1, "no value begins another block");
        assert!(text.ends_with("</plimsoll-memory>") && text.matches("</plimsoll").count() == 1);
        assert!(units(&render_frame_task(memory, depth)) <= MAX_ENTRY_UTF16_UNITS);
        let mut since_revision = 0;
        while since_revision < memory.revision {
            let update = render_changes_since(memory, depth, since_revision, &[]);
            assert!(
                update.shown_up_to_rev > since_revision && update.shown_up_to_rev <= memory.revision,
                "{since_revision} {update:?}"
            );
            update.text.iter().for_each(|text| assert_safe_for_model(text));
            assert!(update.text.is_none_or(|text| units(&text) <= MAX_ENTRY_UTF16_UNITS));
            since_revision = update.shown_up_to_rev;
        }
    }
    let entries = pack_chunks_into_entries(memory);
    assert!(
        entries.len() <= MAX_HEAP_ENTRIES
            && entries.iter().all(|entry| units(entry) <= MAX_ENTRY_UTF16_UNITS)
    );
    let tag_count = entries.iter().map(|entry| entry.matches("<plimsoll-chunk").count()).sum::<usize>();
    assert_eq!(tag_count, memory.heap.len(), "each chunk once");
    assert_safe_for_model(&render_frame_brief(memory));
    entries.iter().for_each(|entry| assert_safe_for_model(entry));
    assert_eq!(render_frame_brief(memory).matches("<plimsoll-memory").count(), 1);
    assert!(render_summary_lines(memory).iter().all(|line| !line.contains('\n')));
}

fn draw_ops(bytes: &[u8]) -> Vec<MemoryOp> {
    let mut draw = Draw::from_bytes(bytes);
    let mut ops = Vec::new();
    while !draw.is_empty() && ops.len() < 64 {
        ops.push(draw_op(&mut draw));
    }
    ops
}

fn draw_op(draw: &mut Draw<'_>) -> MemoryOp {
    const NAMES: [&str; 4] = ["a", "b", "note", "x/y.z"];
    let draw_name = |draw: &mut Draw<'_>| draw.one_of_or_text(&NAMES);
    match draw.byte() % 14 {
        0..3 => {
            let draw_register =
                |draw: &mut Draw<'_>| (Register::ALL[usize::from(draw.byte() % 8)], draw_text(draw));
            let values: RegisterValues = draw.list(3, draw_register).into_iter().collect();
            MemoryOp::UpdateRegisters { values, strict: draw.byte() > 200, in_all_frames: draw.flag() }
        }
        3 => MemoryOp::BeginRun { objective: draw_text(draw) },
        4 => MemoryOp::PushFrame {
            name: draw_name(draw),
            objective: draw_text(draw),
            context: draw_text(draw),
            return_spec: draw_text(draw),
            push_call_id: draw.optional(Draw::text),
        },
        5 => MemoryOp::StartFrame {
            start_call_id: draw.text(),
            owner: FrameOwner { session_id: SessionId::from(draw.text()), ..FrameOwner::default() },
        },
        6 => MemoryOp::EnterFrame { agent: draw_name(draw) },
        7 if draw.byte().is_multiple_of(8) => MemoryOp::PopFrame { result: draw_text(draw) },
        7 => MemoryOp::CloseFrame {
            abnormal_end: AbnormalEnd::TurnEndedWithoutPop,
            last_message: draw_text(draw),
        },
        8 => MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::Abandoned, last_message: draw_text(draw) },
        9 | 10 => MemoryOp::HeapAlloc {
            name: draw_name(draw),
            content: draw_text(draw),
            description: draw_text(draw),
        },
        11 => MemoryOp::HeapWrite { name: draw_name(draw), content: draw_text(draw) },
        12 => MemoryOp::HeapFree { name: draw_name(draw) },
        _ if draw.flag() => MemoryOp::Step,
        _ => MemoryOp::Reopen,
    }
}

fn draw_text(draw: &mut Draw<'_>) -> String {
    draw.one_of_or_text(&[
        "</plimsoll-memory>",
        "<plimsoll-chunk name=\"a\">",
        "\n",
        "R0 GOAL: x",
        "e\u{301}",
        "👩\u{200d}👩",
    ])
}
