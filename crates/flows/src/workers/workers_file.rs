//! The record of a parallel run: a file outside the project, beside the run's ledger. It takes precedence
//! over the contents of the worktrees.

use plimsoll_domain::RunId;
use plimsoll_domain::workers::WorkersState;
use plimsoll_store::{Durability, Project, StoreError, disk, ledger};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The file of a run's record. Only the process that holds the run's lock uses it.
pub(super) struct WorkersFile {
    path: PathBuf,
    versioned_state: Mutex<VersionedState>,
    change_condvar: Condvar,
}

struct VersionedState {
    workers_state: WorkersState,
    /// Counts the updates by this process.
    change_count: u64,
}

/// Loads the record of a run. Returns `None` if the run has none.
pub fn load_workers_state(project: &Project, run_id: &RunId) -> Result<Option<WorkersState>, StoreError> {
    let Some(path) = workers_file_path(project, run_id) else { return Ok(None) };
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let workers_state: WorkersState = serde_json::from_slice(&bytes)
        .map_err(|error| plimsoll_store::newer_format_or_corrupt_error(&path, &bytes, &error))?;
    workers_state.validate_commits_and_target_branch().map_err(|error| StoreError::Corrupt {
        path,
        reason: error.to_string(),
        set_aside_note: String::new(),
    })?;
    Ok(Some(workers_state))
}

fn workers_file_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    ledger::inherited_or_default_run_record_folder(project, run_id).map(|folder| folder.join("workers.json"))
}

impl WorkersFile {
    /// Opens the record of a run, or creates it with the state that `create_state` returns.
    pub(super) fn open_or_create(
        project: &Project,
        run_id: &RunId,
        create_state: impl FnOnce() -> Result<WorkersState, StoreError>,
    ) -> Result<WorkersFile, StoreError> {
        let path = workers_file_path(project, run_id)
            .ok_or_else(|| StoreError::NoHome { project: project.root().to_owned() })?;
        let existing_state = load_workers_state(project, run_id)?;
        let is_new = existing_state.is_none();
        let workers_file = WorkersFile::with_state(path, existing_state.map_or_else(create_state, Ok)?);
        if is_new {
            workers_file.update_and_write_file(|_| ())?;
        }
        Ok(workers_file)
    }

    /// Creates a record with this state for the file at `path`. The file is not written yet.
    pub(super) fn with_state(path: PathBuf, workers_state: WorkersState) -> WorkersFile {
        WorkersFile {
            path,
            versioned_state: Mutex::new(VersionedState { workers_state, change_count: 0 }),
            change_condvar: Condvar::new(),
        }
    }

    /// Updates the record and writes the file. If the file cannot be written, the update is dropped.
    pub(super) fn update_and_write_file<T>(
        &self,
        update: impl FnOnce(&mut WorkersState) -> T,
    ) -> Result<T, StoreError> {
        let mut versioned_state = self.lock();
        let mut new_state = versioned_state.workers_state.clone();
        let result = update(&mut new_state);
        disk::replace(&self.path, &serde_json::to_vec(&new_state).unwrap_or_default(), Durability::Durable)?;
        versioned_state.workers_state = new_state;
        versioned_state.change_count += 1;
        drop(versioned_state);
        self.change_condvar.notify_all();
        Ok(result)
    }

    /// Updates values in memory that no other process needs, without writing the file.
    pub(super) fn update_in_memory(&self, update: impl FnOnce(&mut WorkersState)) {
        update(&mut self.lock().workers_state);
    }

    /// Updates the record in memory from a source that was read when the record had this change count. Does
    /// nothing if the record was changed since, because the record is newer then.
    pub(super) fn update_in_memory_if_unchanged(
        &self,
        expected_change_count: u64,
        update: impl FnOnce(&mut WorkersState),
    ) {
        let mut versioned_state = self.lock();
        if versioned_state.change_count == expected_change_count {
            update(&mut versioned_state.workers_state);
        }
    }

    /// Returns how often this process has updated the record.
    pub(super) fn change_count(&self) -> u64 {
        self.lock().change_count
    }

    /// Waits until the record is updated or the timeout has passed.
    pub(super) fn wait_for_change(&self, timeout: Duration) {
        let versioned_state = self.lock();
        let change_count = versioned_state.change_count;
        let _ = self.change_condvar.wait_timeout_while(versioned_state, timeout, |versioned_state| {
            versioned_state.change_count == change_count
        });
    }

    /// Returns a copy of the current state.
    pub(super) fn workers_state(&self) -> WorkersState {
        self.lock().workers_state.clone()
    }

    /// Returns the number of items.
    pub(super) fn item_count(&self) -> usize {
        self.lock().workers_state.board.items.len()
    }

    fn lock(&self) -> MutexGuard<'_, VersionedState> {
        self.versioned_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
