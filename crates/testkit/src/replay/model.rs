//! Sends a request to the model and reads the stream or one of the recorded errors.

use super::{ReplayResult, not_recorded};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The response to a request.
#[derive(Debug)]
pub(super) enum ModelReply {
    /// A complete message and the request id.
    Message(Value, String),
    /// An error of the API, with the limit and the time of its reset if the headers name them.
    Error {
        status: u16,
        error_type: String,
        message: String,
        body: String,
        request_id: String,
        resets_at: Option<(String, u64)>,
    },
    /// The client received a signal to end meanwhile.
    Interrupted,
}

/// Sends a request once, without retries.
pub(super) fn send_request(
    base_url: &str,
    session_id: &str,
    body: &Value,
    is_ending: &dyn Fn() -> bool,
) -> ReplayResult<ModelReply> {
    let Some(address) = base_url.strip_prefix("http://") else {
        return not_recorded(format!("the model at {base_url}"));
    };
    let Ok(mut stream) = TcpStream::connect(address) else { return not_recorded("a model that is away") };
    let body = body.to_string();
    let api_key = std::env::var("ANTHROPIC_API_KEY").unwrap_or_default();
    let head = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: {address}\r\nuser-agent: claude-cli/{} (external, sdk-cli)\r\n\
         anthropic-version: 2023-06-01\r\nx-app: cli\r\nx-api-key: {api_key}\r\nx-claude-code-session-id: {session_id}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        crate::client::CLIENT_VERSION,
        body.len()
    );
    let sent = stream
        .set_nodelay(true)
        .and_then(|()| stream.write_all(head.as_bytes()))
        .and_then(|()| stream.write_all(body.as_bytes()))
        .and_then(|()| stream.set_read_timeout(Some(Duration::from_millis(10))));
    if sent.is_err() {
        return not_recorded("a model that hangs up");
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
            Err(_) => return not_recorded("a connection that breaks"),
        }
        if is_ending() {
            return Ok(ModelReply::Interrupted);
        }
    }
    parse_response(&String::from_utf8_lossy(&received))
}

fn parse_response(received: &str) -> ReplayResult<ModelReply> {
    let (head, body) = received.split_once("\r\n\r\n").unwrap_or_default();
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let request_id = header("request-id").unwrap_or_default();
    if status == 200 {
        return Ok(ModelReply::Message(assemble_message(body)?, request_id));
    }
    if header("retry-after").is_some() || header("x-should-retry").is_some() {
        return not_recorded("an error that says when to try again");
    }
    let error: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resets_at = header("anthropic-ratelimit-unified-representative-claim")
        .zip(header("anthropic-ratelimit-unified-reset").and_then(|reset| reset.parse().ok()));
    Ok(ModelReply::Error {
        status,
        error_type: text(&error["error"]["type"]),
        message: text(&error["error"]["message"]),
        body: error.to_string(),
        request_id,
        resets_at,
    })
}

/// Assembles the message from the events of a stream.
fn assemble_message(body: &str) -> ReplayResult<Value> {
    let mut message = Value::Null;
    let mut partial_inputs: Vec<String> = Vec::new();
    let mut is_complete = false;
    for event in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event).unwrap_or_default();
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
                append_delta(&mut message["content"][index], &mut partial_inputs[index], &event["delta"]);
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
            "error" => return not_recorded("an error within a stream"),
            _ => {}
        }
    }
    check_is_recorded(&message, is_complete)?;
    message["stop_details"] = json!(null);
    Ok(message)
}

/// Appends a delta to its content block. The input of a tool call is JSON only when complete, so its pieces
/// are collected in `partial`.
fn append_delta(block: &mut Value, partial_input: &mut String, delta: &Value) {
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

fn check_is_recorded(message: &Value, is_complete: bool) -> ReplayResult<()> {
    if message["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "thinking"))
    {
        return not_recorded("a model that thinks aloud");
    }
    if !is_complete {
        return not_recorded("a stream that breaks off");
    }
    if !matches!(message["stop_reason"].as_str(), Some("end_turn" | "tool_use" | "stop_sequence")) {
        return not_recorded(format!("the stop reason {}", message["stop_reason"]));
    }
    Ok(())
}
