//! RULE: a Messages API on 127.0.0.1 that responds from a script and records its requests. `plimsoll demo` and the tests use it;
//! it opens no file and no connection to another computer.
//!
//! A [`ScriptedModel`] is a server that stops when dropped. For each request the script returns a [`Step`]: text, tool calls,
//! token usage, or an error. [`Request::kind`] distinguishes the turns of the main session, subagent turns, compactions and the
//! client's auxiliary requests. [`scripted_agent`] is used by `plimsoll demo`.
//!
//! Limits: it implements only the part of the API that Claude Code uses. It checks no key and counts no tokens; the script sets
//! the usage.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "it takes the place of a server, on loopback; without a port, or with a wrong script, there is nothing to play"
)]

pub mod http;
mod request;
mod response;
pub mod scripted_agent;
mod server;
mod step;

pub use request::{Request, RequestKind};
pub use step::Step;

use server::SharedState;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A server on 127.0.0.1, stopped when dropped.
pub struct ScriptedModel {
    shared: Arc<SharedState>,
    address: SocketAddr,
    accept_thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts a model that calls `script` for each turn of the session and its subagents, one at a time and in order of arrival.
    /// Other requests get the default response for their kind.
    pub fn start(mut script: impl FnMut(&Request) -> Step + Send + 'static) -> ScriptedModel {
        ScriptedModel::start_for_all_requests(move |request| match request.kind {
            RequestKind::Main | RequestKind::Subagent => Some(script(request)),
            RequestKind::Compaction | RequestKind::Auxiliary => None,
        })
    }

    /// Starts a model that calls `script` for every request. `None` means the default response for that kind.
    pub fn start_for_all_requests(
        script: impl FnMut(&Request) -> Option<Step> + Send + 'static,
    ) -> ScriptedModel {
        let shared = Arc::new(SharedState::new(Box::new(script)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1");
        let address = listener.local_addr().expect("the port of the listener");
        let accept_thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || server::accept_connections(&listener, &shared)
        });
        ScriptedModel { shared, address, accept_thread: Some(accept_thread) }
    }

    /// Starts a model that responds to turns with these steps in order and repeats the last one.
    pub fn start_with_steps_repeating_last(steps: Vec<Step>) -> ScriptedModel {
        let mut next_index = 0;
        ScriptedModel::start(move |_| {
            let step = steps.get(next_index).or(steps.last()).cloned();
            next_index += 1;
            step.unwrap_or_else(|| Step::from_text("done"))
        })
    }

    /// Responds to compactions with this step instead of a short summary.
    pub fn with_compaction_step(self, step: Step) -> ScriptedModel {
        self.shared.set_compaction_step(step);
        self
    }

    /// Returns the address for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests POSTed to `/v1/messages`, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests()
    }

    /// Returns the turns of the main session, in order.
    pub fn main_requests(&self) -> Vec<Request> {
        self.requests_of_kind(RequestKind::Main)
    }

    pub fn requests_of_kind(&self, kind: RequestKind) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind == kind).collect()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.stop();
        // Open one last connection to wake the listener, which blocks in `accept`.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(accept_thread) = self.accept_thread.take() {
            let _ = accept_thread.join();
        }
    }
}
