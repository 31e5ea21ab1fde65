//! In which colour a line of a run is shown on a terminal: what one looks for in the morning stands out, and what the client does
//! in between steps back.

use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::level::Level;
use plimsoll_domain::verdict::Course;
use plimsoll_domain::{Ending, Status, Verdict};
use plimsoll_flows::run::Progress;
use plimsoll_policy::completion::VerifyOutcome;

const STRONG: &str = "1";
const FAINT: &str = "2";
const GOOD: &str = "32";
const CAREFUL: &str = "33";
const BAD: &str = "31";

/// The colour of what happened; none for the terminal's own.
pub(super) fn of(progress: &Progress<'_>) -> Option<&'static str> {
    match progress {
        Progress::Run { .. } | Progress::Iteration { .. } => Some(STRONG),
        Progress::Client { .. } | Progress::Tool { .. } => Some(FAINT),
        Progress::Ended { ended, .. } => of_ending(&ended.ending),
        Progress::Judged { verdict, .. } => of_verdict(verdict),
        Progress::Verified { outcomes } => Some(of_checks(outcomes)),
        Progress::Retry { .. }
        | Progress::Compacted
        | Progress::Denied { .. }
        | Progress::Parked { .. }
        | Progress::Pause { .. }
        | Progress::StopRequested => Some(CAREFUL),
        Progress::TakenBack { .. } | Progress::Fault { .. } | Progress::Failed { .. } => Some(BAD),
        Progress::Workers { event: JournalEvent::Landed(_) } => Some(GOOD),
        Progress::Workers { event: JournalEvent::SentBack(_) } => Some(BAD),
        Progress::Workers { .. } => None,
        Progress::Reviewed { .. }
        | Progress::Figures { .. }
        | Progress::Note(_)
        | Progress::Load { .. }
        | Progress::Waiting { .. }
        | Progress::Over { .. } => None,
    }
}

/// The colour of a level that was announced.
pub(super) fn of_level(level: Level) -> Option<&'static str> {
    match level {
        Level::L0 => None,
        Level::L1 | Level::L2 => Some(CAREFUL),
        Level::L3 => Some(BAD),
    }
}

fn of_ending(ending: &Ending) -> Option<&'static str> {
    match ending.traits().course {
        Course::Orderly => None,
        Course::Stopped => Some(CAREFUL),
        // The user has set that limit.
        Course::Broken if matches!(ending, Ending::ClientLimit(_)) => Some(CAREFUL),
        Course::Broken => Some(BAD),
    }
}

fn of_verdict(verdict: &Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Continue { .. } => Some(FAINT),
        Verdict::Pause { .. } => Some(CAREFUL),
        Verdict::Stop { status: Status::Completed, .. } => Some(GOOD),
        Verdict::Stop { .. } => Some(BAD),
    }
}

/// Before the work is done a check fails by right: what it costs is said apart.
fn of_checks(outcomes: &[VerifyOutcome]) -> &'static str {
    if outcomes.iter().all(|outcome| outcome.passed) { GOOD } else { CAREFUL }
}
