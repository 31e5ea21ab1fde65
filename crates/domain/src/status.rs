//! The status of a run, with the texts that describe each status.

use crate::exit_status::ExitStatus;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};

/// The status of a run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    #[default]
    Running,
    /// Waiting for the end of a limit or an overload, or for the user.
    Paused,
    /// Done: the promise was made, every item is ticked, and the verify commands pass.
    Completed,
    /// The agent reported that it cannot continue without the user.
    Blocked,
    /// All allowed iterations are used.
    MaxIterations,
    /// The budget in dollars or tokens is used up.
    Budget,
    /// The deadline has passed.
    Deadline,
    /// The circuit breaker stopped a run that made no progress.
    CircuitBreaker,
    /// No session can succeed: credentials, billing or the model are wrong.
    FatalError,
    /// Canceled by `plimsoll stop`.
    #[serde(rename = "cancelled")]
    #[strum(serialize = "cancelled")]
    Canceled,
}

/// The style of a status on the report page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusStyle {
    /// The run is done.
    Good,
    /// The run is in progress.
    Running,
    /// The run waits for a time or for the user.
    Waiting,
    /// The run is stuck or has failed.
    Bad,
}

impl StatusStyle {
    /// Returns the CSS class on the report page.
    pub fn css_class(self) -> &'static str {
        match self {
            StatusStyle::Good => "good",
            StatusStyle::Running => "going",
            StatusStyle::Waiting => "wait",
            StatusStyle::Bad => "bad",
        }
    }
}

/// The properties and texts of a status, the same for every run.
#[derive(Debug)]
pub struct RunStatusTraits {
    /// The exit status of `plimsoll run`.
    pub exit_status: ExitStatus,
    pub style: StatusStyle,
    /// A symbol that identifies the status without any color.
    pub symbol: &'static str,
    /// The sentence in the report.
    pub sentence: &'static str,
    /// The texts for a run that has ended; `None` for the status of an open run.
    pub ended_texts: Option<EndedRunTexts>,
}

/// The texts for a run that has ended, unless numbers of the run allow a more precise text.
#[derive(Debug)]
pub struct EndedRunTexts {
    /// The heading when a marker is described to people, before the reason.
    pub marker_heading: &'static str,
    /// The heading in `plimsoll status`.
    pub heading: &'static str,
    /// The user's next step, in one line; `None` if that is to resume the run.
    pub next_step: Option<&'static str>,
    /// How to resume the run; `None` if it cannot be resumed.
    pub how_to_resume: Option<&'static str>,
    /// The options that resume the run; `None` if the user must choose a new limit for it.
    pub resume_options: Option<&'static str>,
    /// Advice about what the user should do now.
    pub advice: &'static str,
    /// The command for this advice.
    pub command: &'static str,
}

/// The command that continues a run if no other option is needed.
const RESUME_COMMAND: &str = "plimsoll run --resume";

impl RunStatus {
    pub const ALL: &[RunStatus] = RunStatus::VARIANTS;

    /// Returns the properties and texts of this status.
    pub fn traits(self) -> &'static RunStatusTraits {
        match self {
            RunStatus::Running => &RUNNING,
            RunStatus::Paused => &PAUSED,
            RunStatus::Completed => &COMPLETED,
            RunStatus::Blocked => &BLOCKED,
            RunStatus::MaxIterations => &MAX_ITERATIONS,
            RunStatus::Budget => &BUDGET,
            RunStatus::Deadline => &DEADLINE,
            RunStatus::CircuitBreaker => &CIRCUIT_BREAKER,
            RunStatus::FatalError => &FATAL_ERROR,
            RunStatus::Canceled => &CANCELED,
        }
    }

    /// Returns true if no further session may start.
    pub fn has_ended(self) -> bool {
        !matches!(self, RunStatus::Running | RunStatus::Paused)
    }

    /// Returns true if the run has ended and cannot be reopened.
    pub fn is_final(self) -> bool {
        self.traits().ended_texts.as_ref().is_some_and(|texts| texts.how_to_resume.is_none())
    }

    /// Returns the exit code of `plimsoll run`.
    pub fn exit_code(self) -> u8 {
        self.traits().exit_status.code()
    }

    /// Returns the name that the state file, messages and the `--notify` program's JSON use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

static RUNNING: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::Success,
    style: StatusStyle::Running,
    symbol: "▸",
    sentence: "Still running.",
    ended_texts: None,
};

static PAUSED: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::Paused,
    style: StatusStyle::Waiting,
    symbol: "‖",
    sentence: "Paused.",
    ended_texts: None,
};

static COMPLETED: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::Success,
    style: StatusStyle::Good,
    symbol: "✓",
    sentence: "Done.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "completed",
        heading: "completed",
        next_step: Some("nothing: the run is done; see git log and plimsoll report"),
        how_to_resume: None,
        resume_options: None,
        advice: "Nothing is left to do. Review what was done:",
        command: "git log --stat",
    }),
};

static BLOCKED: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::Blocked,
    style: StatusStyle::Waiting,
    symbol: "?",
    sentence: "It needs an answer.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "blocked",
        heading: "blocked: the agent cannot continue",
        next_step: Some("answer what blocks it, then: plimsoll run --resume"),
        how_to_resume: Some(RESUME_COMMAND),
        resume_options: Some("--resume"),
        advice: "Answer in PROMPT.md what blocks it (the agent's message is above), then:",
        command: RESUME_COMMAND,
    }),
};

static MAX_ITERATIONS: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::LimitReached,
    style: StatusStyle::Waiting,
    symbol: "■",
    sentence: "Out of sessions.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "out of sessions",
        heading: "out of sessions (max_iterations)",
        next_step: None,
        how_to_resume: Some("plimsoll run --resume --max-iterations N, with a larger N"),
        resume_options: None,
        advice: "All its sessions are used. Allow more:",
        command: RESUME_COMMAND,
    }),
};

static BUDGET: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::LimitReached,
    style: StatusStyle::Waiting,
    symbol: "■",
    sentence: "Out of budget.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "out of budget",
        heading: "out of money or tokens (budget)",
        next_step: None,
        how_to_resume: Some("plimsoll run --resume --max-cost USD (or --max-tokens N), with more"),
        resume_options: None,
        advice: "Its budget is used. Set a larger one:",
        command: RESUME_COMMAND,
    }),
};

static DEADLINE: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::LimitReached,
    style: StatusStyle::Waiting,
    symbol: "■",
    sentence: "Out of time.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "out of time",
        heading: "out of time (deadline)",
        next_step: None,
        how_to_resume: Some("plimsoll run --resume --deadline TIME, with a later one"),
        resume_options: None,
        advice: "Its deadline has passed. Set a later one:",
        command: "plimsoll run --resume --deadline 8h",
    }),
};

static CIRCUIT_BREAKER: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::CircuitBreaker,
    style: StatusStyle::Bad,
    symbol: "✕",
    sentence: "Stuck.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "stuck",
        heading: "stuck (circuit_breaker)",
        next_step: None,
        how_to_resume: Some("fix what stopped it, then: plimsoll run --resume --reset-breaker"),
        resume_options: Some("--resume --reset-breaker"),
        advice: "No more progress. Describe the current item more clearly, or split it, then:",
        command: "plimsoll run --resume --reset-breaker",
    }),
};

static FATAL_ERROR: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::FatalError,
    style: StatusStyle::Bad,
    symbol: "✕",
    sentence: "It could not continue.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "failed",
        heading: "a fatal error (fatal_error)",
        next_step: Some("fix the cause, then: plimsoll run --resume"),
        how_to_resume: Some(RESUME_COMMAND),
        resume_options: Some("--resume"),
        advice: "No session can succeed until this is fixed. Find out what is wrong:",
        command: "plimsoll doctor",
    }),
};

static CANCELED: RunStatusTraits = RunStatusTraits {
    exit_status: ExitStatus::Cancelled,
    style: StatusStyle::Waiting,
    symbol: "■",
    sentence: "Canceled.",
    ended_texts: Some(EndedRunTexts {
        marker_heading: "canceled",
        heading: "canceled with `plimsoll stop`",
        next_step: Some("start a new run with: plimsoll run"),
        how_to_resume: None,
        resume_options: None,
        advice: "It was canceled and cannot be resumed. For the open items, start a new run:",
        command: "plimsoll run",
    }),
};

/// Returns the reason of a stop in the words of the screens. The recorded reason speaks of iterations, which people know as
/// sessions.
pub fn stop_reason_for_people(status: RunStatus, reason: &str) -> String {
    match status {
        RunStatus::MaxIterations => reason.replace("iteration", "session"),
        _ => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_status_of_an_ended_run_has_texts_for_its_end() {
        for status in RunStatus::ALL {
            assert_eq!(status.has_ended(), status.traits().ended_texts.is_some(), "{status}");
        }
        let is_final = |status: &&RunStatus| status.is_final();
        let finals: Vec<&RunStatus> = RunStatus::ALL.iter().filter(is_final).collect();
        assert_eq!(finals, [&RunStatus::Completed, &RunStatus::Canceled]);
    }
}
