//! The tools of the working memory. What may be written is decided by the memory itself.

use crate::call::{Answer, Call};
use plimsoll_domain::memory::{ChangeReport, Memory, MemoryOp, Register, RegisterValues, render};
use plimsoll_store::memory::{ChangeAuthor, MemoryError};
use std::time::Duration;

/// Others hold the memory for a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn update_registers(call: &Call) -> Answer {
    let named = |register: Register| call.given.text(register.key()).map(|text| (register, text));
    let values: RegisterValues = Register::ALL.into_iter().filter_map(named).collect();
    change(
        call,
        &MemoryOp::UpdateRegisters { values, strict: call.given.flag("strict"), in_all_frames: false },
    )
}

pub(crate) fn push_frame(call: &Call) -> Answer {
    let words = |name| call.given.words(name);
    change(
        call,
        &MemoryOp::PushFrame {
            name: words("name"),
            objective: words("objective"),
            context: words("context"),
            return_spec: words("return_spec"),
            pushed_by_call: call.id.clone(),
        },
    )
}

pub(crate) fn pop_frame(call: &Call) -> Answer {
    change(call, &MemoryOp::PopFrame { result: call.given.words("result") })
}

pub(crate) fn heap_alloc(call: &Call) -> Answer {
    let words = |name| call.given.words(name);
    change(
        call,
        &MemoryOp::HeapAlloc {
            name: words("name"),
            content: words("content"),
            description: words("description"),
        },
    )
}

pub(crate) fn heap_write(call: &Call) -> Answer {
    change(
        call,
        &MemoryOp::HeapWrite { name: call.given.words("name"), content: call.given.words("content") },
    )
}

pub(crate) fn heap_free(call: &Call) -> Answer {
    change(call, &MemoryOp::HeapFree { name: call.given.words("name") })
}

fn change(call: &Call, op: &MemoryOp) -> Answer {
    let by = ChangeAuthor { name: "mcp", call_id: call.id.as_deref() };
    let mut held = plimsoll_store::memory::lock_memory(&call.project, TIMEOUT)?;
    if held.memory().starts_uncounted_step(op) {
        held.begin_step();
    }
    let report = held.apply(by, op).map_err(MemoryError::from)?;
    Ok(answer_text(&report, &held.write_and_release()?))
}

/// `ok r41`, and what there is to know: after a change of the heap, its index. The model has its own words in mind already.
fn answer_text(report: &ChangeReport, memory: &Memory) -> String {
    let mut lines = vec![format!("ok r{}", report.rev)];
    lines.extend(report.truncations.iter().map(|cut| {
        format!(
            "cut {}: limit {}, given {}, kept {}, dropped {}; shorten it, or move it to the heap",
            cut.register, cut.max_chars, cut.given_chars, cut.kept_chars, cut.dropped_chars
        )
    }));
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    if report.pressure.is_some() {
        lines.extend(render::render_heap_index_with_sizes(memory));
    }
    lines.join("\n")
}

pub(crate) fn show(call: &Call) -> Answer {
    let memory = plimsoll_store::memory::load_memory(&call.project)?;
    if memory.is_empty() {
        return Ok("nothing has been written yet (r0)".to_owned());
    }
    let parts = [
        vec![render::render_overview(&memory, memory.depth())],
        frame(&memory),
        render::pack_chunks_into_entries(&memory),
    ]
    .concat();
    Ok(parts.join("\n"))
}

/// What the current frame is to do, where it is not the root; and whether all is done.
fn frame(memory: &Memory) -> Vec<String> {
    let top = memory.current_frame();
    let named = [("OBJECTIVE", &top.objective), ("CONTEXT", &top.context), ("RETURN", &top.expected_result)];
    let given = named.into_iter().filter(|(_, text)| !text.is_empty());
    let mut lines: Vec<String> =
        given.map(|(label, text)| format!("{label}: {}", render::indent_continuation_lines(text))).collect();
    lines.extend(memory.root_result.as_ref().map(|_| "DONE: the root frame has popped".to_owned()));
    lines
}
