//! An OpenTelemetry collector on loopback. It accepts only what it can decode with `opentelemetry-proto`, and can
//! simulate the faults of a collector.

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
pub enum CollectorBehavior {
    /// Accepts everything.
    Accepting,
    /// Responds after this time.
    SlowResponse(Duration),
    /// Never responds.
    NeverResponds,
    /// Responds with this status and these headers.
    Status(u16, &'static str),
    /// Responds with this status and these headers this many times, then accepts everything.
    StatusForFirst(u16, &'static str, usize),
    /// Responds with bytes that are not HTTP.
    InvalidHttp,
    /// Accepts this many requests, then stops listening.
    GoneAfter(usize),
}

/// The telemetry that a collector received, each entry with the attributes of its resource.
#[derive(Debug, Default)]
pub struct ReceivedTelemetry {
    pub spans: Vec<(Value, Span)>,
    pub logs: Vec<(Value, LogRecord)>,
    pub metrics: Vec<(Value, Metric)>,
    /// The heads of all requests, in lower case.
    pub request_heads: Vec<String>,
}

pub struct Collector {
    address: String,
    received: Arc<Mutex<ReceivedTelemetry>>,
    is_stopped: Arc<AtomicBool>,
}

#[derive(Clone)]
struct CollectorServer {
    behavior: CollectorBehavior,
    received: Arc<Mutex<ReceivedTelemetry>>,
    request_count: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
}

impl Collector {
    pub fn start(behavior: CollectorBehavior) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let local_address = listener.local_addr().expect("an address");
        let server = CollectorServer {
            behavior,
            received: Arc::default(),
            request_count: Arc::default(),
            is_stopped: Arc::default(),
        };
        let thread_server = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if thread_server.is_stopped.load(Ordering::SeqCst) {
                    // The listener is dropped with this thread, so the next connection is refused.
                    break;
                }
                let connection_server = thread_server.clone();
                std::thread::spawn(move || connection_server.serve_connection(stream));
            }
        });
        Collector {
            address: format!("http://{local_address}"),
            received: server.received,
            is_stopped: server.is_stopped,
        }
    }

    /// Returns an address at which nothing listens.
    pub fn unreachable_address() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("an address"))
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn received(&self) -> MutexGuard<'_, ReceivedTelemetry> {
        self.received.lock().expect("no panic")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that is blocked in accept.
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
    }
}

impl CollectorServer {
    /// Responds to each request of a connection.
    fn serve_connection(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            bytes.extend(&buffer[..count]);
            while let Some((head, length)) = parse_request_head(&bytes) {
                if bytes.len() < head.len() + length {
                    break;
                }
                let body: Vec<u8> = bytes.drain(..head.len() + length).skip(head.len()).collect();
                let number = self.request_count.fetch_add(1, Ordering::SeqCst);
                let Some(answer) = self.response_to(&head, &body, number) else { return };
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    }

    /// Returns the response to a request, or `None` to close the connection.
    fn response_to(&self, head: &str, body: &[u8], number: usize) -> Option<Vec<u8>> {
        self.received.lock().expect("no panic").request_heads.push(head.to_owned());
        let status_response = |status: u16, headers: &str| {
            format!("HTTP/1.1 {status} No\r\n{headers}Content-Length: 0\r\n\r\n").into_bytes()
        };
        match self.behavior {
            CollectorBehavior::Accepting => {}
            CollectorBehavior::SlowResponse(time) => std::thread::sleep(time),
            CollectorBehavior::NeverResponds => {
                // Longer than the timeout of any client.
                std::thread::sleep(Duration::from_secs(60));
                return None;
            }
            CollectorBehavior::Status(status, headers) => return Some(status_response(status, headers)),
            CollectorBehavior::StatusForFirst(status, headers, times) if number < times => {
                return Some(status_response(status, headers));
            }
            CollectorBehavior::StatusForFirst(..) => {}
            CollectorBehavior::InvalidHttp => return Some(b"\x00\xffnot HTTP at all\r\n\r\n".repeat(20)),
            CollectorBehavior::GoneAfter(times) if number >= times => {
                self.is_stopped.store(true, Ordering::SeqCst);
                return None;
            }
            CollectorBehavior::GoneAfter(_) => {}
        }
        let status = if head.contains("content-type: application/x-protobuf\r\n") {
            if self.record_request(head, body) { 200 } else { 400 }
        } else {
            415
        };
        Some(status_response(status, "Content-Type: application/x-protobuf\r\n"))
    }

    /// Decodes and records a request. Returns false if it cannot be decoded.
    fn record_request(&self, head: &str, body: &[u8]) -> bool {
        let mut received = self.received.lock().expect("no panic");
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path.ends_with("/v1/traces") {
            let Ok(request) = ExportTraceServiceRequest::decode(body) else { return false };
            for resource in request.resource_spans {
                let resource_attributes =
                    attributes_to_json(&resource.resource.unwrap_or_default().attributes);
                let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                received.spans.extend(spans.map(|span| (resource_attributes.clone(), span)));
            }
        } else if path.ends_with("/v1/logs") {
            let Ok(request) = ExportLogsServiceRequest::decode(body) else { return false };
            for resource in request.resource_logs {
                let resource_attributes =
                    attributes_to_json(&resource.resource.unwrap_or_default().attributes);
                let logs = resource.scope_logs.into_iter().flat_map(|scope| scope.log_records);
                received.logs.extend(logs.map(|log| (resource_attributes.clone(), log)));
            }
        } else if path.ends_with("/v1/metrics") {
            let Ok(request) = ExportMetricsServiceRequest::decode(body) else { return false };
            for resource in request.resource_metrics {
                let resource_attributes =
                    attributes_to_json(&resource.resource.unwrap_or_default().attributes);
                let metrics = resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
                received.metrics.extend(metrics.map(|metric| (resource_attributes.clone(), metric)));
            }
        } else {
            return false;
        }
        true
    }
}

/// Returns the head of the first request in lower case and the length of its body, or `None` if the head is incomplete.
fn parse_request_head(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length =
        head.split("content-length:").nth(1).map_or("0", |rest| rest.split("\r\n").next().unwrap_or("0"));
    let length = length.trim().parse().ok()?;
    Some((head, length))
}

/// Converts attributes into a JSON object.
pub fn attributes_to_json(attributes: &[KeyValue]) -> Value {
    attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), attribute.value.as_ref().map_or(Value::Null, value_to_json)))
        .collect()
}

/// Converts an attribute value into JSON.
pub fn value_to_json(value: &AnyValue) -> Value {
    match &value.value {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(flag)) => json!(flag),
        Some(Any::IntValue(count)) => json!(count),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::ArrayValue(values)) => values.values.iter().map(value_to_json).collect(),
        other => json!(format!("{other:?}")),
    }
}

/// Formats an id as hexadecimal digits.
pub fn to_hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
