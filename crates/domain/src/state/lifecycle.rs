//! Where a run stands, and the only ways from there to elsewhere.

use crate::status::Status;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Status, last verdict, pause and end of a run. They change together, by the methods below only, so that no run is at
/// work and ended, or stopped and paused until some hour.
///
/// In the state's file each is a field of its own, and another program may write a contradiction there. Then the status
/// counts: a run that is not paused waits for nothing, and an open one has not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lifecycle {
    status: Status,
    last_verdict: Option<Verdict>,
    paused_until: Option<Timestamp>,
    pauses: u32,
    pauses_in_a_row: u32,
    ended_at: Option<Timestamp>,
}

impl Lifecycle {
    /// Of a run that stands so, and of which nothing else is known.
    pub fn of(status: Status) -> Lifecycle {
        Lifecycle { status, ..Lifecycle::default() }
    }

    /// Of a run of which this is all that the gate has said.
    pub fn after(verdict: &Verdict) -> Lifecycle {
        let mut lifecycle = Lifecycle::default();
        lifecycle.take(verdict);
        lifecycle
    }

    /// Where the run stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// True when no further session may start.
    pub fn is_over(&self) -> bool {
        self.status.is_over()
    }

    /// What the gate said last.
    pub fn last_verdict(&self) -> Option<&Verdict> {
        self.last_verdict.as_ref()
    }

    /// Until when the run waits; none if it does not, or if nobody knows.
    pub fn paused_until(&self) -> Option<&Timestamp> {
        if self.status == Status::Paused { self.paused_until.as_ref() } else { None }
    }

    /// How often the run has paused.
    pub fn pauses(&self) -> u32 {
        self.pauses
    }

    /// Pauses since the last session that met no limit: each waits longer than the one before.
    pub fn pauses_in_a_row(&self) -> u32 {
        self.pauses_in_a_row
    }

    /// When the run ended; none while it is open.
    pub fn ended_at(&self) -> Option<&Timestamp> {
        if self.is_over() { self.ended_at.as_ref() } else { None }
    }

    /// Takes what the gate says.
    pub fn take(&mut self, verdict: &Verdict) {
        self.paused_until = None;
        match verdict {
            Verdict::Stop { status, .. } => self.status = *status,
            Verdict::Pause { until, .. } => {
                self.status = Status::Paused;
                self.pauses += 1;
                self.pauses_in_a_row += 1;
                self.paused_until.clone_from(until);
            }
            Verdict::Continue { .. } => {
                self.status = Status::Running;
                self.pauses_in_a_row = 0;
            }
        }
        self.last_verdict = Some(verdict.clone());
    }

    /// An open run works.
    pub fn go_on(&mut self) {
        if !self.is_over() {
            self.status = Status::Running;
            self.paused_until = None;
        }
    }

    /// An open run waits until the user resumes it, or until a moment that is known.
    pub fn wait(&mut self, until: Option<Timestamp>) {
        if !self.is_over() {
            self.status = Status::Paused;
            self.paused_until = until;
        }
    }

    /// An open run waits, for a reason that is no gate's: it counts as no pause.
    pub fn wait_for(&mut self, verdict: &Verdict) {
        if !self.is_over() {
            let until = match verdict {
                Verdict::Pause { until, .. } => until.clone(),
                Verdict::Stop { .. } | Verdict::Continue { .. } => None,
            };
            self.wait(until);
            self.last_verdict = Some(verdict.clone());
        }
    }

    /// An open run is over by this verdict.
    pub fn stop(&mut self, status: Status, verdict: &Verdict, now: Timestamp) {
        if !self.is_over() {
            self.status = status;
            self.last_verdict = Some(verdict.clone());
            self.end(now);
        }
    }

    /// The user cancels an open run.
    pub fn cancel(&mut self, at: Option<Timestamp>) {
        if !self.is_over() {
            self.status = Status::Cancelled;
            self.ended_at = at;
        }
    }

    /// Notes when a run ended, once; nothing while it is open.
    pub fn end(&mut self, now: Timestamp) {
        if self.is_over() {
            self.paused_until = None;
            // The first moment stays: a run that was cancelled ended then, and not when its session is judged later.
            self.ended_at.get_or_insert(now);
        }
    }

    /// A run is opened again that had ended.
    pub fn reopen(&mut self) {
        if self.is_over() {
            self.status = Status::Running;
            self.ended_at = None;
        }
    }

    /// A run is not opened again: this still holds it.
    pub fn stay(&mut self, status: Status) {
        self.status = status;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::PauseKind;

    fn pause(until: Option<&str>) -> Verdict {
        let until = until.map(Timestamp::from);
        Verdict::Pause { kind: PauseKind::Limit, until, reason: "usage limit".to_owned() }
    }

    #[test]
    fn no_run_is_open_and_ended_or_stopped_and_waiting() {
        let (now, reset) = (Timestamp::from("2026-01-07T04:00:00Z"), Timestamp::from("2026-01-07T05:00:00Z"));
        let stop = Verdict::Stop { status: Status::Budget, reason: String::new() };
        type Change<'a> = (&'a str, &'a dyn Fn(&mut Lifecycle));
        let changes: [Change<'_>; 10] = [
            ("pause", &|run| run.take(&pause(Some("2026-01-07T05:00:00Z")))),
            ("stop by the gate", &|run| run.take(&stop)),
            ("go on", &|run| run.go_on()),
            ("wait", &|run| run.wait(Some(reset.clone()))),
            ("wait for", &|run| run.wait_for(&pause(None))),
            ("stop", &|run| run.stop(Status::Deadline, &stop, now.clone())),
            ("cancel", &|run| run.cancel(Some(now.clone()))),
            ("end", &|run| run.end(now.clone())),
            ("reopen", &|run| run.reopen()),
            ("stay", &|run| run.stay(Status::Budget)),
        ];
        for (first, one) in &changes {
            for (second, other) in &changes {
                for (third, another) in &changes {
                    let mut run = Lifecycle::default();
                    one(&mut run);
                    other(&mut run);
                    another(&mut run);
                    let told = format!("{first}, {second}, {third}: {run:?}");
                    assert!(run.paused_until().is_none() || run.status() == Status::Paused, "{told}");
                    assert!(run.ended_at().is_none() || run.is_over(), "{told}");
                }
            }
        }
    }

    #[test]
    fn what_is_over_stays_so_until_it_is_opened_again() {
        let now = Timestamp::from("2026-01-07T04:00:00Z");
        let mut run = Lifecycle::default();
        run.cancel(Some(now.clone()));
        run.go_on();
        run.wait(None);
        run.wait_for(&pause(None));
        run.end("2026-01-07T09:00:00Z".into());
        assert_eq!((run.status(), run.ended_at(), run.last_verdict()), (Status::Cancelled, Some(&now), None));
        run.reopen();
        assert_eq!((run.status(), run.ended_at()), (Status::Running, None));
    }

    #[test]
    fn where_a_file_contradicts_itself_the_status_counts() {
        let run: Lifecycle = serde_json::from_str(
            r#"{"status":"running","paused_until":"2026-01-07T05:00:00Z","ended_at":"2026-01-07T04:00:00Z"}"#,
        )
        .unwrap();
        assert_eq!((run.paused_until(), run.ended_at()), (None, None));
    }
}
