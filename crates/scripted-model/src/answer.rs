//! A step as the Messages API would put it: one JSON object, or the events of a stream.

use super::request::Request;
use super::step::{Failure, Step};
use serde_json::{Value, json};

/// An event of a stream: its name and its content.
pub(super) type Event = (&'static str, Value);

/// The body of an API error.
pub(super) fn error_body(failure: &Failure, number: usize) -> Value {
    let kind = failure.kind.as_deref().unwrap_or(match failure.status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    });
    let error = json!({ "type": kind, "message": failure.message });
    json!({ "type": "error", "error": error, "request_id": format!("req_{number:04}") })
}

/// The whole answer as one message.
pub(super) fn message(step: &Step, request: &Request) -> Value {
    let mut message = head(step, request);
    message["content"] = content(step, request.number).into();
    message["stop_reason"] = stop_reason(step).into();
    message["usage"] = usage(step, request);
    message
}

/// The answer as the events of a stream, ended early where the step says so.
pub(super) fn events(step: &Step, request: &Request) -> Vec<Event> {
    let mut start = head(step, request);
    start["usage"]["output_tokens"] = 1.into();
    let mut events = vec![("message_start", json!({ "message": start }))];
    for (index, block) in content(step, request.number).into_iter().enumerate() {
        events.extend(block_events(index, &block, step.chunks));
    }
    let delta = json!({ "stop_reason": stop_reason(step), "stop_sequence": null });
    events.push(("message_delta", json!({ "delta": delta, "usage": usage(step, request) })));
    events.push(("message_stop", json!({})));
    if let Some(error) = &step.sse_error {
        events.truncate(2);
        events.push(("error", json!({ "error": { "type": error.kind, "message": error.message } })));
    } else if !step.hang.is_zero() {
        events.truncate(1);
    } else if step.cut {
        events.truncate(3);
    }
    events.into_iter().map(|(name, data)| (name, with_type(name, data))).collect()
}

fn with_type(name: &str, mut data: Value) -> Value {
    data["type"] = name.into();
    data
}

fn head(step: &Step, request: &Request) -> Value {
    json!({
        "id": format!("msg_{:04}", request.number),
        "type": "message",
        "role": "assistant",
        "model": step.model.as_deref().unwrap_or(&request.model),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(step, request),
    })
}

fn usage(step: &Step, request: &Request) -> Value {
    let input = if step.auto_usage { request.bytes() as u64 / 4 } else { step.input };
    let mut usage = json!({
        "input_tokens": input,
        "cache_creation_input_tokens": step.cache_creation,
        "cache_read_input_tokens": step.cache_read,
        "output_tokens": step.output,
    });
    for (field, value) in &step.usage_fields {
        usage[field] = value.clone();
    }
    usage
}

fn stop_reason(step: &Step) -> &str {
    let usual = if step.tools.is_empty() { "end_turn" } else { "tool_use" };
    step.stop_reason.as_deref().unwrap_or(usual)
}

fn content(step: &Step, number: usize) -> Vec<Value> {
    let thinking = step
        .thinking
        .iter()
        .map(|text| json!({ "type": "thinking", "thinking": text, "signature": "c2lnbmVk" }));
    let text = step.text.iter().map(|text| json!({ "type": "text", "text": text }));
    let tools = step.tools.iter().enumerate().map(|(index, tool)| {
        let id = format!("toolu_{number:04}_{index}");
        json!({ "type": "tool_use", "id": id, "name": tool.name, "input": tool.input })
    });
    thinking.chain(text).chain(tools).collect()
}

/// One content block: an empty start, its deltas, the stop.
fn block_events(index: usize, block: &Value, chunks: usize) -> Vec<Event> {
    let mut empty = block.clone();
    let deltas = match block["type"].as_str() {
        Some("text") => {
            empty["text"] = "".into();
            let pieces = pieces(block["text"].as_str().unwrap_or_default(), chunks);
            pieces.into_iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect()
        }
        Some("thinking") => {
            empty["thinking"] = "".into();
            empty["signature"] = "".into();
            let thinking = json!({ "type": "thinking_delta", "thinking": block["thinking"] });
            vec![thinking, json!({ "type": "signature_delta", "signature": block["signature"] })]
        }
        _ => {
            empty["input"] = json!({});
            vec![json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })]
        }
    };
    let delta = |delta| ("content_block_delta", json!({ "index": index, "delta": delta }));
    let mut events = vec![("content_block_start", json!({ "index": index, "content_block": empty }))];
    events.extend(deltas.into_iter().map(delta));
    events.push(("content_block_stop", json!({ "index": index })));
    events
}

/// The text in at most so many pieces of equal length, counted in characters.
fn pieces(text: &str, count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}
