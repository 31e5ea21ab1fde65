//! The record of a parallel run: outside the project, beside the run's ledger. What it says goes before what any folder says.

use plimsoll_domain::RunId;
use plimsoll_domain::workers::Workers;
use plimsoll_store::{Durability, Project, StoreError, clock, disk, ledger};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file, for the run's process alone: it holds the run's lock.
#[derive(Debug)]
pub(super) struct Table {
    path: PathBuf,
    now: Mutex<Workers>,
}

/// The record of a run; none if it has none.
pub fn load(project: &Project, run_id: &RunId) -> Result<Option<Workers>, StoreError> {
    let Some(path) = path(project, run_id) else { return Ok(None) };
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| plimsoll_store::unreadable(&path, &bytes, &error))
}

fn path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    ledger::folder(project, run_id).map(|folder| folder.join("workers.json"))
}

impl Table {
    /// The record of a run, or a new one.
    pub(super) fn open(
        project: &Project,
        run_id: &RunId,
        new: impl FnOnce() -> Result<Workers, StoreError>,
    ) -> Result<Table, StoreError> {
        let path =
            path(project, run_id).ok_or_else(|| StoreError::NoHome { project: project.root().to_owned() })?;
        let known = load(project, run_id)?;
        let is_new = known.is_none();
        let now = known.map_or_else(new, Ok)?;
        let table = Table { path, now: Mutex::new(now) };
        if is_new {
            table.change(|_| ())?;
        }
        Ok(table)
    }

    /// Changes it. What could not be written has not happened.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Workers) -> T) -> Result<T, StoreError> {
        let mut now = self.lock();
        let mut next = now.clone();
        let answer = change(&mut next);
        disk::replace(&self.path, &serde_json::to_vec(&next).unwrap_or_default(), Durability::Durable)?;
        *now = next;
        Ok(answer)
    }

    /// Changes what no other process will ask for.
    pub(super) fn touch(&self, change: impl FnOnce(&mut Workers)) {
        change(&mut self.lock());
    }

    /// As it is.
    pub(super) fn now(&self) -> Workers {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The board's clock.
pub(super) fn moment() -> u64 {
    u64::try_from(clock::now().timestamp_millis()).unwrap_or_default()
}
