//! Sending what waits, batch after batch: a batch that may be taken later is tried again later and later, and one that will
//! never be taken is given up.

use crate::collector::{Answer, Collector};
use crate::queue::Queue;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How long a span or a log waits for others.
const INTERVAL: Duration = Duration::from_secs(1);
/// The first try after a failure, and the longest time between two.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A batch is given up after this long: what comes later is worth more.
const GIVEN_UP: Duration = Duration::from_secs(15 * 60);

/// Sends until nothing more comes. `encode` makes the body of a batch.
pub(crate) fn deliver<T>(queue: &Queue<T>, collector: &Collector, encode: impl Fn(Vec<T>) -> Vec<u8>) {
    while let Some(batch) = queue.take(INTERVAL) {
        let count = batch.len() as u64;
        let body = encode(batch);
        send(queue, collector, &body, count);
    }
}

fn send<T>(queue: &Queue<T>, collector: &Collector, body: &[u8], count: u64) {
    let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let left = queue.until().map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return;
        }
        match collector.send(body, left.unwrap_or(Duration::MAX)) {
            Answer::Accepted { rejected, why } => {
                queue.note_accepted(count.saturating_sub(rejected));
                if rejected > 0 {
                    queue.note_trouble(why);
                }
                return;
            }
            Answer::Refused { why } => {
                queue.note_trouble(why);
                return;
            }
            Answer::Later { after, why } => {
                queue.note_trouble(why);
                let wait = after.unwrap_or(Duration::ZERO).max(jittered(pause));
                // At the end there is time for a few tries, not for a long wait.
                if began.elapsed() + wait > GIVEN_UP || left.is_some_and(|left| left < wait) {
                    return;
                }
                if left.is_some() {
                    std::thread::sleep(wait);
                } else {
                    queue.rest(wait);
                }
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Up to a quarter more, so that many runs do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let chance = u32::try_from(RandomState::new().hash_one(0) % 256).unwrap_or(0);
    pause + pause / 4 * chance / 256
}
