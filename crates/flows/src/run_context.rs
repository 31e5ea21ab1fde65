//! The context of a run: what stays the same while one process works on it.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::status::Status;
use plimsoll_domain::{RunId, RunState, SessionRecord, Settings};
use plimsoll_store::{Durability, Project, StoreError, journal, sessions, state_file};

/// The project, the settings and the id of a run, which one process keeps from its first step to its last. The run's state is not
/// among them: hooks and commands write it, too, so a step loads or changes it and hands it on as a value.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    /// The project.
    pub project: &'a Project,
    /// The settings in force for the run.
    pub settings: &'a Settings,
    /// The run.
    pub run_id: &'a RunId,
}

impl RunContext<'_> {
    /// Returns the newest state; none if the run is gone.
    pub(crate) fn load_state(&self) -> Result<Option<RunState>, StoreError> {
        state_file::load(self.project, Some(self.run_id))
    }

    /// Changes the state under its lock and waits until it is on the disk. Returns none if the run is gone.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut RunState) -> T) -> Result<Option<T>, StoreError> {
        state_file::update(self.project, Some(self.run_id), Durability::Durable, change)
    }

    /// Changes the state like [`RunContext::update`], but does not wait for the disk: a power cut may undo the change.
    pub(crate) fn update_lazily<T>(
        &self,
        change: impl FnOnce(&mut RunState) -> T,
    ) -> Result<Option<T>, StoreError> {
        state_file::update(self.project, Some(self.run_id), Durability::Lazy, change)
    }

    /// True if the user has canceled the run. A state that cannot be read says nothing.
    pub(crate) fn is_cancelled(&self) -> bool {
        let state = self.load_state().ok().flatten();
        state.is_some_and(|state| state.lifecycle.status() == Status::Cancelled)
    }

    /// Returns the record of the iteration's session; an empty one if no session is planned.
    pub(crate) fn session_record(&self, state: &RunState) -> SessionRecord {
        state.session_id.as_ref().map(|id| sessions::load(self.project, id)).unwrap_or_default()
    }

    /// Adds an event of the run to the journal.
    pub(crate) fn note_of_run(&self, state: &RunState, event: JournalEvent) -> Result<(), StoreError> {
        journal::note(self.project, JournalEntry::of_run(state, event))
    }

    /// Adds an event of the iteration's session to the journal.
    pub(crate) fn note(&self, state: &RunState, event: JournalEvent) -> Result<(), StoreError> {
        journal::note(self.project, JournalEntry::of_run_session(state, event))
    }

    /// Adds a line to the journal unless it is there. A process that comes after a kill writes only what is missing.
    pub(crate) fn note_once(&self, line: JournalEntry) -> Result<(), StoreError> {
        if journal::tells(self.project, &line) { Ok(()) } else { journal::note(self.project, line) }
    }
}
