//! The context of a run: the values that do not change while one process works on it.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::{RunId, RunState, SessionRecord, Settings};
use plimsoll_store::{Durability, Project, StoreError, journal, sessions, state_file};

/// The project, the settings and the id of a run; they do not change while a process works on the run.
/// The run's state is not included: hooks and commands also write it, so each step loads or changes it and
/// passes it on as a value.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    pub project: &'a Project,
    /// The settings that apply to the run.
    pub settings: &'a Settings,
    pub run_id: &'a RunId,
}

impl RunContext<'_> {
    /// Returns the newest state; `None` if the run no longer exists.
    pub(crate) fn load_newest_state(&self) -> Result<Option<RunState>, StoreError> {
        state_file::load_state(self.project, Some(self.run_id))
    }

    /// Changes the state under its lock and waits until it is on the disk. Returns `None` if the run no longer exists.
    pub(crate) fn update_state<T>(
        &self,
        change: impl FnOnce(&mut RunState) -> T,
    ) -> Result<Option<T>, StoreError> {
        state_file::update_state(self.project, Some(self.run_id), Durability::Durable, change)
    }

    /// Changes the state like [`RunContext::update_state`], but does not wait for the disk: a power cut may undo
    /// the change.
    pub(crate) fn update_state_without_sync<T>(
        &self,
        change: impl FnOnce(&mut RunState) -> T,
    ) -> Result<Option<T>, StoreError> {
        state_file::update_state(self.project, Some(self.run_id), Durability::Lazy, change)
    }

    /// Returns true if the user has canceled the run; false if the state cannot be read.
    pub(crate) fn is_canceled(&self) -> bool {
        let state = self.load_newest_state().ok().flatten();
        state.is_some_and(|state| state.lifecycle.status() == RunStatus::Canceled)
    }

    /// Returns the record of the iteration's session; an empty record if there is no session.
    pub(crate) fn load_session_record_or_default(&self, state: &RunState) -> SessionRecord {
        state
            .session_id
            .as_ref()
            .map(|id| sessions::load_session_record(self.project, id))
            .unwrap_or_default()
    }

    /// Adds an event of the run to the journal.
    pub(crate) fn journal_run_event(&self, state: &RunState, event: JournalEvent) -> Result<(), StoreError> {
        journal::append_entry(self.project, JournalEntry::for_run(state, event))
    }

    /// Adds an event of the iteration's session to the journal.
    pub(crate) fn journal_session_event(
        &self,
        state: &RunState,
        event: JournalEvent,
    ) -> Result<(), StoreError> {
        journal::append_entry(self.project, JournalEntry::for_run_session(state, event))
    }

    /// Adds an entry to the journal unless it already has a matching one. A process that recovers a killed run
    /// therefore adds no duplicates.
    pub(crate) fn append_entry_unless_near_journal_end(&self, entry: JournalEntry) -> Result<(), StoreError> {
        if journal::has_same_event_and_origin_near_end(self.project, &entry) {
            Ok(())
        } else {
            journal::append_entry(self.project, entry)
        }
    }
}
