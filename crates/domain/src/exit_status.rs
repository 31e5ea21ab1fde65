//! The exit codes of our programs, in one place: shells, loops and services decide by them, so their numbers stay.

use std::process::ExitCode;

/// How a program of ours ends. `plimsoll query` ends as jq does, and `plimsoll with-context` as the program that it ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// It did what was asked; the run is completed; the gate's loop ends.
    #[default]
    Success = 0,
    /// It failed, or found something wrong; the gate's loop continues.
    Failure = 1,
    /// The command line is wrong. No hook ever ends so: the client would be blocked.
    Usage = 2,
    /// The run has reached a limit: sessions, money or time.
    LimitReached = 3,
    /// The circuit breaker has stopped the run.
    CircuitBreaker = 4,
    /// No session of the run can succeed: login, billing, model, hooks.
    FatalError = 5,
    /// The run waits for something, and `plimsoll run` does not.
    Paused = 6,
    /// Everything that is open waits for the user.
    Blocked = 7,
    /// The run was cancelled by `plimsoll stop`.
    Cancelled = 9,
    /// A fault of our own, where 1 is a verdict: EX_SOFTWARE of sysexits.h.
    InternalError = 70,
    /// The gate's loop pauses: EX_TEMPFAIL of sysexits.h, try again later.
    TryAgain = 75,
    /// The program that was to be run did not start: as shells have it.
    NotFound = 127,
    /// The user ended it: 128 and the number of SIGINT, as shells have it.
    Interrupted = 130,
}

impl ExitStatus {
    /// All of them.
    pub const ALL: [ExitStatus; 13] = [
        ExitStatus::Success,
        ExitStatus::Failure,
        ExitStatus::Usage,
        ExitStatus::LimitReached,
        ExitStatus::CircuitBreaker,
        ExitStatus::FatalError,
        ExitStatus::Paused,
        ExitStatus::Blocked,
        ExitStatus::Cancelled,
        ExitStatus::InternalError,
        ExitStatus::TryAgain,
        ExitStatus::NotFound,
        ExitStatus::Interrupted,
    ];

    /// Returns its number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status with this number; none for a number that we never end with.
    pub fn from_code(code: u8) -> Option<ExitStatus> {
        ExitStatus::ALL.into_iter().find(|status| status.code() == code)
    }

    /// Returns a failure if something is wrong, else success.
    pub fn failure_if(is_wrong: bool) -> ExitStatus {
        if is_wrong { ExitStatus::Failure } else { ExitStatus::Success }
    }

    /// Returns true for a run that somebody should be woken for: it could not run, is stuck, or no session can succeed.
    pub fn is_fault_of_run(self) -> bool {
        matches!(self, ExitStatus::Failure | ExitStatus::CircuitBreaker | ExitStatus::FatalError)
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_known_by_its_own_number() {
        for status in ExitStatus::ALL {
            assert_eq!(ExitStatus::from_code(status.code()), Some(status));
        }
        assert_eq!((ExitStatus::from_code(8), ExitStatus::from_code(255)), (None, None));
    }
}
