//! The text about the status of the run and its reason, beside the heading with the status in a word.

use crate::render::redact::RedactedText;
use crate::run_status::status_text::StatusSummary;
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::{RunState, RunStatus};

const MAX_CHARS: usize = 600;

/// Returns the status text of `plimsoll status`, without the words that the heading already has.
pub(super) fn status_texts(
    state: &RunState,
    is_current: bool,
    status_summary: &StatusSummary,
) -> Vec<RedactedText> {
    let to_our_sentence = |text: &str| RedactedText::our_sentence(text, MAX_CHARS);
    let to_foreign_text = |text: &str| RedactedText::single_line(text, MAX_CHARS);
    let status = state.lifecycle.status();
    if status == RunStatus::Running {
        let activity = status_summary.activity.as_deref().unwrap_or_default();
        // Any active process belongs to the newer run.
        return vec![to_our_sentence(if is_current { activity } else { "another run has begun since" })];
    }
    if status == RunStatus::CircuitBreaker
        && let Some(trip) = &state.outcomes.breaker.trip
    {
        return vec![to_foreign_text(&breaker_text(trip.cause, &trip.evidence))];
    }
    match status_summary.reason.as_deref().filter(|reason| !reason.is_empty()) {
        None => vec![to_our_sentence(&status_summary.heading)],
        Some(reason) if status == RunStatus::Paused => {
            vec![to_our_sentence(&format!("{}:", status_summary.heading)), to_foreign_text(reason)]
        }
        Some(reason) => vec![to_foreign_text(reason)],
    }
}

/// Describes why the circuit breaker opened, in words instead of the name of the cause.
pub(super) fn breaker_text(cause: BreakerCause, evidence: &str) -> String {
    let cause = match cause {
        BreakerCause::NoProgress => "no more progress",
        BreakerCause::QuickFailure => "its sessions failed at once",
        BreakerCause::PermissionDenied => "the client refused a tool repeatedly",
        BreakerCause::EmptyReply => "its sessions said and did nothing",
        BreakerCause::RefusedPromises => "it promised completion and was not done",
        BreakerCause::SameError => "the same error came repeatedly",
    };
    if evidence.is_empty() { cause.to_owned() } else { format!("{cause}: {evidence}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::breaker::{BreakerState, BreakerTrip};
    use plimsoll_domain::state::{Lifecycle, SessionOutcomes};

    fn status_text(state: &RunState, is_current: bool, status_summary: &StatusSummary) -> String {
        let parts = status_texts(state, is_current, status_summary);
        parts.iter().map(RedactedText::text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_of_the_heading_are_not_repeated() {
        let state_with_status =
            |status: RunStatus| RunState { lifecycle: Lifecycle::with_status(status), ..RunState::default() };
        let running = StatusSummary {
            heading: "running".to_owned(),
            activity: Some("a `plimsoll run` is active".to_owned()),
            reason: None,
        };
        assert_eq!(
            status_text(&state_with_status(RunStatus::Running), true, &running),
            "a `plimsoll run` is active"
        );
        assert_eq!(
            status_text(&state_with_status(RunStatus::Running), false, &running),
            "another run has begun since"
        );
        for (status, heading, reason, shown) in [
            (RunStatus::Budget, "out of money or tokens (budget)", "$2.00: spent", "$2.00: spent"),
            (RunStatus::Paused, "paused", "usage limit", "paused: usage limit"),
            (RunStatus::Paused, "paused: interrupted by you", "", "paused: interrupted by you"),
            (RunStatus::Canceled, "cancelled with `plimsoll stop`", "", "cancelled with `plimsoll stop`"),
        ] {
            let reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
            let status_summary = StatusSummary { heading: heading.to_owned(), activity: None, reason };
            assert_eq!(status_text(&state_with_status(status), true, &status_summary), shown);
        }
    }

    #[test]
    fn the_breaker_cause_is_shown_in_words() {
        let status_summary = StatusSummary {
            heading: "stuck (circuit_breaker)".to_owned(),
            activity: None,
            reason: Some("no_progress: HEAD".to_owned()),
        };
        for (cause, evidence, shown) in [
            (BreakerCause::NoProgress, "HEAD", "no more progress: HEAD"),
            (BreakerCause::RefusedPromises, "", "it promised completion and was not done"),
        ] {
            let trip = BreakerTrip {
                cause,
                failure_count: 3,
                evidence: evidence.into(),
                iteration: 3,
                tripped_at: plimsoll_domain::Timestamp::UNKNOWN,
            };
            let breaker_state = BreakerState { trip: Some(trip), ..BreakerState::default() };
            let state = RunState {
                lifecycle: Lifecycle::with_status(RunStatus::CircuitBreaker),
                outcomes: SessionOutcomes { breaker: breaker_state, ..SessionOutcomes::default() },
                ..RunState::default()
            };
            assert_eq!(status_text(&state, true, &status_summary), shown);
        }
    }
}
