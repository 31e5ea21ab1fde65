//! Asking the model: one request, its stream, and the errors that were recorded.

use super::{Recorded, not_recorded};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What came back.
#[derive(Debug)]
pub(super) enum Reply {
    /// A whole message, with its request's number.
    Message(Value, String),
    /// An error of the API.
    Error {
        status: u16,
        kind: String,
        message: String,
        body: String,
        request: String,
        resets_at: Option<(String, u64)>,
    },
    /// The client was told to end meanwhile.
    Interrupted,
}

/// Asks once.
pub(super) fn ask(base: &str, session: &str, body: &Value, is_ending: &dyn Fn() -> bool) -> Recorded<Reply> {
    let Some(address) = base.strip_prefix("http://") else {
        return not_recorded(format!("the model at {base}"));
    };
    let Ok(mut stream) = TcpStream::connect(address) else { return not_recorded("a model that is away") };
    let body = body.to_string();
    let key = std::env::var("ANTHROPIC_API_KEY").unwrap_or_default();
    let head = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: {address}\r\nuser-agent: claude-cli/{} (external, sdk-cli)\r\n\
         anthropic-version: 2023-06-01\r\nx-app: cli\r\nx-api-key: {key}\r\nx-claude-code-session-id: {session}\r\ncontent-type: application/json\r\n\
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
            return Ok(Reply::Interrupted);
        }
    }
    read(&String::from_utf8_lossy(&received))
}

fn read(received: &str) -> Recorded<Reply> {
    let (head, body) = received.split_once("\r\n\r\n").unwrap_or_default();
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let request = header("request-id").unwrap_or_default();
    if status == 200 {
        return Ok(Reply::Message(message(body)?, request));
    }
    if header("retry-after").is_some() || header("x-should-retry").is_some() {
        return not_recorded("an error that says when to try again");
    }
    let error: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resets_at = header("anthropic-ratelimit-unified-representative-claim")
        .zip(header("anthropic-ratelimit-unified-reset").and_then(|reset| reset.parse().ok()));
    Ok(Reply::Error {
        status,
        kind: text(&error["error"]["type"]),
        message: text(&error["error"]["message"]),
        body: error.to_string(),
        request,
        resets_at,
    })
}

/// The message that the events of a stream make.
fn message(body: &str) -> Recorded<Value> {
    let mut message = Value::Null;
    let mut partial: Vec<String> = Vec::new();
    let mut is_whole = false;
    for event in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event).unwrap_or_default();
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                if let Some(content) = message["content"].as_array_mut() {
                    content.push(event["content_block"].clone());
                    partial.push(String::new());
                }
            }
            "content_block_delta" => {
                grow(&mut message["content"][index], &mut partial[index], &event["delta"]);
            }
            "content_block_stop" if !partial[index].is_empty() => {
                let input: Value = serde_json::from_str(&partial[index]).unwrap_or_default();
                message["content"][index]["input"] = input;
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            "message_stop" => is_whole = true,
            "error" => return not_recorded("an error within a stream"),
            _ => {}
        }
    }
    refuse_unrecorded(&message, is_whole)?;
    message["stop_details"] = json!(null);
    Ok(message)
}

/// Adds a piece to its block; that of a call's input, which is no JSON before it is whole, to what came before it.
fn grow(block: &mut Value, partial: &mut String, delta: &Value) {
    let name = match delta["type"].as_str() {
        Some("text_delta") => "text",
        Some("thinking_delta") => "thinking",
        Some("signature_delta") => "signature",
        _ => {
            partial.push_str(delta["partial_json"].as_str().unwrap_or_default());
            return;
        }
    };
    let before = block[name].as_str().unwrap_or_default();
    block[name] = format!("{before}{}", delta[name].as_str().unwrap_or_default()).into();
}

fn refuse_unrecorded(message: &Value, is_whole: bool) -> Recorded<()> {
    if message["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "thinking"))
    {
        return not_recorded("a model that thinks aloud");
    }
    if !is_whole {
        return not_recorded("a stream that breaks off");
    }
    if !matches!(message["stop_reason"].as_str(), Some("end_turn" | "tool_use" | "stop_sequence")) {
        return not_recorded(format!("the stop reason {}", message["stop_reason"]));
    }
    Ok(())
}
