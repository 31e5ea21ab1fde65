//! The working memory: its log folded is what lives, and what the model is told of it stays in its bounds.

use super::Target;
use crate::draw::Draw;
use crate::foreign::may_be_sent;
use crate::seeds::texts;
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::render::{ENTRIES, ENTRY_UNITS, brief, delta, entries, overview, summary, task};
use plimsoll_domain::memory::{
    Closing, DEEPEST, HARD_LIMIT, MOST_CHUNKS, Memory, Op, Owner, Register, Values,
};

pub(super) const TARGET: Target = Target { name: "memory", body, seeds, inputs: 2_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
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

fn body(bytes: &[u8]) {
    // Two kinds of inputs: a log as it lies on the disk, and choices.
    let ops: Vec<Op> = match bytes.split_first() {
        Some((0xff, rest)) => drawn(rest),
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
        assert_eq!(serde_json::from_str::<Op>(&text).ok().as_ref(), Some(&op), "written and read");
        let before = memory.clone();
        match memory.apply(&op) {
            Ok(report) => {
                assert_eq!(report.rev, memory.rev);
                assert_eq!(memory.rev, before.rev + u64::from(!matches!(op, Op::Step | Op::Reopen)));
                accepted.push(op);
            }
            Err(refusal) => {
                assert_eq!(memory, before, "a refusal changes nothing");
                assert!(!refusal.0.is_empty());
            }
        }
        bounds(&memory);
    }
    assert_eq!(Memory::fold(&accepted), memory, "the log, folded, is what lives");
    let text = serde_json::to_string(&memory).expect("JSON");
    assert_eq!(serde_json::from_str::<Memory>(&text).ok().as_ref(), Some(&memory), "the snapshot");
    told(&memory);
}

fn bounds(memory: &Memory) {
    assert!(memory.depth() <= DEEPEST && memory.heap.len() <= MOST_CHUNKS && memory.freed.len() <= 100);
    let units: usize = memory.heap.iter().map(|chunk| chunk.content.encode_utf16().count()).sum();
    assert!(units <= HARD_LIMIT);
    for frame in &memory.frames {
        for register in Register::ALL {
            assert!(
                frame.registers[register.index()].text.chars().count() <= register.limit(),
                "{register:?}"
            );
        }
    }
}

fn told(memory: &Memory) {
    let units = |text: &str| text.encode_utf16().count();
    for depth in 0..=memory.depth() {
        let text = overview(memory, depth);
        assert!(units(&text) <= ENTRY_UNITS, "{}", units(&text));
        may_be_sent(&text);
        may_be_sent(&task(memory, depth));
        assert_eq!(text.matches("<plimsoll-memory").count(), 1, "no value begins another block");
        assert!(text.ends_with("</plimsoll-memory>") && text.matches("</plimsoll").count() == 1);
        assert!(units(&task(memory, depth)) <= ENTRY_UNITS);
        let mut since = 0;
        while since < memory.rev {
            let told = delta(memory, depth, since, &[]);
            assert!(told.shown_to > since && told.shown_to <= memory.rev, "{since} {told:?}");
            told.text.iter().for_each(|text| may_be_sent(text));
            assert!(told.text.is_none_or(|text| units(&text) <= ENTRY_UNITS));
            since = told.shown_to;
        }
    }
    let entries = entries(memory);
    assert!(entries.len() <= ENTRIES && entries.iter().all(|entry| units(entry) <= ENTRY_UNITS));
    let tags = entries.iter().map(|entry| entry.matches("<plimsoll-chunk").count()).sum::<usize>();
    assert_eq!(tags, memory.heap.len(), "each chunk once");
    may_be_sent(&brief(memory));
    entries.iter().for_each(|entry| may_be_sent(entry));
    assert_eq!(brief(memory).matches("<plimsoll-memory").count(), 1);
    assert!(summary(memory).iter().all(|line| !line.contains('\n')));
}

fn drawn(bytes: &[u8]) -> Vec<Op> {
    let mut draw = Draw::from(bytes);
    let mut ops = Vec::new();
    while !draw.is_empty() && ops.len() < 64 {
        ops.push(op(&mut draw));
    }
    ops
}

fn op(draw: &mut Draw<'_>) -> Op {
    const NAMES: [&str; 4] = ["a", "b", "note", "x/y.z"];
    let name = |draw: &mut Draw<'_>| draw.one_of(&NAMES);
    match draw.byte() % 14 {
        0..3 => {
            let value = |draw: &mut Draw<'_>| (Register::ALL[usize::from(draw.byte() % 8)], words(draw));
            let values: Values = draw.list(3, value).into_iter().collect();
            Op::UpdateRegisters { values, strict: draw.byte() > 200, everywhere: draw.flag() }
        }
        3 => Op::BeginRun { objective: words(draw) },
        4 => Op::PushFrame {
            name: name(draw),
            objective: words(draw),
            context: words(draw),
            return_spec: words(draw),
            call: draw.some(Draw::text),
        },
        5 => Op::StartFrame {
            call: draw.text(),
            owner: Owner { session: SessionId::from(draw.text()), ..Owner::default() },
        },
        6 => Op::EnterFrame { agent: name(draw) },
        7 if draw.byte().is_multiple_of(8) => Op::PopFrame { result: words(draw) },
        7 => Op::CloseFrame { how: Closing::Unpopped, words: words(draw) },
        8 => Op::CloseFrame { how: Closing::Abandoned, words: words(draw) },
        9 | 10 => Op::HeapAlloc { name: name(draw), content: words(draw), description: words(draw) },
        11 => Op::HeapWrite { name: name(draw), content: words(draw) },
        12 => Op::HeapFree { name: name(draw) },
        _ if draw.flag() => Op::Step,
        _ => Op::Reopen,
    }
}

fn words(draw: &mut Draw<'_>) -> String {
    draw.one_of(&[
        "</plimsoll-memory>",
        "<plimsoll-chunk name=\"a\">",
        "\n",
        "R0 GOAL: x",
        "e\u{301}",
        "👩\u{200d}👩",
    ])
}
