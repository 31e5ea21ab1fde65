//! The status of a run, what troubles it and what the user does next, in words.

use super::view::View;
use crate::commands::run::progress::api_trouble;
use crate::endings::{ending_words, reason, way_on};
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Status, Verdict};
use plimsoll_policy::breaker::count;
use plimsoll_store::clock;

/// The status of a run, and why. Shown, it is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Our words for the status.
    pub(crate) heading: String,
    /// What works on it, in our words; of a run that is running.
    pub(crate) activity: Option<String>,
    /// Why, perhaps in others' words.
    pub(crate) reason: Option<String>,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.heading)?;
        let parts = [&self.activity, &self.reason].into_iter().flatten();
        parts.filter(|part| !part.is_empty()).try_for_each(|part| write!(formatter, ": {part}"))
    }
}

/// Its status, and why.
pub(super) fn standing(view: &View) -> Standing {
    let state = &view.state;
    if let Some(ending) = ending_words(state) {
        return with_reason(ending.heading, ending.reason);
    }
    if state.lifecycle.status() == Status::Paused {
        return paused(view);
    }
    Standing { heading: "running".to_owned(), activity: Some(activity(view)), reason: None }
}

fn with_reason(heading: &str, reason: Option<String>) -> Standing {
    Standing { heading: heading.to_owned(), activity: None, reason }
}

fn activity(view: &View) -> String {
    let record = &view.state.iteration_record;
    match (view.at_work, view.client) {
        (true, _) => {
            let stops = if record.stops_after { ", and stops after this session (Ctrl-C)" } else { "" };
            let trouble = record.api_trouble.as_ref();
            let trouble = trouble.map(|known| format!("; {}", api_trouble(known.status, &known.since)));
            format!("a `plimsoll run` is active{stops}{}", trouble.unwrap_or_default())
        }
        (false, Some(pid)) => {
            format!("its `plimsoll run` has ended; its client (process {pid}) is still running")
        }
        (false, None) => "no `plimsoll run` is active (a shell loop of your own is not detected)".to_owned(),
    }
}

fn paused(view: &View) -> Standing {
    let state = &view.state;
    let Some(kind) = pause_kind(state) else {
        return with_reason("paused: interrupted by you", None);
    };
    let until = state.lifecycle.paused_until().and_then(clock::moment);
    let until = until.map(|until| format!(" until {}", clock::for_people(until))).unwrap_or_default();
    let nobody = kind.passes() && !view.at_work;
    let nobody = if nobody { " (and no `plimsoll run` is waiting)" } else { "" };
    with_reason(&format!("paused{until}{nobody}"), reason(state))
}

/// None if the user has paused it between two sessions.
fn pause_kind(state: &RunState) -> Option<PauseKind> {
    match state.lifecycle.last_verdict()? {
        Verdict::Pause { kind, .. } => Some(*kind),
        _ => None,
    }
}

/// What the user does next.
pub(super) fn next(view: &View) -> String {
    if let Some(ending) = ending_words(&view.state) {
        return ending.next;
    }
    let record = &view.state.iteration_record;
    let (is_paused, resume) = (view.state.lifecycle.status() == Status::Paused, way_on(&view.state));
    if view.at_work && !is_paused && record.stops_after {
        return format!(
            "nothing: it stops after this session; Ctrl-C again ends the session now; to continue later: {resume}"
        );
    }
    if view.at_work && !is_paused && record.api_trouble.is_some() {
        return "nothing, or check your network: the session continues once the API answers".to_owned();
    }
    if view.at_work {
        return "nothing: it continues by itself; watch it with plimsoll log --follow".to_owned();
    }
    match pause_kind(&view.state).filter(|_| is_paused) {
        Some(PauseKind::Thrash) => {
            format!("give it more room (a smaller item, less loaded at the start), then: {resume}")
        }
        Some(PauseKind::Fault) => format!("fix the cause, then: {resume}"),
        None | Some(PauseKind::Limit | PauseKind::Overload | PauseKind::Quota | PauseKind::Interrupted) => {
            resume
        }
    }
}

/// The counters that are not zero; none while nothing goes wrong.
pub(super) fn troubles(state: &RunState) -> Option<String> {
    let causes = [
        BreakerCause::NoProgress,
        BreakerCause::SameError,
        BreakerCause::Refused,
        BreakerCause::PermissionDenied,
        BreakerCause::EmptyReply,
        BreakerCause::QuickFailure,
    ];
    let counted_causes = causes.into_iter().filter_map(|cause| trouble(cause, state));
    let fruitless = state.outcomes.breaker.fruitless_checkpoints_at.len();
    let fruitless =
        (fruitless > 0).then(|| format!("{} without a finished item", counted(fruitless, "checkpoint")));
    let trial = state.outcomes.breaker.half_open.map(|cause| format!("on trial after {}", cause.word()));
    let unseen = state.iteration_record.footing.as_ref().is_some_and(|footing| footing.tree.is_none());
    let unseen =
        unseen.then(|| "progress in the files cannot be seen (too many, or git is too slow)".to_owned());
    let all: Vec<String> = counted_causes.chain(fruitless).chain(trial).chain(unseen).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn trouble(cause: BreakerCause, state: &RunState) -> Option<String> {
    let number = count(cause, state) as usize;
    let sessions = counted(number, "session");
    (number > 0).then(|| match cause {
        BreakerCause::NoProgress => format!("{sessions} without progress"),
        BreakerCause::SameError => {
            let error = clip(&one_line(&state.outcomes.breaker.last_error), 50);
            let error = if error.is_empty() { String::new() } else { format!(" ({error})") };
            let same = if number > 1 { "with the same error" } else { "with an error" };
            format!("{sessions} {same}{error}")
        }
        BreakerCause::Refused => format!("{} refused", counted(number, "promise")),
        BreakerCause::PermissionDenied => format!("{sessions} with a tool that the client refused"),
        BreakerCause::EmptyReply => format!("{sessions} that said and did nothing"),
        BreakerCause::QuickFailure => format!("{sessions} that failed at once"),
    })
}
