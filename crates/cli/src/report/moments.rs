//! From the journal to what is marked on the load line.

use super::entry::{Entry, FACT};
use super::night::{Levels, Mark, Moment, Sitting};
use super::troubles::BROKEN;
use super::words::Cleaner;
use serde_json::from_value;
use session::level::{CeilingAction, Marks};

/// The marks of the journal: checkpoints, refusals, the breaker. Compactions are the turn log's.
pub(super) fn moments(entries: &[Entry<'_>]) -> Vec<Moment> {
    entries.iter().filter_map(moment).collect()
}

fn moment(entry: &Entry<'_>) -> Option<Moment> {
    let percent = entry.number("percent").map(|percent| percent as f64);
    let of = entry.iteration().map(|number| format!("session {number}: ")).unwrap_or_default();
    let (what, words) = match entry.event() {
        "checkpoint" => {
            let level = entry.raw("cause").filter(|cause| *cause != "level").or(entry.raw("level"));
            let at = percent.map(|percent| format!(" at {percent:.0} %")).unwrap_or_default();
            (Mark::Checkpoint, format!("{of}checkpoint {}{at}", level.unwrap_or("?")))
        }
        "breaker_opened" => {
            let cause = entry.raw("cause").unwrap_or("?").replace('_', " ");
            (Mark::Breaker, format!("{of}circuit breaker opened: {cause}"))
        }
        "verdict" => verdict(entry, &of)?,
        _ => return None,
    };
    Some(Moment { at: entry.at, what, percent, words: entry.line(&words) })
}

fn verdict(entry: &Entry<'_>, of: &str) -> Option<(Mark, String)> {
    let (kind, what, why) = entry.marker();
    let is_refusal = kind == "RALPH_CONTINUE" && what == "refused";
    is_refusal.then(|| (Mark::Refused, format!("{of}promise refused: {why}")))
}

/// The end of a session, where its load line ends.
pub(super) fn end(sitting: &Sitting, cleaner: &Cleaner) -> Option<Moment> {
    let ending = sitting.ending.as_deref()?;
    let is_good = !BROKEN.contains(&ending);
    let words = format!("session {} ended ({})", sitting.iteration, ending.replace('_', " "));
    Some(Moment {
        at: sitting.ended.or(sitting.judged)?,
        what: if is_good { Mark::End } else { Mark::BadEnd },
        percent: None,
        words: cleaner.line(&words, FACT),
    })
}

/// Where the levels lay at last, as far as a decision has written them down.
pub(super) fn levels(entries: &[Entry<'_>]) -> Option<Levels> {
    let all: Vec<Marks> =
        entries.iter().filter_map(|entry| from_value(entry.value.get("marks")?.clone()).ok()).collect();
    let last = all.last()?;
    Some(Levels { moved: all.iter().any(|marks| marks != last), ..of_marks(last) })
}

/// The same of marks that were reckoned.
pub(super) fn of_marks(marks: &Marks) -> Levels {
    let share = |tokens: u64| tokens as f64 * 100.0 / marks.window.max(1) as f64;
    Levels {
        l1: share(marks.l1),
        l2: share(marks.l2),
        l3: share(marks.l3),
        ceiling: share(marks.ceiling.tokens),
        ceiling_does: match marks.ceiling.action {
            CeilingAction::Compacts => "the client compacts",
            CeilingAction::Refuses => "the client refuses to go on",
            CeilingAction::Rejected => "the API refuses the prompt",
        },
        window: marks.window,
        moved: false,
    }
}
