//! The verdict of the gate about a run, and how a session ended.

pub use crate::continue_kind::ContinueKind;
use crate::exit_status::ExitStatus;
use crate::fatal_error::FatalError;
use crate::marker::Marker;
use crate::status::RunStatus;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The gate's decision about a run, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The run ends.
    Stop {
        /// The status with which it ends.
        status: RunStatus,
        reason: String,
    },
    /// The run waits.
    Pause {
        /// What the run waits for.
        #[serde(default)]
        kind: PauseKind,
        /// The end of the pause (RFC 3339), if it is known.
        #[serde(rename = "until")]
        pause_end: Option<Timestamp>,
        reason: String,
    },
    /// A fresh session continues.
    Continue {
        /// Whether a checkpoint is resumed, the next item begins, or a promise was refused.
        kind: ContinueKind,
        reason: String,
    },
}

/// The kind of a pause: what the run waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// A usage or rate limit ended the session.
    #[default]
    Limit,
    /// The service is overloaded or unreachable.
    Overload,
    /// The user's own share of a quota is used up; the session itself went well.
    Quota,
    /// The user interrupted it.
    Interrupted,
    /// Checkpoints follow each other quickly without progress.
    Thrash,
    /// Something on this machine failed repeatedly: a program, a disk, a lock.
    Fault,
}

impl PauseKind {
    /// Returns true if waiting resolves the pause. Otherwise the user must act.
    pub fn resolves_by_waiting(self) -> bool {
        matches!(self, PauseKind::Limit | PauseKind::Overload | PauseKind::Quota)
    }

    /// Returns true if the paused session is not counted, and is planned again with the same number.
    pub fn repeats_iteration(self) -> bool {
        matches!(self, PauseKind::Limit | PauseKind::Overload | PauseKind::Interrupted | PauseKind::Fault)
    }
}

impl Verdict {
    /// Converts the verdict to its marker line.
    pub fn to_marker(&self) -> Marker {
        match self.clone() {
            Verdict::Stop { status, reason } => Marker::Stop { status, reason },
            Verdict::Pause { pause_end: until, reason, .. } => Marker::Pause { until, reason },
            Verdict::Continue { kind, reason } => Marker::Continue { kind, reason },
        }
    }

    /// Returns the exit status of the gate: 0 stop, 1 continue, 75 pause.
    pub fn gate_exit_status(&self) -> ExitStatus {
        match self {
            Verdict::Stop { .. } => ExitStatus::Success,
            Verdict::Continue { .. } => ExitStatus::Failure,
            Verdict::Pause { .. } => ExitStatus::TryAgain,
        }
    }
}

/// How a session ended, as far as the evidence shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "ending", content = "detail", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SessionEnding {
    /// The model ended its turn.
    Completed,
    /// A Plimsoll hook ended it at a checkpoint.
    HookStopped,
    /// The context window was full: blocked, prompt too long, or refilled too fast.
    WindowFull(String),
    /// `--max-turns` or `--max-budget-usd` of the client.
    ClientLimit(String),
    /// Credentials, billing or the model are wrong: no session can succeed.
    Fatal(FatalError),
    /// A usage or rate limit.
    Limit(String),
    /// The service is overloaded or failing.
    Overloaded(String),
    /// It had no output for too long and was ended.
    #[serde(rename = "silent")]
    #[strum(serialize = "silent")]
    IdleTimeout(String),
    /// It was ended at the run's deadline.
    #[serde(rename = "out_of_time")]
    #[strum(serialize = "out_of_time")]
    DeadlineReached,
    /// Interrupted by the user.
    Interrupted,
    /// `plimsoll stop` canceled the run, and its client was ended.
    #[serde(rename = "cancelled")]
    #[strum(serialize = "cancelled")]
    Canceled,
    /// Ended without a result: a signal or a crash.
    Crashed(String),
    /// Any other error.
    Failed(String),
    /// No evidence, as in a shell loop, whose results Plimsoll does not see.
    #[default]
    Unknown,
}

/// Whether a session completed, was stopped from outside, or was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndingCategory {
    /// It ended normally by itself, as far as the evidence shows.
    Completed,
    /// It was stopped from outside by a limit, the service, the user or the deadline. That says nothing about its work.
    StoppedExternally,
    /// It ended abruptly in the middle of its work.
    Aborted,
}

/// The properties that all endings of one kind have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEndingTraits {
    pub category: EndingCategory,
    /// A clause that describes the ending without its detail.
    pub description: &'static str,
}

impl SessionEnding {
    /// Returns the properties that all endings of this kind have.
    pub fn category_and_description(&self) -> SessionEndingTraits {
        let new_traits =
            |ending_category, description| SessionEndingTraits { category: ending_category, description };
        match self {
            SessionEnding::Completed => new_traits(EndingCategory::Completed, "the model ended its turn"),
            SessionEnding::HookStopped => {
                new_traits(EndingCategory::Completed, "Plimsoll ended it at a checkpoint")
            }
            SessionEnding::WindowFull(_) => new_traits(EndingCategory::Aborted, "the window was full"),
            SessionEnding::ClientLimit(_) => {
                new_traits(EndingCategory::Aborted, "Claude Code's own limit ended it")
            }
            SessionEnding::Fatal(_) => {
                new_traits(EndingCategory::Aborted, "no session can succeed until this is fixed")
            }
            SessionEnding::Limit(_) => {
                new_traits(EndingCategory::StoppedExternally, "a usage or rate limit ended it")
            }
            SessionEnding::Overloaded(_) => {
                new_traits(EndingCategory::StoppedExternally, "the service was overloaded or out of reach")
            }
            SessionEnding::IdleTimeout(_) => {
                new_traits(EndingCategory::Aborted, "it was silent for too long, and was ended")
            }
            SessionEnding::DeadlineReached => {
                new_traits(EndingCategory::StoppedExternally, "it was ended at the deadline")
            }
            SessionEnding::Interrupted => new_traits(EndingCategory::StoppedExternally, "you interrupted it"),
            SessionEnding::Canceled => {
                new_traits(EndingCategory::StoppedExternally, "`plimsoll stop` ended it")
            }
            SessionEnding::Crashed(_) => new_traits(EndingCategory::Aborted, "it broke off without a result"),
            SessionEnding::Failed(_) => new_traits(EndingCategory::Aborted, "it ended with an error"),
            SessionEnding::Unknown => new_traits(EndingCategory::Completed, "how it ended is not known"),
        }
    }

    /// Returns true if the session ended abruptly in the middle of its work, so that the user should be informed.
    pub fn is_aborted(&self) -> bool {
        self.category_and_description().category == EndingCategory::Aborted
    }

    /// Returns the name that is written to the journal.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }

    /// Returns the detail of the ending, such as an error message, if it has one.
    pub fn detail_text(&self) -> Option<&str> {
        match self {
            SessionEnding::WindowFull(text)
            | SessionEnding::ClientLimit(text)
            | SessionEnding::Limit(text)
            | SessionEnding::Overloaded(text)
            | SessionEnding::IdleTimeout(text)
            | SessionEnding::Crashed(text)
            | SessionEnding::Failed(text) => Some(text),
            SessionEnding::Fatal(fatal) => Some(fatal.message()),
            SessionEnding::Completed
            | SessionEnding::HookStopped
            | SessionEnding::DeadlineReached
            | SessionEnding::Interrupted
            | SessionEnding::Canceled
            | SessionEnding::Unknown => None,
        }
    }

    /// Returns the detail of an ending that counts as a failure: any abrupt ending except [`SessionEnding::Fatal`], which
    /// ends the run at once.
    pub fn failure_text(&self) -> Option<&str> {
        let counts_as_failure = self.is_aborted() && !matches!(self, SessionEnding::Fatal(_));
        self.detail_text().filter(|_| counts_as_failure)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessExit {
    /// Its exit code; `None` if unknown, as for a process that was not our child.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abrupt_ending_is_a_failure_unless_it_ends_the_run() {
        let detail = || "words".to_owned();
        let broken_endings = [
            (SessionEnding::WindowFull(detail()), true),
            (SessionEnding::ClientLimit(detail()), true),
            (SessionEnding::IdleTimeout(detail()), true),
            (SessionEnding::Crashed(detail()), true),
            (SessionEnding::Failed(detail()), true),
            (SessionEnding::Fatal(detail().into()), false),
        ];
        for (ending, counts_as_failure) in broken_endings {
            assert!(ending.is_aborted(), "{ending:?}");
            assert_eq!(ending.failure_text().is_some(), counts_as_failure, "{ending:?}");
        }
        for ending in [
            SessionEnding::Completed,
            SessionEnding::Limit(detail()),
            SessionEnding::DeadlineReached,
            SessionEnding::Unknown,
        ] {
            assert!(!ending.is_aborted() && ending.failure_text().is_none(), "{ending:?}");
        }
    }
}
