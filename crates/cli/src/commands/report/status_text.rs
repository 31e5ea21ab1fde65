//! The text below the report's status heading: the run's activity, or the reason for its status.

use crate::render::redact::RedactedText;
use crate::run_status::status_text::StatusSummary;
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::{RunState, RunStatus};

const MAX_STATUS_TEXT_CHARS: usize = 600;

/// Returns the activity of a running run, or the reason for its status, without repeating the report's heading.
pub(super) fn activity_or_reason_texts(
    state: &RunState,
    is_current: bool,
    status_summary: &StatusSummary,
) -> Vec<RedactedText> {
    let to_trusted_text = |text: &str| RedactedText::plimsoll_sentence(text, MAX_STATUS_TEXT_CHARS);
    let to_untrusted_text = |text: &str| RedactedText::single_line(text, MAX_STATUS_TEXT_CHARS);
    let status = state.lifecycle.status();
    if status == RunStatus::Running {
        let activity = status_summary.activity.as_deref().unwrap_or_default();
        // Any active process belongs to the newer run.
        return vec![to_trusted_text(if is_current { activity } else { "another run has started since" })];
    }
    if status == RunStatus::CircuitBreaker
        && let Some(trip) = &state.outcomes.breaker.trip
    {
        return vec![to_untrusted_text(&describe_breaker_cause(trip.cause, &trip.evidence))];
    }
    match status_summary.reason.as_deref().filter(|reason| !reason.is_empty()) {
        None => vec![to_trusted_text(&status_summary.heading)],
        Some(reason) if status == RunStatus::Paused => {
            vec![to_trusted_text(&format!("{}:", status_summary.heading)), to_untrusted_text(reason)]
        }
        Some(reason) => vec![to_untrusted_text(reason)],
    }
}

/// Describes why the circuit breaker opened, in plain English instead of the name of the cause.
pub(super) fn describe_breaker_cause(cause: BreakerCause, evidence: &str) -> String {
    let cause_text = match cause {
        BreakerCause::NoProgress => "no more progress",
        BreakerCause::QuickFailure => "its sessions failed at once",
        BreakerCause::PermissionDenied => "Claude Code refused a tool repeatedly",
        BreakerCause::EmptyReply => "its sessions did nothing",
        BreakerCause::RefusedPromises => "it claimed completion but was not done",
        BreakerCause::SameError => "the same error came repeatedly",
    };
    if evidence.is_empty() { cause_text.to_owned() } else { format!("{cause_text}: {evidence}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::breaker::{BreakerState, BreakerTrip};
    use plimsoll_domain::state::{Lifecycle, SessionOutcomes};

    fn status_text(state: &RunState, is_current: bool, status_summary: &StatusSummary) -> String {
        let parts = activity_or_reason_texts(state, is_current, status_summary);
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
            "another run has started since"
        );
        for (status, heading, reason, shown) in [
            (RunStatus::Budget, "out of money or tokens (budget)", "$2.00: spent", "$2.00: spent"),
            (RunStatus::Paused, "paused", "usage limit", "paused: usage limit"),
            (RunStatus::Paused, "paused: interrupted by you", "", "paused: interrupted by you"),
            (RunStatus::Canceled, "canceled with `plimsoll stop`", "", "canceled with `plimsoll stop`"),
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
            (BreakerCause::RefusedPromises, "", "it claimed completion but was not done"),
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
