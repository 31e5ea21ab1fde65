//! Describes the status of a run, its problems and the user's next step.

use super::RunStatusView;
use crate::endings::{ending_text, last_stop_or_pause_reason, resume_command};
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Timestamp, Verdict};
use plimsoll_policy::breaker::count_for_cause;
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::clock;
use plimsoll_terminal::run_figure_text::render_api_retry;

/// The status of a run and its reason. Displayed as one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusSummary {
    /// The name of the status.
    pub(crate) heading: String,
    /// Describes the process that works on the run, or how the run was interrupted; otherwise `None`.
    pub(crate) activity: Option<String>,
    /// The reason; may quote the client or a model.
    pub(crate) reason: Option<String>,
}

impl std::fmt::Display for StatusSummary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.heading)?;
        let parts = [&self.activity, &self.reason].into_iter().flatten();
        parts.filter(|part| !part.is_empty()).try_for_each(|part| write!(formatter, ": {part}"))
    }
}

/// Returns the status of a run and its reason.
pub(crate) fn summarize_status(view: &RunStatusView) -> StatusSummary {
    let state = &view.state;
    let running = |activity: String| StatusSummary {
        heading: "running".to_owned(),
        activity: Some(activity),
        reason: None,
    };
    let pause_end_text = |paused_until: &Option<Timestamp>| {
        let pause_end = paused_until.as_ref().and_then(clock::parse_timestamp);
        pause_end
            .map(|pause_end| format!(" until {}", clock::format_local_time_with_seconds(pause_end)))
            .unwrap_or_default()
    };
    match &view.activity {
        RunActivity::Ended => match ending_text(state) {
            Some(ending) => summary_with_reason(ending.heading, ending.reason),
            None => summary_with_reason(state.lifecycle.status().as_str(), None),
        },
        RunActivity::Working => running("a `plimsoll run` is active".to_owned()),
        RunActivity::Retrying => {
            let worker_api_retry =
                || view.figures.workers.iter().find_map(|worker| worker.api_retry.as_ref());
            let api_retry = state.iteration_record.api_retry.as_ref().or_else(worker_api_retry);
            let retry_text = api_retry
                .map(|retry| format!("; {}", render_api_retry(retry.http_status, &retry.failing_since)));
            running(format!("a `plimsoll run` is active{}", retry_text.unwrap_or_default()))
        }
        RunActivity::Stopping => {
            let reason = view.stop_reason.as_deref().unwrap_or_default();
            running(if view.has_workers() {
                format!("a `plimsoll run` is active, and no new item starts ({reason})")
            } else {
                format!("a `plimsoll run` is active, and stops after this session ({reason})")
            })
        }
        RunActivity::Waiting { wait_ends_at: resumes_at } => summary_with_reason(
            &format!("waiting{}", pause_end_text(resumes_at)),
            last_stop_or_pause_reason(state),
        ),
        RunActivity::WaitingWithoutRun { wait_ends_at: resumes_at } => {
            let heading = format!("paused{} (and no `plimsoll run` is waiting)", pause_end_text(resumes_at));
            summary_with_reason(&heading, last_stop_or_pause_reason(state))
        }
        RunActivity::Exiting(kind) | RunActivity::Stopped(kind) => match state.lifecycle.last_verdict() {
            Some(Verdict::Pause { kind: verdict_kind, .. }) if verdict_kind == kind => {
                summary_with_reason("paused", last_stop_or_pause_reason(state))
            }
            _ => summary_with_reason("paused: interrupted by you", None),
        },
        RunActivity::OrphanedClient(pid) => {
            running(format!("its `plimsoll run` has ended; its client (process {pid}) is still running"))
        }
        RunActivity::OrphanedItemRuns(count) => {
            let workers_text =
                if *count == 1 { "1 worker is".to_owned() } else { format!("{count} workers are") };
            running(format!("its `plimsoll run` has ended; {workers_text} still at work"))
        }
        RunActivity::Killed => StatusSummary {
            heading: "interrupted".to_owned(),
            activity: Some("its `plimsoll run` was killed, or an error ended it".to_owned()),
            reason: None,
        },
        RunActivity::Unobserved => {
            running("no `plimsoll run` is active (a shell loop of your own is not detected)".to_owned())
        }
    }
}

fn summary_with_reason(heading: &str, reason: Option<String>) -> StatusSummary {
    StatusSummary { heading: heading.to_owned(), activity: None, reason }
}

/// Describes what the user can do next.
pub(crate) fn next_step_text(view: &RunStatusView) -> String {
    let resume = resume_command(&view.state);
    match &view.activity {
        RunActivity::Ended => match ending_text(&view.state) {
            Some(ending) => ending.next_step,
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
        RunActivity::WaitingWithoutRun { .. }
        | RunActivity::OrphanedClient(_)
        | RunActivity::OrphanedItemRuns(_)
        | RunActivity::Killed
        | RunActivity::Unobserved => resume,
    }
}

/// Returns the run's status for a title; `waiting` or `interrupted` if its activity says so.
pub(crate) fn status_for_title(view: &RunStatusView) -> &str {
    match &view.activity {
        RunActivity::Waiting { .. } => "waiting",
        RunActivity::Killed => "interrupted",
        _ => view.state.lifecycle.status().as_str(),
    }
}

/// Describes the breaker's counters above zero, a breaker that is on trial, and progress that cannot be
/// measured; `None` if there are no problems.
pub(crate) fn breaker_counts_and_problems_text(state: &RunState) -> Option<String> {
    let causes = [
        BreakerCause::NoProgress,
        BreakerCause::SameError,
        BreakerCause::RefusedPromises,
        BreakerCause::PermissionDenied,
        BreakerCause::EmptyReply,
        BreakerCause::QuickFailure,
    ];
    let counter_texts = causes.into_iter().filter_map(|cause| nonzero_counter_text(cause, state));
    let checkpoint_count = state.outcomes.breaker.fruitless_checkpoint_times.len();
    let checkpoints_text = (checkpoint_count > 0)
        .then(|| format!("{} without a finished item", count_with_noun(checkpoint_count, "checkpoint")));
    let trial_text =
        state.outcomes.breaker.half_open_cause.map(|cause| format!("on trial after {}", cause.as_str()));
    let is_progress_unknown = state
        .iteration_record
        .fingerprint_before
        .as_ref()
        .is_some_and(|fingerprint| fingerprint.files_digest.is_none());
    let unknown_progress_text = is_progress_unknown
        .then(|| "progress in the files cannot be seen (too many, or git is too slow)".to_owned());
    let problems: Vec<String> =
        counter_texts.chain(checkpoints_text).chain(trial_text).chain(unknown_progress_text).collect();
    (!problems.is_empty()).then(|| problems.join(", "))
}

fn nonzero_counter_text(cause: BreakerCause, state: &RunState) -> Option<String> {
    let count = count_for_cause(cause, state) as usize;
    let session_count_text = count_with_noun(count, "session");
    (count > 0).then(|| match cause {
        BreakerCause::NoProgress => format!("{session_count_text} without progress"),
        BreakerCause::SameError => {
            let error = truncate_end(&to_safe_single_line(&state.outcomes.breaker.last_error), 50);
            let error_text = if error.is_empty() { String::new() } else { format!(" ({error})") };
            let error_kind = if count > 1 { "with the same error" } else { "with an error" };
            format!("{session_count_text} {error_kind}{error_text}")
        }
        BreakerCause::RefusedPromises => format!("{} refused", count_with_noun(count, "promise")),
        BreakerCause::PermissionDenied => {
            format!("{session_count_text} with a tool that Claude Code refused")
        }
        BreakerCause::EmptyReply => format!("{session_count_text} that did nothing"),
        BreakerCause::QuickFailure => format!("{session_count_text} that failed at once"),
    })
}
