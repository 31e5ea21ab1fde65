//! A bounded queue of items to send. If the collector is unreachable, the oldest items are dropped and counted as lost.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum queue length. An iteration has a few dozen spans and logs, so this is enough for a long outage of the collector.
pub(crate) const MAX_WAITING_ITEMS: usize = 2_048;
/// Maximum number of items in one request.
pub(crate) const MAX_BATCH_ITEMS: usize = 256;

#[derive(Debug)]
pub(crate) struct ExportQueue<T> {
    state: Mutex<QueueState<T>>,
    state_changed: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    waiting_items: VecDeque<T>,
    /// Number of all items ever added.
    added_count: u64,
    /// Number of items that the collector accepted.
    accepted_count: u64,
    /// The last error; empty if there was none.
    last_error: String,
    /// The deadline for sending the remaining items; set when the queue is closed.
    send_deadline: Option<Instant>,
}

impl<T> Default for ExportQueue<T> {
    fn default() -> ExportQueue<T> {
        let state = QueueState {
            waiting_items: VecDeque::new(),
            added_count: 0,
            accepted_count: 0,
            last_error: String::new(),
            send_deadline: None,
        };
        ExportQueue { state: Mutex::new(state), state_changed: Condvar::new() }
    }
}

impl<T> ExportQueue<T> {
    fn lock_state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push_all_and_drop_oldest_if_full(&self, items: impl IntoIterator<Item = T>) {
        let mut state = self.lock_state();
        for item in items {
            state.added_count += 1;
            if state.waiting_items.len() >= MAX_WAITING_ITEMS {
                state.waiting_items.pop_front();
            }
            state.waiting_items.push_back(item);
        }
        if state.waiting_items.len() >= MAX_BATCH_ITEMS {
            self.state_changed.notify_all();
        }
    }

    /// Closes the queue. The remaining items may be sent until `send_deadline`.
    pub(crate) fn close(&self, send_deadline: Instant) {
        self.lock_state().send_deadline = Some(send_deadline);
        self.state_changed.notify_all();
    }

    /// Waits for the next batch and removes it from the queue. A batch that is not full is returned after
    /// `max_wait_to_fill_batch`, or when the queue is closed. An empty queue is waited for until it is
    /// closed; then `None` is returned.
    pub(crate) fn take_batch_until_closed_and_empty(
        &self,
        max_wait_to_fill_batch: Duration,
    ) -> Option<Vec<T>> {
        let batch_deadline = Instant::now() + max_wait_to_fill_batch;
        let mut state = self.lock_state();
        while state.waiting_items.len() < MAX_BATCH_ITEMS && state.send_deadline.is_none() {
            let remaining = batch_deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() && !state.waiting_items.is_empty() {
                break;
            }
            let wait_time = if remaining.is_zero() { max_wait_to_fill_batch } else { remaining };
            state =
                self.state_changed.wait_timeout(state, wait_time).unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = state.waiting_items.len().min(MAX_BATCH_ITEMS);
        let batch: Vec<T> = state.waiting_items.drain(..count).collect();
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits until the queue is closed, but at most for `timeout`.
    pub(crate) fn wait_until_closed(&self, timeout: Duration) {
        let state = self.lock_state();
        let _ = self.state_changed.wait_timeout_while(state, timeout, |state| state.send_deadline.is_none());
    }

    /// Returns the deadline for sending the remaining items, or `None` while the queue is open.
    pub(crate) fn send_deadline(&self) -> Option<Instant> {
        self.lock_state().send_deadline
    }

    pub(crate) fn add_accepted_count(&self, count: u64) {
        self.lock_state().accepted_count += count;
    }

    pub(crate) fn set_last_error(&self, error: String) {
        self.lock_state().last_error = error;
    }

    /// Returns the number of items that were not accepted, and the last error.
    pub(crate) fn lost_count_and_last_error(&self) -> (u64, String) {
        let state = self.lock_state();
        (state.added_count.saturating_sub(state.accepted_count), state.last_error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT_WAIT: Duration = Duration::from_millis(10);

    #[test]
    fn full_queue_drops_the_oldest_items_and_counts_them_as_lost() {
        let queue = ExportQueue::default();
        queue.push_all_and_drop_oldest_if_full(0..MAX_WAITING_ITEMS + 10);
        let first = queue.take_batch_until_closed_and_empty(SHORT_WAIT).unwrap();
        assert_eq!((first.len(), first[0]), (MAX_BATCH_ITEMS, 10));
        queue.add_accepted_count(first.len() as u64);
        assert_eq!(queue.lost_count_and_last_error().0, (MAX_WAITING_ITEMS + 10 - MAX_BATCH_ITEMS) as u64);
    }

    #[test]
    fn partial_batch_is_returned_after_the_wait_and_none_after_close() {
        let queue = ExportQueue::default();
        queue.push_all_and_drop_oldest_if_full([1, 2]);
        assert_eq!(queue.take_batch_until_closed_and_empty(SHORT_WAIT), Some(vec![1, 2]));
        queue.push_all_and_drop_oldest_if_full([3]);
        queue.close(Instant::now());
        assert_eq!(queue.take_batch_until_closed_and_empty(Duration::from_secs(60)), Some(vec![3]));
        assert_eq!(queue.take_batch_until_closed_and_empty(Duration::from_secs(60)), None);
        queue.wait_until_closed(Duration::from_secs(60));
    }
}
