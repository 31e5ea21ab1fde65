//! A moment by which several questions have to be answered.

use std::time::{Duration, Instant};

/// A moment by which several questions have to be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit(Instant);

impl TimeLimit {
    pub(crate) fn within(time: Duration) -> TimeLimit {
        TimeLimit(Instant::now() + time)
    }

    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}
