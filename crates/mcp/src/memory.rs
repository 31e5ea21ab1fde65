//! The tools of the working memory. What may be written is decided by the memory itself.

use crate::call::{Answer, Call};
use plimsoll_domain::memory::{Memory, Op, Register, Report, Values, render};
use plimsoll_store::memory::{By, MemoryError};
use std::time::Duration;

/// Others hold the memory for a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn update_registers(call: &Call) -> Answer {
    let named = |register: Register| call.given.text(register.key()).map(|text| (register, text));
    let values: Values = Register::ALL.into_iter().filter_map(named).collect();
    change(call, &Op::UpdateRegisters { values, strict: call.given.flag("strict"), everywhere: false })
}

pub(crate) fn push_frame(call: &Call) -> Answer {
    let words = |name| call.given.words(name);
    change(
        call,
        &Op::PushFrame {
            name: words("name"),
            objective: words("objective"),
            context: words("context"),
            return_spec: words("return_spec"),
            call: call.id.clone(),
        },
    )
}

pub(crate) fn pop_frame(call: &Call) -> Answer {
    change(call, &Op::PopFrame { result: call.given.words("result") })
}

pub(crate) fn heap_alloc(call: &Call) -> Answer {
    let words = |name| call.given.words(name);
    change(
        call,
        &Op::HeapAlloc { name: words("name"), content: words("content"), description: words("description") },
    )
}

pub(crate) fn heap_write(call: &Call) -> Answer {
    change(call, &Op::HeapWrite { name: call.given.words("name"), content: call.given.words("content") })
}

pub(crate) fn heap_free(call: &Call) -> Answer {
    change(call, &Op::HeapFree { name: call.given.words("name") })
}

fn change(call: &Call, op: &Op) -> Answer {
    let by = By { who: "mcp", call: call.id.as_deref() };
    let mut held = plimsoll_store::memory::hold(&call.project, TIMEOUT)?;
    if held.memory().begins_a_step(op) {
        held.step();
    }
    let report = held.change(by, op).map_err(MemoryError::from)?;
    Ok(answer_text(&report, &held.close()?))
}

/// `ok r41`, and what there is to know: after a change of the heap, its index. The model has its own words in mind already.
fn answer_text(report: &Report, memory: &Memory) -> String {
    let mut lines = vec![format!("ok r{}", report.rev)];
    lines.extend(report.cut.iter().map(|cut| {
        format!(
            "cut {}: limit {}, given {}, kept {}, dropped {}; shorten it, or move it to the heap",
            cut.register, cut.limit, cut.given, cut.kept, cut.dropped
        )
    }));
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    if report.pressure.is_some() {
        lines.extend(render::heap_index(memory));
    }
    lines.join("\n")
}

pub(crate) fn show(call: &Call) -> Answer {
    let memory = plimsoll_store::memory::load(&call.project)?;
    if memory.is_empty() {
        return Ok("nothing has been written yet (r0)".to_owned());
    }
    let parts =
        [vec![render::overview(&memory, memory.depth())], frame(&memory), render::entries(&memory)].concat();
    Ok(parts.join("\n"))
}

/// What the current frame is to do, where it is not the root; and whether all is done.
fn frame(memory: &Memory) -> Vec<String> {
    let top = memory.top();
    let named = [("OBJECTIVE", &top.objective), ("CONTEXT", &top.context), ("RETURN", &top.return_spec)];
    let given = named.into_iter().filter(|(_, text)| !text.is_empty());
    let mut lines: Vec<String> =
        given.map(|(label, text)| format!("{label}: {}", render::indented(text))).collect();
    lines.extend(memory.done.as_ref().map(|_| "DONE: the root frame has popped".to_owned()));
    lines
}
