//! Moves a project's files into the project if their folder among the user's state cannot be written. This is
//! the case in Claude Code's sandbox, where a session's commands may write the project and little else.
//!
//! The files move together: afterwards hooks, commands and servers, inside the sandbox or not, find them in
//! the project ([`Project::with_local_or_external_files`]), as after `plimsoll init --local`. Files in a project's folder are
//! not trusted, so what is written there completes no run and lifts no limit. Turn logs and handoffs stay
//! where they are and are found there ([`Project::earlier_external_project`]); a session that continues writes to
//! its existing log ([`crate::TurnLog::for_session_where_started_or_current`]).

use crate::{Durability, Project, StoreError, disk, gitignore, layout, lock, memory, volume};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

/// A project whose files can be written.
#[derive(Debug)]
pub struct WritableProject {
    pub project: Project,
    /// True if this call moved its files into the project.
    pub was_moved: bool,
}

/// The files that later sessions and commands need.
const MOVED_FILES_AND_FOLDERS: [&str; 4] = ["memory", "sessions", "journal.jsonl", "windows.json"];

/// Returns the project. If its external folder cannot be written, first copies its files into the
/// project, and returns the project with these local files.
pub fn copy_data_folder_into_project_if_unwritable(project: Project) -> Result<WritableProject, StoreError> {
    let local_project = Project::with_local_files(project.root());
    if project.data_folder() == local_project.data_folder() || can_create_files_in(project.data_folder()) {
        return Ok(WritableProject { project, was_moved: false });
    }
    lock_memory_and_copy_files_into_project(&project, &local_project)?;
    Ok(WritableProject { project: local_project, was_moved: true })
}

/// Returns true if files can be created in a folder, which need not exist yet.
fn can_create_files_in(folder: &Path) -> bool {
    folder.ancestors().find_map(volume::access_rights).is_some_and(|rights| rights.is_writable)
}

/// A writer of the memory takes milliseconds.
const MEMORY_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Copies the files while holding the memory's lock, because a change after the copy would be lost. A writer
/// that waits for the lock then finds the memory in the project ([`lock::acquire_at_current_location`]). If the lock is not
/// available, as on NFS, the files are moved anyway.
fn lock_memory_and_copy_files_into_project(source: &Project, target: &Project) -> Result<(), StoreError> {
    let _memory_lock =
        lock::lock_existing_file_if_supported(&memory::memory_log(source).lock_path(), MEMORY_LOCK_TIMEOUT)?;
    copy_via_temporary_folder_and_rename(source, target)
}

/// Copies the files into a temporary folder, which is then renamed: a kill before the rename leaves the
/// project unchanged. The caller holds the memory's lock.
fn copy_via_temporary_folder_and_rename(source: &Project, target: &Project) -> Result<(), StoreError> {
    // The name is random, so that no other process can prepare a folder with it: process ids are predictable, because
    // in the sandbox they begin at 2.
    let temporary_folder =
        target.handoffs_folder().join(format!(".moving-{:016x}", RandomState::new().hash_one(0)));
    let result = copy_selected_files_add_gitignore_and_sync(source, &temporary_folder).and_then(|()| {
        // An empty folder may be there, and would block the rename.
        if layout::is_empty_except_gitignore(target.data_folder()) {
            remove_recursively(target.data_folder())?;
        }
        disk::rename(&temporary_folder, target.data_folder())
    });
    if result.is_err() {
        let _ = remove_recursively(&temporary_folder);
    }
    disk::sync_folder(target.handoffs_folder().parent().unwrap_or(target.root()));
    // Another command may have moved the files in the meantime.
    if layout::is_empty_except_gitignore(target.data_folder()) { result } else { Ok(()) }
}

/// Copies the files that later sessions need into a new folder, with a `.gitignore`, and syncs them: after the
/// rename they take precedence over the originals.
fn copy_selected_files_add_gitignore_and_sync(
    source: &Project,
    temporary_folder: &Path,
) -> Result<(), StoreError> {
    disk::replace(
        &temporary_folder.join(gitignore::GITIGNORE_NAME),
        gitignore::GITIGNORE_TEXT,
        Durability::Lazy,
    )?;
    MOVED_FILES_AND_FOLDERS.iter().try_for_each(|name| {
        copy_recursively_without_lock_files(&source.data_folder().join(name), &temporary_folder.join(name))
    })?;
    disk::sync_volume(temporary_folder)
}

/// Copies a file, or a folder recursively without lock files: a copied lock file would lock nothing.
fn copy_recursively_without_lock_files(source: &Path, target: &Path) -> Result<(), StoreError> {
    if disk::is_folder_and_not_link(source) {
        let names = disk::list_names(source).into_iter().filter(|name| !name.ends_with(".lock"));
        return names.into_iter().try_for_each(|name| {
            copy_recursively_without_lock_files(&source.join(&name), &target.join(&name))
        });
    }
    match disk::read(source)? {
        Some(bytes) => disk::replace(target, &bytes, Durability::Lazy),
        None => Ok(()),
    }
}

fn remove_recursively(path: &Path) -> Result<(), StoreError> {
    if !disk::is_folder_and_not_link(path) {
        return disk::remove_if_exists(path);
    }
    disk::list_names(path).iter().try_for_each(|name| remove_recursively(&path.join(name)))?;
    disk::remove_empty_folder(path);
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a test makes a file that is too large to be read")]
mod tests {
    use super::*;
    use crate::sessions;
    use plimsoll_domain::memory::MemoryOp;

    /// Creates a project below a folder, and returns it with external files and with local files.
    fn make_project(folder: &Path) -> (Project, Project) {
        let root = folder.join("project");
        disk::create_folder(&root).unwrap();
        let local_project = Project::with_local_files(&root);
        (local_project.clone().with_external_folder(&folder.join("state")), local_project)
    }

    #[test]
    fn files_are_moved_together_and_hidden_from_git() {
        let folder = tempfile::tempdir().unwrap();
        let (external_project, local_project) = make_project(folder.path());
        for name in ["memory/log.jsonl", "memory/seen/s1.json", "sessions/s1.json", "turns/s1.jsonl"] {
            disk::replace(&external_project.data_folder().join(name), name.as_bytes(), Durability::Lazy)
                .unwrap();
        }
        disk::replace(&external_project.data_folder().join("memory/log.lock"), b"", Durability::Lazy)
            .unwrap();
        lock_memory_and_copy_files_into_project(&external_project, &local_project).unwrap();
        for name in ["memory/log.jsonl", "memory/seen/s1.json", "sessions/s1.json"] {
            assert_eq!(
                disk::read(&local_project.data_folder().join(name)).unwrap().as_deref(),
                Some(name.as_bytes())
            );
        }
        for name in ["memory/log.lock", "turns"] {
            assert!(!disk::exists(&local_project.data_folder().join(name)), "{name}");
        }
        assert_eq!(
            disk::read(&local_project.data_folder().join(gitignore::GITIGNORE_NAME)).unwrap().as_deref(),
            Some(gitignore::GITIGNORE_TEXT)
        );
        assert_eq!(
            disk::list_names(&local_project.handoffs_folder()),
            [gitignore::GITIGNORE_NAME],
            "no draft is left"
        );
        // A second command that started as early finds the files there, and leaves no draft either.
        lock_memory_and_copy_files_into_project(&external_project, &local_project).unwrap();
        assert_eq!(disk::list_names(&local_project.handoffs_folder()), [gitignore::GITIGNORE_NAME]);
    }

    #[test]
    fn an_empty_folder_in_the_project_is_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let (external_project, local_project) = make_project(folder.path());
        disk::replace(&external_project.data_folder().join("journal.jsonl"), b"{}", Durability::Lazy)
            .unwrap();
        disk::replace(
            &local_project.data_folder().join(gitignore::GITIGNORE_NAME),
            gitignore::GITIGNORE_TEXT,
            Durability::Lazy,
        )
        .unwrap();
        external_project.update_location_if_moved_into_project();
        assert!(!external_project.has_local_files(), "nothing has moved there");
        lock_memory_and_copy_files_into_project(&external_project, &local_project).unwrap();
        assert_eq!(
            disk::list_names(local_project.data_folder()),
            [gitignore::GITIGNORE_NAME, "journal.jsonl"]
        );
        external_project.update_location_if_moved_into_project();
        assert!(external_project.has_local_files());
    }

    fn alloc_op(name: &str) -> [MemoryOp; 1] {
        [MemoryOp::HeapAlloc { name: name.into(), content: "x".into(), description: String::new() }]
    }

    fn heap_names(project: &Project) -> Vec<String> {
        memory::load_memory(project).unwrap().heap.iter().map(|chunk| chunk.name.clone()).collect()
    }

    /// Long enough for another thread to start waiting for the lock.
    const LOCK_WAIT_TIME: Duration = Duration::from_millis(200);

    #[test]
    fn a_writer_waiting_for_a_lock_during_the_move_writes_to_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let (external_project, local_project) = make_project(folder.path());
        memory::apply_changes_atomically(&external_project, "x", &alloc_op("before")).unwrap();
        sessions::update_session_record(&external_project, &"s1".into(), MEMORY_LOCK_TIMEOUT, |record| {
            record.compaction_count = 1;
        })
        .unwrap();
        let memory_lock =
            lock::acquire(&memory::memory_log(&external_project).lock_path(), MEMORY_LOCK_TIMEOUT).unwrap();
        let session_lock =
            sessions::lock_session_if_id_is_file_name(&external_project, &"s1".into(), MEMORY_LOCK_TIMEOUT)
                .unwrap();
        std::thread::scope(|scope| {
            let writer =
                scope.spawn(|| memory::apply_changes_atomically(&external_project, "x", &alloc_op("waited")));
            let (session_id, project) = ("s1".into(), external_project.clone());
            let session_writer = scope.spawn(move || {
                sessions::update_session_record(&project, &session_id, MEMORY_LOCK_TIMEOUT, |record| {
                    record.compaction_count += 1;
                })
            });
            std::thread::sleep(LOCK_WAIT_TIME);
            copy_via_temporary_folder_and_rename(&external_project, &local_project).unwrap();
            drop((memory_lock, session_lock));
            writer.join().unwrap().unwrap();
            session_writer.join().unwrap().unwrap();
        });
        assert_eq!(heap_names(&local_project), ["before", "waited"]);
        assert_eq!(sessions::load_session_record(&local_project, &"s1".into()).compaction_count, 2);
        assert_eq!(
            external_project.data_folder(),
            local_project.data_folder(),
            "whoever looked it up before follows"
        );
    }

    #[test]
    fn files_move_only_once_the_memory_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (external_project, local_project) = make_project(folder.path());
        memory::apply_changes_atomically(&external_project, "x", &alloc_op("before")).unwrap();
        let mut memory = memory::lock_memory(&external_project, MEMORY_LOCK_TIMEOUT).unwrap();
        std::thread::scope(|scope| {
            let mover =
                scope.spawn(|| lock_memory_and_copy_files_into_project(&external_project, &local_project));
            std::thread::sleep(LOCK_WAIT_TIME);
            assert!(!disk::exists(local_project.data_folder()));
            memory.apply_and_queue_record("x", &alloc_op("during")[0]).unwrap();
            memory.save_changes_and_unlock().unwrap();
            mover.join().unwrap().unwrap();
        });
        assert_eq!(heap_names(&local_project), ["before", "during"]);
    }

    #[test]
    fn a_prepared_draft_folder_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (external_project, local_project) = make_project(folder.path());
        disk::replace(&external_project.data_folder().join("journal.jsonl"), b"{}", Durability::Lazy)
            .unwrap();
        let prepared = local_project.handoffs_folder().join(format!(".moving-{}", std::process::id()));
        disk::replace(&prepared.join("sessions/forged.json"), b"{}", Durability::Lazy).unwrap();
        lock_memory_and_copy_files_into_project(&external_project, &local_project).unwrap();
        assert_eq!(
            disk::list_names(local_project.data_folder()),
            [gitignore::GITIGNORE_NAME, "journal.jsonl"]
        );
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (external_project, local_project) = make_project(folder.path());
        disk::replace(&external_project.data_folder().join("memory/log.jsonl"), b"{}", Durability::Lazy)
            .unwrap();
        // A file that is too large to be read makes the copy fail.
        let large = std::fs::File::create(external_project.data_folder().join("windows.json")).unwrap();
        large.set_len(20 << 30).unwrap();
        lock_memory_and_copy_files_into_project(&external_project, &local_project).unwrap_err();
        assert!(!disk::exists(local_project.data_folder()));
        assert_eq!(disk::list_names(&local_project.handoffs_folder()), [gitignore::GITIGNORE_NAME]);
    }

    #[test]
    fn a_folder_that_can_be_written_keeps_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        disk::create_folder(&root).unwrap();
        let external_project =
            Project::with_local_files(&root).with_external_folder(&folder.path().join("not/yet/there"));
        let writable = copy_data_folder_into_project_if_unwritable(external_project.clone()).unwrap();
        assert!(!writable.was_moved && writable.project.data_folder() == external_project.data_folder());
        assert!(!disk::exists(&root.join(".claude")));
    }
}
