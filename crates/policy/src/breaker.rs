//! The circuit breaker: ends a run that makes no progress, with a reason and evidence. This module only counts;
//! the caller determines what counts as progress.

use crate::current_item::current_unparked_item;
use crate::error_fingerprint::fingerprint_error;
use plimsoll_domain::RunState;
use plimsoll_domain::breaker::{BreakerCause, BreakerTrip};
use plimsoll_domain::settings::BreakerLimits;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};

/// What the breaker needs to know about one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionObservation {
    /// Descriptions of the progress made: a commit, files, an item, a verify command, the working memory.
    pub progress: Vec<String>,
    /// True if an item was ticked, or a verify command passes that had failed before.
    pub has_finished_item: bool,
    /// True if an item was finished. In a run without a plan a commit counts too, because such a run has no items.
    pub has_finished_item_or_commit: bool,
    /// True if every commit touched only Plimsoll's own files, such as progress.txt, where sessions leave
    /// notes.
    pub committed_only_notes: bool,
    /// True if it is unknown whether anything changed. Such a session does not count as one without progress.
    pub is_change_unknown: bool,
    /// The error with which the session ended, or the error of its last failed command that did not pass later.
    pub error: Option<String>,
    /// A tool that the client refused to run.
    pub denied_tool: Option<String>,
    /// True if the model wrote nothing and called no tool.
    pub is_empty_reply: bool,
    /// True if the session failed before the model answered.
    pub failed_before_reply: bool,
}

/// The most error fingerprints kept in the state.
const MAX_ERROR_HASHES: usize = 20;
/// Causes in order of priority. If several have reached their limit, the most specific one is reported.
const CAUSES_BY_PRIORITY: [BreakerCause; 6] = [
    BreakerCause::QuickFailure,
    BreakerCause::PermissionDenied,
    BreakerCause::EmptyReply,
    BreakerCause::RefusedPromises,
    BreakerCause::SameError,
    BreakerCause::NoProgress,
];

/// Counts one session. If a cause has reached its limit, or the trial session failed with its cause again, trips the
/// breaker in `state` and returns the trip.
pub fn record_session_and_trip_if_due(
    state: &mut RunState,
    observation: &SessionObservation,
    refusal_reason: Option<&str>,
    limits: &BreakerLimits,
) -> Option<BreakerTrip> {
    update_breaker_counters_and_last_error(state, observation, refusal_reason.is_some());
    // The trial lasts one session, so it is cleared here; from the next session on only the limits apply.
    let trial_cause = state.outcomes.breaker.half_open_cause.take();
    let should_trip = |cause: &BreakerCause| {
        let limit = limit_for_cause(*cause, limits);
        limit > 0
            && (count_for_cause(*cause, state) >= limit
                || trial_cause == Some(*cause) && has_trial_failed(*cause, state))
    };
    let cause = CAUSES_BY_PRIORITY.into_iter().find(should_trip)?;
    let trip = BreakerTrip {
        cause,
        failure_count: count_for_cause(cause, state),
        evidence: describe_trip_evidence(
            cause,
            state,
            observation,
            refusal_reason,
            trial_cause == Some(cause),
        ),
        iteration: state.iteration,
        tripped_at: plimsoll_domain::Timestamp::UNKNOWN,
    };
    state.outcomes.breaker.trip = Some(trip.clone());
    Some(trip)
}

fn update_breaker_counters_and_last_error(
    state: &mut RunState,
    observation: &SessionObservation,
    is_refused: bool,
) {
    let increment_or_reset =
        |count: u32, is_repeated: bool| if is_repeated { count.saturating_add(1) } else { 0 };
    state.outcomes.no_change_count = increment_or_reset(
        state.outcomes.no_change_count,
        observation.progress.is_empty() && !observation.is_change_unknown,
    );
    let error_hash = if observation.has_finished_item_or_commit {
        None
    } else {
        observation.error.as_ref().map(|error| fingerprint_error(error))
    };
    match error_hash {
        Some(error_hash) if state.outcomes.error_hashes.last() == Some(&error_hash) => {
            state.outcomes.error_hashes.push(error_hash);
        }
        Some(error_hash) => state.outcomes.error_hashes = vec![error_hash],
        None => state.outcomes.error_hashes.clear(),
    }
    let excess_count = state.outcomes.error_hashes.len().saturating_sub(MAX_ERROR_HASHES);
    state.outcomes.error_hashes.drain(..excess_count);
    let breaker = &mut state.outcomes.breaker;
    breaker.refused_promise_count =
        increment_or_reset(breaker.refused_promise_count, is_refused && !observation.has_finished_item);
    breaker.permission_denied_count = increment_or_reset(
        breaker.permission_denied_count,
        observation.denied_tool.is_some() && !observation.has_finished_item_or_commit,
    );
    breaker.empty_reply_count = increment_or_reset(breaker.empty_reply_count, observation.is_empty_reply);
    breaker.quick_failure_count =
        increment_or_reset(breaker.quick_failure_count, observation.failed_before_reply);
    breaker.last_error = observation
        .error
        .as_ref()
        .map_or(String::new(), |error| truncate_end(&to_safe_single_line(error), 300));
}

/// Returns the current count of a cause.
pub fn count_for_cause(cause: BreakerCause, state: &RunState) -> u32 {
    match cause {
        BreakerCause::QuickFailure => state.outcomes.breaker.quick_failure_count,
        BreakerCause::PermissionDenied => state.outcomes.breaker.permission_denied_count,
        BreakerCause::EmptyReply => state.outcomes.breaker.empty_reply_count,
        BreakerCause::RefusedPromises => state.outcomes.breaker.refused_promise_count,
        BreakerCause::SameError => state.outcomes.error_hashes.len() as u32,
        BreakerCause::NoProgress => state.outcomes.no_change_count,
    }
}

fn limit_for_cause(cause: BreakerCause, limits: &BreakerLimits) -> u32 {
    match cause {
        BreakerCause::QuickFailure => limits.quick_failure,
        BreakerCause::PermissionDenied => limits.permission_denied,
        BreakerCause::EmptyReply => limits.empty_reply,
        BreakerCause::RefusedPromises => limits.refused,
        BreakerCause::SameError => limits.same_error,
        BreakerCause::NoProgress => limits.no_progress,
    }
}

fn describe_trip_evidence(
    cause: BreakerCause,
    state: &RunState,
    observation: &SessionObservation,
    refusal_reason: Option<&str>,
    is_trial_session: bool,
) -> String {
    let error = &state.outcomes.breaker.last_error;
    let error_suffix = if error.is_empty() { String::new() } else { format!(": {error}") };
    let sessions_text = count_with_noun(count_for_cause(cause, state) as usize, "session");
    let description = match cause {
        BreakerCause::QuickFailure => {
            format!("{sessions_text} in a row failed before the model had answered{error_suffix}")
        }
        BreakerCause::PermissionDenied => format!(
            "in {sessions_text} in a row Claude Code refused the tool {tool}: allow it after `--`, for example with --allowedTools {tool}",
            tool = observation.denied_tool.as_deref().unwrap_or("?")
        ),
        BreakerCause::EmptyReply => format!("{sessions_text} in a row said and did nothing"),
        BreakerCause::RefusedPromises => format!(
            "{} in a row did not hold, the last because: {}",
            count_with_noun(state.outcomes.breaker.refused_promise_count as usize, "promise"),
            refusal_reason.unwrap_or_default()
        ),
        BreakerCause::SameError => {
            format!("{sessions_text} in a row ended with the same error{error_suffix}")
        }
        BreakerCause::NoProgress => {
            let item_clause = current_unparked_item(state)
                .map(|item| format!("; the current item is \"{}\"", truncate_end(item, 80)));
            let changed_text = if observation.committed_only_notes {
                "nothing but notes: no file of the project"
            } else {
                "nothing: no commit, no file"
            };
            format!(
                "{sessions_text} in a row changed {changed_text}, no item{}{error_suffix}",
                item_clause.unwrap_or_default()
            )
        }
    };
    let trial_prefix = if is_trial_session { "again in the session after the reset: " } else { "" };
    truncate_end(&format!("{trial_prefix}{description}"), 500)
}

/// Returns true if the trial session failed with the same cause again. A different error does not count: the
/// fingerprint of the old error is kept for the comparison.
fn has_trial_failed(cause: BreakerCause, state: &RunState) -> bool {
    match cause {
        BreakerCause::SameError => state.outcomes.error_hashes.len() > 1,
        cause => count_for_cause(cause, state) > 0,
    }
}

/// Sets aside the current item if one more session without progress on it would trip the breaker and another item is
/// open, so that the run continues with the other items. Returns the item.
pub fn set_aside_item_one_session_before_trip(
    state: &mut RunState,
    limits: &BreakerLimits,
) -> Option<String> {
    // A session that asked the user was not counted, so the counters are those of the previous session.
    if state.questions_of_current_iteration().next().is_some() {
        return None;
    }
    let is_one_below_limit = |cause| {
        let limit = limit_for_cause(cause, limits);
        limit > 1 && count_for_cause(cause, state) + 1 == limit
    };
    if ![BreakerCause::NoProgress, BreakerCause::SameError, BreakerCause::RefusedPromises]
        .into_iter()
        .any(is_one_below_limit)
    {
        return None;
    }
    let current_item = current_unparked_item(state)?.clone();
    let is_available =
        |item: &String| !state.plan_items.set_aside_items.contains(item) && !state.is_parked(item);
    let has_other_item =
        state.plan_items.todo_items.iter().any(|item| *item != current_item && is_available(item));
    if !has_other_item {
        return None;
    }
    state.plan_items.set_aside_items.push(current_item.clone());
    Some(current_item)
}

/// Implements `--reset-breaker`: resets the counters and makes the next session a trial: if it fails with the cause
/// that tripped the breaker, the breaker trips again. The last error fingerprint is kept to recognize the same error.
pub fn reset_breaker_to_half_open_keeping_cause(state: &mut RunState) {
    let tripped_cause = state.outcomes.breaker.trip.take().map(|trip| trip.cause);
    state.outcomes.breaker =
        plimsoll_domain::breaker::BreakerState { half_open_cause: tripped_cause, ..Default::default() };
    state.outcomes.no_change_count = 0;
    let last_hash = state.outcomes.error_hashes.pop();
    state.outcomes.error_hashes = if tripped_cause == Some(BreakerCause::SameError) {
        last_hash.into_iter().collect()
    } else {
        Vec::new()
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::PlanItems;

    const LIMITS: BreakerLimits = BreakerLimits {
        no_progress: 3,
        same_error: 5,
        refused: 3,
        permission_denied: 2,
        empty_reply: 3,
        quick_failure: 3,
    };

    fn with_commit() -> SessionObservation {
        SessionObservation { progress: vec!["a commit".into()], ..SessionObservation::default() }
    }

    fn with_finished_item() -> SessionObservation {
        SessionObservation { has_finished_item: true, has_finished_item_or_commit: true, ..with_commit() }
    }

    fn with_error(error: &str) -> SessionObservation {
        SessionObservation { error: Some(error.into()), ..with_commit() }
    }

    fn with_denied_tool() -> SessionObservation {
        SessionObservation { denied_tool: Some("Bash".into()), ..with_commit() }
    }

    /// Returns the cause that opens the breaker and the number of the session; `None` if it stays closed.
    fn first_opening(sessions: &[SessionObservation]) -> Option<(BreakerCause, usize)> {
        let mut state = RunState::default();
        let opened = |observation: &SessionObservation| {
            record_session_and_trip_if_due(&mut state, observation, None, &LIMITS).map(|opened| opened.cause)
        };
        let causes: Vec<_> = sessions.iter().map(opened).collect();
        let index = causes.iter().position(Option::is_some)?;
        Some((causes[index]?, index + 1))
    }

    #[test]
    fn each_cause_has_its_own_counter_and_limit() {
        let nothing = SessionObservation::default();
        let empty = SessionObservation { is_empty_reply: true, ..SessionObservation::default() };
        let at_start = SessionObservation { failed_before_reply: true, ..SessionObservation::default() };
        let unsure = SessionObservation { is_change_unknown: true, ..SessionObservation::default() };
        for (sessions, expected) in [
            (vec![nothing.clone(); 4], Some((BreakerCause::NoProgress, 3))),
            (vec![empty; 3], Some((BreakerCause::EmptyReply, 3))),
            (vec![at_start; 3], Some((BreakerCause::QuickFailure, 3))),
            (vec![with_denied_tool(); 2], Some((BreakerCause::PermissionDenied, 2))),
            (vec![with_error("error: a"); 5], Some((BreakerCause::SameError, 5))),
            (vec![with_commit(); 50], None),
            (vec![unsure; 50], None),
            (vec![nothing.clone(), nothing.clone(), with_commit(), nothing.clone(), nothing], None),
            (vec![with_denied_tool(), with_commit(), with_denied_tool()], None),
        ] {
            assert_eq!(first_opening(&sessions), expected, "{sessions:?}");
        }
    }

    #[test]
    fn changing_line_numbers_do_not_hide_a_repeated_error() {
        let same: Vec<_> = (1..=5)
            .map(|line| with_error(&format!("error[E0308]: mismatched types at src/a.rs:{line}:7")))
            .collect();
        assert_eq!(first_opening(&same), Some((BreakerCause::SameError, 5)));
        let different: Vec<_> = ["E0308", "E0412", "E0425", "E0433", "E0502", "E0599"]
            .iter()
            .map(|code| with_error(&format!("error[{code}]: something is wrong")))
            .collect();
        assert_eq!(first_opening(&different), None);
        let with_a_tick: Vec<_> = (0..9)
            .map(|n| {
                if n % 3 == 2 {
                    SessionObservation { error: Some("error: a".into()), ..with_finished_item() }
                } else {
                    with_error("error: a")
                }
            })
            .collect();
        assert_eq!(first_opening(&with_a_tick), None, "an error beside finished items is no standstill");
    }

    #[test]
    fn refused_promises_count_only_while_no_item_is_finished() {
        let mut state = RunState::default();
        assert_eq!(record_session_and_trip_if_due(&mut state, &with_commit(), Some("x"), &LIMITS), None);
        assert_eq!(
            record_session_and_trip_if_due(&mut state, &with_finished_item(), Some("x"), &LIMITS),
            None
        );
        assert_eq!(record_session_and_trip_if_due(&mut state, &with_commit(), Some("x"), &LIMITS), None);
        assert_eq!(record_session_and_trip_if_due(&mut state, &with_commit(), Some("x"), &LIMITS), None);
        let opened = record_session_and_trip_if_due(&mut state, &with_commit(), Some("x"), &LIMITS).unwrap();
        assert_eq!((opened.cause, opened.failure_count), (BreakerCause::RefusedPromises, 3));
    }

    #[test]
    fn a_limit_of_zero_never_opens() {
        let limits = BreakerLimits { no_progress: 0, ..LIMITS };
        let mut state = RunState::default();
        assert!((0..50).all(|_| {
            record_session_and_trip_if_due(&mut state, &SessionObservation::default(), None, &limits)
                .is_none()
        }));
    }

    #[test]
    fn evidence_tells_a_session_that_committed_only_notes_from_an_idle_one() {
        for (only_notes, expected) in [
            (true, "3 sessions in a row changed nothing but notes: no file of the project, no item"),
            (false, "3 sessions in a row changed nothing: no commit, no file, no item"),
        ] {
            let mut state = RunState::default();
            let observation =
                SessionObservation { committed_only_notes: only_notes, ..SessionObservation::default() };
            let opened: Vec<_> = (0..3)
                .filter_map(|_| record_session_and_trip_if_due(&mut state, &observation, None, &LIMITS))
                .collect();
            assert_eq!(opened.iter().map(|opened| opened.evidence.as_str()).collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn after_a_reset_one_failure_of_the_same_cause_reopens_the_breaker() {
        let mut state = RunState::default();
        for _ in 0..3 {
            record_session_and_trip_if_due(&mut state, &SessionObservation::default(), None, &LIMITS);
        }
        reset_breaker_to_half_open_keeping_cause(&mut state);
        assert_eq!(state.outcomes.breaker.half_open_cause, Some(BreakerCause::NoProgress));
        let mut closed = state.clone();
        assert_eq!(record_session_and_trip_if_due(&mut closed, &with_commit(), None, &LIMITS), None);
        assert_eq!(
            record_session_and_trip_if_due(&mut closed, &SessionObservation::default(), None, &LIMITS),
            None,
            "closed again"
        );
        let opened =
            record_session_and_trip_if_due(&mut state, &SessionObservation::default(), None, &LIMITS)
                .unwrap();
        assert_eq!((opened.cause, opened.failure_count), (BreakerCause::NoProgress, 1));
        insta::assert_snapshot!(opened.evidence, @"again in the session after the reset: 1 session in a row changed nothing: no commit, no file, no item");
    }

    #[test]
    fn after_a_reset_only_the_same_error_reopens_the_breaker() {
        let mut state = RunState::default();
        for line in 0..5 {
            record_session_and_trip_if_due(
                &mut state,
                &with_error(&format!("error[E0308] at src/a.rs:{line}")),
                None,
                &LIMITS,
            );
        }
        assert!(state.outcomes.breaker.trip.is_some());
        reset_breaker_to_half_open_keeping_cause(&mut state);
        let (mut same, mut without_error) = (state.clone(), state.clone());
        assert_eq!(
            record_session_and_trip_if_due(&mut state, &with_error("cannot access 'nowhere'"), None, &LIMITS),
            None
        );
        assert_eq!(
            (count_for_cause(BreakerCause::SameError, &state), state.outcomes.breaker.half_open_cause),
            (1, None)
        );
        let opened = record_session_and_trip_if_due(
            &mut same,
            &with_error("error[E0308] at src/a.rs:99"),
            None,
            &LIMITS,
        )
        .unwrap();
        assert_eq!(opened.cause, BreakerCause::SameError);
        insta::assert_snapshot!(opened.evidence, @"again in the session after the reset: 2 sessions in a row ended with the same error: error[E0308] at src/a.rs:99");
        assert_eq!(record_session_and_trip_if_due(&mut without_error, &with_commit(), None, &LIMITS), None);
        assert_eq!(count_for_cause(BreakerCause::SameError, &without_error), 0);
    }

    #[test]
    fn an_item_falsely_claimed_done_twice_is_set_aside() {
        let mut state = RunState {
            plan_items: PlanItems { todo_items: vec!["one".into(), "two".into()], ..PlanItems::default() },
            ..RunState::default()
        };
        let mut claim_done = |finished| {
            let observation = SessionObservation { has_finished_item: finished, ..with_commit() };
            let opened =
                record_session_and_trip_if_due(&mut state, &observation, Some("2 items are open"), &LIMITS)
                    .is_some();
            (opened, set_aside_item_one_session_before_trip(&mut state, &LIMITS))
        };
        assert_eq!(claim_done(false), (false, None));
        assert_eq!(claim_done(false), (false, Some("one".to_owned())));
        assert_eq!(
            claim_done(true),
            (false, None),
            "the next item is finished, and the counter begins again"
        );
        assert_eq!(
            (claim_done(false), claim_done(false).0, claim_done(false).0),
            ((false, None), false, true)
        );
    }

    #[test]
    fn a_stuck_item_is_set_aside_one_session_before_the_breaker_opens() {
        let mut state = RunState {
            plan_items: PlanItems { todo_items: vec!["one".into(), "two".into()], ..PlanItems::default() },
            ..RunState::default()
        };
        let mut record_idle_session = || {
            let opened =
                record_session_and_trip_if_due(&mut state, &SessionObservation::default(), None, &LIMITS)
                    .is_some();
            (opened, set_aside_item_one_session_before_trip(&mut state, &LIMITS))
        };
        assert_eq!(record_idle_session(), (false, None));
        assert_eq!(record_idle_session(), (false, Some("one".to_owned())));
        assert_eq!(
            record_idle_session(),
            (true, None),
            "three sessions without progress are three, whatever the item"
        );
        assert_eq!(current_unparked_item(&state).map(String::as_str), Some("two"));
    }
}
