//! The verdict in words: what was ticked, what follows, why, and the cost so far.

use super::phrase::{Tone, brief};
use plimsoll_domain::journal::VerdictReached;
use plimsoll_domain::text::clip;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Ending, Marker, Status, Timestamp};
use plimsoll_store::clock;

/// Puts a verdict into words.
pub(super) fn verdict(reached: &VerdictReached) -> (String, Tone) {
    let (words, tone) = decision(&reached.marker);
    let trouble = if has_its_own_trouble(&reached.marker) { String::new() } else { trouble(reached) };
    let ending = if tells_what_comes_next(&reached.marker) { String::new() } else { ending(reached) };
    (format!("{}{ending}{words}{trouble}{}", ticked(reached), cost(reached)), tone)
}

fn decision(marker: &Marker) -> (String, Tone) {
    match marker {
        Marker::Stop { status: Status::Completed, reason } => (because("run completed", reason), Tone::Good),
        Marker::Stop { status, reason } => (because(&format!("run over ({status})"), reason), Tone::Bad),
        Marker::Pause { until, reason } => {
            (because(&format!("paused{}", until_words(until.as_ref())), reason), Tone::Bold)
        }
        Marker::Continue { kind: ContinueKind::Refused, reason } => {
            (because("promise refused", reason), Tone::Bad)
        }
        Marker::Continue { kind: ContinueKind::Checkpoint, reason } => {
            (format!("continues from {}", brief(reason)), Tone::Bold)
        }
        Marker::Continue { kind: ContinueKind::Next, reason } => (because("continues", reason), Tone::Bold),
        // No gate says so.
        Marker::Warning { .. } | Marker::Checkpoint { .. } => (marker.to_string(), Tone::Bold),
    }
}

fn because(words: &str, why: &str) -> String {
    if why.is_empty() { words.to_owned() } else { format!("{words}: {}", brief(why)) }
}

fn until_words(until: Option<&Timestamp>) -> String {
    let until = until.and_then(clock::moment);
    until.map(|until| format!(" until {}", clock::for_people(until))).unwrap_or_default()
}

/// An open breaker's own words count.
fn has_its_own_trouble(marker: &Marker) -> bool {
    matches!(marker, Marker::Stop { status: Status::CircuitBreaker, .. })
}

fn tells_what_comes_next(marker: &Marker) -> bool {
    matches!(marker, Marker::Continue { kind: ContinueKind::Next, .. })
}

fn ticked(reached: &VerdictReached) -> String {
    let items = reached.ticked.iter().flatten();
    let items: Vec<String> = items.map(|item| format!("\"{}\"", clip(&brief(item), 60))).collect();
    if items.is_empty() { String::new() } else { format!("ticked {}; ", items.join(", ")) }
}

/// How the session ended, unless that is as it should be or is itself the verdict's reason.
fn ending(reached: &VerdictReached) -> String {
    let Some(ending) = &reached.ending else { return String::new() };
    let Some(detail) = ending.failure() else { return String::new() };
    let detail = if detail.is_empty() { String::new() } else { format!(" ({})", clip(&brief(detail), 100)) };
    if matches!(ending, Ending::Silent(_)) {
        format!("Plimsoll ended the session{detail}; ")
    } else {
        format!("the session ended as {}{detail}; ", ending.word())
    }
}

/// What the breaker counts.
fn trouble(reached: &VerdictReached) -> String {
    let same = reached.same_errors.filter(|count| *count > 1);
    let same = same.map(|count| format!(" [the same error {count} times]")).unwrap_or_default();
    let stuck = reached.no_change_count.filter(|count| *count > 1);
    let stuck = stuck.map(|count| format!(" [{count} sessions without progress]")).unwrap_or_default();
    same + &stuck
}

fn cost(reached: &VerdictReached) -> String {
    let cost = reached.cost_usd.map(|cost| reached.cost_basis.format_usd(cost));
    cost.map(|cost| format!(" ({cost} so far)")).unwrap_or_default()
}
