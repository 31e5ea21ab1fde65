//! Translates a verdict into an exit code, a pause, or another round.

use super::{RunError, RunEvent, Runner};
use crate::run::archive::archive_run_and_clean_up_prompt_and_memory;
use crate::run::notify::notify_user_of_end_or_pause;
use crate::run::observer::Interrupt;
use crate::run_context::RunContext;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEvent, VerdictReached};
use plimsoll_domain::{RunState, RunStatus, Timestamp, Verdict};
use plimsoll_store::{StoreError, clock};
use std::time::Duration;

/// How often a waiting run checks the clock and the state. The run compares the clock instead of counting
/// intervals, so that it does not wait longer after the computer has been suspended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Runner<'_> {
    /// Applies a verdict: waits for the end of a pause, or notifies the user. Returns the exit code; `None` to
    /// continue with another round.
    pub(super) fn wait_or_get_exit_code_for_verdict(
        &mut self,
        verdict: &Verdict,
    ) -> Result<Option<u8>, RunError> {
        let is_interrupted = self.observer.interrupts().has_requested(Interrupt::AfterSession);
        match verdict {
            Verdict::Stop { status, .. } => {
                self.report_last_questions();
                self.notify_user(verdict);
                Ok(Some(status.exit_code()))
            }
            // A stop is matched before the interrupt: Ctrl-C must not hide that the run has ended.
            Verdict::Continue { .. } if is_interrupted => self.pause_after_interrupt().map(Some),
            Verdict::Continue { .. } => Ok(None),
            Verdict::Pause { .. } if is_interrupted => Ok(Some(ExitStatus::Interrupted.code())),
            Verdict::Pause { kind, .. } if !self.options.should_wait || !kind.resolves_by_waiting() => {
                self.notify_user(verdict);
                Ok(Some(RunStatus::Paused.exit_code()))
            }
            Verdict::Pause { pause_end: pause_end_time, reason, .. } => {
                self.record_pause_end_and_wait(verdict, pause_end_time.as_ref(), reason)
            }
        }
    }

    /// Reports the questions of the session that ended the run. A failure to mark them as reported must not
    /// prevent the report of the end.
    fn report_last_questions(&mut self) {
        if let Ok(Some(state)) = self.context.load_newest_state() {
            let _ = self.mark_and_report_unnotified_questions(&state);
        }
    }

    /// Pauses the run after the first Ctrl-C: the session has ended, and no other session starts. Returns the
    /// exit code.
    fn pause_after_interrupt(&mut self) -> Result<u8, RunError> {
        let status = self.context.update_state(|state| {
            // A run that was canceled in the meantime stays canceled.
            state.lifecycle.pause_if_open(None);
            state.lifecycle.status()
        })?;
        let ended_status = status.filter(|status| status.has_ended());
        if ended_status.is_none() {
            self.observer.on_event(&RunEvent::Notice(
                "stopped after this session, as requested with Ctrl-C".to_owned(),
            ));
        }
        Ok(ended_status.map_or(ExitStatus::Interrupted.code(), RunStatus::exit_code))
    }

    /// Waits until the reset time of a pause, or with increasing backoff if that is unknown. Returns an exit
    /// code if the wait was interrupted, and `None` at the end of the pause.
    fn record_pause_end_and_wait(
        &mut self,
        verdict: &Verdict,
        reset_timestamp: Option<&Timestamp>,
        reason: &str,
    ) -> Result<Option<u8>, RunError> {
        let now = clock::now();
        let pause_count =
            self.context.load_newest_state()?.map_or(1, |state| state.lifecycle.consecutive_pauses());
        let random_fraction = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        let wait_ms = match reset_timestamp.and_then(clock::parse_timestamp) {
            Some(reset_time) => plimsoll_policy::pause::reset_wait_with_margin_ms(
                (reset_time - now).num_seconds(),
                random_fraction,
            ),
            None => plimsoll_policy::pause::backoff_ms(pause_count, random_fraction),
        };
        // The time is written to the state before the wait begins, so that `status` and the status line can
        // show it.
        let wait_end = now + Duration::from_millis(wait_ms);
        self.context.update_state(|state| {
            state.lifecycle.pause_if_open(Some(clock::to_timestamp(wait_end)));
        })?;
        // One message per pause, not one per attempt.
        if pause_count <= 1 {
            self.notify_user(verdict);
        }
        self.observer.on_event(&RunEvent::PauseStarted {
            pause_end: wait_end,
            seconds: wait_ms.div_ceil(1_000),
            reason,
        });
        while clock::now() < wait_end {
            if self.observer.interrupts().has_requested(Interrupt::AfterSession) {
                return Ok(Some(ExitStatus::Interrupted.code()));
            }
            if let Some(code) = self.exit_code_if_canceled_or_stop_at_deadline()? {
                return Ok(Some(code));
            }
            self.observer.on_event(&RunEvent::PauseContinues { pause_end: wait_end });
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }

    /// Ends the run if its deadline has passed. Returns the exit code if the run was canceled or has ended, and
    /// `None` if it continues.
    pub(super) fn exit_code_if_canceled_or_stop_at_deadline(&mut self) -> Result<Option<u8>, RunError> {
        let Some(state) = self.context.load_newest_state()? else { return Ok(None) };
        if state.lifecycle.status() == RunStatus::Canceled {
            return Ok(Some(RunStatus::Canceled.exit_code()));
        }
        let Some(deadline) =
            plimsoll_policy::bounds::passed_deadline(&state, &clock::to_timestamp(clock::now()))
        else {
            return Ok(None);
        };
        let verdict =
            Verdict::Stop { status: RunStatus::Deadline, reason: format!("the deadline was {deadline}") };
        let Some(state) = record_deadline_stop_if_open_and_get_state(&self.context, &verdict)? else {
            return Ok(None);
        };
        if state.lifecycle.status() != RunStatus::Deadline {
            return Ok(Some(state.lifecycle.status().exit_code()));
        }
        let event = JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(&verdict)));
        self.context.journal_run_event(&state, event)?;
        archive_run_and_clean_up_prompt_and_memory(self.context.project, &state)?;
        self.observer.on_event(&RunEvent::VerdictReached { state: &state, verdict: &verdict });
        self.notify_user(&verdict);
        Ok(Some(RunStatus::Deadline.exit_code()))
    }

    /// Notifies the user. Uses the last state that was read if the current one cannot be read.
    fn notify_user(&self, verdict: &Verdict) {
        let newest_state = self.context.load_newest_state().ok().flatten();
        notify_user_of_end_or_pause(
            self.context.project,
            newest_state.as_ref().unwrap_or(&self.last_state),
            verdict,
        );
    }
}

/// Ends the run at its deadline unless it has already ended; a canceled run stays canceled. Returns the
/// resulting state.
pub(super) fn record_deadline_stop_if_open_and_get_state(
    context: &RunContext<'_>,
    verdict: &Verdict,
) -> Result<Option<RunState>, StoreError> {
    context.update_state(|state| {
        state.lifecycle.stop_if_open(RunStatus::Deadline, verdict, clock::to_timestamp(clock::now()));
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
    fn a_run_canceled_at_its_deadline_stays_canceled() {
        let deadline = Verdict::Stop { status: RunStatus::Deadline, reason: "the deadline was noon".into() };
        for (before, after) in
            [(RunStatus::Paused, RunStatus::Deadline), (RunStatus::Canceled, RunStatus::Canceled)]
        {
            let folder = tempfile::tempdir().unwrap();
            let project =
                Project::with_local_files(folder.path()).with_runs_folder(&folder.path().join("runs"));
            plimsoll_store::ledger::enable_ledger_writes();
            let state = RunState {
                run_id: "r1".into(),
                lifecycle: Lifecycle::with_status(before),
                ..RunState::default()
            };
            state_file::create_ledger_and_write_initial_state(&project, &state).unwrap();
            let context =
                RunContext { project: &project, settings: &Settings::default(), run_id: &state.run_id };
            let state = record_deadline_stop_if_open_and_get_state(&context, &deadline).unwrap().unwrap();
            assert_eq!(
                (state.lifecycle.status(), state.lifecycle.ended_at().is_some()),
                (after, after == RunStatus::Deadline)
            );
            assert_eq!(
                state_file::load_state(&project, Some(&"r1".into())).unwrap().unwrap().lifecycle.status(),
                after
            );
        }
    }
}
