//! The connections: a thread for each, and what they share.

use super::answer;
use super::request::{Request, RequestKind};
use super::step::Step;
use crate::http::{self, Incoming};
use serde_json::json;
use std::io;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

type Answers = Box<dyn FnMut(&Request) -> Option<Step> + Send>;

/// What a client says that never comes is not waited for longer than this.
const READ_LIMIT: Duration = Duration::from_secs(20);

/// What all connections share.
pub(super) struct Shared {
    state: Mutex<State>,
    stopped: AtomicBool,
}

struct State {
    answers: Answers,
    compaction: Step,
    requests: Vec<Request>,
}

impl Shared {
    pub(super) fn new(answers: Answers) -> Shared {
        let compaction = Step::text("<analysis>a</analysis><summary>SUMMARY-OF-WORK</summary>");
        let state = State { answers, compaction, requests: Vec::new() };
        Shared { state: Mutex::new(state), stopped: AtomicBool::new(false) }
    }

    pub(super) fn set_compaction(&self, step: Step) {
        self.state().compaction = step;
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// A script that panicked must not hide the requests from the test that looks for the reason.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request and asks the script, both under one lock: the script sees requests in order.
    fn decide(&self, incoming: Incoming) -> (Request, Step) {
        let mut state = self.state();
        let number = state.requests.len() + 1;
        let request = Request::new(number, incoming.path, incoming.headers, &incoming.body);
        state.requests.push(request.clone());
        let step = (state.answers)(&request).unwrap_or_else(|| match request.kind {
            RequestKind::Compaction => state.compaction.clone(),
            RequestKind::Side => Step::text("ok"),
            RequestKind::Main | RequestKind::Subagent => Step::text("done"),
        });
        (request, step)
    }

    /// Sleeps, but not past the end of the server.
    fn pause(&self, length: Duration) {
        let start = Instant::now();
        while !self.stopped() && start.elapsed() < length {
            sleep(Duration::from_millis(20).min(length.saturating_sub(start.elapsed())));
        }
    }
}

/// Takes connections until the server is stopped.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    http::accept(listener, shared, Shared::stopped, converse);
}

fn converse(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_LIMIT))?;
    stream.set_nodelay(true)?;
    let Some(incoming) = http::read(&mut stream)? else { return Ok(()) };
    let plain = |stream: &mut TcpStream, body| http::send_json(stream, 200, &Default::default(), &body);
    match incoming.method.as_str() {
        "HEAD" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        "POST" if incoming.path.contains("count_tokens") => {
            plain(&mut stream, json!({ "input_tokens": (incoming.body.len() / 4).max(1) }))
        }
        "POST" if incoming.path.starts_with("/v1/messages") => {
            let (request, step) = shared.decide(incoming);
            reply(&mut stream, shared, &request, &step)
        }
        _ => plain(&mut stream, json!({})),
    }
}

fn reply(stream: &mut TcpStream, shared: &Shared, request: &Request, step: &Step) -> io::Result<()> {
    shared.pause(step.delay);
    let mut headers = step.headers.clone();
    headers.entry("request-id".to_owned()).or_insert_with(|| format!("req_{:04}", request.number));
    if let Some(failure) = &step.error {
        let body = answer::error_body(failure, request.number);
        return http::send_json(stream, failure.status, &headers, &body);
    }
    if request.body["stream"] != true {
        return http::send_json(stream, 200, &headers, &answer::message(step, request));
    }
    http::send_stream_head(stream, &headers)?;
    for (name, event) in answer::events(step, request) {
        if shared.stopped() {
            return Ok(());
        }
        stream.write_all(format!("event: {name}\ndata: {event}\n\n").as_bytes())?;
        if name == "content_block_delta" {
            shared.pause(step.chunk_delay);
        }
    }
    shared.pause(step.hang);
    Ok(())
}
