//! Converts a step to a Messages API response: one JSON object, or the events of a stream.

use super::request::Request;
use super::step::{ApiError, Step};
use serde_json::{Value, json};

/// A server-sent event: its name and data.
pub(super) type SseEvent = (&'static str, Value);

/// Returns the JSON body of an API error, with the usual error type for its status unless the step sets one.
pub(super) fn api_error_body(api_error: &ApiError, request_number: usize) -> Value {
    let error_type = api_error.error_type.as_deref().unwrap_or(match api_error.status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    });
    let error = json!({ "type": error_type, "message": api_error.message });
    json!({ "type": "error", "error": error, "request_id": format!("req_{request_number:04}") })
}

/// Returns the response as one complete message.
pub(super) fn response_message(step: &Step, request: &Request) -> Value {
    let mut message = message_without_content(step, request);
    message["content"] = content_blocks(step, request.number).into();
    message["stop_reason"] = stop_reason(step).into();
    message["usage"] = reported_usage(step, request);
    message
}

/// Returns the response as stream events, truncated if the step simulates an error, a hang or a closed connection.
pub(super) fn stream_events_until_fault(step: &Step, request: &Request) -> Vec<SseEvent> {
    let mut start_message = message_without_content(step, request);
    start_message["usage"]["output_tokens"] = 1.into();
    let mut events = vec![("message_start", json!({ "message": start_message }))];
    for (index, block) in content_blocks(step, request.number).into_iter().enumerate() {
        events.extend(block_events(index, &block, step.text_delta_count));
    }
    let message_delta = json!({ "stop_reason": stop_reason(step), "stop_sequence": null });
    events.push(("message_delta", json!({ "delta": message_delta, "usage": reported_usage(step, request) })));
    events.push(("message_stop", json!({})));
    if let Some(stream_error) = &step.stream_error {
        events.truncate(2);
        events.push((
            "error",
            json!({ "error": { "type": stream_error.error_type, "message": stream_error.message } }),
        ));
    } else if !step.hang_time.is_zero() {
        events.truncate(1);
    } else if step.is_stream_cut_off {
        events.truncate(3);
    }
    events.into_iter().map(|(name, data)| (name, with_event_type(name, data))).collect()
}

fn with_event_type(event_name: &str, mut event_data: Value) -> Value {
    event_data["type"] = event_name.into();
    event_data
}

fn message_without_content(step: &Step, request: &Request) -> Value {
    json!({
        "id": format!("msg_{:04}", request.number),
        "type": "message",
        "role": "assistant",
        "model": step.model.as_deref().unwrap_or(&request.model),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": reported_usage(step, request),
    })
}

fn reported_usage(step: &Step, request: &Request) -> Value {
    let input_tokens = if step.derives_input_tokens_from_request_size {
        request.body_bytes() as u64 / 4
    } else {
        step.input_tokens
    };
    let mut usage = json!({
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": step.cache_creation_tokens,
        "cache_read_input_tokens": step.cache_read_tokens,
        "output_tokens": step.output_tokens,
    });
    for (field, value) in &step.extra_usage_fields {
        usage[field] = value.clone();
    }
    usage
}

fn stop_reason(step: &Step) -> &str {
    let default_reason = if step.tool_calls.is_empty() { "end_turn" } else { "tool_use" };
    step.stop_reason.as_deref().unwrap_or(default_reason)
}

fn content_blocks(step: &Step, request_number: usize) -> Vec<Value> {
    let thinking = step
        .thinking
        .iter()
        .map(|text| json!({ "type": "thinking", "thinking": text, "signature": "c2lnbmVk" }));
    let text = step.text.iter().map(|text| json!({ "type": "text", "text": text }));
    let tool_calls = step.tool_calls.iter().enumerate().map(|(index, tool_call)| {
        let call_id = format!("toolu_{request_number:04}_{index}");
        json!({ "type": "tool_use", "id": call_id, "name": tool_call.name, "input": tool_call.input })
    });
    thinking.chain(text).chain(tool_calls).collect()
}

/// Returns the events of one content block: an empty start, its deltas, and the stop.
fn block_events(block_index: usize, block: &Value, text_delta_count: usize) -> Vec<SseEvent> {
    let mut start_block = block.clone();
    let deltas = match block["type"].as_str() {
        Some("text") => {
            start_block["text"] = "".into();
            let text_parts =
                split_into_equal_parts(block["text"].as_str().unwrap_or_default(), text_delta_count);
            text_parts.into_iter().map(|part| json!({ "type": "text_delta", "text": part })).collect()
        }
        Some("thinking") => {
            start_block["thinking"] = "".into();
            start_block["signature"] = "".into();
            let thinking_delta = json!({ "type": "thinking_delta", "thinking": block["thinking"] });
            vec![thinking_delta, json!({ "type": "signature_delta", "signature": block["signature"] })]
        }
        _ => {
            start_block["input"] = json!({});
            vec![json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })]
        }
    };
    let delta_event = |delta| ("content_block_delta", json!({ "index": block_index, "delta": delta }));
    let mut events =
        vec![("content_block_start", json!({ "index": block_index, "content_block": start_block }))];
    events.extend(deltas.into_iter().map(delta_event));
    events.push(("content_block_stop", json!({ "index": block_index })));
    events
}

/// Splits the text into at most `part_count` parts with the same number of characters; the last part may be shorter.
fn split_into_equal_parts(text: &str, part_count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let part_chars = characters.len().div_ceil(part_count.max(1)).max(1);
    characters.chunks(part_chars).map(|part| part.iter().collect()).collect()
}
