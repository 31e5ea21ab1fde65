//! Just enough HTTP/1.1 for one client on loopback: one request per connection.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// The largest request taken; a full window of text is far below.
const LARGEST_REQUEST: usize = 64 << 20;

/// A request as it came over the wire.
#[derive(Debug)]
pub struct Incoming {
    /// `GET`, `POST`, …
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// As many bytes as its `content-length` says.
    pub body: Vec<u8>,
}

/// Takes connections until the server is stopped, each in a thread of its own: a client that hangs up ends its own
/// connection and nothing else.
pub fn accept<S: Send + Sync + 'static>(
    listener: &TcpListener,
    shared: &Arc<S>,
    is_stopped: fn(&S) -> bool,
    converse: fn(TcpStream, &S) -> io::Result<()>,
) {
    for stream in listener.incoming() {
        if is_stopped(shared) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || drop(converse(stream, &shared)));
    }
}

/// Reads one request; none if the other side closed without asking.
pub fn read(stream: &mut TcpStream) -> io::Result<Option<Incoming>> {
    let mut received = Vec::new();
    loop {
        if let Some((mut incoming, start)) = parse_head(&received)? {
            let length = content_length(&incoming.headers)?;
            while received.len() < start + length {
                if !receive(stream, &mut received)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            incoming.body = received[start..start + length].to_vec();
            return Ok(Some(incoming));
        }
        if !receive(stream, &mut received)? {
            return Ok(None);
        }
    }
}

fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 64 * 1024];
    let count = stream.read(&mut buffer)?;
    received.extend_from_slice(&buffer[..count]);
    Ok(count > 0)
}

fn parse_head(received: &[u8]) -> io::Result<Option<(Incoming, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(received).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers =
        head.headers.iter().map(|header| (header.name.to_lowercase(), text(header.value))).collect();
    let method = head.method.unwrap_or_default().to_owned();
    let path = head.path.unwrap_or_default().to_owned();
    Ok(Some((Incoming { method, path, headers, body: Vec::new() }, start)))
}

fn content_length(headers: &[(String, String)]) -> io::Result<usize> {
    let value = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    if value("transfer-encoding").is_some() {
        return Err(io::Error::other("chunked requests are not understood"));
    }
    let length = value("content-length").map_or(Ok(0), |text| text.parse()).map_err(io::Error::other)?;
    if length > LARGEST_REQUEST { Err(io::Error::other("request too large")) } else { Ok(length) }
}

/// Sends a whole JSON answer.
pub fn send_json(
    stream: &mut TcpStream,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let length = format!("content-length: {}\r\n", body.len());
    send_head(stream, status, "application/json", headers, &length)?;
    stream.write_all(body.as_bytes())
}

/// Sends the head of an event stream, which lasts until the connection is closed.
pub(crate) fn send_stream_head(stream: &mut TcpStream, headers: &BTreeMap<String, String>) -> io::Result<()> {
    send_head(stream, 200, "text/event-stream", headers, "")
}

fn send_head(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    headers: &BTreeMap<String, String>,
    length: &str,
) -> io::Result<()> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\nconnection: close\r\n{length}{more}\r\n"
    );
    stream.write_all(head.as_bytes())
}
