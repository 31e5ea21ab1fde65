//! Sends a request to the model and reads the stream or one of the recorded errors.

use super::{ReplayResult, not_replayable_error};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The model's response to a request.
#[derive(Debug)]
pub(super) enum ModelReply {
    /// A complete message and its request id.
    Message(Value, String),
    /// An API error, with the rate limit and its reset time if the headers contain them.
    Error {
        status: u16,
        error_type: String,
        message: String,
        body: String,
        request_id: String,
        rate_limit_reset: Option<(String, u64)>,
    },
    /// The client received a signal to end before the response was complete.
    Interrupted,
}

/// Sends a request without retries. Returns `Interrupted` once `is_ending` returns true, and an error if the
/// connection fails.
pub(super) fn send_request_once(
    base_url: &str,
    session_id: &str,
    body: &Value,
    is_ending: &dyn Fn() -> bool,
) -> ReplayResult<ModelReply> {
    let Some(address) = base_url.strip_prefix("http://") else {
        return not_replayable_error(format!("the model at {base_url}"));
    };
    let Ok(mut stream) = TcpStream::connect(address) else {
        return not_replayable_error("a model that is away");
    };
    let body = body.to_string();
    let api_key = std::env::var("ANTHROPIC_API_KEY").unwrap_or_default();
    let head = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: {address}\r\nuser-agent: claude-cli/{} (external, sdk-cli)\r\n\
         anthropic-version: 2023-06-01\r\nx-app: cli\r\nx-api-key: {api_key}\r\nx-claude-code-session-id: {session_id}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        crate::client::CLIENT_VERSION,
        body.len()
    );
    let write_result = stream
        .set_nodelay(true)
        .and_then(|()| stream.write_all(head.as_bytes()))
        .and_then(|()| stream.write_all(body.as_bytes()))
        .and_then(|()| stream.set_read_timeout(Some(Duration::from_millis(10))));
    if write_result.is_err() {
        return not_replayable_error("a model that hangs up");
    }
    let mut received = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(_) => return not_replayable_error("a connection that breaks"),
        }
        if is_ending() {
            return Ok(ModelReply::Interrupted);
        }
    }
    parse_http_response(&String::from_utf8_lossy(&received))
}

fn parse_http_response(response_text: &str) -> ReplayResult<ModelReply> {
    let (head, body) = response_text.split_once("\r\n\r\n").unwrap_or_default();
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let find_header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let request_id = find_header("request-id").unwrap_or_default();
    if status == 200 {
        return Ok(ModelReply::Message(assemble_message_from_stream(body)?, request_id));
    }
    if find_header("retry-after").is_some() || find_header("x-should-retry").is_some() {
        return not_replayable_error("an error that says when to try again");
    }
    let error_json: Value = serde_json::from_str(body).unwrap_or_default();
    let string_or_empty = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rate_limit_reset = find_header("anthropic-ratelimit-unified-representative-claim")
        .zip(find_header("anthropic-ratelimit-unified-reset").and_then(|reset| reset.parse().ok()));
    Ok(ModelReply::Error {
        status,
        error_type: string_or_empty(&error_json["error"]["type"]),
        message: string_or_empty(&error_json["error"]["message"]),
        body: error_json.to_string(),
        request_id,
        rate_limit_reset,
    })
}

/// Assembles the message from the server-sent events of a response body.
fn assemble_message_from_stream(event_stream: &str) -> ReplayResult<Value> {
    let mut message = Value::Null;
    let mut partial_inputs: Vec<String> = Vec::new();
    let mut is_complete = false;
    for event_json in event_stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event_json).unwrap_or_default();
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                if let Some(content) = message["content"].as_array_mut() {
                    content.push(event["content_block"].clone());
                    partial_inputs.push(String::new());
                }
            }
            "content_block_delta" => {
                append_delta_to_block_or_partial_input(
                    &mut message["content"][index],
                    &mut partial_inputs[index],
                    &event["delta"],
                );
            }
            "content_block_stop" if !partial_inputs[index].is_empty() => {
                let input: Value = serde_json::from_str(&partial_inputs[index]).unwrap_or_default();
                message["content"][index]["input"] = input;
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            "message_stop" => is_complete = true,
            "error" => return not_replayable_error("an error within a stream"),
            _ => {}
        }
    }
    reject_unsupported_or_incomplete_message(&message, is_complete)?;
    message["stop_details"] = json!(null);
    Ok(message)
}

/// Appends a delta to its content block. The input of a tool call is JSON only when complete, so its parts
/// are collected in `partial_input`.
fn append_delta_to_block_or_partial_input(block: &mut Value, partial_input: &mut String, delta: &Value) {
    let field = match delta["type"].as_str() {
        Some("text_delta") => "text",
        Some("thinking_delta") => "thinking",
        Some("signature_delta") => "signature",
        _ => {
            partial_input.push_str(delta["partial_json"].as_str().unwrap_or_default());
            return;
        }
    };
    let previous = block[field].as_str().unwrap_or_default();
    block[field] = format!("{previous}{}", delta[field].as_str().unwrap_or_default()).into();
}

fn reject_unsupported_or_incomplete_message(message: &Value, is_complete: bool) -> ReplayResult<()> {
    if message["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "thinking"))
    {
        return not_replayable_error("a model that thinks aloud");
    }
    if !is_complete {
        return not_replayable_error("a stream that breaks off");
    }
    if !matches!(message["stop_reason"].as_str(), Some("end_turn" | "tool_use" | "stop_sequence")) {
        return not_replayable_error(format!("the stop reason {}", message["stop_reason"]));
    }
    Ok(())
}
