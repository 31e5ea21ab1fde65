//! Describes a verdict: ticked items, what follows, why, and the cost so far.

use super::phrase::{LineStyle, shorten_to_single_line};
use plimsoll_domain::journal::VerdictReached;
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunStatus, SessionEnding, Timestamp};
use plimsoll_store::clock;

pub(super) fn describe_verdict(verdict: &VerdictReached) -> (String, LineStyle) {
    let (marker_text, style) = describe_marker(&verdict.marker);
    let counters =
        if is_breaker_stop(&verdict.marker) { String::new() } else { breaker_counters_above_one(verdict) };
    let failure_prefix = if continues_with_next_item(&verdict.marker) {
        String::new()
    } else {
        failed_session_prefix(verdict)
    };
    (
        format!(
            "{}{failure_prefix}{marker_text}{counters}{}",
            ticked_items_text(verdict),
            cost_so_far_text(verdict)
        ),
        style,
    )
}

fn describe_marker(marker: &Marker) -> (String, LineStyle) {
    match marker {
        Marker::Stop { status: RunStatus::Completed, reason } => {
            (with_reason("run completed", reason), LineStyle::Good)
        }
        Marker::Stop { status, reason } => {
            (with_reason(&format!("run over ({status})"), reason), LineStyle::Bad)
        }
        Marker::Pause { until, reason } => {
            (with_reason(&format!("paused{}", pause_end_text(until.as_ref())), reason), LineStyle::Bold)
        }
        Marker::Continue { kind: ContinueKind::RefusedPromise, reason } => {
            (with_reason("promise refused", reason), LineStyle::Bad)
        }
        Marker::Continue { kind: ContinueKind::Checkpoint, reason } => {
            (format!("continues from {}", shorten_to_single_line(reason)), LineStyle::Bold)
        }
        Marker::Continue { kind: ContinueKind::NextItem, reason } => {
            (with_reason("continues", reason), LineStyle::Bold)
        }
        // The gate never returns these markers.
        Marker::Warning { .. } | Marker::Checkpoint { .. } => (marker.to_string(), LineStyle::Bold),
    }
}

fn with_reason(text: &str, reason: &str) -> String {
    if reason.is_empty() { text.to_owned() } else { format!("{text}: {}", shorten_to_single_line(reason)) }
}

fn pause_end_text(paused_until: Option<&Timestamp>) -> String {
    let end = paused_until.and_then(clock::parse_timestamp);
    end.map(|until| format!(" until {}", clock::format_local_time_with_seconds(until))).unwrap_or_default()
}

/// Returns true if the circuit breaker stopped the run; the reason of such a marker already has the counters.
fn is_breaker_stop(marker: &Marker) -> bool {
    matches!(marker, Marker::Stop { status: RunStatus::CircuitBreaker, .. })
}

fn continues_with_next_item(marker: &Marker) -> bool {
    matches!(marker, Marker::Continue { kind: ContinueKind::NextItem, .. })
}

fn ticked_items_text(verdict: &VerdictReached) -> String {
    let items = verdict.ticked_items.iter().flatten();
    let items: Vec<String> =
        items.map(|item| format!("\"{}\"", truncate_end(&shorten_to_single_line(item), 60))).collect();
    if items.is_empty() { String::new() } else { format!("ticked {}; ", items.join(", ")) }
}

/// Describes how the session failed; empty if it ended normally or with a fatal error, which the reason names.
fn failed_session_prefix(verdict: &VerdictReached) -> String {
    let Some(ending) = &verdict.ending else { return String::new() };
    let Some(detail) = ending.failure_text() else { return String::new() };
    let detail = if detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", truncate_end(&shorten_to_single_line(detail), 100))
    };
    if matches!(ending, SessionEnding::IdleTimeout(_)) {
        format!("Plimsoll ended the session{detail}; ")
    } else {
        format!("the session ended as {}{detail}; ", ending.as_str())
    }
}

/// Returns the breaker's counters that are above 1.
fn breaker_counters_above_one(verdict: &VerdictReached) -> String {
    let same_error_count = verdict.same_error_count.filter(|count| *count > 1);
    let same_errors_text =
        same_error_count.map(|count| format!(" [the same error {count} times]")).unwrap_or_default();
    let no_progress_count = verdict.no_progress_count.filter(|count| *count > 1);
    let no_progress_text =
        no_progress_count.map(|count| format!(" [{count} sessions without progress]")).unwrap_or_default();
    same_errors_text + &no_progress_text
}

fn cost_so_far_text(verdict: &VerdictReached) -> String {
    let cost_text = verdict.cost_usd.map(|cost| verdict.cost_basis.format_usd(cost));
    cost_text.map(|amount| format!(" ({amount} so far)")).unwrap_or_default()
}
