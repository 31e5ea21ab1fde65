//! The record of a parallel run: outside the project, beside the run's ledger. What it says goes before what any folder says.

use plimsoll_domain::RunId;
use plimsoll_domain::workers::Workers;
use plimsoll_store::{Durability, Project, StoreError, disk, ledger};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The file, for the run's process alone: it holds the run's lock.
pub(super) struct Table {
    path: PathBuf,
    kept: Mutex<Kept>,
    changed: Condvar,
}

struct Kept {
    workers: Workers,
    /// One more with each change from here.
    changes: u64,
}

/// The record of a run; none if it has none.
pub fn load(project: &Project, run_id: &RunId) -> Result<Option<Workers>, StoreError> {
    let Some(path) = path(project, run_id) else { return Ok(None) };
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let workers: Workers =
        serde_json::from_slice(&bytes).map_err(|error| plimsoll_store::unreadable(&path, &bytes, &error))?;
    workers.check_names().map_err(|error| StoreError::Corrupt {
        path,
        why: error.to_string(),
        aside: String::new(),
    })?;
    Ok(Some(workers))
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
        let table = Table::at(path, known.map_or_else(new, Ok)?);
        if is_new {
            table.change(|_| ())?;
        }
        Ok(table)
    }

    /// A record that is kept in this file.
    pub(super) fn at(path: PathBuf, workers: Workers) -> Table {
        Table { path, kept: Mutex::new(Kept { workers, changes: 0 }), changed: Condvar::new() }
    }

    /// Changes it. What could not be written has not happened.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Workers) -> T) -> Result<T, StoreError> {
        let mut kept = self.lock();
        let mut next = kept.workers.clone();
        let answer = change(&mut next);
        disk::replace(&self.path, &serde_json::to_vec(&next).unwrap_or_default(), Durability::Durable)?;
        kept.workers = next;
        kept.changes += 1;
        drop(kept);
        self.changed.notify_all();
        Ok(answer)
    }

    /// Changes what no other process will ask for.
    pub(super) fn touch(&self, change: impl FnOnce(&mut Workers)) {
        change(&mut self.lock().workers);
    }

    /// Does the same with what was learned elsewhere, unless the record was changed since it had this many changes: then that
    /// is newer.
    pub(super) fn touch_unless_changed(&self, since: u64, change: impl FnOnce(&mut Workers)) {
        let mut kept = self.lock();
        if kept.changes == since {
            change(&mut kept.workers);
        }
    }

    /// How often it was changed.
    pub(super) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Waits so long, or until it is changed.
    pub(super) fn wait_for_change(&self, most: Duration) {
        let kept = self.lock();
        let since = kept.changes;
        let _ = self.changed.wait_timeout_while(kept, most, |kept| kept.changes == since);
    }

    /// As it is.
    pub(super) fn now(&self) -> Workers {
        self.lock().workers.clone()
    }

    /// How many items there are.
    pub(super) fn count(&self) -> usize {
        self.lock().workers.board.items.len()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
