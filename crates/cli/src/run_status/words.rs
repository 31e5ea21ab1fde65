//! The status of a run, what troubles it and what the user does next, in words.

use super::View;
use crate::endings::{ending_words, reason, way_on};
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Timestamp, Verdict};
use plimsoll_policy::breaker::count;
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::clock;
use plimsoll_terminal::figure_words::api_trouble;

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
pub(crate) fn standing(view: &View) -> Standing {
    let state = &view.state;
    let running =
        |activity: String| Standing { heading: "running".to_owned(), activity: Some(activity), reason: None };
    let until = |until: &Option<Timestamp>| {
        let until = until.as_ref().and_then(clock::moment);
        until.map(|until| format!(" until {}", clock::for_people(until))).unwrap_or_default()
    };
    match &view.activity {
        RunActivity::Over => match ending_words(state) {
            Some(ending) => with_reason(ending.heading, ending.reason),
            None => with_reason(state.lifecycle.status().word(), None),
        },
        RunActivity::Working => running("a `plimsoll run` is active".to_owned()),
        RunActivity::Retrying => {
            let of_workers = || view.figures.workers.iter().find_map(|worker| worker.api_trouble.as_ref());
            let trouble = state.iteration_record.api_trouble.as_ref().or_else(of_workers);
            let trouble = trouble.map(|known| format!("; {}", api_trouble(known.status, &known.since)));
            running(format!("a `plimsoll run` is active{}", trouble.unwrap_or_default()))
        }
        RunActivity::Stopping => {
            let reason = view.stop_reason.as_deref().unwrap_or_default();
            running(if view.has_workers() {
                format!("a `plimsoll run` is active, and no new item starts ({reason})")
            } else {
                format!("a `plimsoll run` is active, and stops after this session ({reason})")
            })
        }
        RunActivity::Waiting { until: moment } => {
            with_reason(&format!("waiting{}", until(moment)), reason(state))
        }
        RunActivity::Unattended { until: moment } => {
            let heading = format!("paused{} (and no `plimsoll run` is waiting)", until(moment));
            with_reason(&heading, reason(state))
        }
        RunActivity::Exiting(kind) | RunActivity::Stopped(kind) => match state.lifecycle.last_verdict() {
            Some(Verdict::Pause { kind: of_verdict, .. }) if of_verdict == kind => {
                with_reason("paused", reason(state))
            }
            _ => with_reason("paused: interrupted by you", None),
        },
        RunActivity::LeftClient(pid) => {
            running(format!("its `plimsoll run` has ended; its client (process {pid}) is still running"))
        }
        RunActivity::LeftItems(count) => {
            let workers = if *count == 1 { "1 worker is".to_owned() } else { format!("{count} workers are") };
            running(format!("its `plimsoll run` has ended; {workers} still at work"))
        }
        RunActivity::Killed => Standing {
            heading: "interrupted".to_owned(),
            activity: Some("its `plimsoll run` was killed, or an error ended it".to_owned()),
            reason: None,
        },
        RunActivity::Unobserved => {
            running("no `plimsoll run` is active (a shell loop of your own is not detected)".to_owned())
        }
    }
}

fn with_reason(heading: &str, reason: Option<String>) -> Standing {
    Standing { heading: heading.to_owned(), activity: None, reason }
}

/// What the user does next.
pub(crate) fn next(view: &View) -> String {
    let resume = way_on(&view.state);
    match &view.activity {
        RunActivity::Over => match ending_words(&view.state) {
            Some(ending) => ending.next,
            None => resume,
        },
        RunActivity::Working | RunActivity::Waiting { .. } => {
            "nothing: it continues by itself; watch it with plimsoll log --follow".to_owned()
        }
        RunActivity::Retrying => {
            "nothing, or check your network: the session continues once the API answers".to_owned()
        }
        RunActivity::Stopping if view.has_workers() => {
            format!(
                "nothing: it stops when its sessions have ended; Ctrl-C again ends them now; to continue later: {resume}"
            )
        }
        RunActivity::Stopping => format!(
            "nothing: it stops after this session; Ctrl-C again ends the session now; to continue later: {resume}"
        ),
        RunActivity::Exiting(kind) | RunActivity::Stopped(kind) => match kind {
            PauseKind::Thrash => {
                format!("give it more room (a smaller item, less loaded at the start), then: {resume}")
            }
            PauseKind::Fault => format!("fix the cause, then: {resume}"),
            PauseKind::Limit | PauseKind::Overload | PauseKind::Quota | PauseKind::Interrupted => resume,
        },
        RunActivity::Unattended { .. }
        | RunActivity::LeftClient(_)
        | RunActivity::LeftItems(_)
        | RunActivity::Killed
        | RunActivity::Unobserved => resume,
    }
}

/// The word for a run in a title: its status, unless what it does says more.
pub(crate) fn title_word(view: &View) -> &str {
    match &view.activity {
        RunActivity::Waiting { .. } => "waiting",
        RunActivity::Killed => "interrupted",
        _ => view.state.lifecycle.status().word(),
    }
}

/// The counters that are not zero; none while nothing goes wrong.
pub(crate) fn troubles(state: &RunState) -> Option<String> {
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
