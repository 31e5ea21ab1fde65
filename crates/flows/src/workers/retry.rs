//! Retries operations that fail with a transient error.

use std::time::{Duration, Instant};

/// The retry timeout before any item has started. It is short, so that a user who joins with a wrong address
/// sees the error soon.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Repeats the operation while it fails with a transient error, until the timeout has passed or
/// `should_abort` returns true. Returns the last result.
pub(super) fn retry_while_transient<T, E>(
    timeout: Duration,
    should_abort: &dyn Fn() -> bool,
    is_transient: impl Fn(&E) -> bool,
    mut operation: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let started_at = Instant::now();
    loop {
        match operation() {
            Err(error) if is_transient(&error) && started_at.elapsed() < timeout && !should_abort() => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            result => return result,
        }
    }
}
