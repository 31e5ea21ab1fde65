//! Turns and the working memory as JSON: printed by `--json`, and the input of `plimsoll query`.

use plimsoll_domain::memory::{Frame, Memory, Register};
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use serde_json::{Map, Value, json};

/// Returns a turn's eight fields as JSON; adds the turn's location in the log to `ext`.
pub(crate) fn turn_json(record: &LoggedRecord) -> Value {
    let mut value = match &record.body {
        RecordBody::Turn(turn) => serde_json::to_value(turn).unwrap_or_default(),
        RecordBody::DecodeError(reason) => turn_json_without_content(record, &json!({"unsound": reason})),
        _ => turn_json_without_content(record, &json!({"erased": true})),
    };
    let header = &record.header;
    let location = json!({
        "session_id": record.session_id, "seq": header.sequence_number, "stream": header.stream, "at": header.recorded_at,
    });
    for (key, location_value) in location.as_object().into_iter().flatten() {
        value["ext"][key] = location_value.clone();
    }
    value
}

fn turn_json_without_content(record: &LoggedRecord, ext: &Value) -> Value {
    json!({
        "number": record.header.turn_number, "raw_response": null, "program": null, "result": null,
        "prints": null, "tool_calls": null, "memory": null, "success": record.header.succeeded, "ext": ext,
    })
}

/// Returns the memory as JSON, for `memory show --json` and `plimsoll query --on memory`.
pub(crate) fn memory_json(memory: &Memory) -> Value {
    json!({
        "rev": memory.revision, "step": memory.step_number, "depth": memory.depth(), "frame": memory.current_frame().name,
        "registers": registers_json(memory.current_frame()), "frames": memory.frames.iter().map(frame_json).collect::<Vec<_>>(),
        "heap": memory.heap, "heap_chars": memory.heap_size_in_chars(), "pressure": memory.heap_pressure(),
        "stale": memory.stale_next_and_status_registers(), "done": memory.root_result,
    })
}

/// Returns the texts of a frame's registers by name.
fn registers_json(frame: &Frame) -> Map<String, Value> {
    let key_and_text =
        |register: Register| (register.key().to_owned(), json!(frame.registers[register.index()].text));
    Register::ALL.into_iter().map(key_and_text).collect()
}

fn frame_json(frame: &Frame) -> Value {
    json!({
        "name": frame.name, "objective": frame.objective, "context": frame.context,
        "return_spec": frame.expected_result, "registers": registers_json(frame), "agent": frame.agent_id,
    })
}
