//! From the journal to what is marked on the load line.

use super::contents::{Levels, Mark, Moment, RunSession};
use super::entry::{FACT, RunLine};
use crate::render::redact::RedactedText;
use plimsoll_domain::Marker;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::state::Cause;
use plimsoll_domain::verdict::ContinueKind;

/// The thresholds of the journal: checkpoints, refusals, the breaker. Compactions are the turn log's.
pub(super) fn moments(entries: &[RunLine<'_>]) -> Vec<Moment> {
    entries.iter().filter_map(moment).collect()
}

fn moment(entry: &RunLine<'_>) -> Option<Moment> {
    let of = entry.iteration().map(|number| format!("session {number}: ")).unwrap_or_default();
    let (what, percent, words) = match entry.event() {
        JournalEvent::Checkpoint(written) => {
            let at = written.percent.map(|percent| format!(" at {percent} %")).unwrap_or_default();
            (Mark::Checkpoint, written.percent, format!("{of}checkpoint {}{at}", why(written)))
        }
        JournalEvent::BreakerOpened(opened) => {
            let cause = opened.cause.word().replace('_', " ");
            (Mark::Breaker, None, format!("{of}circuit breaker opened: {cause}"))
        }
        JournalEvent::Verdict(reached) => match &reached.marker {
            Marker::Continue { kind: ContinueKind::Refused, reason } => {
                (Mark::Refused, None, format!("{of}promise refused: {reason}"))
            }
            _ => return None,
        },
        _ => return None,
    };
    let percent = percent.map(|percent| percent as f64);
    Some(Moment { at: entry.at, what, percent, words: entry.words(&words) })
}

/// Why a checkpoint was written, in a word: its level, or what else it was.
pub(super) fn why(written: &CheckpointWritten) -> String {
    match written.cause {
        None | Some(Cause::Level) => written.level.to_string(),
        Some(cause) => cause.shown_word().to_owned(),
    }
}

/// The end of a session, where its load line ends.
pub(super) fn end(session: &RunSession) -> Option<Moment> {
    let ending = session.ending.as_ref()?;
    let words = format!("session {} ended ({})", session.iteration, ending.word().replace('_', " "));
    Some(Moment {
        at: session.ended.or(session.judged)?,
        what: if ending.is_broken() { Mark::BadEnd } else { Mark::End },
        percent: None,
        words: RedactedText::line(&words, FACT),
    })
}

/// Where the levels lay at last, as far as a decision has written them down.
pub(super) fn levels(entries: &[RunLine<'_>]) -> Option<Levels> {
    let of = |entry: &RunLine<'_>| match entry.event() {
        JournalEvent::Checkpoint(written) => written.thresholds,
        JournalEvent::Warning(reached) | JournalEvent::Ended(reached) => reached.thresholds,
        _ => None,
    };
    let all: Vec<Thresholds> = entries.iter().filter_map(of).collect();
    let last = all.last()?;
    Some(Levels { moved: all.iter().any(|thresholds| thresholds != last), ..of_thresholds(last) })
}

/// The levels of computed thresholds.
pub(super) fn of_thresholds(thresholds: &Thresholds) -> Levels {
    let share = |tokens: u64| tokens as f64 * 100.0 / thresholds.window.max(1) as f64;
    Levels {
        l1: share(thresholds.l1),
        l2: share(thresholds.l2),
        l3: share(thresholds.l3),
        auto_compact: share(thresholds.auto_compact.tokens),
        auto_compact_does: thresholds.auto_compact.action.words(),
        window: thresholds.window,
        moved: false,
    }
}
