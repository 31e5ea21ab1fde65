//! The color of each line of a run on a terminal: what users look for afterwards stands out, and the client's single steps are dim.

use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::level::Level;
use plimsoll_domain::verdict::EndingCourse;
use plimsoll_domain::{RunStatus, SessionEnding, Verdict};
use plimsoll_flows::run::RunEvent;
use plimsoll_policy::completion::VerifyOutcome;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";

/// Returns the color of an event, or `None` for the default color.
pub(super) fn progress_color(run_event: &RunEvent<'_>) -> Option<&'static str> {
    match run_event {
        RunEvent::RunStarted { .. } | RunEvent::IterationStarted { .. } => Some(BOLD),
        RunEvent::ClientStarted { .. } | RunEvent::ToolUsed { .. } => Some(DIM),
        RunEvent::IterationEnded { result, .. } => ending_color(&result.ending),
        RunEvent::Judged { verdict, .. } => verdict_color(verdict),
        RunEvent::Verified { outcomes } => Some(verify_color(outcomes)),
        RunEvent::ApiRetry { .. }
        | RunEvent::Compacted
        | RunEvent::ToolsDenied { .. }
        | RunEvent::QuestionAsked { .. }
        | RunEvent::PauseStarted { .. }
        | RunEvent::StopRequested => Some(YELLOW),
        RunEvent::TicksReverted { .. } | RunEvent::FaultRetry { .. } | RunEvent::RunFailed { .. } => {
            Some(RED)
        }
        RunEvent::WorkersEvent { event: JournalEvent::ItemsMerged(_) } => Some(GREEN),
        RunEvent::WorkersEvent { event: JournalEvent::ItemReturned(_) } => Some(RED),
        RunEvent::WorkersEvent { .. } => None,
        RunEvent::Reviewed { .. }
        | RunEvent::FiguresUpdated { .. }
        | RunEvent::Notice(_)
        | RunEvent::UsageUpdated { .. }
        | RunEvent::PauseContinues { .. }
        | RunEvent::ProgramEnded { .. } => None,
    }
}

/// Returns the color of an announced level.
pub(super) fn level_color(level: Level) -> Option<&'static str> {
    match level {
        Level::L0 => None,
        Level::L1 | Level::L2 => Some(YELLOW),
        Level::L3 => Some(RED),
    }
}

fn ending_color(ending: &SessionEnding) -> Option<&'static str> {
    match ending.traits().course {
        EndingCourse::Completed => None,
        EndingCourse::StoppedFromOutside => Some(YELLOW),
        // The user has set this limit.
        EndingCourse::BrokenOff if matches!(ending, SessionEnding::ClientLimit(_)) => Some(YELLOW),
        EndingCourse::BrokenOff => Some(RED),
    }
}

fn verdict_color(verdict: &Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Continue { .. } => Some(DIM),
        Verdict::Pause { .. } => Some(YELLOW),
        Verdict::Stop { status: RunStatus::Completed, .. } => Some(GREEN),
        Verdict::Stop { .. } => Some(RED),
    }
}

/// A check may fail before the work is done, so a failure is no problem here; its consequence is a line of its own.
fn verify_color(outcomes: &[VerifyOutcome]) -> &'static str {
    if outcomes.iter().all(|outcome| outcome.passed) { GREEN } else { YELLOW }
}
