//! The status of a run, and the only allowed transitions between statuses.

use crate::status::RunStatus;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Status, last verdict, pause and end of a run. They change together and only through the methods below, so that no run is
/// both running and ended, or both stopped and paused.
///
/// In the file they are separate fields, and another program may write a contradiction there. Then the status wins: a run that
/// is not paused has no `paused_until`, and an open run has no `ended_at`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lifecycle {
    status: RunStatus,
    last_verdict: Option<Verdict>,
    paused_until: Option<Timestamp>,
    #[serde(rename = "pauses")]
    pause_count: u32,
    #[serde(rename = "pauses_in_a_row")]
    consecutive_pauses: u32,
    ended_at: Option<Timestamp>,
}

impl Lifecycle {
    /// Creates a lifecycle with this status and no verdict, pause or end.
    pub fn with_status(status: RunStatus) -> Lifecycle {
        Lifecycle { status, ..Lifecycle::default() }
    }

    /// Creates the lifecycle of a new run after its first verdict.
    pub fn from_verdict(verdict: &Verdict) -> Lifecycle {
        let mut lifecycle = Lifecycle::default();
        lifecycle.apply_verdict(verdict);
        lifecycle
    }

    pub fn status(&self) -> RunStatus {
        self.status
    }

    /// Returns true if no further session may start.
    pub fn has_ended(&self) -> bool {
        self.status.has_ended()
    }

    /// Returns the last verdict of the gate.
    pub fn last_verdict(&self) -> Option<&Verdict> {
        self.last_verdict.as_ref()
    }

    /// Returns the end of the pause; `None` if the run is not paused, or if the end is unknown.
    pub fn paused_until(&self) -> Option<&Timestamp> {
        if self.status == RunStatus::Paused { self.paused_until.as_ref() } else { None }
    }

    /// Returns how often the run has paused.
    pub fn pause_count(&self) -> u32 {
        self.pause_count
    }

    /// Returns the number of pauses since the last session that hit no limit. Each of them is longer than the one before.
    pub fn consecutive_pauses(&self) -> u32 {
        self.consecutive_pauses
    }

    /// Returns when the run ended; `None` while it is open.
    pub fn ended_at(&self) -> Option<&Timestamp> {
        if self.has_ended() { self.ended_at.as_ref() } else { None }
    }

    /// Applies a verdict of the gate: stops, pauses or continues the run. A pause is counted, and a continuation resets the
    /// consecutive pauses.
    pub fn apply_verdict(&mut self, verdict: &Verdict) {
        self.paused_until = None;
        match verdict {
            Verdict::Stop { status, .. } => self.status = *status,
            Verdict::Pause { pause_end: until, .. } => {
                self.status = RunStatus::Paused;
                self.pause_count += 1;
                self.consecutive_pauses += 1;
                self.paused_until.clone_from(until);
            }
            Verdict::Continue { .. } => {
                self.status = RunStatus::Running;
                self.consecutive_pauses = 0;
            }
        }
        self.last_verdict = Some(verdict.clone());
    }

    /// Sets an open run to running and ends its pause. Does nothing if the run has ended.
    pub fn mark_running_if_open(&mut self) {
        if !self.has_ended() {
            self.status = RunStatus::Running;
            self.paused_until = None;
        }
    }

    /// Pauses an open run until `pause_end`, or until the user resumes it if that is `None`. Does nothing if the run has ended, and
    /// does not count the pause.
    pub fn pause_if_open(&mut self, pause_end: Option<Timestamp>) {
        if !self.has_ended() {
            self.status = RunStatus::Paused;
            self.paused_until = pause_end;
        }
    }

    /// Pauses an open run and records a verdict that does not come from the gate, so the pause is not counted. Does nothing if the
    /// run has ended.
    pub fn pause_and_record_verdict_if_open(&mut self, verdict: &Verdict) {
        if !self.has_ended() {
            let pause_end = match verdict {
                Verdict::Pause { pause_end: until, .. } => until.clone(),
                Verdict::Stop { .. } | Verdict::Continue { .. } => None,
            };
            self.pause_if_open(pause_end);
            self.last_verdict = Some(verdict.clone());
        }
    }

    /// Ends an open run with this status and verdict. Does nothing if the run has ended.
    pub fn stop_if_open(&mut self, status: RunStatus, verdict: &Verdict, now: Timestamp) {
        if !self.has_ended() {
            self.status = status;
            self.last_verdict = Some(verdict.clone());
            self.record_end_time_if_ended(now);
        }
    }

    /// Cancels an open run. Does nothing if the run has ended.
    pub fn cancel_if_open(&mut self, canceled_at: Option<Timestamp>) {
        if !self.has_ended() {
            self.status = RunStatus::Canceled;
            self.ended_at = canceled_at;
        }
    }

    /// Records when a run ended, unless that is already recorded, and clears its pause. Does nothing while the run is open.
    pub fn record_end_time_if_ended(&mut self, now: Timestamp) {
        if self.has_ended() {
            self.paused_until = None;
            // The first time is kept: a canceled run ended when it was canceled, not when its session is judged later.
            self.ended_at.get_or_insert(now);
        }
    }

    /// Reopens a run that has ended. Does nothing if it is open.
    pub fn reopen_if_ended(&mut self) {
        if self.has_ended() {
            self.status = RunStatus::Running;
            self.ended_at = None;
        }
    }

    /// Sets the status back to that of an earlier verdict, for a run that may not be reopened because of it.
    pub fn restore_status(&mut self, status: RunStatus) {
        self.status = status;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::PauseKind;

    fn pause(until: Option<&str>) -> Verdict {
        let until = until.map(Timestamp::from);
        Verdict::Pause { kind: PauseKind::Limit, pause_end: until, reason: "usage limit".to_owned() }
    }

    #[test]
    fn no_sequence_of_changes_makes_a_contradictory_lifecycle() {
        let (now, reset) = (Timestamp::from("2026-01-07T04:00:00Z"), Timestamp::from("2026-01-07T05:00:00Z"));
        let stop = Verdict::Stop { status: RunStatus::Budget, reason: String::new() };
        type Change<'a> = (&'a str, &'a dyn Fn(&mut Lifecycle));
        let changes: [Change<'_>; 10] = [
            ("pause", &|run| run.apply_verdict(&pause(Some("2026-01-07T05:00:00Z")))),
            ("stop by the gate", &|run| run.apply_verdict(&stop)),
            ("go on", &|run| run.mark_running_if_open()),
            ("wait", &|run| run.pause_if_open(Some(reset.clone()))),
            ("wait for", &|run| run.pause_and_record_verdict_if_open(&pause(None))),
            ("stop", &|run| run.stop_if_open(RunStatus::Deadline, &stop, now.clone())),
            ("cancel", &|run| run.cancel_if_open(Some(now.clone()))),
            ("end", &|run| run.record_end_time_if_ended(now.clone())),
            ("reopen", &|run| run.reopen_if_ended()),
            ("stay", &|run| run.restore_status(RunStatus::Budget)),
        ];
        for (first_name, first_change) in &changes {
            for (second_name, second_change) in &changes {
                for (third_name, third_change) in &changes {
                    let mut lifecycle = Lifecycle::default();
                    first_change(&mut lifecycle);
                    second_change(&mut lifecycle);
                    third_change(&mut lifecycle);
                    let description = format!("{first_name}, {second_name}, {third_name}: {lifecycle:?}");
                    assert!(
                        lifecycle.paused_until().is_none() || lifecycle.status() == RunStatus::Paused,
                        "{description}"
                    );
                    assert!(lifecycle.ended_at().is_none() || lifecycle.has_ended(), "{description}");
                }
            }
        }
    }

    #[test]
    fn an_ended_run_stays_ended_until_it_is_reopened() {
        let now = Timestamp::from("2026-01-07T04:00:00Z");
        let mut lifecycle = Lifecycle::default();
        lifecycle.cancel_if_open(Some(now.clone()));
        lifecycle.mark_running_if_open();
        lifecycle.pause_if_open(None);
        lifecycle.pause_and_record_verdict_if_open(&pause(None));
        lifecycle.record_end_time_if_ended("2026-01-07T09:00:00Z".into());
        assert_eq!(
            (lifecycle.status(), lifecycle.ended_at(), lifecycle.last_verdict()),
            (RunStatus::Canceled, Some(&now), None)
        );
        lifecycle.reopen_if_ended();
        assert_eq!((lifecycle.status(), lifecycle.ended_at()), (RunStatus::Running, None));
    }

    #[test]
    fn the_status_wins_if_a_file_contradicts_itself() {
        let lifecycle: Lifecycle = serde_json::from_str(
            r#"{"status":"running","paused_until":"2026-01-07T05:00:00Z","ended_at":"2026-01-07T04:00:00Z"}"#,
        )
        .unwrap();
        assert_eq!((lifecycle.paused_until(), lifecycle.ended_at()), (None, None));
    }
}
