//! Sends the queued items batch by batch. A batch that the collector may accept later is retried with increasing backoff.
//! A rejected batch is dropped.

use crate::collector::{Collector, ExportOutcome};
use crate::queue::ExportQueue;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How long a span or log record waits for others to fill the batch.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The backoff before the first retry, and its upper limit.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A batch is dropped after this time, because newer items matter more.
const MAX_RETRY_TIME: Duration = Duration::from_secs(15 * 60);

/// Sends batches until the queue is closed and empty. `encode_batch` builds the request body of a batch.
pub(crate) fn send_batches_until_closed<T>(
    queue: &ExportQueue<T>,
    collector: &Collector,
    encode_batch: impl Fn(Vec<T>) -> Vec<u8>,
) {
    while let Some(batch) = queue.take_batch_until_closed_and_empty(BATCH_INTERVAL) {
        let item_count = batch.len() as u64;
        let body = encode_batch(batch);
        send_batch_with_retries(queue, collector, &body, item_count);
    }
}

fn send_batch_with_retries<T>(queue: &ExportQueue<T>, collector: &Collector, body: &[u8], item_count: u64) {
    let (started_at, mut backoff) = (Instant::now(), FIRST_BACKOFF);
    loop {
        let remaining = queue
            .send_deadline()
            .map(|send_deadline| send_deadline.saturating_duration_since(Instant::now()));
        if remaining.is_some_and(|remaining| remaining.is_zero()) {
            return;
        }
        match collector.send(body, remaining.unwrap_or(Duration::MAX)) {
            ExportOutcome::Accepted { rejected_count, message } => {
                queue.add_accepted_count(item_count.saturating_sub(rejected_count));
                if rejected_count > 0 {
                    queue.set_last_error(message);
                }
                return;
            }
            ExportOutcome::Rejected { reason } => {
                queue.set_last_error(reason);
                return;
            }
            ExportOutcome::RetryLater { retry_after, reason } => {
                queue.set_last_error(reason);
                let wait = retry_after.unwrap_or(Duration::ZERO).max(with_jitter(backoff));
                // After the queue is closed, there is time for a few tries but not for a long wait.
                if started_at.elapsed() + wait > MAX_RETRY_TIME
                    || remaining.is_some_and(|remaining| remaining < wait)
                {
                    return;
                }
                if remaining.is_some() {
                    std::thread::sleep(wait);
                } else {
                    queue.wait_until_closed(wait);
                }
                backoff = (2 * backoff).min(MAX_BACKOFF);
            }
        }
    }
}

/// Adds a random jitter of up to a quarter, so that many runs do not retry at the same time.
fn with_jitter(backoff: Duration) -> Duration {
    let random = u32::try_from(RandomState::new().hash_one(0) % 256).unwrap_or(0);
    backoff + backoff / 4 * random / 256
}
