//! The marks on the load line, from the journal.

use super::contents::{ChartMark, MarkKind, RunSession, ThresholdPercents};
use super::entry::{MAX_FACT_CHARS, RunEntry};
use crate::render::redact::RedactedText;
use plimsoll_domain::Marker;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::verdict::ContinueKind;

/// Returns the marks of the journal: checkpoints, refused promises, the circuit breaker. Compactions come from the turn log.
pub(super) fn chart_marks_of_entries(entries: &[RunEntry<'_>]) -> Vec<ChartMark> {
    entries.iter().filter_map(mark_if_checkpoint_breaker_or_refusal).collect()
}

fn mark_if_checkpoint_breaker_or_refusal(entry: &RunEntry<'_>) -> Option<ChartMark> {
    let prefix = entry.iteration().map(|number| format!("session {number}: ")).unwrap_or_default();
    let (kind, percent, text) = match entry.event() {
        JournalEvent::Checkpoint(checkpoint) => {
            let percent_text =
                checkpoint.percent.map(|percent| format!(" at {percent}%")).unwrap_or_default();
            (
                MarkKind::Checkpoint,
                checkpoint.percent,
                format!("{prefix}checkpoint {}{percent_text}", checkpoint_cause(checkpoint)),
            )
        }
        JournalEvent::BreakerOpened(breaker) => {
            let cause = breaker.cause.as_str().replace('_', " ");
            (MarkKind::CircuitBreaker, None, format!("{prefix}circuit breaker opened: {cause}"))
        }
        JournalEvent::Verdict(verdict) => match &verdict.marker {
            Marker::Continue { kind: ContinueKind::RefusedPromise, reason } => {
                (MarkKind::RefusedPromise, None, format!("{prefix}promise refused: {reason}"))
            }
            _ => return None,
        },
        _ => return None,
    };
    let percent = percent.map(|percent| percent as f64);
    Some(ChartMark { occurred_at: entry.recorded_at, kind, percent, description: entry.redact(&text) })
}

/// Returns the cause of a checkpoint as a short text: the threshold that was reached, or another cause.
pub(super) fn checkpoint_cause(checkpoint: &CheckpointWritten) -> String {
    match checkpoint.cause {
        None | Some(CheckpointCause::Level) => checkpoint.level.to_string(),
        Some(cause) => cause.display_text().to_owned(),
    }
}

/// Returns the mark at the end of a session, or `None` if its ending or end time is unknown.
pub(super) fn session_end_mark(session: &RunSession) -> Option<ChartMark> {
    let ending = session.ending.as_ref()?;
    let text = format!("session {} ended ({})", session.iteration, ending.as_str().replace('_', " "));
    Some(ChartMark {
        occurred_at: session.ended_at.or(session.verdict_at)?,
        kind: if ending.is_aborted() { MarkKind::AbnormalSessionEnd } else { MarkKind::SessionEnd },
        percent: None,
        description: RedactedText::single_line(&text, MAX_FACT_CHARS),
    })
}

/// Returns the thresholds that the journal recorded last, and whether they changed during the run. Returns `None` if
/// there are none.
pub(super) fn last_recorded_threshold_percents(entries: &[RunEntry<'_>]) -> Option<ThresholdPercents> {
    let thresholds_of_entry = |entry: &RunEntry<'_>| match entry.event() {
        JournalEvent::Checkpoint(checkpoint) => checkpoint.thresholds,
        JournalEvent::Warning(threshold_event) | JournalEvent::SessionEndRequested(threshold_event) => {
            threshold_event.thresholds
        }
        _ => None,
    };
    let recorded_thresholds: Vec<Thresholds> = entries.iter().filter_map(thresholds_of_entry).collect();
    let newest_thresholds = recorded_thresholds.last()?;
    Some(ThresholdPercents {
        changed_during_run: recorded_thresholds.iter().any(|thresholds| thresholds != newest_thresholds),
        ..to_percents(newest_thresholds)
    })
}

/// Converts thresholds from tokens to percent of the window.
pub(super) fn to_percents(thresholds: &Thresholds) -> ThresholdPercents {
    let to_percent = |tokens: u64| tokens as f64 * 100.0 / thresholds.window.max(1) as f64;
    ThresholdPercents {
        l1: to_percent(thresholds.l1),
        l2: to_percent(thresholds.l2),
        l3: to_percent(thresholds.l3),
        auto_compact: to_percent(thresholds.auto_compact.tokens),
        auto_compact_action: thresholds.auto_compact.action.describe(),
        window_tokens: thresholds.window,
        changed_during_run: false,
    }
}
