//! The status of a run, with what is said of each.

use crate::exit_status::ExitStatus;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};

/// The status of a run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr, VariantArray,
)]
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

/// How a status looks on a page: good news, work in progress, something to wait or decide for, or something wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// The run is done.
    Good,
    /// It is at work.
    Going,
    /// It waits, for a time or for the user.
    Wait,
    /// It is stuck or broken.
    Bad,
}

impl Mood {
    /// Its class on the report's page.
    pub fn word(self) -> &'static str {
        match self {
            Mood::Good => "good",
            Mood::Going => "going",
            Mood::Wait => "wait",
            Mood::Bad => "bad",
        }
    }
}

/// What is true of every run with a status.
#[derive(Debug)]
pub struct StatusTraits {
    /// How `plimsoll run` ends.
    pub exit_status: ExitStatus,
    /// How it looks.
    pub mood: Mood,
    /// Its sign, which is enough without a colour.
    pub sign: &'static str,
    /// The report's sentence.
    pub sentence: &'static str,
    /// What is said when it is over; none while it is not.
    pub over: Option<Over>,
}

/// What is said of a run that is over, unless figures of the run say more.
#[derive(Debug)]
pub struct Over {
    /// The heading of `plimsoll status`.
    pub heading: &'static str,
    /// What the user does next, in one line; none where it is `way_on`.
    pub next: Option<&'static str>,
    /// What opens the run again; none if nothing does.
    pub way_on: Option<&'static str>,
    /// The options that do; none where only the user can say how much more of something there may be.
    pub options: Option<&'static str>,
    /// What the user does now.
    pub advice: &'static str,
    /// The command for it.
    pub command: &'static str,
}

/// What continues with a run, unless it needs more.
const RESUME: &str = "plimsoll run --resume";

impl Status {
    /// All of them.
    pub const ALL: &[Status] = Status::VARIANTS;

    /// What is true of every run with this status.
    pub fn traits(self) -> &'static StatusTraits {
        match self {
            Status::Running => &RUNNING,
            Status::Paused => &PAUSED,
            Status::Completed => &COMPLETED,
            Status::Blocked => &BLOCKED,
            Status::MaxIterations => &MAX_ITERATIONS,
            Status::Budget => &BUDGET,
            Status::Deadline => &DEADLINE,
            Status::CircuitBreaker => &CIRCUIT_BREAKER,
            Status::FatalError => &FATAL_ERROR,
            Status::Cancelled => &CANCELLED,
        }
    }

    /// True when no further session may start.
    pub fn is_over(self) -> bool {
        !matches!(self, Status::Running | Status::Paused)
    }

    /// True when nothing opens the run again.
    pub fn is_final(self) -> bool {
        self.traits().over.as_ref().is_some_and(|over| over.way_on.is_none())
    }

    /// The exit code of `plimsoll run`.
    pub fn exit_code(self) -> u8 {
        self.traits().exit_status.code()
    }

    /// As written in the file.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

static RUNNING: StatusTraits = StatusTraits {
    exit_status: ExitStatus::Success,
    mood: Mood::Going,
    sign: "▸",
    sentence: "Still running.",
    over: None,
};

static PAUSED: StatusTraits = StatusTraits {
    exit_status: ExitStatus::Paused,
    mood: Mood::Wait,
    sign: "‖",
    sentence: "Paused.",
    over: None,
};

static COMPLETED: StatusTraits = StatusTraits {
    exit_status: ExitStatus::Success,
    mood: Mood::Good,
    sign: "✓",
    sentence: "Done.",
    over: Some(Over {
        heading: "completed",
        next: Some("nothing: the run is done; see git log and plimsoll report"),
        way_on: None,
        options: None,
        advice: "Nothing is left to do. Review what was done:",
        command: "git log --stat",
    }),
};

static BLOCKED: StatusTraits = StatusTraits {
    exit_status: ExitStatus::Blocked,
    mood: Mood::Wait,
    sign: "?",
    sentence: "It needs an answer.",
    over: Some(Over {
        heading: "blocked: the agent cannot continue",
        next: Some("answer what blocks it, then: plimsoll run --resume"),
        way_on: Some(RESUME),
        options: Some("--resume"),
        advice: "Answer in PROMPT.md what blocks it (the agent's message is above), then:",
        command: RESUME,
    }),
};

static MAX_ITERATIONS: StatusTraits = StatusTraits {
    exit_status: ExitStatus::LimitReached,
    mood: Mood::Wait,
    sign: "■",
    sentence: "Out of sessions.",
    over: Some(Over {
        heading: "out of sessions (max_iterations)",
        next: None,
        way_on: Some("plimsoll run --resume --max-iterations N, with a larger N"),
        options: None,
        advice: "All its sessions are used. Allow more:",
        command: RESUME,
    }),
};

static BUDGET: StatusTraits = StatusTraits {
    exit_status: ExitStatus::LimitReached,
    mood: Mood::Wait,
    sign: "■",
    sentence: "Out of budget.",
    over: Some(Over {
        heading: "out of money or tokens (budget)",
        next: None,
        way_on: Some("plimsoll run --resume --max-cost USD (or --max-tokens N), with more"),
        options: None,
        advice: "Its budget is used. Set a larger one:",
        command: RESUME,
    }),
};

static DEADLINE: StatusTraits = StatusTraits {
    exit_status: ExitStatus::LimitReached,
    mood: Mood::Wait,
    sign: "■",
    sentence: "Out of time.",
    over: Some(Over {
        heading: "out of time (deadline)",
        next: None,
        way_on: Some("plimsoll run --resume --deadline TIME, with a later one"),
        options: None,
        advice: "Its deadline has passed. Set a later one:",
        command: "plimsoll run --resume --deadline 8h",
    }),
};

static CIRCUIT_BREAKER: StatusTraits = StatusTraits {
    exit_status: ExitStatus::CircuitBreaker,
    mood: Mood::Bad,
    sign: "✕",
    sentence: "Stuck.",
    over: Some(Over {
        heading: "stuck (circuit_breaker)",
        next: None,
        way_on: Some("fix what stopped it, then: plimsoll run --resume --reset-breaker"),
        options: Some("--resume --reset-breaker"),
        advice: "No more progress. Describe the current item more clearly, or split it, then:",
        command: "plimsoll run --resume --reset-breaker",
    }),
};

static FATAL_ERROR: StatusTraits = StatusTraits {
    exit_status: ExitStatus::FatalError,
    mood: Mood::Bad,
    sign: "✕",
    sentence: "It could not continue.",
    over: Some(Over {
        heading: "a fatal error (fatal_error)",
        next: Some("fix the cause, then: plimsoll run --resume"),
        way_on: Some(RESUME),
        options: Some("--resume"),
        advice: "No session can succeed until this is fixed. Find out what is wrong:",
        command: "plimsoll doctor",
    }),
};

static CANCELLED: StatusTraits = StatusTraits {
    exit_status: ExitStatus::Cancelled,
    mood: Mood::Wait,
    sign: "■",
    sentence: "Cancelled.",
    over: Some(Over {
        heading: "cancelled with `plimsoll stop`",
        next: Some("start a new run with: plimsoll run"),
        way_on: None,
        options: None,
        advice: "It was cancelled and cannot be resumed. For the open items, start a new run:",
        command: "plimsoll run",
    }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_over_has_words_for_its_end_and_an_open_one_has_none() {
        for status in Status::ALL {
            assert_eq!(status.is_over(), status.traits().over.is_some(), "{status}");
        }
        let is_final = |status: &&Status| status.is_final();
        let finals: Vec<&Status> = Status::ALL.iter().filter(is_final).collect();
        assert_eq!(finals, [&Status::Completed, &Status::Cancelled]);
    }
}
