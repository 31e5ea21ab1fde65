//! Faults of the surroundings: a client that is being updated, a lock that is held, a disk that is full. One that
//! passes must not end the run; one that lasts leaves the run paused, with the reason, and no client at work.

use super::{Progress, RunError, Runner};
use crate::run::apply_verdict::take_deadline;
use crate::run::lifecycle::StartError;
use crate::run::notify::notify;
use crate::run::observer::Interrupt;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{Status, Timestamp, Verdict};
use plimsoll_policy::bounds;
use plimsoll_policy::protected::ProtectError;
use plimsoll_store::{StoreError, clock};
use std::time::{Duration, Instant};

/// With the backoff of a pause these are about six minutes.
const MOST_TRIES: u32 = 7;
/// A session at work is paid for: it may finish while its run cannot read or write. About an hour.
const MOST_TRIES_AT_WORK: u32 = 18;
/// A fault that comes this long after the previous one is a new one. Longer than the longest backoff.
const APART: Duration = Duration::from_secs(10 * 60);
/// Once the deadline has passed, a fault at the end of the last session may still pass: about nine seconds.
const MAX_TRIES_PAST_DEADLINE: u32 = 2;
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

impl RunError {
    /// True for what may be better in a minute.
    fn may_pass(&self) -> bool {
        match self {
            RunError::Client(_) | RunError::NotStarted(_) => true,
            RunError::Start(StartError::Protect(ProtectError::NoAnswer)) => true,
            RunError::Store(error) | RunError::Start(StartError::Store(error)) => {
                matches!(error, StoreError::Io { .. } | StoreError::Busy { .. })
            }
            _ => false,
        }
    }

    /// True for what a session at work may outlast, such as a file of ours in whose place the agent has put a link. A run
    /// that is gone was removed by another program.
    fn may_be_outlasted(&self) -> bool {
        matches!(self, RunError::Store(_) | RunError::Start(StartError::Store(_)))
    }
}

/// Faults in a row.
#[derive(Debug, Default)]
pub(super) struct Faults {
    count: u32,
    last: Option<Instant>,
}

impl Faults {
    /// Adds a fault and returns how many there are in a row. Two faults hours apart, while a session works on, do not count
    /// as a row.
    fn add(&mut self) -> u32 {
        let is_apart = self.last.is_some_and(|last| last.elapsed() >= APART);
        self.count = if is_apart { 1 } else { self.count + 1 };
        self.last = Some(Instant::now());
        self.count
    }
}

impl Runner<'_> {
    /// Waits until the round is worth another try, or leaves with an exit code or the error. Before the first client has
    /// been started nothing is tried again: the user waits for the answer then.
    pub(super) fn retry(&mut self, error: RunError) -> Result<Option<u8>, RunError> {
        let tries = self.faults.add();
        if self.is_asked_to_leave() {
            self.pause_for(&error, "ended by the user");
            self.watcher.tell(&Progress::Note(error.to_string()));
            return Ok(Some(ExitStatus::Interrupted.code()));
        }
        if self.watchdog.has_seen_client()
            && tries > MAX_TRIES_PAST_DEADLINE
            && let Some(deadline) = self.passed_deadline()
        {
            return Ok(Some(self.leave_at_deadline(&error, &deadline)));
        }
        let is_at_work = self.watchdog.has_client_at_work();
        let most = if is_at_work { MOST_TRIES_AT_WORK } else { MOST_TRIES };
        let is_worth_it = error.may_pass() || is_at_work && error.may_be_outlasted();
        if !self.watchdog.has_seen_client() || tries > most || !is_worth_it {
            self.give_up(&error);
            self.watcher.tell(&Progress::Failed { error: error.to_string() });
            return Err(error);
        }
        let backoff = Duration::from_millis(plimsoll_policy::pause::backoff_ms(tries, 0.5));
        self.watcher.tell(&Progress::Fault { error: error.to_string(), seconds: backoff.as_secs() });
        self.note_fault(&error, "tries again");
        let started = Instant::now();
        let is_past_deadline = self.passed_deadline().is_some();
        while started.elapsed() < backoff && !self.is_asked_to_leave() && !self.context.is_cancelled() {
            if is_at_work && !self.watchdog.has_client_at_work() {
                break;
            }
            // The next round ends the client, or finds that it cannot.
            if !is_past_deadline && self.passed_deadline().is_some() {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(None)
    }

    /// The run's deadline, if it has passed. It is taken from the state that was read last: the file may be the fault.
    fn passed_deadline(&self) -> Option<Timestamp> {
        bounds::passed(&self.last, &clock::stamp(clock::now())).cloned()
    }

    /// Ends the run at its deadline although its state cannot be read or written, and returns the exit code. What could not be
    /// written is done by the next `--resume`.
    fn leave_at_deadline(&mut self, error: &RunError, deadline: &Timestamp) -> u8 {
        self.watchdog.end_client();
        let reason = format!("the deadline was {deadline}");
        let verdict = Verdict::Stop { status: Status::Deadline, reason };
        self.note_fault(error, "ended at the deadline");
        let ended = take_deadline(&self.context, &verdict);
        match ended {
            Ok(Some(state)) => self.last = state,
            _ => self.last.lifecycle.stop(Status::Deadline, &verdict, clock::stamp(clock::now())),
        }
        self.watcher.tell(&Progress::Note(error.to_string()));
        self.watcher.tell(&Progress::Judged { state: &self.last, verdict: &verdict });
        notify(self.context.project, &self.last, &verdict);
        Status::Deadline.exit_code()
    }

    /// After one Ctrl-C a session at work may finish; after two it may not.
    fn is_asked_to_leave(&self) -> bool {
        match self.watcher.interrupts().asked() {
            None => false,
            Some(Interrupt::Once) => !self.watchdog.has_client_at_work(),
            Some(Interrupt::Twice | Interrupt::Again) => true,
        }
    }

    /// Pauses the run and notifies the user of the reason, even if nothing can be written now.
    fn give_up(&mut self, error: &RunError) {
        // The client first: it needs no disk, and what follows may fail for the very reason that is given up for.
        self.watchdog.end_client();
        let verdict = self.pause_for(error, "paused");
        if self.watchdog.has_seen_client() {
            notify(self.context.project, &self.last, &verdict);
        }
    }

    /// Leaves the run paused, as far as that can be written.
    fn pause_for(&mut self, error: &RunError, then: &str) -> Verdict {
        let reason = plimsoll_domain::text::clip(&error.to_string(), 300);
        let verdict = Verdict::Pause { kind: PauseKind::Fault, until: None, reason };
        self.note_fault(error, then);
        let paused = self.context.update(|state| {
            state.lifecycle.wait_for(&verdict);
            state.clone()
        });
        match paused {
            Ok(Some(state)) => self.last = state,
            _ => self.last.lifecycle.wait_for(&verdict),
        }
        verdict
    }

    fn note_fault(&self, error: &RunError, then: &str) {
        let event = JournalEvent::Fault { error: error.to_string(), then: then.to_owned(), seconds: None };
        // The disk may be the fault itself: a line that cannot be written must not replace the error that is reported.
        let _ = self.context.note_of_run(&self.last, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_far_apart_are_no_row() {
        let mut faults = Faults::default();
        assert_eq!([faults.add(), faults.add(), faults.add()], [1, 2, 3]);
        faults.last = Instant::now().checked_sub(APART);
        assert_eq!([faults.add(), faults.add()], [1, 2]);
    }
}
