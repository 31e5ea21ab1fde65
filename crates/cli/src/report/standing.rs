//! Where the run stands and why, beside the heading that says it in a word.

use super::words::{Cleaner, Words};
use serde_json::{Value, from_value};
use session::breaker::BreakerCause;
use session::{RunState, Status};

/// So much of it is shown.
const MOST: usize = 600;

/// What `plimsoll status` says, without the words that the heading has already.
pub(super) fn standing(state: &RunState, is_present: bool, told: &str, cleaner: &Cleaner) -> Vec<Words> {
    let (ours, foreign) = (|text: &str| cleaner.ours(text, MOST), |text: &str| cleaner.line(text, MOST));
    match state.status {
        // What is at work now is at work at another one.
        Status::Running if !is_present => vec![ours("another run has begun since")],
        Status::Running => {
            let behind = ["running, but ", "running: "].iter().find_map(|heading| told.strip_prefix(heading));
            vec![ours(behind.unwrap_or(told))]
        }
        Status::Cancelled => vec![ours(told)],
        status if status.is_over() => {
            let why = told.split_once(": ").map_or(told, |(_, why)| why);
            vec![foreign(&plainly(why))]
        }
        _ => match told.split_once(": ") {
            Some((until, why)) => vec![ours(&format!("{until}:")), foreign(why)],
            None => vec![ours(told)],
        },
    }
}

/// What the circuit breaker says, without the code word of its cause.
pub(super) fn plainly(why: &str) -> String {
    let (word, evidence) = why.split_once(": ").unwrap_or((why, ""));
    let Ok(cause) = from_value::<BreakerCause>(Value::from(word)) else { return why.to_owned() };
    let cause = match cause {
        BreakerCause::NoProgress => "nothing changed any more",
        BreakerCause::QuickFailure => "its sessions failed at once",
        BreakerCause::PermissionDenied => "the client refused a tool again and again",
        BreakerCause::EmptyReply => "its sessions said and did nothing",
        BreakerCause::Refused => "it promised to be done and was not",
        BreakerCause::SameError => "the same error came again and again",
    };
    if evidence.is_empty() { cause.to_owned() } else { format!("{cause}: {evidence}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: Status, is_present: bool, told: &str) -> String {
        let state = RunState { status, ..RunState::default() };
        let parts = standing(&state, is_present, told, &Cleaner);
        parts.iter().map(Words::text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_the_heading_says_is_not_said_again_and_no_code_word_is_shown() {
        for (status, told, shown) in [
            (Status::Running, "running: a `plimsoll run` is at work", "a `plimsoll run` is at work"),
            (Status::Running, "running, but no `plimsoll run` is at work", "no `plimsoll run` is at work"),
            (
                Status::CircuitBreaker,
                "stuck (circuit_breaker): no_progress: HEAD",
                "nothing changed any more: HEAD",
            ),
            (
                Status::CircuitBreaker,
                "stuck (circuit_breaker): refused",
                "it promised to be done and was not",
            ),
            (Status::Budget, "out of money or tokens (budget): $2.00: spent", "$2.00: spent"),
            (Status::Paused, "paused: usage limit", "paused: usage limit"),
            (Status::Cancelled, "cancelled with `plimsoll stop`", "cancelled with `plimsoll stop`"),
        ] {
            assert_eq!(said(status, true, told), shown);
        }
        assert_eq!(
            said(Status::Running, false, "running: a `plimsoll run` is at work"),
            "another run has begun since"
        );
    }
}
