//! RULE: a Messages API on 127.0.0.1 that answers from a script and remembers what it was asked. `plimsoll demo` and the
//! tests play with it; it opens no file, and nothing that it does leaves this computer.
//!
//! A [`ScriptedModel`] is a server, stopped when dropped. For each request it asks the script for a [`Step`]: words, tool calls,
//! figures of usage, or a failure. [`Request::kind`] tells the session's own turns from a subagent's, a compaction and the
//! client's side questions. [`story`] is the script of `plimsoll demo`.
//!
//! Limits: it knows what Claude Code asks for, and no more of the API: no key is checked, no token is counted; the figures are
//! the script's.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "it takes the place of a server, on loopback; without a port, or with a wrong script, there is nothing to play"
)]

mod answer;
pub mod http;
mod request;
mod server;
mod step;
pub mod story;

pub use request::{Request, RequestKind};
pub use step::Step;

use server::Shared;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A server on 127.0.0.1, stopped when dropped.
pub struct ScriptedModel {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts a model that asks `script` for each turn of the session and its subagents, one at a time, in order.
    pub fn start(mut script: impl FnMut(&Request) -> Step + Send + 'static) -> ScriptedModel {
        ScriptedModel::start_for_all(move |request| match request.kind {
            RequestKind::Main | RequestKind::Subagent => Some(script(request)),
            RequestKind::Compaction | RequestKind::Side => None,
        })
    }

    /// Starts a model that asks `script` for every request; `None` means the usual answer for that kind.
    pub fn start_for_all(script: impl FnMut(&Request) -> Option<Step> + Send + 'static) -> ScriptedModel {
        let shared = Arc::new(Shared::new(Box::new(script)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1");
        let address = listener.local_addr().expect("the port of the listener");
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || server::accept(&listener, &shared)
        });
        ScriptedModel { shared, address, accepting: Some(accepting) }
    }

    /// Starts a model that takes these steps one after another; the last one repeats.
    pub fn steps(steps: Vec<Step>) -> ScriptedModel {
        let mut taken = 0;
        ScriptedModel::start(move |_| {
            let step = steps.get(taken).or(steps.last()).cloned();
            taken += 1;
            step.unwrap_or_else(|| Step::text("done"))
        })
    }

    /// Answers compactions with this step instead of a short summary.
    pub fn compaction_answer(self, step: Step) -> ScriptedModel {
        self.shared.set_compaction(step);
        self
    }

    /// The address for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was POSTed to `/v1/messages`, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests()
    }

    /// The turns of the session itself, in order.
    pub fn main_requests(&self) -> Vec<Request> {
        self.requests_of(RequestKind::Main)
    }

    /// The requests of one kind, in order.
    pub fn requests_of(&self, kind: RequestKind) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind == kind).collect()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.stop();
        // The listener sleeps in accept: one last caller wakes it.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}
