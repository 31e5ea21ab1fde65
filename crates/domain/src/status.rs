//! The status of a run.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// The status of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Going on.
    #[default]
    Running,
    /// Waiting for a limit, an overload or the user.
    Paused,
    /// Done: promise, items and verify commands agree.
    Completed,
    /// The agent's honest way out.
    Blocked,
    /// Out of iterations.
    MaxIterations,
    /// Out of money.
    Budget,
    /// Out of time.
    Deadline,
    /// Stuck.
    CircuitBreaker,
    /// Credentials, billing, model.
    FatalError,
    /// Cancelled by `plimsoll stop`.
    Cancelled,
}

impl Status {
    /// True when no further session may start.
    pub fn is_over(self) -> bool {
        !matches!(self, Status::Running | Status::Paused)
    }

    /// The exit code of `plimsoll run`.
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Running | Status::Completed => 0,
            Status::MaxIterations | Status::Budget | Status::Deadline => 3,
            Status::CircuitBreaker => 4,
            Status::FatalError => 5,
            Status::Paused => 6,
            Status::Blocked => 7,
            Status::Cancelled => 9,
        }
    }

    /// As written in the file.
    pub fn word(self) -> &'static str {
        self.into()
    }
}
