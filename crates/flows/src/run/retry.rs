//! Retries after errors of the environment: a client that is being updated, a locked file, a full disk. A
//! temporary error must not end the run; a permanent one pauses the run, with the reason, and ends the client.

use super::{RunError, RunEvent, Runner};
use crate::run::apply_verdict::record_deadline_stop_if_open_and_get_state;
use crate::run::lifecycle::StartError;
use crate::run::notify::notify_user_of_end_or_pause;
use crate::run::observer::Interrupt;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunStatus, Timestamp, Verdict};
use plimsoll_policy::bounds;
use plimsoll_policy::protected::ProtectError;
use plimsoll_store::{StoreError, clock};
use std::time::{Duration, Instant};

/// Retries before the run pauses: with the backoff of a pause about six minutes.
const MAX_RETRIES: u32 = 7;
/// Retries while a client is running, about an hour. The session is paid for, and may finish although its run
/// cannot read or write.
const MAX_RETRIES_WITH_CLIENT: u32 = 18;
/// An error that comes this long after the previous one starts a new series. Longer than the longest backoff.
const ERROR_SERIES_GAP: Duration = Duration::from_secs(10 * 60);
/// Retries after the deadline, about nine seconds: an error at the end of the last session may be temporary.
const MAX_RETRIES_AFTER_DEADLINE: u32 = 2;
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl RunError {
    /// Returns true for an error that may disappear within a minute.
    fn is_temporary(&self) -> bool {
        match self {
            RunError::Client(_) | RunError::ClientNotStarted(_) => true,
            RunError::Start(StartError::Protect(ProtectError::GitTimedOut)) => true,
            RunError::Store(error) | RunError::Start(StartError::Store(error)) => {
                matches!(error, StoreError::Io { .. } | StoreError::Locked { .. })
            }
            _ => false,
        }
    }

    /// Returns true for an error that may disappear while a session runs, such as a link with which the agent
    /// has replaced one of Plimsoll's files. A missing run does not count: another program removed it.
    fn can_session_outlast(&self) -> bool {
        matches!(self, RunError::Store(_) | RunError::Start(StartError::Store(_)))
    }
}

/// Counts consecutive errors.
#[derive(Debug, Default)]
pub(super) struct ConsecutiveErrorCounter {
    consecutive_count: u32,
    last_error_at: Option<Instant>,
}

impl ConsecutiveErrorCounter {
    /// Counts an error and returns how many there are in the series. Errors that are hours apart, while a
    /// session keeps running, do not form a series.
    fn count_error(&mut self) -> u32 {
        let is_new_series = self.last_error_at.is_some_and(|last| last.elapsed() >= ERROR_SERIES_GAP);
        self.consecutive_count = if is_new_series { 1 } else { self.consecutive_count + 1 };
        self.last_error_at = Some(Instant::now());
        self.consecutive_count
    }
}

impl Runner<'_> {
    /// Waits for the backoff and returns `None`, or ends or pauses the run and returns the exit code or the
    /// error. Nothing is retried before the first client has started, because the user is then waiting.
    pub(super) fn wait_to_retry_else_end_or_pause_run(
        &mut self,
        error: RunError,
    ) -> Result<Option<u8>, RunError> {
        let error_count = self.error_counter.count_error();
        if self.should_exit_after_interrupt() {
            self.pause_run_for_error(&error, "ended by the user");
            self.observer.on_event(&RunEvent::Notice(error.to_string()));
            return Ok(Some(ExitStatus::Interrupted.code()));
        }
        if self.watchdog.had_client()
            && error_count > MAX_RETRIES_AFTER_DEADLINE
            && let Some(deadline) = self.passed_deadline()
        {
            return Ok(Some(self.end_run_at_deadline_despite_error(&error, &deadline)));
        }
        let has_running_client = self.watchdog.has_running_client();
        let max_retries = if has_running_client { MAX_RETRIES_WITH_CLIENT } else { MAX_RETRIES };
        let should_retry = error.is_temporary() || has_running_client && error.can_session_outlast();
        if !self.watchdog.had_client() || error_count > max_retries || !should_retry {
            self.end_client_pause_run_and_notify(&error);
            self.observer.on_event(&RunEvent::RunFailed { error: error.to_string() });
            return Err(error);
        }
        let backoff = Duration::from_millis(plimsoll_policy::pause::backoff_ms(error_count, 0.5));
        self.observer.on_event(&RunEvent::TemporaryErrorRetry {
            error: error.to_string(),
            retry_seconds: backoff.as_secs(),
        });
        self.journal_error_and_action(&error, "tries again");
        let wait_started_at = Instant::now();
        let had_deadline_passed = self.passed_deadline().is_some();
        while wait_started_at.elapsed() < backoff
            && !self.should_exit_after_interrupt()
            && !self.context.is_canceled()
        {
            if has_running_client && !self.watchdog.has_running_client() {
                break;
            }
            // The next try ends the run at its deadline, or fails again.
            if !had_deadline_passed && self.passed_deadline().is_some() {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }

    /// Returns the run's deadline if it has passed. It is taken from the last state in memory, because the state
    /// file itself may be the cause of the error.
    fn passed_deadline(&self) -> Option<Timestamp> {
        bounds::passed_deadline(&self.last_state, &clock::to_timestamp(clock::now())).cloned()
    }

    /// Ends the run at its deadline although its state cannot be read or written, and returns the exit code.
    /// The next `--resume` recovers what could not be written.
    fn end_run_at_deadline_despite_error(&mut self, error: &RunError, deadline: &Timestamp) -> u8 {
        self.watchdog.end_client();
        let reason = format!("the deadline was {deadline}");
        let verdict = Verdict::Stop { status: RunStatus::Deadline, reason };
        self.journal_error_and_action(error, "ended at the deadline");
        let stop_result = record_deadline_stop_if_open_and_get_state(&self.context, &verdict);
        match stop_result {
            Ok(Some(state)) => self.last_state = state,
            _ => self.last_state.lifecycle.stop_if_open(
                RunStatus::Deadline,
                &verdict,
                clock::to_timestamp(clock::now()),
            ),
        }
        self.observer.on_event(&RunEvent::Notice(error.to_string()));
        self.observer.on_event(&RunEvent::VerdictReached { state: &self.last_state, verdict: &verdict });
        notify_user_of_end_or_pause(self.context.project, &self.last_state, &verdict);
        RunStatus::Deadline.exit_code()
    }

    /// Returns true if an interrupt requires an exit now. After one Ctrl-C a running session may finish, after
    /// two it may not.
    fn should_exit_after_interrupt(&self) -> bool {
        match self.observer.interrupts().highest_request() {
            None => false,
            Some(Interrupt::AfterSession) => !self.watchdog.has_running_client(),
            Some(Interrupt::EndSession | Interrupt::Immediately) => true,
        }
    }

    /// Ends the client, pauses the run and notifies the user of the reason, even if nothing can be written.
    fn end_client_pause_run_and_notify(&mut self, error: &RunError) {
        // The client is ended first, because that needs no disk, and the following steps may fail for the same
        // reason.
        self.watchdog.end_client();
        let verdict = self.pause_run_for_error(error, "paused");
        if self.watchdog.had_client() {
            notify_user_of_end_or_pause(self.context.project, &self.last_state, &verdict);
        }
    }

    /// Pauses the run and returns the verdict. If the state cannot be written, only the copy in memory is
    /// paused.
    fn pause_run_for_error(&mut self, error: &RunError, action_taken: &str) -> Verdict {
        let reason = plimsoll_domain::text::truncate_end(&error.to_string(), 300);
        let verdict = Verdict::Pause { kind: PauseKind::Fault, pause_end: None, reason };
        self.journal_error_and_action(error, action_taken);
        let pause_result = self.context.update_state(|state| {
            state.lifecycle.pause_and_record_verdict_if_open(&verdict);
            state.clone()
        });
        match pause_result {
            Ok(Some(state)) => self.last_state = state,
            _ => self.last_state.lifecycle.pause_and_record_verdict_if_open(&verdict),
        }
        verdict
    }

    fn journal_error_and_action(&self, error: &RunError, action_taken: &str) {
        let event = JournalEvent::Fault {
            error: error.to_string(),
            action_taken: action_taken.to_owned(),
            retry_in_seconds: None,
        };
        // The disk itself may be the cause: a journal line that cannot be written must not replace the
        // reported error.
        let _ = self.context.journal_run_event(&self.last_state, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_far_apart_do_not_form_a_series() {
        let mut faults = ConsecutiveErrorCounter::default();
        assert_eq!([faults.count_error(), faults.count_error(), faults.count_error()], [1, 2, 3]);
        faults.last_error_at = Instant::now().checked_sub(ERROR_SERIES_GAP);
        assert_eq!([faults.count_error(), faults.count_error()], [1, 2]);
    }
}
