//! A timeout for every wait for a server. The operating system's timeouts detect a lost connection, but not a server that
//! acknowledges packets and never responds.

use crate::database_error::{DatabaseError, FleetError};
use crate::settings::ConnectionSettings;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long an operation on the database may take. Longer than the lock timeout of 30 seconds, so that a lock
/// held by another process is reported as such.
pub const DATABASE_TIMEOUT: Duration = Duration::from_secs(40);

/// Runs `operation` in its own thread and waits for it at most `timeout`. After a timeout the operation may still take effect.
pub fn run_with_settings_and_timeout<T: Send + 'static>(
    timeout: Duration,
    settings: ConnectionSettings,
    action: &'static str,
    operation: impl FnOnce(ConnectionSettings) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    let servers: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
    let timeout_error = || FleetError::Database {
        action,
        server: servers.join(", "),
        database_error: DatabaseError::NoResponse(timeout),
    };
    run_in_thread_with_timeout(timeout, move || operation(settings)).unwrap_or_else(|| Err(timeout_error()))
}

/// Runs `operation` in its own thread. Returns `None` after the timeout.
pub(crate) fn run_in_thread_with_timeout<T: Send + 'static>(
    timeout: Duration,
    operation: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    // After a timeout the thread keeps running: the process ends soon, and nothing waits for the thread.
    thread::spawn(move || _ = sender.send(operation()));
    receiver.recv_timeout(timeout).ok()
}
