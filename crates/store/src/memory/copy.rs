//! A copy of the memory where an agent's `git clean -fdx` does not reach: a run lasts longer than its sessions.

use super::{PATIENCE, exists, hold, log};
use crate::{Durability, Project, StoreError, TurnLog, disk};
use std::path::{Path, PathBuf};

fn copy_folder(project: &Project) -> PathBuf {
    project.copies().join("memory")
}

/// Brings the copy up to date, or the memory back where it is gone.
pub fn keep(project: &Project) -> Result<(), StoreError> {
    let (own, copy) = (project.memory(), copy_folder(project));
    if exists(project) {
        let held = hold(project, PATIENCE)?;
        mirror(&own, &copy)?;
        return held.close().map(drop);
    }
    if TurnLog::at(copy.clone(), log(project).session_id()).exists() { mirror(&copy, &own) } else { Ok(()) }
}

/// Begins a copy anew: what a person has removed stays removed.
pub fn forget_copy(project: &Project) -> Result<(), StoreError> {
    let copy = copy_folder(project);
    disk::names(&copy)
        .iter()
        .filter(|name| !disk::is_folder(&copy.join(name)))
        .try_for_each(|name| disk::remove(&copy.join(name)))
}

/// What each conversation has seen is the sessions' own, and a lock is held where it lies.
fn is_kept(name: &str) -> bool {
    name != "seen" && !name.ends_with(".lock")
}

fn mirror(from: &Path, to: &Path) -> Result<(), StoreError> {
    for name in disk::names(from).iter().filter(|name| is_kept(name)) {
        let (from, to) = (from.join(name), to.join(name));
        if disk::is_folder(&from) {
            mirror(&from, &to)?;
            continue;
        }
        let bytes = disk::read(&from)?.unwrap_or_default();
        if disk::read(&to)?.as_deref() != Some(&bytes) {
            disk::replace(&to, &bytes, Durability::Lazy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{change, load};
    use session::memory::Op;

    #[test]
    fn a_memory_that_was_cleaned_away_comes_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join(".git")).unwrap();
        let project = Project::at(folder.path());
        keep(&project).unwrap();
        assert!(!exists(&project), "nothing comes of nothing");
        let alloc = |name: &str| Op::HeapAlloc {
            name: name.into(),
            // Long enough for a file of its own beside the log.
            content: name.repeat(6_000),
            description: String::new(),
        };
        change(&project, "mcp", &[alloc("a")]).unwrap();
        keep(&project).unwrap();
        change(&project, "mcp", &[alloc("b")]).unwrap();
        keep(&project).unwrap();
        let live = load(&project).unwrap();
        disk::rename(&project.own(), &folder.path().join("cleaned")).unwrap();
        keep(&project).unwrap();
        assert_eq!(load(&project).unwrap(), live);
        assert!(log(&project).verify().unwrap().is_whole());
        change(&project, "mcp", &[alloc("c")]).unwrap();
        forget_copy(&project).unwrap();
        disk::rename(&project.own(), &folder.path().join("removed")).unwrap();
        keep(&project).unwrap();
        assert!(!exists(&project));
    }
}
