//! An end to every wait for a server. The system's own timeouts see a connection that is gone; one that is there, of a server that
//! confirms what it is sent and never answers, is seen by nobody else.

use crate::fault::{Fault, FleetError};
use crate::settings::Settings;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Somebody else's lock is waited for, 30 seconds at most, and named as such.
pub const ANSWER: Duration = Duration::from_secs(40);

/// Does something with a database in a thread of its own, and waits this long for it. What was asked for may happen all the same.
pub fn within<T: Send + 'static>(
    limit: Duration,
    settings: Settings,
    doing: &'static str,
    work: impl FnOnce(Settings) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    let servers: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
    let silent = || FleetError::Database { doing, server: servers.join(", "), fault: Fault::Silent(limit) };
    answered(limit, move || work(settings)).unwrap_or_else(|| Err(silent()))
}

/// What comes of something that is done in a thread of its own, if it comes within the limit.
pub(crate) fn answered<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = mpsc::channel();
    // Left to itself when it is given up: the process ends soon, and nothing waits for it.
    thread::spawn(move || _ = answer.send(work()));
    answered.recv_timeout(limit).ok()
}
