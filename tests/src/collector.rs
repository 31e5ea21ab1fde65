//! An OpenTelemetry collector on loopback. It takes what it can decode with `opentelemetry-proto` and nothing else, and can have
//! the faults that a collector has.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How a collector behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It takes everything.
    Good,
    /// It answers after this time.
    Slow(Duration),
    /// It never answers.
    Silent,
    /// It answers with this status and these headers.
    Status(u16, &'static str),
    /// It does so this many times, and then takes everything.
    StatusAtFirst(u16, &'static str, usize),
    /// It answers with bytes that are no HTTP.
    Garbage,
    /// It takes this many requests, and then nobody listens any more.
    Gone(usize),
}

/// What it was sent; each with the attributes of its resource.
#[derive(Debug, Default)]
pub struct Seen {
    pub spans: Vec<(Value, Span)>,
    pub logs: Vec<(Value, LogRecord)>,
    pub metrics: Vec<(Value, Metric)>,
    /// The heads of all requests, in lower case.
    pub heads: Vec<String>,
}

pub struct Collector {
    address: String,
    seen: Arc<Mutex<Seen>>,
    is_over: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Serving {
    manner: Manner,
    seen: Arc<Mutex<Seen>>,
    asked: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Collector {
    pub fn start(manner: Manner) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let local = listener.local_addr().expect("an address");
        let serving =
            Serving { manner, seen: Arc::default(), asked: Arc::default(), is_over: Arc::default() };
        let ours = serving.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ours.is_over.load(Ordering::SeqCst) {
                    // The listener goes with this thread: the next one is refused.
                    break;
                }
                let ours = ours.clone();
                std::thread::spawn(move || ours.serve(stream));
            }
        });
        Collector { address: format!("http://{local}"), seen: serving.seen, is_over: serving.is_over }
    }

    /// Where nobody listens.
    pub fn nowhere() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("an address"))
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no panic")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
    }
}

impl Serving {
    /// Answers each request of a connection.
    fn serve(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            bytes.extend(&buffer[..count]);
            while let Some((head, length)) = request(&bytes) {
                if bytes.len() < head.len() + length {
                    break;
                }
                let body: Vec<u8> = bytes.drain(..head.len() + length).skip(head.len()).collect();
                let number = self.asked.fetch_add(1, Ordering::SeqCst);
                let Some(answer) = self.answer(&head, &body, number) else { return };
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    }

    /// None ends the connection.
    fn answer(&self, head: &str, body: &[u8], number: usize) -> Option<Vec<u8>> {
        self.seen.lock().expect("no panic").heads.push(head.to_owned());
        let of_status = |status: u16, headers: &str| {
            format!("HTTP/1.1 {status} No\r\n{headers}Content-Length: 0\r\n\r\n").into_bytes()
        };
        match self.manner {
            Manner::Good => {}
            Manner::Slow(time) => std::thread::sleep(time),
            Manner::Silent => {
                // As long as anybody would wait.
                std::thread::sleep(Duration::from_secs(60));
                return None;
            }
            Manner::Status(status, headers) => return Some(of_status(status, headers)),
            Manner::StatusAtFirst(status, headers, times) if number < times => {
                return Some(of_status(status, headers));
            }
            Manner::StatusAtFirst(..) => {}
            Manner::Garbage => return Some(b"\x00\xffnot HTTP at all\r\n\r\n".repeat(20)),
            Manner::Gone(times) if number >= times => {
                self.is_over.store(true, Ordering::SeqCst);
                return None;
            }
            Manner::Gone(_) => {}
        }
        let status = if head.contains("content-type: application/x-protobuf\r\n") {
            if self.keep(head, body) { 200 } else { 400 }
        } else {
            415
        };
        Some(of_status(status, "Content-Type: application/x-protobuf\r\n"))
    }

    /// False where it cannot be decoded.
    fn keep(&self, head: &str, body: &[u8]) -> bool {
        let mut seen = self.seen.lock().expect("no panic");
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path.ends_with("/v1/traces") {
            let Ok(request) = ExportTraceServiceRequest::decode(body) else { return false };
            for resource in request.resource_spans {
                let about = attributes(&resource.resource.unwrap_or_default().attributes);
                let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                seen.spans.extend(spans.map(|span| (about.clone(), span)));
            }
        } else if path.ends_with("/v1/logs") {
            let Ok(request) = ExportLogsServiceRequest::decode(body) else { return false };
            for resource in request.resource_logs {
                let about = attributes(&resource.resource.unwrap_or_default().attributes);
                let logs = resource.scope_logs.into_iter().flat_map(|scope| scope.log_records);
                seen.logs.extend(logs.map(|log| (about.clone(), log)));
            }
        } else if path.ends_with("/v1/metrics") {
            let Ok(request) = ExportMetricsServiceRequest::decode(body) else { return false };
            for resource in request.resource_metrics {
                let about = attributes(&resource.resource.unwrap_or_default().attributes);
                let metrics = resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
                seen.metrics.extend(metrics.map(|metric| (about.clone(), metric)));
            }
        } else {
            return false;
        }
        true
    }
}

/// The head of a request in lower case, and the length of its body.
fn request(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length =
        head.split("content-length:").nth(1).map_or("0", |rest| rest.split("\r\n").next().unwrap_or("0"));
    let length = length.trim().parse().ok()?;
    Some((head, length))
}

/// Attributes as an object.
pub fn attributes(list: &[KeyValue]) -> Value {
    list.iter().map(|one| (one.key.clone(), one.value.as_ref().map_or(Value::Null, plain))).collect()
}

/// A value as JSON has it.
pub fn plain(value: &AnyValue) -> Value {
    match &value.value {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(is_so)) => json!(is_so),
        Some(Any::IntValue(count)) => json!(count),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::ArrayValue(values)) => values.values.iter().map(plain).collect(),
        other => json!(format!("{other:?}")),
    }
}

/// The digits of an id.
pub fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
