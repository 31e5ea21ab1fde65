//! What waits to be sent, within bounds: where the collector is away, the oldest goes first, and is counted.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A run makes a few dozen spans and logs an iteration: this is a long night.
pub(crate) const WAITING: usize = 2_048;
/// One request.
pub(crate) const BATCH: usize = 256;

#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    waiting: VecDeque<T>,
    /// Everything that was ever put in.
    offered: u64,
    /// What the collector has.
    accepted: u64,
    /// What went wrong last.
    trouble: String,
    /// When nothing more comes, and until when what is there may be sent.
    until: Option<Instant>,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        let inner =
            Inner { waiting: VecDeque::new(), offered: 0, accepted: 0, trouble: String::new(), until: None };
        Queue { inner: Mutex::new(inner), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, items: impl IntoIterator<Item = T>) {
        let mut inner = self.inner();
        for item in items {
            inner.offered += 1;
            if inner.waiting.len() >= WAITING {
                inner.waiting.pop_front();
            }
            inner.waiting.push_back(item);
        }
        if inner.waiting.len() >= BATCH {
            self.changed.notify_all();
        }
    }

    /// Nothing more comes; what is there is sent until then.
    pub(crate) fn close(&self, until: Instant) {
        self.inner().until = Some(until);
        self.changed.notify_all();
    }

    /// The next batch, once it is full or this much time has passed; none if nothing more comes.
    pub(crate) fn take(&self, within: Duration) -> Option<Vec<T>> {
        let end = Instant::now() + within;
        let mut inner = self.inner();
        while inner.waiting.len() < BATCH && inner.until.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() && !inner.waiting.is_empty() {
                break;
            }
            let left = if left.is_zero() { within } else { left };
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = inner.waiting.len().min(BATCH);
        let batch: Vec<T> = inner.waiting.drain(..count).collect();
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits for this long, or until nothing more comes.
    pub(crate) fn rest(&self, time: Duration) {
        let inner = self.inner();
        let _ = self.changed.wait_timeout_while(inner, time, |inner| inner.until.is_none());
    }

    /// Until when is sent; none while more comes.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.inner().until
    }

    pub(crate) fn note_accepted(&self, count: u64) {
        self.inner().accepted += count;
    }

    pub(crate) fn note_trouble(&self, trouble: String) {
        self.inner().trouble = trouble;
    }

    /// How many did not arrive, and what went wrong last.
    pub(crate) fn lost(&self) -> (u64, String) {
        let inner = self.inner();
        (inner.offered.saturating_sub(inner.accepted), inner.trouble.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[test]
    fn the_oldest_goes_where_too_much_waits_and_is_counted() {
        let queue = Queue::default();
        queue.put(0..WAITING + 10);
        let first = queue.take(SOON).unwrap();
        assert_eq!((first.len(), first[0]), (BATCH, 10));
        queue.note_accepted(first.len() as u64);
        assert_eq!(queue.lost().0, (WAITING + 10 - BATCH) as u64);
    }

    #[test]
    fn a_batch_comes_when_it_is_full_or_its_time_is_over_and_none_after_the_end() {
        let queue = Queue::default();
        queue.put([1, 2]);
        assert_eq!(queue.take(SOON), Some(vec![1, 2]));
        queue.put([3]);
        queue.close(Instant::now());
        assert_eq!(queue.take(Duration::from_secs(60)), Some(vec![3]));
        assert_eq!(queue.take(Duration::from_secs(60)), None);
        queue.rest(Duration::from_secs(60));
    }
}
