//! Turns and the working memory for programs: `--json` prints them, and `plimsoll query` asks about them.

use plimsoll_domain::memory::{Frame, Memory, Register};
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::{Map, Value, json};

/// The eight fields by name, and `ext`, which also has its place.
pub(crate) fn turn_json(recorded: &Recorded) -> Value {
    let mut value = match &recorded.body {
        Body::Turn(turn) => serde_json::to_value(turn).unwrap_or_default(),
        Body::DecodeError(why) => empty(recorded, &json!({"unsound": why})),
        _ => empty(recorded, &json!({"erased": true})),
    };
    let header = &recorded.header;
    let place = json!({
        "session_id": recorded.session_id, "seq": header.seq, "stream": header.stream, "at": header.at,
    });
    for (key, place) in place.as_object().into_iter().flatten() {
        value["ext"][key] = place.clone();
    }
    value
}

fn empty(recorded: &Recorded, ext: &Value) -> Value {
    json!({
        "number": recorded.header.number, "raw_response": null, "program": null, "result": null,
        "prints": null, "tool_calls": null, "memory": null, "success": recorded.header.success, "ext": ext,
    })
}

/// The memory for programs: `memory show --json`, and what `plimsoll query --on memory` is asked about.
pub(crate) fn memory_json(memory: &Memory) -> Value {
    json!({
        "rev": memory.rev, "step": memory.step, "depth": memory.depth(), "frame": memory.top().name,
        "registers": registers(memory.top()), "frames": memory.frames.iter().map(frame_in_json).collect::<Vec<_>>(),
        "heap": memory.heap, "heap_chars": memory.heap_size(), "pressure": memory.pressure(),
        "stale": memory.stale(), "done": memory.done,
    })
}

/// By their names.
fn registers(frame: &Frame) -> Map<String, Value> {
    let value =
        |register: Register| (register.key().to_owned(), json!(frame.registers[register.index()].text));
    Register::ALL.into_iter().map(value).collect()
}

fn frame_in_json(frame: &Frame) -> Value {
    json!({
        "name": frame.name, "objective": frame.objective, "context": frame.context,
        "return_spec": frame.return_spec, "registers": registers(frame), "agent": frame.agent,
    })
}
