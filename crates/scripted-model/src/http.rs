//! A minimal HTTP/1.1 server for one client on loopback, with one request per connection.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Largest accepted request body; a full context window of text is far smaller.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// A received HTTP request.
#[derive(Debug)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Accepts connections until the server is stopped. Each runs in its own thread, so that a client that disconnects ends only
/// its own connection.
pub fn accept_connections<S: Send + Sync + 'static>(
    listener: &TcpListener,
    shared_state: &Arc<S>,
    is_stopped: fn(&S) -> bool,
    handle_connection: fn(TcpStream, &S) -> io::Result<()>,
) {
    for stream in listener.incoming() {
        if is_stopped(shared_state) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared_state = Arc::clone(shared_state);
        std::thread::spawn(move || drop(handle_connection(stream, &shared_state)));
    }
}

/// Reads one request. Returns `None` if the client closed the connection before a complete request head.
pub fn read_request(stream: &mut TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut received = Vec::new();
    loop {
        if let Some((mut request, body_start)) = parse_head(&received)? {
            let body_bytes = content_length(&request.headers)?;
            while received.len() < body_start + body_bytes {
                if !receive_more(stream, &mut received)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            request.body = received[body_start..body_start + body_bytes].to_vec();
            return Ok(Some(request));
        }
        if !receive_more(stream, &mut received)? {
            return Ok(None);
        }
    }
}

fn receive_more(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 64 * 1024];
    let count = stream.read(&mut buffer)?;
    received.extend_from_slice(&buffer[..count]);
    Ok(count > 0)
}

fn parse_head(received: &[u8]) -> io::Result<Option<(HttpRequest, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut parser = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(body_start) = parser.parse(received).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers =
        parser.headers.iter().map(|header| (header.name.to_lowercase(), text(header.value))).collect();
    let method = parser.method.unwrap_or_default().to_owned();
    let path = parser.path.unwrap_or_default().to_owned();
    Ok(Some((HttpRequest { method, path, headers, body: Vec::new() }, body_start)))
}

fn content_length(headers: &[(String, String)]) -> io::Result<usize> {
    let header_value =
        |wanted_name: &str| headers.iter().find(|(name, _)| name == wanted_name).map(|(_, value)| value);
    if header_value("transfer-encoding").is_some() {
        return Err(io::Error::other("chunked requests are not understood"));
    }
    let length =
        header_value("content-length").map_or(Ok(0), |text| text.parse()).map_err(io::Error::other)?;
    if length > MAX_REQUEST_BYTES { Err(io::Error::other("request too large")) } else { Ok(length) }
}

/// Sends a complete JSON response.
pub fn send_json(
    stream: &mut TcpStream,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let length_header = format!("content-length: {}\r\n", body.len());
    send_head(stream, status, "application/json", headers, &length_header)?;
    stream.write_all(body.as_bytes())
}

/// Sends the head of an event stream, which lasts until the connection is closed.
pub(crate) fn send_stream_head(stream: &mut TcpStream, headers: &BTreeMap<String, String>) -> io::Result<()> {
    send_head(stream, 200, "text/event-stream", headers, "")
}

fn send_head(
    stream: &mut TcpStream,
    status: u16,
    content_type: &str,
    headers: &BTreeMap<String, String>,
    length_header: &str,
) -> io::Result<()> {
    let extra_headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\nconnection: close\r\n{length_header}{extra_headers}\r\n"
    );
    stream.write_all(head.as_bytes())
}
