//! Describes a verdict: what was ticked, what follows, why, and the cost so far.

use super::phrase::{Tone, shorten_fact};
use plimsoll_domain::journal::VerdictReached;
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunStatus, SessionEnding, Timestamp};
use plimsoll_store::clock;

/// Describes a verdict.
pub(super) fn describe_verdict(reached: &VerdictReached) -> (String, Tone) {
    let (decision, tone) = describe_decision(&reached.marker);
    let counters = if is_breaker_stop(&reached.marker) { String::new() } else { breaker_counters(reached) };
    let ending = if is_next_item(&reached.marker) { String::new() } else { failed_session_prefix(reached) };
    (format!("{}{ending}{decision}{counters}{}", ticked_items_text(reached), cost_so_far(reached)), tone)
}

fn describe_decision(marker: &Marker) -> (String, Tone) {
    match marker {
        Marker::Stop { status: RunStatus::Completed, reason } => {
            (with_reason("run completed", reason), Tone::Good)
        }
        Marker::Stop { status, reason } => (with_reason(&format!("run over ({status})"), reason), Tone::Bad),
        Marker::Pause { until, reason } => {
            (with_reason(&format!("paused{}", pause_end_text(until.as_ref())), reason), Tone::Bold)
        }
        Marker::Continue { kind: ContinueKind::RefusedPromise, reason } => {
            (with_reason("promise refused", reason), Tone::Bad)
        }
        Marker::Continue { kind: ContinueKind::Checkpoint, reason } => {
            (format!("continues from {}", shorten_fact(reason)), Tone::Bold)
        }
        Marker::Continue { kind: ContinueKind::NextItem, reason } => {
            (with_reason("continues", reason), Tone::Bold)
        }
        // The gate never returns these markers.
        Marker::Warning { .. } | Marker::Checkpoint { .. } => (marker.to_string(), Tone::Bold),
    }
}

fn with_reason(text: &str, reason: &str) -> String {
    if reason.is_empty() { text.to_owned() } else { format!("{text}: {}", shorten_fact(reason)) }
}

fn pause_end_text(paused_until: Option<&Timestamp>) -> String {
    let end = paused_until.and_then(clock::parse_timestamp);
    end.map(|until| format!(" until {}", clock::format_local_time_with_seconds(until))).unwrap_or_default()
}

/// The reason of an open breaker already has the counters.
fn is_breaker_stop(marker: &Marker) -> bool {
    matches!(marker, Marker::Stop { status: RunStatus::CircuitBreaker, .. })
}

fn is_next_item(marker: &Marker) -> bool {
    matches!(marker, Marker::Continue { kind: ContinueKind::NextItem, .. })
}

fn ticked_items_text(reached: &VerdictReached) -> String {
    let items = reached.ticked_items.iter().flatten();
    let items: Vec<String> =
        items.map(|item| format!("\"{}\"", truncate_end(&shorten_fact(item), 60))).collect();
    if items.is_empty() { String::new() } else { format!("ticked {}; ", items.join(", ")) }
}

/// Describes how the session ended, unless it ended normally or the verdict's reason says it.
fn failed_session_prefix(reached: &VerdictReached) -> String {
    let Some(ending) = &reached.ending else { return String::new() };
    let Some(detail) = ending.failure_text() else { return String::new() };
    let detail = if detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", truncate_end(&shorten_fact(detail), 100))
    };
    if matches!(ending, SessionEnding::IdleTimeout(_)) {
        format!("Plimsoll ended the session{detail}; ")
    } else {
        format!("the session ended as {}{detail}; ", ending.as_str())
    }
}

/// Returns the breaker's counters that are above 1.
fn breaker_counters(reached: &VerdictReached) -> String {
    let same_errors = reached.same_error_count.filter(|count| *count > 1);
    let same_errors = same_errors.map(|count| format!(" [the same error {count} times]")).unwrap_or_default();
    let no_progress = reached.no_progress_count.filter(|count| *count > 1);
    let no_progress =
        no_progress.map(|count| format!(" [{count} sessions without progress]")).unwrap_or_default();
    same_errors + &no_progress
}

fn cost_so_far(reached: &VerdictReached) -> String {
    let cost_text = reached.cost_usd.map(|cost| reached.cost_basis.format_usd(cost));
    cost_text.map(|amount| format!(" ({amount} so far)")).unwrap_or_default()
}
