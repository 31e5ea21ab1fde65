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
    /// The path, including the query string.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Accepts connections until `is_stopped` returns true, and handles each one in its own thread, so that an I/O error ends only
/// one connection.
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
    let mut received_bytes = Vec::new();
    loop {
        if let Some((mut request, body_start)) = parse_head(&received_bytes)? {
            let body_bytes = validated_content_length(&request.headers)?;
            while received_bytes.len() < body_start + body_bytes {
                if !read_more_bytes(stream, &mut received_bytes)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            request.body = received_bytes[body_start..body_start + body_bytes].to_vec();
            return Ok(Some(request));
        }
        if !read_more_bytes(stream, &mut received_bytes)? {
            return Ok(None);
        }
    }
}

fn read_more_bytes(stream: &mut TcpStream, received_bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 64 * 1024];
    let read_count = stream.read(&mut buffer)?;
    received_bytes.extend_from_slice(&buffer[..read_count]);
    Ok(read_count > 0)
}

fn parse_head(received_bytes: &[u8]) -> io::Result<Option<(HttpRequest, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut parser = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(body_start) = parser.parse(received_bytes).map_err(io::Error::other)?
    else {
        return Ok(None);
    };
    let to_lossy_string = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = parser
        .headers
        .iter()
        .map(|header| (header.name.to_lowercase(), to_lossy_string(header.value)))
        .collect();
    let method = parser.method.unwrap_or_default().to_owned();
    let path = parser.path.unwrap_or_default().to_owned();
    Ok(Some((HttpRequest { method, path, headers, body: Vec::new() }, body_start)))
}

fn validated_content_length(headers: &[(String, String)]) -> io::Result<usize> {
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
    let content_length_line = format!("content-length: {}\r\n", body.len());
    send_head(stream, status, "application/json", headers, &content_length_line)?;
    stream.write_all(body.as_bytes())
}

/// Sends the head of an event stream; the stream ends when the connection is closed.
pub(crate) fn send_stream_head(stream: &mut TcpStream, headers: &BTreeMap<String, String>) -> io::Result<()> {
    send_head(stream, 200, "text/event-stream", headers, "")
}

fn send_head(
    stream: &mut TcpStream,
    status: u16,
    content_type: &str,
    headers: &BTreeMap<String, String>,
    content_length_line: &str,
) -> io::Result<()> {
    let extra_headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\nconnection: close\r\n{content_length_line}{extra_headers}\r\n"
    );
    stream.write_all(head.as_bytes())
}
