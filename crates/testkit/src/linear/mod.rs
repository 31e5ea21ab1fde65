//! Linear's API on loopback, with the operations that are used. It checks each against a schema, stores the comments, and
//! fails where a script says so.

mod api;
mod desk;
mod fault;

pub use desk::{Comment, ISSUE, KEY};
pub use fault::Fault;

use desk::Desk;
use plimsoll_scripted_model::http;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest wait for a request that does not arrive.
const READ_LIMIT: Duration = Duration::from_secs(20);

/// A request that has come.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The first field of the operation, such as `commentCreate`; empty if there is none.
    pub operation: String,
    /// Its variables.
    pub variables: Value,
    /// The HTTP status of the answer; 0 if there was none.
    pub status: u16,
}

type Script = Box<dyn FnMut(&Asked) -> Option<Fault> + Send>;

struct Shared {
    desk: Mutex<Desk>,
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    stopped: AtomicBool,
}

fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server on 127.0.0.1, stopped when dropped.
pub struct LinearServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl LinearServer {
    /// A server without faults.
    #[expect(clippy::new_without_default, reason = "a server is started, not a default value")]
    pub fn new() -> LinearServer {
        LinearServer::with_faults(|_| None)
    }

    /// A server that asks the script, request by request, whether it has a fault.
    pub fn with_faults(script: impl FnMut(&Asked) -> Option<Fault> + Send + 'static) -> LinearServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1");
        let address = listener.local_addr().expect("the port of the listener");
        let shared = Arc::new(Shared {
            desk: Mutex::new(Desk::default()),
            script: Mutex::new(Box::new(script)),
            asked: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || http::accept(&listener, &shared, |shared| shared.stopped.load(Ordering::SeqCst), converse)
        });
        LinearServer { shared, address, accepting: Some(accepting) }
    }

    /// The address for `LINEAR_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}/graphql", self.address)
    }

    /// The current comments, oldest first.
    pub fn comments(&self) -> Vec<Comment> {
        open(&self.shared.desk).comments.clone()
    }

    /// Somebody deletes all comments.
    pub fn delete_comments(&self) {
        open(&self.shared.desk).comments.clear();
    }

    /// From now on the key may only read.
    pub fn forbid_writing(&self) {
        open(&self.shared.desk).is_read_only = true;
    }

    /// From now on the issue is archived.
    pub fn archive_issue(&self) {
        open(&self.shared.desk).is_archived = true;
    }

    /// Everything that was asked, in order.
    pub fn asked(&self) -> Vec<Asked> {
        open(&self.shared.asked).clone()
    }

    /// The operations that were asked, in order.
    pub fn operations(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.operation).collect()
    }
}

impl Drop for LinearServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // The listener sleeps in accept: one last caller wakes it.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn converse(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_LIMIT))?;
    let Some(incoming) = http::read(&mut stream)? else { return Ok(()) };
    let document: Value = serde_json::from_slice(&incoming.body).unwrap_or_default();
    let query = document["query"].as_str().unwrap_or_default().to_owned();
    let variables = document["variables"].clone();
    let mut asked = Asked { operation: api::first_field(&query), variables, status: 0 };
    let fault = (open(&shared.script))(&asked);
    let is_taken = fault.as_ref().is_none_or(Fault::lets_it_happen);
    let authorization = incoming.headers.iter().find(|(name, _)| name == "authorization");
    let (status, body) = match authorization.map(|(_, value)| value.as_str()) {
        Some(KEY) if is_taken => api::answer(&mut open(&shared.desk), &query, &asked.variables),
        Some(KEY) => (0, Value::Null),
        _ => (401, fault::errors("AUTHENTICATION_ERROR", "Authentication required, not authenticated")),
    };
    let (status, headers, body) = match fault {
        Some(fault) => fault.answer(status, body, |length| pause(shared, length)),
        None => (status, BTreeMap::new(), body),
    };
    asked.status = status;
    open(&shared.asked).push(asked);
    if status == 0 {
        return Ok(());
    }
    http::send_json(&mut stream, status, &headers, &body)
}

/// Sleeps, but not past the end of the server.
fn pause(shared: &Shared, length: Duration) {
    let start = Instant::now();
    while !shared.stopped.load(Ordering::SeqCst) && start.elapsed() < length {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An answer with data and with an error beside it.
fn partial(mut body: Value) -> Value {
    body["errors"] = json!([{ "message": "the url could not be made", "path": ["comment", "url"] }]);
    body
}
