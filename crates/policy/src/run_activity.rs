//! Determines whether a run is working, waiting, or must be resumed by the user. All screens show the same result.

use plimsoll_domain::state::Lifecycle;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, RunStatus, Timestamp, Verdict};

/// The inputs from which the activity of a run is determined.
#[derive(Debug, Clone, Copy)]
pub struct ActivityEvidence<'a> {
    /// The run's status, with its last verdict.
    pub lifecycle: &'a Lifecycle,
    /// True while a `plimsoll run` holds the project's lock.
    pub is_run_active: bool,
    /// True after the first Ctrl-C.
    pub is_stop_requested: bool,
    /// True while the client retries a request.
    pub is_api_failing: bool,
    /// Process id of the current session's client, while it is running.
    pub client_pid: Option<u32>,
    /// Number of item runs of a parallel run that are still running.
    pub running_item_count: usize,
    /// True if `plimsoll run` started its sessions. A user's own shell loop holds no lock.
    pub was_started_by_run: bool,
}

impl ActivityEvidence<'_> {
    /// Builds the evidence from the state alone, without checking for processes that outlived their `plimsoll run`.
    pub fn from_state_without_process_checks(state: &RunState, is_run_active: bool) -> ActivityEvidence<'_> {
        let iteration_record = &state.iteration_record;
        ActivityEvidence {
            lifecycle: &state.lifecycle,
            is_run_active,
            is_stop_requested: iteration_record.stops_run_after_session,
            is_api_failing: iteration_record.api_retry.is_some(),
            client_pid: None,
            running_item_count: 0,
            was_started_by_run: state.options.workers.is_some() || iteration_record.pid.is_some(),
        }
    }
}

/// A run's current activity, and whether the user must resume it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunActivity {
    /// The run has ended.
    Ended,
    /// A `plimsoll run` is working on it.
    Working,
    /// A `plimsoll run` is working on it, but the API does not answer.
    Retrying,
    /// A `plimsoll run` is working on it, and stops after the current sessions.
    Stopping,
    /// A `plimsoll run` waits until this time, if it is known, and then continues by itself.
    Waiting {
        /// The end of the wait.
        wait_ends_at: Option<Timestamp>,
    },
    /// The run has stopped; its `plimsoll run` is about to exit.
    Exiting(PauseKind),
    /// The run is paused until a certain time, but no `plimsoll run` is waiting: the user must resume it.
    WaitingWithoutRun {
        /// The end of the limit.
        wait_ends_at: Option<Timestamp>,
    },
    /// The run has stopped, and the user must resume it.
    Stopped(PauseKind),
    /// Its `plimsoll run` process disappeared without ending the run; this client is still running.
    OrphanedClient(u32),
    /// Its `plimsoll run` process disappeared without ending the run; this many item runs are still running.
    OrphanedItemRuns(usize),
    /// Its `plimsoll run` process disappeared without ending the run, and nothing is running.
    Killed,
    /// No `plimsoll run` is active or has ever been; a shell loop may be running it.
    Unobserved,
}

impl RunActivity {
    /// Returns the name in `plimsoll status --json`.
    pub fn json_name(&self) -> &'static str {
        match self {
            RunActivity::Ended => "over",
            RunActivity::Working => "working",
            RunActivity::Retrying => "retrying",
            RunActivity::Stopping => "stopping",
            RunActivity::Waiting { .. } => "waiting",
            RunActivity::Exiting(_) => "exiting",
            RunActivity::WaitingWithoutRun { .. } | RunActivity::Stopped(_) => "stopped",
            RunActivity::OrphanedClient(_) | RunActivity::OrphanedItemRuns(_) => "left_running",
            RunActivity::Killed => "killed",
            RunActivity::Unobserved => "unobserved",
        }
    }

    /// Returns true if the run continues without the user.
    pub fn continues_by_itself(&self) -> bool {
        matches!(self, RunActivity::Working | RunActivity::Retrying | RunActivity::Waiting { .. })
    }
}

/// Determines what a run is doing.
pub fn determine_activity(evidence: &ActivityEvidence<'_>) -> RunActivity {
    let lifecycle = evidence.lifecycle;
    match (lifecycle.status(), evidence.is_run_active) {
        (RunStatus::Running, true) if evidence.is_stop_requested => RunActivity::Stopping,
        (RunStatus::Running, true) if evidence.is_api_failing => RunActivity::Retrying,
        (RunStatus::Running, true) => RunActivity::Working,
        (RunStatus::Paused, true) => match pause_kind_or_interrupted(lifecycle) {
            kind if !kind.resolves_by_waiting() || evidence.is_stop_requested => RunActivity::Exiting(kind),
            _ => RunActivity::Waiting { wait_ends_at: lifecycle.paused_until().cloned() },
        },
        (RunStatus::Running | RunStatus::Paused, false) if evidence.running_item_count > 0 => {
            RunActivity::OrphanedItemRuns(evidence.running_item_count)
        }
        (RunStatus::Running, false) => match evidence.client_pid {
            Some(pid) => RunActivity::OrphanedClient(pid),
            None if evidence.was_started_by_run => RunActivity::Killed,
            None => RunActivity::Unobserved,
        },
        (RunStatus::Paused, false) => match pause_kind_or_interrupted(lifecycle) {
            kind if kind.resolves_by_waiting() => {
                RunActivity::WaitingWithoutRun { wait_ends_at: lifecycle.paused_until().cloned() }
            }
            kind => RunActivity::Stopped(kind),
        },
        // All other statuses are final.
        _ => RunActivity::Ended,
    }
}

/// Returns why a run is paused. Without a verdict about the pause, the user has interrupted the run between two sessions.
/// A usage limit with a reset time for which the run no longer waits belongs to an earlier pause.
pub fn pause_kind_or_interrupted(lifecycle: &Lifecycle) -> PauseKind {
    match lifecycle.last_verdict() {
        Some(Verdict::Pause { pause_end: Some(_), .. }) if lifecycle.paused_until().is_none() => {
            PauseKind::Interrupted
        }
        Some(Verdict::Pause { kind, .. }) => *kind,
        Some(Verdict::Stop { .. } | Verdict::Continue { .. }) | None => PauseKind::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::verdict::ContinueKind;

    const UNTIL: &str = "2026-01-07T05:00:02Z";

    fn lifecycle_paused_until(kind: PauseKind) -> Lifecycle {
        Lifecycle::from_verdict(&Verdict::Pause {
            kind,
            pause_end: Some(UNTIL.into()),
            reason: String::new(),
        })
    }

    /// Returns the lifecycle of a run that was stopped with Ctrl-C between two sessions.
    fn stopped_by_user() -> Lifecycle {
        let mut lifecycle = Lifecycle::from_verdict(&Verdict::Continue {
            kind: ContinueKind::NextItem,
            reason: String::new(),
        });
        lifecycle.pause_if_open(None);
        lifecycle
    }

    fn evidence(lifecycle: &Lifecycle, is_run_active: bool) -> ActivityEvidence<'_> {
        ActivityEvidence {
            lifecycle,
            is_run_active,
            is_stop_requested: false,
            is_api_failing: false,
            client_pid: None,
            running_item_count: 0,
            was_started_by_run: true,
        }
    }

    #[test]
    fn each_state_of_a_run_has_one_activity() {
        let until = Some(UNTIL.into());
        let (running, limit) = (Lifecycle::default(), lifecycle_paused_until(PauseKind::Limit));
        let with_run = |lifecycle| evidence(lifecycle, true);
        let without_run = |lifecycle| evidence(lifecycle, false);
        let interrupted = stopped_by_user();
        let mut after_limit = lifecycle_paused_until(PauseKind::Limit);
        after_limit.mark_running_if_open();
        after_limit.pause_if_open(None);
        let ended = Lifecycle::with_status(RunStatus::Budget);
        for (evidence, expected) in [
            (with_run(&running), RunActivity::Working),
            (ActivityEvidence { is_api_failing: true, ..with_run(&running) }, RunActivity::Retrying),
            (
                ActivityEvidence { is_stop_requested: true, is_api_failing: true, ..with_run(&running) },
                RunActivity::Stopping,
            ),
            (with_run(&limit), RunActivity::Waiting { wait_ends_at: until.clone() }),
            (
                ActivityEvidence { is_stop_requested: true, ..with_run(&limit) },
                RunActivity::Exiting(PauseKind::Limit),
            ),
            (with_run(&lifecycle_paused_until(PauseKind::Thrash)), RunActivity::Exiting(PauseKind::Thrash)),
            (with_run(&interrupted), RunActivity::Exiting(PauseKind::Interrupted)),
            (without_run(&limit), RunActivity::WaitingWithoutRun { wait_ends_at: until }),
            (without_run(&interrupted), RunActivity::Stopped(PauseKind::Interrupted)),
            (without_run(&after_limit), RunActivity::Stopped(PauseKind::Interrupted)),
            (without_run(&lifecycle_paused_until(PauseKind::Fault)), RunActivity::Stopped(PauseKind::Fault)),
            (without_run(&running), RunActivity::Killed),
            (
                ActivityEvidence { client_pid: Some(7), ..without_run(&running) },
                RunActivity::OrphanedClient(7),
            ),
            (
                ActivityEvidence { running_item_count: 2, ..without_run(&running) },
                RunActivity::OrphanedItemRuns(2),
            ),
            (
                ActivityEvidence { running_item_count: 1, ..without_run(&limit) },
                RunActivity::OrphanedItemRuns(1),
            ),
            (
                ActivityEvidence { was_started_by_run: false, ..without_run(&running) },
                RunActivity::Unobserved,
            ),
            (with_run(&ended), RunActivity::Ended),
            (without_run(&ended), RunActivity::Ended),
        ] {
            assert_eq!(determine_activity(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn only_a_run_with_a_process_continues_by_itself() {
        for status in [RunStatus::Running, RunStatus::Paused, RunStatus::Completed, RunStatus::Canceled] {
            for lifecycle in
                [Lifecycle::with_status(status), lifecycle_paused_until(PauseKind::Limit), stopped_by_user()]
            {
                for (client_pid, running_item_count) in [(None, 0), (Some(7), 0), (None, 2)] {
                    let evidence =
                        ActivityEvidence { client_pid, running_item_count, ..evidence(&lifecycle, false) };
                    assert!(!determine_activity(&evidence).continues_by_itself(), "{evidence:?}");
                }
            }
        }
    }
}
