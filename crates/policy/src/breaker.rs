//! The circuit breaker: a run without progress ends, with the reason and the evidence. Pure counting; what
//! counts as progress was found out before.

use crate::error_fingerprint::fingerprint;
use crate::item_in_hand::item_in_hand;
use plimsoll_domain::RunState;
use plimsoll_domain::breaker::{BreakerCause, Opened};
use plimsoll_domain::settings::BreakerLimits;
use plimsoll_domain::text::{clip, counted, one_line};

/// What one session came to, as far as the breaker asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// What has moved, in words: a commit, files, an item, a verify command, the working memory.
    pub progress: Vec<String>,
    /// True when an item was ticked, or a verify command passes that had failed.
    pub finished: bool,
    /// True when it finished something, or, in a run without a plan, made a commit: there that is the item.
    pub advanced: bool,
    /// True when it committed nothing but our own files, where sessions leave their notes (progress.txt).
    pub only_notes: bool,
    /// True when it is unknown whether anything changed: that does not count as no progress.
    pub unsure: bool,
    /// The error it ended with: its own, or its last command's that did not pass later.
    pub error: Option<String>,
    /// A tool that the client refused to run.
    pub denied: Option<String>,
    /// True when the model said nothing and did nothing.
    pub empty: bool,
    /// True when it failed before the model had answered.
    pub failed_at_start: bool,
}

/// How many fingerprints are kept at most.
const ERRORS_KEPT: usize = 20;
/// The order in which causes are named when several are due: the most telling first.
const ORDER: [BreakerCause; 6] = [
    BreakerCause::QuickFailure,
    BreakerCause::PermissionDenied,
    BreakerCause::EmptyReply,
    BreakerCause::Refused,
    BreakerCause::SameError,
    BreakerCause::NoProgress,
];

/// Counts one session; answers with the opening, if it opens now.
pub fn observe(
    state: &mut RunState,
    seen: &Observation,
    refusal: Option<&str>,
    limits: &BreakerLimits,
) -> Option<Opened> {
    count_up(state, seen, refusal.is_some());
    // Taken after counting and for one session only: whatever comes of it, the next one is judged by the limits alone.
    let trial = state.outcomes.breaker.half_open.take();
    let due = |cause: &BreakerCause| {
        let limit = limit(*cause, limits);
        limit > 0 && (count(*cause, state) >= limit || trial == Some(*cause) && again(*cause, state))
    };
    let cause = ORDER.into_iter().find(due)?;
    let opened = Opened {
        cause,
        count: count(cause, state),
        evidence: evidence(cause, state, seen, refusal, trial == Some(cause)),
        iteration: state.iteration,
        at: plimsoll_domain::Timestamp::UNKNOWN,
    };
    state.outcomes.breaker.opened = Some(opened.clone());
    Some(opened)
}

fn count_up(state: &mut RunState, seen: &Observation, refused: bool) {
    let next = |count: u32, again: bool| if again { count.saturating_add(1) } else { 0 };
    state.outcomes.no_change_count =
        next(state.outcomes.no_change_count, seen.progress.is_empty() && !seen.unsure);
    let mark = if seen.advanced { None } else { seen.error.as_ref().map(|error| fingerprint(error)) };
    match mark {
        Some(mark) if state.outcomes.error_hashes.last() == Some(&mark) => {
            state.outcomes.error_hashes.push(mark);
        }
        Some(mark) => state.outcomes.error_hashes = vec![mark],
        None => state.outcomes.error_hashes.clear(),
    }
    let too_many = state.outcomes.error_hashes.len().saturating_sub(ERRORS_KEPT);
    state.outcomes.error_hashes.drain(..too_many);
    let breaker = &mut state.outcomes.breaker;
    breaker.refused = next(breaker.refused, refused && !seen.finished);
    breaker.permission_denied = next(breaker.permission_denied, seen.denied.is_some() && !seen.advanced);
    breaker.empty_reply = next(breaker.empty_reply, seen.empty);
    breaker.quick_failure = next(breaker.quick_failure, seen.failed_at_start);
    breaker.last_error = seen.error.as_ref().map_or(String::new(), |error| clip(&one_line(error), 300));
}

/// How far a counter has come.
pub fn count(cause: BreakerCause, state: &RunState) -> u32 {
    match cause {
        BreakerCause::QuickFailure => state.outcomes.breaker.quick_failure,
        BreakerCause::PermissionDenied => state.outcomes.breaker.permission_denied,
        BreakerCause::EmptyReply => state.outcomes.breaker.empty_reply,
        BreakerCause::Refused => state.outcomes.breaker.refused,
        BreakerCause::SameError => state.outcomes.error_hashes.len() as u32,
        BreakerCause::NoProgress => state.outcomes.no_change_count,
    }
}

fn limit(cause: BreakerCause, limits: &BreakerLimits) -> u32 {
    match cause {
        BreakerCause::QuickFailure => limits.quick_failure,
        BreakerCause::PermissionDenied => limits.permission_denied,
        BreakerCause::EmptyReply => limits.empty_reply,
        BreakerCause::Refused => limits.refused,
        BreakerCause::SameError => limits.same_error,
        BreakerCause::NoProgress => limits.no_progress,
    }
}

fn evidence(
    cause: BreakerCause,
    state: &RunState,
    seen: &Observation,
    refusal: Option<&str>,
    in_trial: bool,
) -> String {
    let error = &state.outcomes.breaker.last_error;
    let said = if error.is_empty() { String::new() } else { format!(": {error}") };
    let sessions = counted(count(cause, state) as usize, "session");
    let words = match cause {
        BreakerCause::QuickFailure => {
            format!("{sessions} in a row failed before the model had answered{said}")
        }
        BreakerCause::PermissionDenied => format!(
            "in {sessions} in a row the client refused the tool {tool}: allow it after `--`, for example with --allowedTools {tool}",
            tool = seen.denied.as_deref().unwrap_or("?")
        ),
        BreakerCause::EmptyReply => format!("{sessions} in a row said and did nothing"),
        BreakerCause::Refused => format!(
            "{} in a row did not hold, the last because: {}",
            counted(state.outcomes.breaker.refused as usize, "promise"),
            refusal.unwrap_or_default()
        ),
        BreakerCause::SameError => format!("{sessions} in a row ended with the same error{said}"),
        BreakerCause::NoProgress => {
            let item =
                item_in_hand(state).map(|item| format!("; the current item is \"{}\"", clip(item, 80)));
            let changed = if seen.only_notes {
                "nothing but notes: no file of the project"
            } else {
                "nothing: no commit, no file"
            };
            format!("{sessions} in a row changed {changed}, no item{}{said}", item.unwrap_or_default())
        }
    };
    let trial = if in_trial { "again in the session after the reset: " } else { "" };
    clip(&format!("{trial}{words}"), 500)
}

/// Has the session on trial met the old trouble? Another error is none: of the old one the fingerprint is kept.
fn again(cause: BreakerCause, state: &RunState) -> bool {
    match cause {
        BreakerCause::SameError => state.outcomes.error_hashes.len() > 1,
        cause => count(cause, state) > 0,
    }
}

/// Before a stuck item opens the breaker it is set aside, if another one is open: the night continues with the
/// rest. Answers with the item.
pub fn set_aside(state: &mut RunState, limits: &BreakerLimits) -> Option<String> {
    // A session that asked the user was not counted, so the counters are those of the session before it.
    if state.asked_now().next().is_some() {
        return None;
    }
    let nearly = |cause| {
        let limit = limit(cause, limits);
        limit > 1 && count(cause, state) + 1 == limit
    };
    if ![BreakerCause::NoProgress, BreakerCause::SameError, BreakerCause::Refused].into_iter().any(nearly) {
        return None;
    }
    let stuck = item_in_hand(state)?.clone();
    let is_free = |item: &String| !state.items.set_aside.contains(item) && !state.is_parked(item);
    let others = state.items.todo_items.iter().any(|item| *item != stuck && is_free(item));
    if !others {
        return None;
    }
    state.items.set_aside.push(stuck.clone());
    Some(stuck)
}

/// `--reset-breaker`: the counters start again, and the next session is a trial for the old trouble. By its last
/// fingerprint the same error is known again.
pub fn reset(state: &mut RunState) {
    let trouble = state.outcomes.breaker.opened.take().map(|opened| opened.cause);
    state.outcomes.breaker = plimsoll_domain::breaker::Breaker { half_open: trouble, ..Default::default() };
    state.outcomes.no_change_count = 0;
    let last = state.outcomes.error_hashes.pop();
    state.outcomes.error_hashes =
        if trouble == Some(BreakerCause::SameError) { last.into_iter().collect() } else { Vec::new() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::Items;

    const LIMITS: BreakerLimits = BreakerLimits {
        no_progress: 3,
        same_error: 5,
        refused: 3,
        permission_denied: 2,
        empty_reply: 3,
        quick_failure: 3,
    };

    fn worked() -> Observation {
        Observation { progress: vec!["a commit".into()], ..Observation::default() }
    }

    fn finished() -> Observation {
        Observation { finished: true, advanced: true, ..worked() }
    }

    fn erring(error: &str) -> Observation {
        Observation { error: Some(error.into()), ..worked() }
    }

    fn denied() -> Observation {
        Observation { denied: Some("Bash".into()), ..worked() }
    }

    /// Which cause opens the breaker, and at which session; none if it stays closed.
    fn opens(sessions: &[Observation]) -> Option<(BreakerCause, usize)> {
        let mut state = RunState::default();
        let opened = |seen: &Observation| observe(&mut state, seen, None, &LIMITS).map(|opened| opened.cause);
        let causes: Vec<_> = sessions.iter().map(opened).collect();
        let place = causes.iter().position(Option::is_some)?;
        Some((causes[place]?, place + 1))
    }

    #[test]
    fn each_cause_has_its_own_counter_and_opens_at_its_own_limit() {
        let nothing = Observation::default();
        let empty = Observation { empty: true, ..Observation::default() };
        let at_start = Observation { failed_at_start: true, ..Observation::default() };
        let unsure = Observation { unsure: true, ..Observation::default() };
        for (sessions, expected) in [
            (vec![nothing.clone(); 4], Some((BreakerCause::NoProgress, 3))),
            (vec![empty; 3], Some((BreakerCause::EmptyReply, 3))),
            (vec![at_start; 3], Some((BreakerCause::QuickFailure, 3))),
            (vec![denied(); 2], Some((BreakerCause::PermissionDenied, 2))),
            (vec![erring("error: a"); 5], Some((BreakerCause::SameError, 5))),
            (vec![worked(); 50], None),
            (vec![unsure; 50], None),
            (vec![nothing.clone(), nothing.clone(), worked(), nothing.clone(), nothing], None),
            (vec![denied(), worked(), denied()], None),
        ] {
            assert_eq!(opens(&sessions), expected, "{sessions:?}");
        }
    }

    #[test]
    fn changing_line_numbers_do_not_hide_an_error_and_different_errors_do_not_add_up() {
        let same: Vec<_> = (1..=5)
            .map(|line| erring(&format!("error[E0308]: mismatched types at src/a.rs:{line}:7")))
            .collect();
        assert_eq!(opens(&same), Some((BreakerCause::SameError, 5)));
        let different: Vec<_> = ["E0308", "E0412", "E0425", "E0433", "E0502", "E0599"]
            .iter()
            .map(|code| erring(&format!("error[{code}]: something is wrong")))
            .collect();
        assert_eq!(opens(&different), None);
        let with_a_tick: Vec<_> = (0..9)
            .map(|n| {
                if n % 3 == 2 {
                    Observation { error: Some("error: a".into()), ..finished() }
                } else {
                    erring("error: a")
                }
            })
            .collect();
        assert_eq!(opens(&with_a_tick), None, "an error beside finished items is no standstill");
    }

    #[test]
    fn promises_are_counted_while_no_item_is_finished() {
        let mut state = RunState::default();
        assert_eq!(observe(&mut state, &worked(), Some("x"), &LIMITS), None);
        assert_eq!(observe(&mut state, &finished(), Some("x"), &LIMITS), None);
        assert_eq!(observe(&mut state, &worked(), Some("x"), &LIMITS), None);
        assert_eq!(observe(&mut state, &worked(), Some("x"), &LIMITS), None);
        let opened = observe(&mut state, &worked(), Some("x"), &LIMITS).unwrap();
        assert_eq!((opened.cause, opened.count), (BreakerCause::Refused, 3));
    }

    #[test]
    fn a_limit_of_zero_never_opens() {
        let limits = BreakerLimits { no_progress: 0, ..LIMITS };
        let mut state = RunState::default();
        assert!((0..50).all(|_| observe(&mut state, &Observation::default(), None, &limits).is_none()));
    }

    #[test]
    fn a_session_that_committed_only_notes_has_not_changed_nothing() {
        for (only_notes, expected) in [
            (true, "3 sessions in a row changed nothing but notes: no file of the project, no item"),
            (false, "3 sessions in a row changed nothing: no commit, no file, no item"),
        ] {
            let mut state = RunState::default();
            let seen = Observation { only_notes, ..Observation::default() };
            let opened: Vec<_> = (0..3).filter_map(|_| observe(&mut state, &seen, None, &LIMITS)).collect();
            assert_eq!(opened.iter().map(|opened| opened.evidence.as_str()).collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn after_a_reset_one_session_of_the_same_trouble_opens_it_again_and_progress_closes_it() {
        let mut state = RunState::default();
        for _ in 0..3 {
            observe(&mut state, &Observation::default(), None, &LIMITS);
        }
        reset(&mut state);
        assert_eq!(state.outcomes.breaker.half_open, Some(BreakerCause::NoProgress));
        let mut closed = state.clone();
        assert_eq!(observe(&mut closed, &worked(), None, &LIMITS), None);
        assert_eq!(observe(&mut closed, &Observation::default(), None, &LIMITS), None, "closed again");
        let opened = observe(&mut state, &Observation::default(), None, &LIMITS).unwrap();
        assert_eq!((opened.cause, opened.count), (BreakerCause::NoProgress, 1));
        insta::assert_snapshot!(opened.evidence, @"again in the session after the reset: 1 session in a row changed nothing: no commit, no file, no item");
    }

    #[test]
    fn after_a_reset_only_the_same_error_opens_it_again() {
        let mut state = RunState::default();
        for line in 0..5 {
            observe(&mut state, &erring(&format!("error[E0308] at src/a.rs:{line}")), None, &LIMITS);
        }
        assert!(state.outcomes.breaker.opened.is_some());
        reset(&mut state);
        let (mut same, mut none) = (state.clone(), state.clone());
        assert_eq!(observe(&mut state, &erring("cannot access 'nowhere'"), None, &LIMITS), None);
        assert_eq!((count(BreakerCause::SameError, &state), state.outcomes.breaker.half_open), (1, None));
        let opened = observe(&mut same, &erring("error[E0308] at src/a.rs:99"), None, &LIMITS).unwrap();
        assert_eq!(opened.cause, BreakerCause::SameError);
        insta::assert_snapshot!(opened.evidence, @"again in the session after the reset: 2 sessions in a row ended with the same error: error[E0308] at src/a.rs:99");
        assert_eq!(observe(&mut none, &worked(), None, &LIMITS), None);
        assert_eq!(count(BreakerCause::SameError, &none), 0);
    }

    #[test]
    fn an_item_that_was_claimed_to_be_done_twice_is_set_aside_for_the_others() {
        let mut state = RunState {
            items: Items { todo_items: vec!["one".into(), "two".into()], ..Items::default() },
            ..RunState::default()
        };
        let mut claimed = |finished| {
            let seen = Observation { finished, ..worked() };
            let opened = observe(&mut state, &seen, Some("2 items are open"), &LIMITS).is_some();
            (opened, set_aside(&mut state, &LIMITS))
        };
        assert_eq!(claimed(false), (false, None));
        assert_eq!(claimed(false), (false, Some("one".to_owned())));
        assert_eq!(claimed(true), (false, None), "the next item is finished, and the counter begins again");
        assert_eq!((claimed(false), claimed(false).0, claimed(false).0), ((false, None), false, true));
    }

    #[test]
    fn a_stuck_item_is_set_aside_just_before_the_breaker_would_open_and_only_if_another_is_open() {
        let mut state = RunState {
            items: Items { todo_items: vec!["one".into(), "two".into()], ..Items::default() },
            ..RunState::default()
        };
        let mut nothing = || {
            let opened = observe(&mut state, &Observation::default(), None, &LIMITS).is_some();
            (opened, set_aside(&mut state, &LIMITS))
        };
        assert_eq!(nothing(), (false, None));
        assert_eq!(nothing(), (false, Some("one".to_owned())));
        assert_eq!(nothing(), (true, None), "three sessions without progress are three, whatever the item");
        assert_eq!(item_in_hand(&state).map(String::as_str), Some("two"));
    }
}
