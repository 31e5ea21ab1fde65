//! Retries operations that fail with a transient error.

use std::time::{Duration, Instant};

/// How long to retry before any item has begun. A user who joins with a wrong address should learn that soon.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to retry.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Repeats the operation while it fails with a transient error, until the timeout has passed or `give_up`
/// returns true.
pub(super) fn retry_while_transient<T, E>(
    timeout: Duration,
    give_up: &dyn Fn() -> bool,
    is_transient: impl Fn(&E) -> bool,
    mut operation: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let started_at = Instant::now();
    loop {
        match operation() {
            Err(error) if is_transient(&error) && started_at.elapsed() < timeout && !give_up() => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            result => return result,
        }
    }
}
