//! Ensures a single writer by an advisory lock on a separate file that Plimsoll never renames or deletes.
//!
//! The kernel releases the lock when its holder dies, so no stale lock remains. It has no effect on programs
//! that do not use it.
#![expect(clippy::disallowed_types, reason = "locks are files")]

use crate::safe_open::{OpenedFile, reopen_folder};
use crate::{Project, StoreError, disk, io_error};
use fs2::FileExt;
use plimsoll_system::files::{FileIdentity, OpenOptions, link_metadata, metadata};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// A lock that is released when it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The first and the longest interval between two attempts; the interval doubles from one to the other. Most
/// locks are held for a fraction of a millisecond.
const FIRST_RETRY_INTERVAL: Duration = Duration::from_micros(100);
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Takes the lock; waits for it until the timeout, then returns [`StoreError::Locked`].
pub fn acquire(path: &Path, timeout: Duration) -> Result<Lock, StoreError> {
    let started_at = Instant::now();
    let mut retry_interval = FIRST_RETRY_INTERVAL;
    loop {
        let OpenedFile { file, metadata, .. } =
            disk::open_or_create_with_parents(path, OpenOptions::READ_WRITE.create())?;
        // Called with its full name: since Rust 1.89 `File` has methods with similar names.
        match FileExt::try_lock_exclusive(&file) {
            // An agent's `git clean` may have replaced the file meanwhile: then this lock is on a removed
            // file.
            Ok(()) if metadata.is_some_and(|metadata| is_same_file_at(path, metadata.identity())) => {
                return Ok(Lock { _file: file });
            }
            Ok(()) => continue,
            Err(error) if is_contended(&error) => {}
            Err(error) => return Err(io_error("lock", path)(error)),
        }
        if started_at.elapsed() >= timeout {
            return Err(StoreError::Locked {
                path: path.to_owned(),
                waited_ms: started_at.elapsed().as_millis(),
            });
        }
        std::thread::sleep(retry_interval);
        retry_interval = (retry_interval * 2).min(MAX_RETRY_INTERVAL);
    }
}

/// Takes a lock on files of a project at their current location. A command in Claude Code's sandbox may move
/// the files into the project while this call waits; then it takes the lock at the new location, because nobody
/// would read what is written to the old one.
pub(crate) fn acquire_at_current_location(
    project: &Project,
    acquire_lock: impl Fn(&Project) -> Result<Lock, StoreError>,
) -> Result<Lock, StoreError> {
    loop {
        let folder_before = project.data_folder().to_owned();
        let lock = acquire_lock(project)?;
        project.update_location_if_moved_into_project();
        if project.data_folder() == folder_before {
            return Ok(lock);
        }
    }
}

/// Takes a lock whose file can only be read; waits for it until the timeout. `None` if there is no such file,
/// or if its file system locks only files that are open for writing (NFS).
pub(crate) fn lock_existing_file_if_supported(
    path: &Path,
    timeout: Duration,
) -> Result<Option<Lock>, StoreError> {
    match disk::open_with_size_if_exists(path)? {
        Some((file, _)) => lock_opened_file_if_supported(file, path, timeout),
        None => Ok(None),
    }
}

/// Returns true while the lock is held.
pub fn is_locked(path: &Path) -> bool {
    // `acquire` creates a missing file, and this check must not leave anything behind.
    disk::exists(path) && matches!(acquire(path, Duration::ZERO), Err(StoreError::Locked { .. }))
}

/// The locks of the single `plimsoll run` of a project: a file in the user's state, which no agent can
/// remove, and the project's folder itself, which is also visible with another home or mount.
#[derive(Debug)]
pub struct RunLock {
    _file: Lock,
    _folder: Option<Lock>,
}

/// Takes the locks of the single `plimsoll run` of a project.
pub fn acquire_run_lock(project: &Project, timeout: Duration) -> Result<RunLock, StoreError> {
    // Every run takes the two locks in this order, so that no two runs wait for each other.
    let _file = acquire(&project.run_lock_path(), timeout)?;
    Ok(RunLock { _file, _folder: lock_folder_if_supported(project.root(), timeout)? })
}

/// Returns true while a `plimsoll run` works or waits in a project. Creates no file.
pub fn is_run_locked(project: &Project) -> bool {
    is_locked(&project.run_lock_path()) || is_folder_locked(project.root())
}

/// Returns the process that holds the lock of the single `plimsoll run`, if the kernel reports it.
pub fn run_lock_holder_pid(project: &Project) -> Option<u32> {
    lock_holder_pid(&project.run_lock_path()).or_else(|| lock_holder_pid(project.root()))
}

/// Locks a folder. `None` if its file system does not support that: NFS requires a file that is open for
/// writing.
fn lock_folder_if_supported(path: &Path, timeout: Duration) -> Result<Option<Lock>, StoreError> {
    match reopen_folder(path) {
        Ok(file) => lock_opened_file_if_supported(file, path, timeout),
        Err(_) => Ok(None),
    }
}

/// Locks a file or folder that was opened for reading. `None` if its file system does not support that.
fn lock_opened_file_if_supported(
    file: File,
    path: &Path,
    timeout: Duration,
) -> Result<Option<Lock>, StoreError> {
    let started_at = Instant::now();
    loop {
        match FileExt::try_lock_exclusive(&file) {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(error) if !is_contended(&error) => return Ok(None),
            Err(_) if started_at.elapsed() >= timeout => {
                let waited_ms = started_at.elapsed().as_millis();
                return Err(StoreError::Locked { path: path.to_owned(), waited_ms });
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Returns true while a folder is locked. Tries a shared lock, which does not conflict with other checks.
fn is_folder_locked(path: &Path) -> bool {
    let lock_attempt = reopen_folder(path).map(|file| FileExt::try_lock_shared(&file));
    lock_attempt.is_ok_and(|lock_result| lock_result.is_err_and(|error| is_contended(&error)))
}

fn is_contended(error: &std::io::Error) -> bool {
    error.raw_os_error() == fs2::lock_contended_error().raw_os_error()
}

/// Returns the process that holds the lock of a file or folder, if the system reports it.
pub fn lock_holder_pid(path: &Path) -> Option<u32> {
    plimsoll_system::flock_holder_pid(metadata(path).ok()?.identity().inode)
}

/// Returns true if the path still names the file that was locked. This only reads metadata, so the path need
/// not be opened safely.
fn is_same_file_at(path: &Path, locked_file: FileIdentity) -> bool {
    link_metadata(path).is_ok_and(|metadata| metadata.identity() == locked_file)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test removes a lock")]
mod tests {
    use super::*;

    #[test]
    fn a_second_acquire_times_out_and_names_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let lock = acquire(&path, Duration::ZERO).unwrap();
        let error = acquire(&path, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("x.lock"), "{error}");
        drop(lock);
        acquire(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_run_lock_is_visible_through_the_project_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        assert!(!is_folder_locked(project.root()));
        let lock = lock_folder_if_supported(project.root(), Duration::ZERO).unwrap();
        if cfg!(windows) {
            // Windows locks no folders: there, only the file in the user's state is locked.
            return assert!(lock.is_none());
        }
        assert!(lock.is_some() && is_folder_locked(project.root()) && is_run_locked(&project));
        let expected_holder = plimsoll_system::SHOWS_LOCK_HOLDERS.then(std::process::id);
        assert_eq!(lock_holder_pid(project.root()), expected_holder);
        let busy = lock_folder_if_supported(project.root(), Duration::from_millis(20));
        assert!(matches!(busy, Err(StoreError::Locked { .. })), "{busy:?}");
        drop(lock);
        assert!(!is_folder_locked(project.root()));
        assert!(lock_folder_if_supported(&folder.path().join("gone"), Duration::ZERO).unwrap().is_none());
    }

    #[test]
    fn a_replaced_lock_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let orphaned = acquire(&path, Duration::ZERO).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _new = acquire(&path, Duration::ZERO).unwrap();
        assert!(acquire(&path, Duration::ZERO).is_err(), "the new file is the lock");
        drop(orphaned);
    }
}
