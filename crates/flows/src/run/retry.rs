//! Retries after faults of the environment: a client that is being updated, a lock that is held, a full disk.
//! A temporary fault must not end the run; a lasting one leaves the run paused, with the reason, and no
//! client running.

use super::{RunError, RunEvent, Runner};
use crate::run::apply_verdict::record_deadline_stop_if_open;
use crate::run::lifecycle::StartError;
use crate::run::notify::notify_of_verdict;
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
const MAX_TRIES: u32 = 7;
/// Retries while a client is running, about an hour. The session is paid for, and may finish although its run
/// cannot read or write.
const MAX_TRIES_WITH_CLIENT: u32 = 18;
/// A fault that comes this long after the previous one starts a new series. Longer than the longest backoff.
const FAULT_SERIES_GAP: Duration = Duration::from_secs(10 * 60);
/// Retries after the deadline, about nine seconds: a fault at the end of the last session may still pass.
const MAX_TRIES_AFTER_DEADLINE: u32 = 2;
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl RunError {
    /// Returns true for a fault that may be gone in a minute.
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

    /// Returns true for a fault that a running session may outlast, such as a link that the agent has put in
    /// the place of one of our files. A missing run does not count, because another program removed it.
    fn can_session_outlast(&self) -> bool {
        matches!(self, RunError::Store(_) | RunError::Start(StartError::Store(_)))
    }
}

/// The number of consecutive faults.
#[derive(Debug, Default)]
pub(super) struct FaultCounter {
    consecutive_count: u32,
    last_fault_at: Option<Instant>,
}

impl FaultCounter {
    /// Counts a fault and returns how many there are in the series. Faults that are hours apart, while a
    /// session keeps running, do not form a series.
    fn count_fault(&mut self) -> u32 {
        let is_new_series = self.last_fault_at.is_some_and(|last| last.elapsed() >= FAULT_SERIES_GAP);
        self.consecutive_count = if is_new_series { 1 } else { self.consecutive_count + 1 };
        self.last_fault_at = Some(Instant::now());
        self.consecutive_count
    }
}

impl Runner<'_> {
    /// Waits until the next try, or returns an exit code or the error. Before the first client has been
    /// started nothing is retried, because the user is then waiting for the answer.
    pub(super) fn retry_or_leave(&mut self, error: RunError) -> Result<Option<u8>, RunError> {
        let fault_count = self.fault_counter.count_fault();
        if self.should_leave() {
            self.pause_for_fault(&error, "ended by the user");
            self.observer.on_event(&RunEvent::Notice(error.to_string()));
            return Ok(Some(ExitStatus::Interrupted.code()));
        }
        if self.watchdog.had_client()
            && fault_count > MAX_TRIES_AFTER_DEADLINE
            && let Some(deadline) = self.passed_deadline()
        {
            return Ok(Some(self.end_at_deadline(&error, &deadline)));
        }
        let has_running_client = self.watchdog.has_running_client();
        let max_tries = if has_running_client { MAX_TRIES_WITH_CLIENT } else { MAX_TRIES };
        let should_retry = error.is_temporary() || has_running_client && error.can_session_outlast();
        if !self.watchdog.had_client() || fault_count > max_tries || !should_retry {
            self.end_client_pause_and_notify(&error);
            self.observer.on_event(&RunEvent::RunFailed { error: error.to_string() });
            return Err(error);
        }
        let backoff = Duration::from_millis(plimsoll_policy::pause::backoff_ms(fault_count, 0.5));
        self.observer
            .on_event(&RunEvent::FaultRetry { error: error.to_string(), retry_seconds: backoff.as_secs() });
        self.record_fault(&error, "tries again");
        let started = Instant::now();
        let is_past_deadline = self.passed_deadline().is_some();
        while started.elapsed() < backoff && !self.should_leave() && !self.context.is_canceled() {
            if has_running_client && !self.watchdog.has_running_client() {
                break;
            }
            // The next round ends the client, or finds that it cannot.
            if !is_past_deadline && self.passed_deadline().is_some() {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }

    /// Returns the run's deadline if it has passed. It is read from the last known state, because the file
    /// itself may be the fault.
    fn passed_deadline(&self) -> Option<Timestamp> {
        bounds::passed_deadline(&self.last_state, &clock::to_timestamp(clock::now())).cloned()
    }

    /// Ends the run at its deadline although its state cannot be read or written, and returns the exit code.
    /// The next `--resume` recovers what could not be written.
    fn end_at_deadline(&mut self, error: &RunError, deadline: &Timestamp) -> u8 {
        self.watchdog.end_client();
        let reason = format!("the deadline was {deadline}");
        let verdict = Verdict::Stop { status: RunStatus::Deadline, reason };
        self.record_fault(error, "ended at the deadline");
        let stopped = record_deadline_stop_if_open(&self.context, &verdict);
        match stopped {
            Ok(Some(state)) => self.last_state = state,
            _ => self.last_state.lifecycle.stop_if_open(
                RunStatus::Deadline,
                &verdict,
                clock::to_timestamp(clock::now()),
            ),
        }
        self.observer.on_event(&RunEvent::Notice(error.to_string()));
        self.observer.on_event(&RunEvent::Judged { state: &self.last_state, verdict: &verdict });
        notify_of_verdict(self.context.project, &self.last_state, &verdict);
        RunStatus::Deadline.exit_code()
    }

    /// Returns true if the user has asked to stop: after one Ctrl-C a running session may finish, after two
    /// it may not.
    fn should_leave(&self) -> bool {
        match self.observer.interrupts().highest_request() {
            None => false,
            Some(Interrupt::AfterSession) => !self.watchdog.has_running_client(),
            Some(Interrupt::EndSession | Interrupt::Immediately) => true,
        }
    }

    /// Ends the client, pauses the run and notifies the user of the reason, even if nothing can be written.
    fn end_client_pause_and_notify(&mut self, error: &RunError) {
        // The client first: ending it needs no disk, and the following steps may fail for the same reason.
        self.watchdog.end_client();
        let verdict = self.pause_for_fault(error, "paused");
        if self.watchdog.had_client() {
            notify_of_verdict(self.context.project, &self.last_state, &verdict);
        }
    }

    /// Pauses the run, as far as that can be written, and returns the verdict.
    fn pause_for_fault(&mut self, error: &RunError, consequence: &str) -> Verdict {
        let reason = plimsoll_domain::text::truncate_end(&error.to_string(), 300);
        let verdict = Verdict::Pause { kind: PauseKind::Fault, until: None, reason };
        self.record_fault(error, consequence);
        let paused = self.context.update_state(|state| {
            state.lifecycle.pause_if_open_without_counting(&verdict);
            state.clone()
        });
        match paused {
            Ok(Some(state)) => self.last_state = state,
            _ => self.last_state.lifecycle.pause_if_open_without_counting(&verdict),
        }
        verdict
    }

    fn record_fault(&self, error: &RunError, consequence: &str) {
        let event = JournalEvent::Fault {
            error: error.to_string(),
            action_taken: consequence.to_owned(),
            retry_in_seconds: None,
        };
        // The disk itself may be the fault: a journal line that cannot be written must not replace the
        // reported error.
        let _ = self.context.record_run_event(&self.last_state, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_far_apart_do_not_form_a_series() {
        let mut faults = FaultCounter::default();
        assert_eq!([faults.count_fault(), faults.count_fault(), faults.count_fault()], [1, 2, 3]);
        faults.last_fault_at = Instant::now().checked_sub(FAULT_SERIES_GAP);
        assert_eq!([faults.count_fault(), faults.count_fault()], [1, 2]);
    }
}
