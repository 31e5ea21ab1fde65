//! Workers begin one after the other, so that a limit is met by one and not by all.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the next worker waits.
const STAGGER: Duration = Duration::from_secs(2);

/// Which workers have begun. One that has begun since the last pause need not wait again.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// When the last worker began that had to wait for its turn.
    begun: Option<Instant>,
    /// Workers that have begun since the last pause.
    proven: BTreeSet<usize>,
}

impl Turns {
    /// Returns true if a worker may begin now: then the next one waits.
    pub(super) fn try_begin(&mut self, worker: usize) -> bool {
        if self.proven.contains(&worker) {
            return true;
        }
        let is_soon = self.begun.is_some_and(|begun| begun.elapsed() < STAGGER);
        if !is_soon {
            self.begun = Some(Instant::now());
            self.proven.insert(worker);
        }
        !is_soon
    }

    /// After a pause all take turns again.
    pub(super) fn reset(&mut self) {
        self.proven.clear();
    }
}
