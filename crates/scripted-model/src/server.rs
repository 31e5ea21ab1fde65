//! Serves requests, each in its own thread, with state shared between the threads.

use super::request::{Request, RequestKind};
use super::response;
use super::step::Step;
use crate::http::{self, HttpRequest};
use serde_json::json;
use std::io;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

type Script = Box<dyn FnMut(&Request) -> Option<Step> + Send>;

/// Read timeout, so that a client that sends nothing does not keep its thread forever.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// The state shared by all connections.
pub(super) struct SharedState {
    state: Mutex<ScriptState>,
    is_stopped: AtomicBool,
}

struct ScriptState {
    script: Script,
    compaction_step: Step,
    requests: Vec<Request>,
}

impl SharedState {
    pub(super) fn new(script: Script) -> SharedState {
        let compaction_step = Step::from_text("<analysis>a</analysis><summary>SUMMARY-OF-WORK</summary>");
        let state = ScriptState { script, compaction_step, requests: Vec::new() };
        SharedState { state: Mutex::new(state), is_stopped: AtomicBool::new(false) }
    }

    pub(super) fn set_compaction_step(&self, compaction_step: Step) {
        self.lock_state().compaction_step = compaction_step;
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.lock_state().requests.clone()
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Locks the state even if the script panicked, so that a test can still read the requests to find the cause.
    fn lock_state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request and calls the script under one lock, so that the script sees requests in order.
    fn record_request_and_choose_step(&self, http_request: HttpRequest) -> (Request, Step) {
        let mut state = self.lock_state();
        let request_number = state.requests.len() + 1;
        let request =
            Request::new(request_number, http_request.path, http_request.headers, &http_request.body);
        state.requests.push(request.clone());
        let step = (state.script)(&request).unwrap_or_else(|| match request.kind {
            RequestKind::Compaction => state.compaction_step.clone(),
            RequestKind::Auxiliary => Step::from_text("ok"),
            RequestKind::Main | RequestKind::Subagent => Step::from_text("done"),
        });
        (request, step)
    }

    /// Sleeps for `duration`, or until the server is stopped.
    fn sleep_unless_stopped(&self, duration: Duration) {
        let start = Instant::now();
        while !self.is_stopped() && start.elapsed() < duration {
            sleep(Duration::from_millis(20).min(duration.saturating_sub(start.elapsed())));
        }
    }
}

/// Accepts connections until the server is stopped.
pub(super) fn accept_connections(listener: &TcpListener, shared: &Arc<SharedState>) {
    http::accept_connections(listener, shared, SharedState::is_stopped, serve_one_api_request);
}

fn serve_one_api_request(mut stream: TcpStream, shared: &SharedState) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let Some(http_request) = http::read_request(&mut stream)? else { return Ok(()) };
    let send_ok_json =
        |stream: &mut TcpStream, body| http::send_json(stream, 200, &Default::default(), &body);
    match http_request.method.as_str() {
        "HEAD" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        "POST" if http_request.path.contains("count_tokens") => {
            send_ok_json(&mut stream, json!({ "input_tokens": (http_request.body.len() / 4).max(1) }))
        }
        "POST" if http_request.path.starts_with("/v1/messages") => {
            let (request, step) = shared.record_request_and_choose_step(http_request);
            send_step_response(&mut stream, shared, &request, &step)
        }
        _ => send_ok_json(&mut stream, json!({})),
    }
}

fn send_step_response(
    stream: &mut TcpStream,
    shared: &SharedState,
    request: &Request,
    step: &Step,
) -> io::Result<()> {
    shared.sleep_unless_stopped(step.delay);
    let mut headers = step.headers.clone();
    headers.entry("request-id".to_owned()).or_insert_with(|| format!("req_{:04}", request.number));
    if let Some(api_error) = &step.api_error {
        let body = response::api_error_body(api_error, request.number);
        return http::send_json(stream, api_error.status, &headers, &body);
    }
    if request.body["stream"] != true {
        return http::send_json(stream, 200, &headers, &response::response_message(step, request));
    }
    http::send_stream_head(stream, &headers)?;
    for (event_name, event_data) in response::stream_events_until_fault(step, request) {
        if shared.is_stopped() {
            return Ok(());
        }
        stream.write_all(format!("event: {event_name}\ndata: {event_data}\n\n").as_bytes())?;
        if event_name == "content_block_delta" {
            shared.sleep_unless_stopped(step.delta_delay);
        }
    }
    shared.sleep_unless_stopped(step.hang_time);
    Ok(())
}
