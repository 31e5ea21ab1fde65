//! What a verdict means for the program: an exit code, a pause, or another round.

use super::{Progress, RunError, Runner};
use crate::run::archive::archive;
use crate::run::notify::notify;
use crate::run::observer::Interrupt;
use crate::run_context::RunContext;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEvent, VerdictReached};
use plimsoll_domain::{RunState, Status, Timestamp, Verdict};
use plimsoll_store::{StoreError, clock};
use std::time::Duration;

/// How often a waiting run looks at the clock and at the state. The clock, not a count of naps: a computer that
/// sleeps through the reset must not wait for it twice.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

impl Runner<'_> {
    /// Applies a verdict. Returns the exit code; none to continue with another round.
    pub(super) fn apply(&mut self, verdict: &Verdict) -> Result<Option<u8>, RunError> {
        let interrupted = self.watcher.interrupts().has_asked(Interrupt::Once);
        match verdict {
            Verdict::Stop { status, .. } => {
                self.tell_last_questions();
                self.notify(verdict);
                Ok(Some(status.exit_code()))
            }
            // The verdict comes first: a Ctrl-C does not hide that the run is done.
            Verdict::Continue { .. } if interrupted => self.pause_for_person().map(Some),
            Verdict::Continue { .. } => Ok(None),
            Verdict::Pause { .. } if interrupted => Ok(Some(ExitStatus::Interrupted.code())),
            Verdict::Pause { kind, .. } if !self.options.wait || !kind.passes() => {
                self.notify(verdict);
                Ok(Some(Status::Paused.exit_code()))
            }
            Verdict::Pause { until, reason, .. } => self.wait(verdict, until.as_ref(), reason),
        }
    }

    /// Those of the session that ended the run. That they cannot be marked as told must not keep the end from being told.
    fn tell_last_questions(&mut self) {
        if let Ok(Some(state)) = self.context.load_state() {
            let _ = self.tell_questions(&state);
        }
    }

    /// One Ctrl-C: the session has ended, and no other begins.
    fn pause_for_person(&mut self) -> Result<u8, RunError> {
        let status = self.context.update(|state| {
            // It may have been cancelled since: then it stays so.
            state.lifecycle.wait(None);
            state.lifecycle.status()
        })?;
        let over = status.filter(|status| status.is_over());
        if over.is_none() {
            self.watcher
                .tell(&Progress::Note("stopped after this session, as requested with Ctrl-C".to_owned()));
        }
        Ok(over.map_or(ExitStatus::Interrupted.code(), Status::exit_code))
    }

    /// Waits during a pause: until the reset if it is known, else with increasing backoff.
    fn wait(
        &mut self,
        verdict: &Verdict,
        until: Option<&Timestamp>,
        reason: &str,
    ) -> Result<Option<u8>, RunError> {
        let now = clock::now();
        let tries = self.context.load_state()?.map_or(1, |state| state.lifecycle.pauses_in_a_row());
        let chance = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        let milliseconds = match until.and_then(clock::moment) {
            Some(reset) => plimsoll_policy::pause::until_reset_ms((reset - now).num_seconds(), chance),
            None => plimsoll_policy::pause::backoff_ms(tries, chance),
        };
        // The moment goes into the state before the wait begins, so that `status` and the status line can show it.
        let end = now + Duration::from_millis(milliseconds);
        self.context.update(|state| {
            state.lifecycle.wait(Some(clock::stamp(end)));
        })?;
        // One message a pause, not one a try.
        if tries <= 1 {
            self.notify(verdict);
        }
        self.watcher.tell(&Progress::Pause { until: end, seconds: milliseconds.div_ceil(1_000), reason });
        while clock::now() < end {
            if self.watcher.interrupts().has_asked(Interrupt::Once) {
                return Ok(Some(ExitStatus::Interrupted.code()));
            }
            if let Some(code) = self.over_meanwhile()? {
                return Ok(Some(code));
            }
            self.watcher.tell(&Progress::Waiting { until: end });
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(None)
    }

    /// A pause ends early where the run is cancelled, or its deadline comes.
    pub(super) fn over_meanwhile(&mut self) -> Result<Option<u8>, RunError> {
        let Some(state) = self.context.load_state()? else { return Ok(None) };
        if state.lifecycle.status() == Status::Cancelled {
            return Ok(Some(Status::Cancelled.exit_code()));
        }
        let Some(deadline) = plimsoll_policy::bounds::passed(&state, &clock::stamp(clock::now())) else {
            return Ok(None);
        };
        let verdict =
            Verdict::Stop { status: Status::Deadline, reason: format!("the deadline was {deadline}") };
        let Some(state) = take_deadline(&self.context, &verdict)? else { return Ok(None) };
        if state.lifecycle.status() != Status::Deadline {
            return Ok(Some(state.lifecycle.status().exit_code()));
        }
        let event = JournalEvent::Verdict(Box::new(VerdictReached::of(&verdict)));
        self.context.note_of_run(&state, event)?;
        archive(self.context.project, &state)?;
        self.watcher.tell(&Progress::Judged { state: &state, verdict: &verdict });
        self.notify(&verdict);
        Ok(Some(Status::Deadline.exit_code()))
    }

    /// The user is notified with what is known, even if the state cannot be read now.
    fn notify(&self, verdict: &Verdict) {
        let now = self.context.load_state().ok().flatten();
        notify(self.context.project, now.as_ref().unwrap_or(&self.last), verdict);
    }
}

/// Ends the run at its deadline, unless it was ended meanwhile: a cancelled run stays cancelled. Returns the resulting
/// state.
pub(super) fn take_deadline(
    context: &RunContext<'_>,
    verdict: &Verdict,
) -> Result<Option<RunState>, StoreError> {
    context.update(|state| {
        state.lifecycle.stop(Status::Deadline, verdict, clock::stamp(clock::now()));
        state.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::Settings;
    use plimsoll_domain::state::Lifecycle;
    use plimsoll_store::{Project, state_file};

    #[test]
    fn a_run_that_was_cancelled_as_its_deadline_came_stays_cancelled() {
        let deadline = Verdict::Stop { status: Status::Deadline, reason: "the deadline was noon".into() };
        for (before, after) in [(Status::Paused, Status::Deadline), (Status::Cancelled, Status::Cancelled)] {
            let folder = tempfile::tempdir().unwrap();
            let project = Project::at(folder.path()).with_runs_in(&folder.path().join("runs"));
            plimsoll_store::ledger::keep();
            let state =
                RunState { run_id: "r1".into(), lifecycle: Lifecycle::of(before), ..RunState::default() };
            state_file::create(&project, &state).unwrap();
            let context =
                RunContext { project: &project, settings: &Settings::default(), run_id: &state.run_id };
            let state = take_deadline(&context, &deadline).unwrap().unwrap();
            assert_eq!(
                (state.lifecycle.status(), state.lifecycle.ended_at().is_some()),
                (after, after == Status::Deadline)
            );
            assert_eq!(
                state_file::load(&project, Some(&"r1".into())).unwrap().unwrap().lifecycle.status(),
                after
            );
        }
    }
}
