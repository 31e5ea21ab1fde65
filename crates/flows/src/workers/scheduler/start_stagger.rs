//! Starts workers one after the other, so that a usage limit is reached by one of them and not by all.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The time between the starts of two workers.
const START_INTERVAL: Duration = Duration::from_secs(2);

/// The workers that have started since the last pause, which need not wait again.
#[derive(Debug, Default)]
pub(super) struct StartStagger {
    /// When the last worker that had to wait for its turn started.
    last_start: Option<Instant>,
    /// Workers that have started since the last pause.
    started_workers: BTreeSet<usize>,
}

impl StartStagger {
    /// Returns true if a worker may start now, and then makes the next one wait.
    pub(super) fn try_begin(&mut self, worker: usize) -> bool {
        if self.started_workers.contains(&worker) {
            return true;
        }
        let started_recently =
            self.last_start.is_some_and(|last_start| last_start.elapsed() < START_INTERVAL);
        if !started_recently {
            self.last_start = Some(Instant::now());
            self.started_workers.insert(worker);
        }
        !started_recently
    }

    /// Makes all workers take turns again after a pause.
    pub(super) fn restart_after_pause(&mut self) {
        self.started_workers.clear();
    }
}
