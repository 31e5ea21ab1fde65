//! Starts workers one after the other, so that a usage limit is reached by one of them and not by all.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The time between the starts of two workers.
const START_INTERVAL: Duration = Duration::from_secs(2);

/// Staggers the starts of workers. A worker that has started since the last pause does not wait again.
#[derive(Debug, Default)]
pub(super) struct StartStagger {
    /// When a worker that was not yet in `started_workers` last started.
    last_start: Option<Instant>,
    /// Workers that have started since the last pause.
    started_workers: BTreeSet<usize>,
}

impl StartStagger {
    /// Returns false if another worker has just started and this one has not started since the last pause.
    /// Its first start makes the other workers wait.
    pub(super) fn try_start_worker_unless_other_just_started(&mut self, worker: usize) -> bool {
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

    /// Staggers the starts of all workers again after a pause.
    pub(super) fn clear_started_workers(&mut self) {
        self.started_workers.clear();
    }
}
