//! The color of each line of a run on a terminal. Results and problems stand out, and the client's tool calls are dim.

use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::level::Level;
use plimsoll_domain::verdict::EndingCategory;
use plimsoll_domain::{RunStatus, SessionEnding, Verdict};
use plimsoll_flows::run::RunEvent;
use plimsoll_policy::completion::VerifyOutcome;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";

/// Returns the color of an event, or `None` for the default color.
pub(super) fn run_event_color(run_event: &RunEvent<'_>) -> Option<&'static str> {
    match run_event {
        RunEvent::RunStarted { .. } | RunEvent::IterationStarted { .. } => Some(BOLD),
        RunEvent::ClientStarted { .. } | RunEvent::ToolUsed { .. } => Some(DIM),
        RunEvent::IterationEnded { result, .. } => session_ending_color(&result.ending),
        RunEvent::VerdictReached { verdict, .. } => verdict_color(verdict),
        RunEvent::VerifyCommandsFinished { outcomes } => Some(verify_color(outcomes)),
        RunEvent::ApiRetry { .. }
        | RunEvent::Compacted
        | RunEvent::ToolsDenied { .. }
        | RunEvent::QuestionAsked { .. }
        | RunEvent::PauseStarted { .. }
        | RunEvent::StopRequested => Some(YELLOW),
        RunEvent::TicksReverted { .. }
        | RunEvent::TemporaryErrorRetry { .. }
        | RunEvent::RunFailed { .. } => Some(RED),
        RunEvent::WorkersEvent { event: JournalEvent::ItemsMerged(_) } => Some(GREEN),
        RunEvent::WorkersEvent { event: JournalEvent::ItemReturned(_) } => Some(RED),
        RunEvent::WorkersEvent { .. } => None,
        RunEvent::Reviewed { .. }
        | RunEvent::FiguresUpdated { .. }
        | RunEvent::ApiAnswered
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

fn session_ending_color(ending: &SessionEnding) -> Option<&'static str> {
    match ending.category_and_description().category {
        EndingCategory::Completed => None,
        EndingCategory::StoppedExternally => Some(YELLOW),
        // Only yellow, because the user has set this limit.
        EndingCategory::Aborted if matches!(ending, SessionEnding::ClientLimit(_)) => Some(YELLOW),
        EndingCategory::Aborted => Some(RED),
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

/// A failure is only yellow, because a check may fail before the work is done. Its consequence is printed on another line.
fn verify_color(outcomes: &[VerifyOutcome]) -> &'static str {
    if outcomes.iter().all(|outcome| outcome.passed) { GREEN } else { YELLOW }
}
