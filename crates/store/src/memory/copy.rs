//! A copy of the memory outside the reach of an agent's `git clean -fdx`, because a run needs the memory longer than one
//! session.

use super::{TIMEOUT, exists, hold, log};
use crate::{Durability, Project, StoreError, TurnLog, disk};
use std::path::{Path, PathBuf};

fn copy_folder(project: &Project) -> PathBuf {
    project.copies().join("memory")
}

/// Creates the copy; from now on every change updates it. While there is a copy, a log that does not continue from it was
/// removed or overwritten, and is restored.
pub fn keep(project: &Project) -> Result<(), StoreError> {
    bring_back(project)?;
    if !exists(project) {
        return Ok(());
    }
    if !is_continued(project)? {
        // Moved aside before the copy comes: a kill in between leaves no log, and the next writer brings it back.
        disk::rename(&log(project).path(), &project.memory().join("log.damaged"))?;
        mirror(&copy_folder(project), &project.memory())?;
    }
    let held = hold(project, TIMEOUT)?;
    mirror(&project.memory(), &copy_folder(project))?;
    held.close().map(drop)
}

/// The memory from its copy, if the memory itself is gone and there is a copy.
pub fn bring_back(project: &Project) -> Result<(), StoreError> {
    if !exists(project) && copied(project).is_plain() {
        mirror(&copy_folder(project), &project.memory())?;
    }
    Ok(())
}

/// Updates the copy, if there is one and the log continues from it.
pub(super) fn follow(project: &Project) -> Result<(), StoreError> {
    if copied(project).is_plain() && is_continued(project)? {
        mirror(&project.memory(), &copy_folder(project))?;
    }
    Ok(())
}

/// True if the log begins with the whole of its copy.
fn is_continued(project: &Project) -> Result<bool, StoreError> {
    Ok(disk::goes_on_from(&log(project).path(), &copied(project).path())?.is_some())
}

fn copied(project: &Project) -> TurnLog {
    TurnLog::at(copy_folder(project), log(project).session_id())
}

/// Removes the copy: from now on a memory that the user removes stays removed.
pub fn forget_copy(project: &Project) -> Result<(), StoreError> {
    fn clear(folder: &Path) -> Result<(), StoreError> {
        for path in disk::names(folder).into_iter().map(|name| folder.join(name)) {
            if disk::is_folder(&path) {
                clear(&path)?;
            } else {
                disk::remove(&path)?;
            }
        }
        disk::remove_empty_folder(folder);
        Ok(())
    }
    clear(&copy_folder(project))
}

/// Not copied: the records of what conversations have been shown belong to sessions, and a lock is held on the file itself.
fn is_kept(name: &str) -> bool {
    !name.starts_with("seen") && !name.ends_with(".lock")
}

fn mirror(from: &Path, to: &Path) -> Result<(), StoreError> {
    // Sorted by name, pieces and head come before the log: a kill before it leaves none, and all is copied anew.
    for name in disk::names(from).iter().filter(|name| is_kept(name)) {
        let (from, to) = (from.join(name), to.join(name));
        if disk::is_folder(&from) {
            mirror(&from, &to)?;
            continue;
        }
        match disk::goes_on_from(&from, &to)? {
            // The log only grows.
            Some(known) if known > 0 => disk::append_rest(&from, known, &to)?,
            _ => disk::replace(&to, &disk::read(&from)?.unwrap_or_default(), Durability::Lazy)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{change, load};
    use plimsoll_domain::memory::Op;

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
        // The copy goes with every change.
        change(&project, "mcp", &[alloc("b")]).unwrap();
        let live = load(&project).unwrap();
        disk::rename(project.own(), &folder.path().join("cleaned")).unwrap();
        // The next writer restores it.
        change(&project, "mcp", &[alloc("c")]).unwrap();
        assert_eq!(load(&project).unwrap().heap[..2], live.heap[..]);
        assert!(log(&project).verify().unwrap().is_whole());
        disk::replace(&log(&project).path(), b"{}\n", Durability::Lazy).unwrap();
        keep(&project).unwrap();
        assert_eq!(load(&project).unwrap().heap.len(), 3, "what was overwritten comes back");
        forget_copy(&project).unwrap();
        disk::rename(project.own(), &folder.path().join("removed")).unwrap();
        keep(&project).unwrap();
        assert!(!exists(&project));
    }
}
