//! Describes a verdict: ticked items, what follows, why, and the cost so far.

use super::phrase::{LineStyle, shorten_to_single_line};
use plimsoll_domain::cost::UNKNOWN_COST;
use plimsoll_domain::journal::VerdictReached;
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunStatus, SessionEnding};
use plimsoll_terminal::console::describe_marker;

pub(super) fn describe_verdict(verdict: &VerdictReached) -> (String, LineStyle) {
    let (marker_text, style) = describe_marker_with_style(&verdict.marker);
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

fn describe_marker_with_style(marker: &Marker) -> (String, LineStyle) {
    let style = match marker {
        Marker::Stop { status: RunStatus::Completed, .. } => LineStyle::Good,
        Marker::Stop { .. } | Marker::Continue { kind: ContinueKind::RefusedPromise, .. } => LineStyle::Bad,
        _ => LineStyle::Bold,
    };
    // Sessions also complete or get stuck, so the line names the run.
    let subject = if matches!(marker, Marker::Stop { .. }) { "run " } else { "" };
    (shorten_to_single_line(&format!("{subject}{}", describe_marker(marker))), style)
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
    match verdict.cost_usd {
        Some(cost) if cost > 0.0 => format!(" ({} so far)", verdict.cost_basis.format_usd(cost)),
        Some(_) => format!(" (cost {UNKNOWN_COST})"),
        None => String::new(),
    }
}
