//! Asks again what may pass.

use std::time::{Duration, Instant};

/// How long what is away is waited for before anything has begun: whoever joins with a wrong address should know it soon.
pub(super) const BEGINNING: Duration = Duration::from_secs(20);
/// How often what may pass is asked for again.
const ASKED_EVERY: Duration = Duration::from_millis(500);

/// Asks again while the answer is an error that may pass, for so long, or until nobody waits for it any more.
pub(super) fn retry<T, E>(
    limit: Duration,
    give_up: &dyn Fn() -> bool,
    may_pass: impl Fn(&E) -> bool,
    mut ask: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        match ask() {
            Err(error) if may_pass(&error) && begun.elapsed() < limit && !give_up() => {
                std::thread::sleep(ASKED_EVERY);
            }
            answer => return answer,
        }
    }
}
