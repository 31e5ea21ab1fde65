//! The record of a parallel run: outside the project, beside the run's ledger. What it says goes before what any folder says.

use crate::workers::shared::{Shared, local_moment};
use plimsoll_domain::RunId;
use plimsoll_domain::workers::Workers;
use plimsoll_policy::workers::Claim;
use plimsoll_store::{Durability, Project, StoreError, disk, ledger};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file, for the run's process alone: it holds the run's lock.
pub(super) struct Table {
    path: PathBuf,
    now: Mutex<Workers>,
    /// The board of which this is a picture, if others work on it, too.
    pub(super) shared: Option<Shared>,
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
        shared: Option<Shared>,
        new: impl FnOnce() -> Result<Workers, StoreError>,
    ) -> Result<Table, StoreError> {
        let path =
            path(project, run_id).ok_or_else(|| StoreError::NoHome { project: project.root().to_owned() })?;
        let known = load(project, run_id)?;
        let is_new = known.is_none();
        let now = known.map_or_else(new, Ok)?;
        let table = Table { path, now: Mutex::new(now), shared };
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
        drop(now);
        if let Some(shared) = &self.shared {
            shared.wake();
        }
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

    /// How many items there are.
    pub(super) fn count(&self) -> usize {
        self.lock().board.items.len()
    }

    /// Now, by the board's clock.
    pub(super) fn moment(&self) -> u64 {
        self.shared.as_ref().map_or_else(local_moment, Shared::moment)
    }

    /// Until when nothing is begun here, by this machine's clock.
    pub(super) fn paused_until(&self) -> u64 {
        let now = self.lock();
        let (of_all, of_member) =
            (now.board.paused_until, now.member.as_ref().map_or(0, |member| member.paused_until));
        drop(now);
        self.shared.as_ref().map_or(of_all, |shared| shared.of_machine(of_all)).max(of_member)
    }

    /// True while nothing is begun.
    pub(super) fn is_paused(&self) -> bool {
        local_moment() < self.paused_until()
    }

    /// False once an item that this machine worked on is somebody else's. What only this machine works on stays its own.
    pub(super) fn is_held(&self, claim: Claim) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.is_held(&self.now(), claim))
    }

    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
