//! A copy of the memory in a folder that an agent's `git clean -fdx` does not remove, because a run needs the
//! memory for longer than one session.

use super::{LOCK_TIMEOUT, lock_memory, memory_exists, memory_log};
use crate::{Durability, Project, StoreError, TurnLog, disk};
use std::path::{Path, PathBuf};

fn copy_folder_path(project: &Project) -> PathBuf {
    project.copies_folder().join("memory")
}

/// Creates or updates the copy; from now on every change of the memory updates it. If there is a copy already and
/// the log does not begin with it, the log was removed or overwritten, and is first restored from the copy. Does
/// nothing if there is neither a memory nor a copy.
pub fn restore_damaged_memory_and_create_copy(project: &Project) -> Result<(), StoreError> {
    restore_missing_memory_from_copy(project)?;
    if !memory_exists(project) {
        return Ok(());
    }
    if !log_continues_copy(project)? {
        // The damaged log is renamed before the copy is restored: a kill in between leaves no log, and the next
        // writer restores it.
        disk::rename(&memory_log(project).path(), &project.memory_folder().join("log.damaged"))?;
        copy_folder_appending_grown_files(&copy_folder_path(project), &project.memory_folder())?;
    }
    let locked_memory = lock_memory(project, LOCK_TIMEOUT)?;
    copy_folder_appending_grown_files(&project.memory_folder(), &copy_folder_path(project))?;
    locked_memory.save_changes_and_unlock().map(drop)
}

/// Restores the memory from its copy if the memory is missing and there is a copy.
pub fn restore_missing_memory_from_copy(project: &Project) -> Result<(), StoreError> {
    if !memory_exists(project) && copied_log(project).is_uncompressed() {
        copy_folder_appending_grown_files(&copy_folder_path(project), &project.memory_folder())?;
    }
    Ok(())
}

/// Updates the copy if there is one and the log begins with it.
pub(super) fn update_existing_copy(project: &Project) -> Result<(), StoreError> {
    if copied_log(project).is_uncompressed() && log_continues_copy(project)? {
        copy_folder_appending_grown_files(&project.memory_folder(), &copy_folder_path(project))?;
    }
    Ok(())
}

/// Returns true if the log begins with all of its copy.
fn log_continues_copy(project: &Project) -> Result<bool, StoreError> {
    Ok(disk::copy_length_if_prefix(&memory_log(project).path(), &copied_log(project).path())?.is_some())
}

fn copied_log(project: &Project) -> TurnLog {
    TurnLog::in_folder_never_compressed(copy_folder_path(project), memory_log(project).session_id())
}

/// Removes the copy, so that a memory that the user removes later is not restored.
pub fn remove_copy(project: &Project) -> Result<(), StoreError> {
    fn remove_contents(folder: &Path) -> Result<(), StoreError> {
        for path in disk::list_names(folder).into_iter().map(|name| folder.join(name)) {
            if disk::is_folder(&path) {
                remove_contents(&path)?;
            } else {
                disk::remove_if_exists(&path)?;
            }
        }
        disk::remove_empty_folder(folder);
        Ok(())
    }
    remove_contents(&copy_folder_path(project))
}

/// Returns true for files that the copy includes. It excludes the records of what conversations have been shown,
/// because they belong to sessions, and lock files, because locks are taken on the original file.
fn is_copied_name(name: &str) -> bool {
    !name.starts_with("seen") && !name.ends_with(".lock")
}

fn copy_folder_appending_grown_files(source: &Path, destination: &Path) -> Result<(), StoreError> {
    // The names are sorted, so blobs and head are copied before the log: a kill before that leaves no log, and
    // then everything is copied again.
    for name in disk::list_names(source).iter().filter(|name| is_copied_name(name)) {
        let (source_path, destination_path) = (source.join(name), destination.join(name));
        if disk::is_folder(&source_path) {
            copy_folder_appending_grown_files(&source_path, &destination_path)?;
            continue;
        }
        match disk::copy_length_if_prefix(&source_path, &destination_path)? {
            // Only the new end of the log is appended, because the log only grows.
            Some(copied_length) if copied_length > 0 => {
                disk::append_tail_to_copy(&source_path, copied_length, &destination_path)?;
            }
            _ => disk::replace(
                &destination_path,
                &disk::read(&source_path)?.unwrap_or_default(),
                Durability::Lazy,
            )?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{apply_changes_atomically, load_memory};
    use plimsoll_domain::memory::MemoryOp;

    #[test]
    fn a_removed_memory_is_restored_completely() {
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join(".git")).unwrap();
        let project = Project::with_local_files(folder.path());
        restore_damaged_memory_and_create_copy(&project).unwrap();
        assert!(!memory_exists(&project), "nothing comes of nothing");
        let alloc = |name: &str| MemoryOp::HeapAlloc {
            name: name.into(),
            // Long enough to be stored in a separate file next to the log.
            content: name.repeat(6_000),
            description: String::new(),
        };
        apply_changes_atomically(&project, "mcp", &[alloc("a")]).unwrap();
        restore_damaged_memory_and_create_copy(&project).unwrap();
        // Every change updates the copy.
        apply_changes_atomically(&project, "mcp", &[alloc("b")]).unwrap();
        let live = load_memory(&project).unwrap();
        disk::rename(project.data_folder(), &folder.path().join("cleaned")).unwrap();
        // The next writer restores the memory.
        apply_changes_atomically(&project, "mcp", &[alloc("c")]).unwrap();
        assert_eq!(load_memory(&project).unwrap().heap[..2], live.heap[..]);
        assert!(memory_log(&project).verify().unwrap().is_intact());
        disk::replace(&memory_log(&project).path(), b"{}\n", Durability::Lazy).unwrap();
        restore_damaged_memory_and_create_copy(&project).unwrap();
        assert_eq!(load_memory(&project).unwrap().heap.len(), 3, "what was overwritten comes back");
        remove_copy(&project).unwrap();
        disk::rename(project.data_folder(), &folder.path().join("removed")).unwrap();
        restore_damaged_memory_and_create_copy(&project).unwrap();
        assert!(!memory_exists(&project));
    }
}
