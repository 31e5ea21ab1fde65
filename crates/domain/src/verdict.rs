//! The gate's answer, and how a session ended.

pub use crate::continue_kind::ContinueKind;
use crate::exit_status::ExitStatus;
use crate::fatal::Fatal;
use crate::marker::Marker;
use crate::status::Status;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The gate's answer with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The run is over.
    Stop {
        /// How.
        status: Status,
        /// Why.
        reason: String,
    },
    /// The run waits.
    Pause {
        /// What for.
        #[serde(default)]
        kind: PauseKind,
        /// Until when (RFC 3339), if that is known.
        until: Option<Timestamp>,
        /// Why.
        reason: String,
    },
    /// A fresh session continues.
    Continue {
        /// checkpoint, next or refused.
        kind: ContinueKind,
        /// Why.
        reason: String,
    },
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// A usage or rate limit ended the session.
    #[default]
    Limit,
    /// The service is overloaded or out of reach.
    Overload,
    /// The user's own share of a quota is used up; the session itself went well.
    Quota,
    /// The user interrupted it.
    Interrupted,
    /// Checkpoints follow one another and nothing gets done.
    Thrash,
    /// Something of the machine's failed, and continued failing: a program, a disk, a lock.
    Fault,
}

impl PauseKind {
    /// True when waiting helps; else the user is needed.
    pub fn passes(self) -> bool {
        matches!(self, PauseKind::Limit | PauseKind::Overload | PauseKind::Quota)
    }

    /// True when the session that met it is not counted and is planned again under its own number.
    pub fn repeats(self) -> bool {
        matches!(self, PauseKind::Limit | PauseKind::Overload | PauseKind::Interrupted | PauseKind::Fault)
    }
}

impl Verdict {
    /// The marker line.
    pub fn marker(&self) -> Marker {
        match self.clone() {
            Verdict::Stop { status, reason } => Marker::Stop { status, reason },
            Verdict::Pause { until, reason, .. } => Marker::Pause { until, reason },
            Verdict::Continue { kind, reason } => Marker::Continue { kind, reason },
        }
    }

    /// How the gate ends: 0 stop, 1 continue, 75 pause.
    pub fn gate_exit_status(&self) -> ExitStatus {
        match self {
            Verdict::Stop { .. } => ExitStatus::Success,
            Verdict::Continue { .. } => ExitStatus::Failure,
            Verdict::Pause { .. } => ExitStatus::TryAgain,
        }
    }
}

/// How a session ended, as far as its evidence goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "ending", content = "detail", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ending {
    /// The model ended its turn.
    Completed,
    /// A hook of ours ended it at a checkpoint.
    HookStopped,
    /// The window was full: blocked, prompt too long, or refilled too fast.
    WindowFull(String),
    /// `--max-turns` or `--max-budget-usd` of the client.
    ClientLimit(String),
    /// Credentials, billing or the model are wrong: no session can succeed.
    Fatal(Fatal),
    /// A usage or rate limit.
    Limit(String),
    /// The service is overloaded or failing.
    Overloaded(String),
    /// It said nothing for too long, and was ended.
    Silent(String),
    /// The run's deadline came, and it was ended.
    OutOfTime,
    /// Interrupted by the user.
    Interrupted,
    /// `plimsoll stop` cancelled the run, and its client was ended.
    Cancelled,
    /// Ended without a result: a signal or a crash.
    Crashed(String),
    /// Any other error.
    Failed(String),
    /// No evidence (a shell loop, whose results we do not see).
    #[default]
    Unknown,
}

/// What an ending says of a session's course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// It came to its own end, as far as is known.
    Orderly,
    /// It was stopped from outside, which says nothing about its work: a limit, the service, the user, the deadline.
    Stopped,
    /// It broke off in the middle of its work.
    Broken,
}

/// What is true of every ending of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndingTraits {
    /// The session's course.
    pub course: Course,
    /// How it ended, in a clause without a detail.
    pub how: &'static str,
}

impl Ending {
    /// What is true of every ending of this kind.
    pub fn traits(&self) -> EndingTraits {
        let of = |course, how| EndingTraits { course, how };
        match self {
            Ending::Completed => of(Course::Orderly, "the model ended its turn"),
            Ending::HookStopped => of(Course::Orderly, "Plimsoll ended it at a checkpoint"),
            Ending::WindowFull(_) => of(Course::Broken, "the window was full"),
            Ending::ClientLimit(_) => of(Course::Broken, "the client's own limit ended it"),
            Ending::Fatal(_) => of(Course::Broken, "no session can succeed until this is fixed"),
            Ending::Limit(_) => of(Course::Stopped, "a usage or rate limit ended it"),
            Ending::Overloaded(_) => of(Course::Stopped, "the service was overloaded or out of reach"),
            Ending::Silent(_) => of(Course::Broken, "it was silent for too long, and was ended"),
            Ending::OutOfTime => of(Course::Stopped, "it was ended at the deadline"),
            Ending::Interrupted => of(Course::Stopped, "you interrupted it"),
            Ending::Cancelled => of(Course::Stopped, "`plimsoll stop` ended it"),
            Ending::Crashed(_) => of(Course::Broken, "it broke off without a result"),
            Ending::Failed(_) => of(Course::Broken, "it ended with an error"),
            Ending::Unknown => of(Course::Orderly, "how it ended is not known"),
        }
    }

    /// True if the session broke off in the middle of its work: the user should know of it.
    pub fn is_broken(&self) -> bool {
        self.traits().course == Course::Broken
    }

    /// As written in the journal.
    pub fn word(&self) -> &'static str {
        self.into()
    }

    /// What it says more.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Ending::WindowFull(words)
            | Ending::ClientLimit(words)
            | Ending::Limit(words)
            | Ending::Overloaded(words)
            | Ending::Silent(words)
            | Ending::Crashed(words)
            | Ending::Failed(words) => Some(words),
            Ending::Fatal(fatal) => Some(fatal.words()),
            Ending::Completed
            | Ending::HookStopped
            | Ending::OutOfTime
            | Ending::Interrupted
            | Ending::Cancelled
            | Ending::Unknown => None,
        }
    }

    /// The words of an ending that counts as a failure: of a session that broke off, unless no other could fare better, because
    /// that ends the run at once.
    pub fn failure(&self) -> Option<&str> {
        let counts = self.is_broken() && !matches!(self, Ending::Fatal(_));
        self.detail().filter(|_| counts)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; unknown of a process that was not our child.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_off_counts_as_a_failure_unless_it_ends_the_run() {
        let words = || "words".to_owned();
        let broken = [
            (Ending::WindowFull(words()), true),
            (Ending::ClientLimit(words()), true),
            (Ending::Silent(words()), true),
            (Ending::Crashed(words()), true),
            (Ending::Failed(words()), true),
            (Ending::Fatal(words().into()), false),
        ];
        for (ending, counts) in broken {
            assert!(ending.is_broken(), "{ending:?}");
            assert_eq!(ending.failure().is_some(), counts, "{ending:?}");
        }
        for ending in [Ending::Completed, Ending::Limit(words()), Ending::OutOfTime, Ending::Unknown] {
            assert!(!ending.is_broken() && ending.failure().is_none(), "{ending:?}");
        }
    }
}
