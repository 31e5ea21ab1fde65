//! A time limit that several git queries share.

use std::time::{Duration, Instant};

/// The point in time at which several git queries have to be finished.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit(Instant);

impl TimeLimit {
    pub(crate) fn from_now(duration: Duration) -> TimeLimit {
        TimeLimit(Instant::now() + duration)
    }

    pub(crate) fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }
}
