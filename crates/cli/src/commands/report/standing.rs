//! The status of the run and why, beside the heading that says it in a word.

use crate::render::redact::RedactedText;
use crate::run_status::words::Standing;
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::{RunState, Status};

/// How much of it is shown.
const MOST: usize = 600;

/// What `plimsoll status` says, without the words that the heading has already.
pub(super) fn standing(state: &RunState, is_present: bool, status_line: &Standing) -> Vec<RedactedText> {
    let ours = |text: &str| RedactedText::ours(text, MOST);
    let foreign = |text: &str| RedactedText::line(text, MOST);
    let status = state.lifecycle.status();
    if status == Status::Running {
        let activity = status_line.activity.as_deref().unwrap_or_default();
        // What is at work now is at work at another one.
        return vec![ours(if is_present { activity } else { "another run has begun since" })];
    }
    if status == Status::CircuitBreaker
        && let Some(opened) = &state.outcomes.breaker.opened
    {
        return vec![foreign(&of_breaker(opened.cause, &opened.evidence))];
    }
    match status_line.reason.as_deref().filter(|reason| !reason.is_empty()) {
        None => vec![ours(&status_line.heading)],
        Some(reason) if status == Status::Paused => {
            vec![ours(&format!("{}:", status_line.heading)), foreign(reason)]
        }
        Some(reason) => vec![foreign(reason)],
    }
}

/// What the circuit breaker says, without the name of its cause.
pub(super) fn of_breaker(cause: BreakerCause, evidence: &str) -> String {
    let cause = match cause {
        BreakerCause::NoProgress => "no more progress",
        BreakerCause::QuickFailure => "its sessions failed at once",
        BreakerCause::PermissionDenied => "the client refused a tool repeatedly",
        BreakerCause::EmptyReply => "its sessions said and did nothing",
        BreakerCause::Refused => "it promised completion and was not done",
        BreakerCause::SameError => "the same error came repeatedly",
    };
    if evidence.is_empty() { cause.to_owned() } else { format!("{cause}: {evidence}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::breaker::{Breaker, Opened};
    use plimsoll_domain::state::{Lifecycle, Outcomes};

    fn said(state: &RunState, is_present: bool, told: &Standing) -> String {
        let parts = standing(state, is_present, told);
        parts.iter().map(RedactedText::text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_the_heading_says_is_not_said_again() {
        let of = |status: Status| RunState { lifecycle: Lifecycle::of(status), ..RunState::default() };
        let running = Standing {
            heading: "running".to_owned(),
            activity: Some("a `plimsoll run` is active".to_owned()),
            reason: None,
        };
        assert_eq!(said(&of(Status::Running), true, &running), "a `plimsoll run` is active");
        assert_eq!(said(&of(Status::Running), false, &running), "another run has begun since");
        for (status, heading, reason, shown) in [
            (Status::Budget, "out of money or tokens (budget)", "$2.00: spent", "$2.00: spent"),
            (Status::Paused, "paused", "usage limit", "paused: usage limit"),
            (Status::Paused, "paused: interrupted by you", "", "paused: interrupted by you"),
            (Status::Cancelled, "cancelled with `plimsoll stop`", "", "cancelled with `plimsoll stop`"),
        ] {
            let reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
            let told = Standing { heading: heading.to_owned(), activity: None, reason };
            assert_eq!(said(&of(status), true, &told), shown);
        }
    }

    #[test]
    fn no_code_word_of_the_breaker_is_shown() {
        let told = Standing {
            heading: "stuck (circuit_breaker)".to_owned(),
            activity: None,
            reason: Some("no_progress: HEAD".to_owned()),
        };
        for (cause, evidence, shown) in [
            (BreakerCause::NoProgress, "HEAD", "no more progress: HEAD"),
            (BreakerCause::Refused, "", "it promised completion and was not done"),
        ] {
            let opened = Opened {
                cause,
                count: 3,
                evidence: evidence.into(),
                iteration: 3,
                at: plimsoll_domain::Timestamp::UNKNOWN,
            };
            let breaker = Breaker { opened: Some(opened), ..Breaker::default() };
            let state = RunState {
                lifecycle: Lifecycle::of(Status::CircuitBreaker),
                outcomes: Outcomes { breaker, ..Outcomes::default() },
                ..RunState::default()
            };
            assert_eq!(said(&state, true, &told), shown);
        }
    }
}
