//! The exit codes of all Plimsoll programs. Shells, loops and services depend on them, so the numbers never
//! change.

use std::process::ExitCode;

/// The exit status of a Plimsoll program. Two commands differ: `plimsoll query` exits as jq does, and
/// `plimsoll with-context` passes on the status of the program it ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// The command succeeded; the run is completed; the gate's loop ends.
    #[default]
    Success = 0,
    /// The command failed or found a problem; the gate's loop continues.
    Failure = 1,
    /// The command line is invalid. Hooks never use this code, because it would block the client.
    Usage = 2,
    /// The run has reached a limit: sessions, money or time.
    LimitReached = 3,
    /// The circuit breaker stopped the run.
    CircuitBreaker = 4,
    /// No session of the run can succeed: login, billing, model, hooks.
    FatalError = 5,
    /// The run waits for something, and `plimsoll run` exited instead of waiting.
    Paused = 6,
    /// All open items wait for the user.
    Blocked = 7,
    /// The run was canceled by `plimsoll stop`.
    Cancelled = 9,
    /// An internal error, where 1 would be read as a verdict: EX_SOFTWARE of sysexits.h.
    InternalError = 70,
    /// The gate's loop pauses and should try again later: EX_TEMPFAIL of sysexits.h.
    TryAgain = 75,
    /// The program to run could not be started; the same code as in shells.
    ProgramNotFound = 127,
    /// The user interrupted it: 128 plus the number of SIGINT, as in shells.
    Interrupted = 130,
}

impl ExitStatus {
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
        ExitStatus::ProgramNotFound,
        ExitStatus::Interrupted,
    ];

    /// Returns the numeric exit code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status with this code; `None` for a code that Plimsoll never uses.
    pub fn from_code(code: u8) -> Option<ExitStatus> {
        ExitStatus::ALL.into_iter().find(|status| status.code() == code)
    }

    /// Returns `Failure` if something is wrong, otherwise `Success`.
    pub fn failure_if(has_failed: bool) -> ExitStatus {
        if has_failed { ExitStatus::Failure } else { ExitStatus::Success }
    }

    /// Returns true if a person should be alerted about the run: it could not run, is stuck, or no session
    /// can succeed.
    pub fn is_run_failure(self) -> bool {
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
    fn each_status_is_found_by_its_own_code() {
        for status in ExitStatus::ALL {
            assert_eq!(ExitStatus::from_code(status.code()), Some(status));
        }
        assert_eq!((ExitStatus::from_code(8), ExitStatus::from_code(255)), (None, None));
    }
}
