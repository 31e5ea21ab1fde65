//! The status of a run.

use serde::{Deserialize, Serialize};

/// The status of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
        match self {
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Completed => "completed",
            Status::Blocked => "blocked",
            Status::MaxIterations => "max_iterations",
            Status::Budget => "budget",
            Status::Deadline => "deadline",
            Status::CircuitBreaker => "circuit_breaker",
            Status::FatalError => "fatal_error",
            Status::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.word())
    }
}
