//! The tools of the working memory. The memory itself rejects invalid changes.

use crate::call::{ToolCall, ToolResult};
use plimsoll_domain::memory::{ChangeReport, Memory, MemoryOp, Register, RegisterValues, render};
use plimsoll_store::memory::{ChangeAuthor, MemoryError};
use std::time::Duration;

/// Lock timeout of the memory. Other processes lock it only for a few milliseconds at a time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn update_registers(call: &ToolCall) -> ToolResult {
    let register_and_argument =
        |register: Register| call.arguments.optional_text(register.key()).map(|text| (register, text));
    let values: RegisterValues = Register::ALL.into_iter().filter_map(register_and_argument).collect();
    apply_op_and_write_memory(
        call,
        &MemoryOp::UpdateRegisters {
            values,
            strict: call.arguments.flag_or_false("strict"),
            in_all_frames: false,
        },
    )
}

pub(crate) fn push_frame(call: &ToolCall) -> ToolResult {
    let text_argument = |name| call.arguments.text_or_empty(name);
    apply_op_and_write_memory(
        call,
        &MemoryOp::PushFrame {
            name: text_argument("name"),
            objective: text_argument("objective"),
            context: text_argument("context"),
            return_spec: text_argument("return_spec"),
            push_call_id: call.call_id.clone(),
        },
    )
}

pub(crate) fn pop_frame(call: &ToolCall) -> ToolResult {
    apply_op_and_write_memory(call, &MemoryOp::PopFrame { result: call.arguments.text_or_empty("result") })
}

pub(crate) fn heap_alloc(call: &ToolCall) -> ToolResult {
    let text_argument = |name| call.arguments.text_or_empty(name);
    apply_op_and_write_memory(
        call,
        &MemoryOp::HeapAlloc {
            name: text_argument("name"),
            content: text_argument("content"),
            description: text_argument("description"),
        },
    )
}

pub(crate) fn heap_write(call: &ToolCall) -> ToolResult {
    apply_op_and_write_memory(
        call,
        &MemoryOp::HeapWrite {
            name: call.arguments.text_or_empty("name"),
            content: call.arguments.text_or_empty("content"),
        },
    )
}

pub(crate) fn heap_free(call: &ToolCall) -> ToolResult {
    apply_op_and_write_memory(call, &MemoryOp::HeapFree { name: call.arguments.text_or_empty("name") })
}

fn apply_op_and_write_memory(call: &ToolCall, op: &MemoryOp) -> ToolResult {
    let author = ChangeAuthor { name: "mcp", call_id: call.call_id.as_deref() };
    let mut locked_memory = plimsoll_store::memory::lock_memory(&call.project, LOCK_TIMEOUT)?;
    if locked_memory.memory().rewrites_next_or_status_in_same_step(op) {
        locked_memory.begin_step();
    }
    let report = locked_memory.apply_and_queue_record(author, op).map_err(MemoryError::from)?;
    Ok(render_report_and_changed_heap_index(&report, &locked_memory.save_changes_and_unlock()?))
}

/// Renders `ok r41`, truncations, notes and, after a change of the heap, the heap's index. The written text is not repeated,
/// because the model has just sent it.
fn render_report_and_changed_heap_index(report: &ChangeReport, memory: &Memory) -> String {
    let mut lines = vec![format!("ok r{}", report.rev)];
    lines.extend(report.truncations.iter().map(|truncation| {
        format!(
            "cut {}: limit {}, given {}, kept {}, dropped {}; shorten it, or move it to the heap",
            truncation.register,
            truncation.max_chars,
            truncation.input_chars,
            truncation.kept_chars,
            truncation.dropped_chars
        )
    }));
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    if report.pressure.is_some() {
        lines.extend(render::render_heap_index_with_sizes(memory));
    }
    lines.join("\n")
}

pub(crate) fn show_memory(call: &ToolCall) -> ToolResult {
    let memory = plimsoll_store::memory::load_memory(&call.project)?;
    if memory.is_empty() {
        return Ok("nothing has been written yet (r0)".to_owned());
    }
    let lines = [
        vec![render::render_overview(&memory, memory.depth())],
        render_current_frame_brief_and_done_line(&memory),
        render::pack_chunks_into_entries(&memory),
    ]
    .concat();
    Ok(lines.join("\n"))
}

/// Renders the current frame's objective, context and return specification (empty in the root frame), and a line if the
/// root frame has popped.
fn render_current_frame_brief_and_done_line(memory: &Memory) -> Vec<String> {
    let frame = memory.current_frame();
    let labeled_texts =
        [("OBJECTIVE", &frame.objective), ("CONTEXT", &frame.context), ("RETURN", &frame.expected_result)];
    let non_empty_texts = labeled_texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut lines: Vec<String> = non_empty_texts
        .map(|(label, text)| format!("{label}: {}", render::indent_continuation_lines(text)))
        .collect();
    lines.extend(memory.root_result.as_ref().map(|_| "DONE: the root frame has popped".to_owned()));
    lines
}
