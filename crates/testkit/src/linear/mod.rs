//! A server on loopback with the operations of Linear's API that Plimsoll uses. It validates each operation
//! against a schema, stores the comments, and injects the faults that a script chooses.

mod api;
mod fault;
mod state;

pub use fault::Fault;
pub use state::{API_KEY, Comment, ISSUE_IDENTIFIER};

use plimsoll_scripted_model::http;
use serde_json::{Value, json};
use state::LinearState;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to wait for a request on an open connection.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A request that the server has received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The first root field of the operation, such as `commentCreate`; empty if the query is invalid.
    pub operation: String,
    /// The variables of the operation.
    pub variables: Value,
    /// The HTTP status of the response; 0 if there was none.
    pub status: u16,
}

type FaultScript = Box<dyn FnMut(&ReceivedRequest) -> Option<Fault> + Send>;

struct ServerState {
    linear_state: Mutex<LinearState>,
    fault_script: Mutex<FaultScript>,
    requests: Mutex<Vec<ReceivedRequest>>,
    is_stopped: AtomicBool,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A Linear server on 127.0.0.1. Dropping it stops it.
pub struct LinearServer {
    server_state: Arc<ServerState>,
    address: SocketAddr,
    accept_thread: Option<JoinHandle<()>>,
}

impl LinearServer {
    /// Starts a server without faults.
    #[expect(clippy::new_without_default, reason = "a server is started, not a default value")]
    pub fn new() -> LinearServer {
        LinearServer::start_with_faults(|_| None)
    }

    /// Starts a server that calls the script for each request and injects the fault that it returns.
    pub fn start_with_faults(
        fault_script: impl FnMut(&ReceivedRequest) -> Option<Fault> + Send + 'static,
    ) -> LinearServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1");
        let address = listener.local_addr().expect("the port of the listener");
        let server_state = Arc::new(ServerState {
            linear_state: Mutex::new(LinearState::default()),
            fault_script: Mutex::new(Box::new(fault_script)),
            requests: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let accept_thread = std::thread::spawn({
            let server_state = Arc::clone(&server_state);
            move || {
                http::accept_connections(
                    &listener,
                    &server_state,
                    |state| state.is_stopped.load(Ordering::SeqCst),
                    serve_and_record_one_request,
                );
            }
        });
        LinearServer { server_state, address, accept_thread: Some(accept_thread) }
    }

    /// Returns the URL for `LINEAR_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}/graphql", self.address)
    }

    /// Returns the current comments, oldest first.
    pub fn comments(&self) -> Vec<Comment> {
        lock_ignoring_poison(&self.server_state.linear_state).comments.clone()
    }

    /// Deletes all comments, to simulate a deletion by another user.
    pub fn delete_comments(&self) {
        lock_ignoring_poison(&self.server_state.linear_state).comments.clear();
    }

    /// Makes the API key read-only from now on.
    pub fn make_api_key_read_only(&self) {
        lock_ignoring_poison(&self.server_state.linear_state).is_read_only = true;
    }

    /// Archives the issue.
    pub fn archive_issue(&self) {
        lock_ignoring_poison(&self.server_state.linear_state).is_archived = true;
    }

    /// Returns all received requests, in order.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock_ignoring_poison(&self.server_state.requests).clone()
    }

    /// Returns the names of all requested operations, in order.
    pub fn requested_operations(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.operation).collect()
    }
}

impl Drop for LinearServer {
    fn drop(&mut self) {
        self.server_state.is_stopped.store(true, Ordering::SeqCst);
        // Open one last connection to wake the listener, which blocks in `accept`.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(accept_thread) = self.accept_thread.take() {
            let _ = accept_thread.join();
        }
    }
}

fn serve_and_record_one_request(mut stream: TcpStream, server_state: &ServerState) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let Some(http_request) = http::read_request(&mut stream)? else { return Ok(()) };
    let request_body: Value = serde_json::from_slice(&http_request.body).unwrap_or_default();
    let query = request_body["query"].as_str().unwrap_or_default().to_owned();
    let variables = request_body["variables"].clone();
    let mut request =
        ReceivedRequest { operation: api::first_root_field_name_or_empty(&query), variables, status: 0 };
    let fault = (lock_ignoring_poison(&server_state.fault_script))(&request);
    let should_execute = fault.as_ref().is_none_or(Fault::executes_operation);
    let authorization = http_request.headers.iter().find(|(name, _)| name == "authorization");
    let (status, body) = match authorization.map(|(_, value)| value.as_str()) {
        Some(API_KEY) if should_execute => api::execute_query(
            &mut lock_ignoring_poison(&server_state.linear_state),
            &query,
            &request.variables,
        ),
        Some(API_KEY) => (0, Value::Null),
        _ => (
            401,
            fault::graphql_error_body("AUTHENTICATION_ERROR", "Authentication required, not authenticated"),
        ),
    };
    let (status, headers, body) = match fault {
        Some(fault) => {
            fault.replace_response(status, body, |duration| sleep_unless_stopped(server_state, duration))
        }
        None => (status, BTreeMap::new(), body),
    };
    request.status = status;
    lock_ignoring_poison(&server_state.requests).push(request);
    if status == 0 {
        return Ok(());
    }
    http::send_json(&mut stream, status, &headers, &body)
}

/// Sleeps for `duration`, or until the server is stopped.
fn sleep_unless_stopped(server_state: &ServerState, duration: Duration) {
    let start = Instant::now();
    while !server_state.is_stopped.load(Ordering::SeqCst) && start.elapsed() < duration {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Adds an error to a response body and keeps its data.
fn with_partial_error(mut body: Value) -> Value {
    body["errors"] = json!([{ "message": "the url could not be made", "path": ["comment", "url"] }]);
    body
}
