//! Whether a run is at work, waits, or needs the user to go on: one answer for all screens.

use plimsoll_domain::state::Lifecycle;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Status, Timestamp, Verdict};

/// What is known of a run when its activity is asked for.
#[derive(Debug, Clone, Copy)]
pub struct ActivityEvidence<'a> {
    /// The run's status, with its last verdict.
    pub lifecycle: &'a Lifecycle,
    /// True while a `plimsoll run` holds the project's lock.
    pub is_run_active: bool,
    /// True from the first Ctrl-C on.
    pub is_stop_requested: bool,
    /// True while the client retries a request.
    pub is_api_failing: bool,
    /// The client of the current session, while it lives.
    pub client: Option<u32>,
    /// How many item runs of a parallel run are at work.
    pub items_at_work: usize,
    /// True if `plimsoll run` started its sessions: a shell loop of the user's holds no lock.
    pub was_started_by_run: bool,
}

impl ActivityEvidence<'_> {
    /// What the state says, without processes that outlived their `plimsoll run`.
    pub fn from_state(state: &RunState, is_run_active: bool) -> ActivityEvidence<'_> {
        let record = &state.iteration_record;
        ActivityEvidence {
            lifecycle: &state.lifecycle,
            is_run_active,
            is_stop_requested: record.stops_after,
            is_api_failing: record.api_trouble.is_some(),
            client: None,
            items_at_work: 0,
            was_started_by_run: state.options.workers.is_some() || record.pid.is_some(),
        }
    }
}

/// What a run does, and who makes it go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunActivity {
    /// It is over.
    Over,
    /// A `plimsoll run` works on it.
    Working,
    /// The same, while the API does not answer.
    Retrying,
    /// A `plimsoll run` works on it, and stops after its sessions.
    Stopping,
    /// A `plimsoll run` waits until this moment, if it is known, and continues by itself.
    Waiting {
        /// The end of the wait.
        until: Option<Timestamp>,
    },
    /// It has stopped; its `plimsoll run` is about to exit.
    Exiting(PauseKind),
    /// It waits for a moment, and no `plimsoll run` does: the user resumes it.
    Unattended {
        /// The end of the limit.
        until: Option<Timestamp>,
    },
    /// It has stopped, and the user resumes it.
    Stopped(PauseKind),
    /// Its `plimsoll run` is gone without having ended it; this client is still at work.
    LeftClient(u32),
    /// Its `plimsoll run` is gone without having ended it; so many item runs are still at work.
    LeftItems(usize),
    /// Its `plimsoll run` is gone without having ended it, and nothing is at work.
    Killed,
    /// No `plimsoll run` is active, and none has ever been: a shell loop may be at work.
    Unobserved,
}

impl RunActivity {
    /// Returns the word for `plimsoll status --json`.
    pub fn word(&self) -> &'static str {
        match self {
            RunActivity::Over => "over",
            RunActivity::Working => "working",
            RunActivity::Retrying => "retrying",
            RunActivity::Stopping => "stopping",
            RunActivity::Waiting { .. } => "waiting",
            RunActivity::Exiting(_) => "exiting",
            RunActivity::Unattended { .. } | RunActivity::Stopped(_) => "stopped",
            RunActivity::LeftClient(_) | RunActivity::LeftItems(_) => "left_running",
            RunActivity::Killed => "killed",
            RunActivity::Unobserved => "unobserved",
        }
    }

    /// Returns true if the run goes on without the user.
    pub fn continues_by_itself(&self) -> bool {
        matches!(self, RunActivity::Working | RunActivity::Retrying | RunActivity::Waiting { .. })
    }
}

/// Returns what a run does.
pub fn run_activity(evidence: &ActivityEvidence<'_>) -> RunActivity {
    let lifecycle = evidence.lifecycle;
    match (lifecycle.status(), evidence.is_run_active) {
        (Status::Running, true) if evidence.is_stop_requested => RunActivity::Stopping,
        (Status::Running, true) if evidence.is_api_failing => RunActivity::Retrying,
        (Status::Running, true) => RunActivity::Working,
        (Status::Paused, true) => match pause_kind(lifecycle) {
            kind if !kind.passes() || evidence.is_stop_requested => RunActivity::Exiting(kind),
            _ => RunActivity::Waiting { until: lifecycle.paused_until().cloned() },
        },
        (Status::Running | Status::Paused, false) if evidence.items_at_work > 0 => {
            RunActivity::LeftItems(evidence.items_at_work)
        }
        (Status::Running, false) => match evidence.client {
            Some(client) => RunActivity::LeftClient(client),
            None if evidence.was_started_by_run => RunActivity::Killed,
            None => RunActivity::Unobserved,
        },
        (Status::Paused, false) => match pause_kind(lifecycle) {
            kind if kind.passes() => RunActivity::Unattended { until: lifecycle.paused_until().cloned() },
            kind => RunActivity::Stopped(kind),
        },
        // All others are over.
        _ => RunActivity::Over,
    }
}

/// Why a run is paused. Without a verdict about it the user has stopped it between two sessions; and a limit that had a moment, which
/// the run does not wait for any more, is an earlier one's.
pub fn pause_kind(lifecycle: &Lifecycle) -> PauseKind {
    match lifecycle.last_verdict() {
        Some(Verdict::Pause { until: Some(_), .. }) if lifecycle.paused_until().is_none() => {
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

    fn paused(kind: PauseKind) -> Lifecycle {
        Lifecycle::after(&Verdict::Pause { kind, until: Some(UNTIL.into()), reason: String::new() })
    }

    /// Ctrl-C between two sessions.
    fn stopped_by_user() -> Lifecycle {
        let mut lifecycle =
            Lifecycle::after(&Verdict::Continue { kind: ContinueKind::Next, reason: String::new() });
        lifecycle.wait(None);
        lifecycle
    }

    fn evidence(lifecycle: &Lifecycle, is_run_active: bool) -> ActivityEvidence<'_> {
        ActivityEvidence {
            lifecycle,
            is_run_active,
            is_stop_requested: false,
            is_api_failing: false,
            client: None,
            items_at_work: 0,
            was_started_by_run: true,
        }
    }

    #[test]
    fn each_state_of_a_run_has_one_activity() {
        let until = Some(UNTIL.into());
        let (running, limit) = (Lifecycle::default(), paused(PauseKind::Limit));
        let active = |lifecycle| evidence(lifecycle, true);
        let gone = |lifecycle| evidence(lifecycle, false);
        let interrupted = stopped_by_user();
        let mut after_limit = paused(PauseKind::Limit);
        after_limit.go_on();
        after_limit.wait(None);
        let over = Lifecycle::of(Status::Budget);
        for (evidence, expected) in [
            (active(&running), RunActivity::Working),
            (ActivityEvidence { is_api_failing: true, ..active(&running) }, RunActivity::Retrying),
            (
                ActivityEvidence { is_stop_requested: true, is_api_failing: true, ..active(&running) },
                RunActivity::Stopping,
            ),
            (active(&limit), RunActivity::Waiting { until: until.clone() }),
            (
                ActivityEvidence { is_stop_requested: true, ..active(&limit) },
                RunActivity::Exiting(PauseKind::Limit),
            ),
            (active(&paused(PauseKind::Thrash)), RunActivity::Exiting(PauseKind::Thrash)),
            (active(&interrupted), RunActivity::Exiting(PauseKind::Interrupted)),
            (gone(&limit), RunActivity::Unattended { until }),
            (gone(&interrupted), RunActivity::Stopped(PauseKind::Interrupted)),
            (gone(&after_limit), RunActivity::Stopped(PauseKind::Interrupted)),
            (gone(&paused(PauseKind::Fault)), RunActivity::Stopped(PauseKind::Fault)),
            (gone(&running), RunActivity::Killed),
            (ActivityEvidence { client: Some(7), ..gone(&running) }, RunActivity::LeftClient(7)),
            (ActivityEvidence { items_at_work: 2, ..gone(&running) }, RunActivity::LeftItems(2)),
            (ActivityEvidence { items_at_work: 1, ..gone(&limit) }, RunActivity::LeftItems(1)),
            (ActivityEvidence { was_started_by_run: false, ..gone(&running) }, RunActivity::Unobserved),
            (active(&over), RunActivity::Over),
            (gone(&over), RunActivity::Over),
        ] {
            assert_eq!(run_activity(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn only_a_run_with_a_process_continues_by_itself() {
        for status in [Status::Running, Status::Paused, Status::Completed, Status::Cancelled] {
            for lifecycle in [Lifecycle::of(status), paused(PauseKind::Limit), stopped_by_user()] {
                for (client, items_at_work) in [(None, 0), (Some(7), 0), (None, 2)] {
                    let evidence = ActivityEvidence { client, items_at_work, ..evidence(&lifecycle, false) };
                    assert!(!run_activity(&evidence).continues_by_itself(), "{evidence:?}");
                }
            }
        }
    }
}
