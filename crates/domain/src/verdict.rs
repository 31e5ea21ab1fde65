//! The gate's answer, and how a session ended.

pub use crate::continue_kind::ContinueKind;
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

    /// The exit code of the gate: 0 stop, 1 continue, 75 pause.
    pub fn gate_exit_code(&self) -> u8 {
        match self {
            Verdict::Stop { .. } => 0,
            Verdict::Continue { .. } => 1,
            // EX_TEMPFAIL of sysexits.h: try again later.
            Verdict::Pause { .. } => 75,
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

impl Ending {
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

    /// The words of an ending that is a failure.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Ending::WindowFull(words)
            | Ending::ClientLimit(words)
            | Ending::Silent(words)
            | Ending::Crashed(words)
            | Ending::Failed(words) => Some(words),
            Ending::Completed
            | Ending::HookStopped
            | Ending::Fatal(_)
            | Ending::Limit(_)
            | Ending::Overloaded(_)
            | Ending::OutOfTime
            | Ending::Interrupted
            | Ending::Cancelled
            | Ending::Unknown => None,
        }
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
