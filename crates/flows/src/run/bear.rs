//! Faults of the surroundings: a client that is being updated, a lock that is held, a disk that is full. One that
//! passes must not end the night; one that lasts leaves the run paused, with the reason.

use super::{Progress, RunError, Runner};
use crate::notify::notify;
use crate::start::StartError;
use session::journal::Entry;
use session::verdict::PauseKind;
use session::{RunState, Status, Verdict};
use std::time::{Duration, Instant};
use store::{Durability, StoreError, journal, state_file};

/// With the backoff of a pause these are about six minutes.
const FAULTS_BORNE: u32 = 7;
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

impl RunError {
    /// True for what may be better in a minute.
    fn may_pass(&self) -> bool {
        matches!(
            self,
            RunError::Client(_)
                | RunError::Store(StoreError::Io { .. } | StoreError::Busy { .. })
                | RunError::Start(StartError::Store(StoreError::Io { .. } | StoreError::Busy { .. }))
        )
    }
}

impl Runner<'_> {
    /// Waits until the round is worth another try; gives up where it is not. The first round is never tried
    /// again: there a person sits and waits for the answer.
    pub(super) fn bear(&mut self, error: RunError, faults: u32, is_first: bool) -> Result<(), RunError> {
        if is_first || faults > FAULTS_BORNE || !error.may_pass() || self.watcher.interrupts() > 0 {
            self.give_up(&error, is_first);
            self.watcher.tell(&Progress::Failed { error: error.to_string() });
            return Err(error);
        }
        let patience = Duration::from_millis(policy::pause::backoff_ms(faults, 0.5));
        self.watcher.tell(&Progress::Fault { error: error.to_string(), seconds: patience.as_secs() });
        self.note_fault(&error, "tries again");
        let begun = Instant::now();
        while begun.elapsed() < patience && self.watcher.interrupts() == 0 && !self.is_cancelled() {
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// The person in the morning finds the reason. What cannot be written now was tried.
    fn give_up(&self, error: &RunError, is_first: bool) {
        let reason = session::text::clip(&error.to_string(), 300);
        let verdict = Verdict::Pause { kind: PauseKind::Fault, until: None, reason };
        self.note_fault(error, "paused");
        let paused = state_file::update(self.project, Some(&self.run_id), Durability::Durable, |state| {
            if !state.status.is_over() {
                state.status = Status::Paused;
                state.paused_until = None;
                state.last_verdict = Some(verdict.clone());
            }
            state.clone()
        });
        if let Ok(Some(state)) = paused
            && !is_first
        {
            let _ = notify(self.project, &state, &verdict);
        }
    }

    fn note_fault(&self, error: &RunError, then: &str) {
        let state: Option<RunState> = state_file::load(self.project, Some(&self.run_id)).ok().flatten();
        let iteration = state.map_or(0, |state| state.iteration);
        let entry = Entry::new("fault").run(Some((&self.run_id, iteration)));
        let _ = journal::note(self.project, entry.fact("error", error.to_string()).fact("then", then));
    }
}
