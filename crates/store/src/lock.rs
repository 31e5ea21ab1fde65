//! One writer at a time, by an advisory lock on a file of its own that is never renamed nor deleted by us.
//!
//! The kernel frees the lock when its holder dies, so it cannot be left behind. It does not hold against
//! programs that do not ask for it.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "locks are files")]

use crate::door::{Opened, open_anew};
use crate::{Project, StoreError, disk, io};
use fs2::FileExt;
use plimsoll_system::files::device_of;
use rustix::fs::{OFlags, Stat};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Between two attempts: most locks are held for a fraction of a millisecond, and a longer wait tries less often.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Takes the lock, waiting at most this long.
pub fn acquire(path: &Path, timeout: Duration) -> Result<Lock, StoreError> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let Opened { file, stat, .. } = disk::open_or_make(path, OFlags::RDWR)?;
        // Spelled out: since Rust 1.89 `File` has methods of its own with similar names.
        match FileExt::try_lock_exclusive(&file) {
            // An agent's `git clean` may have replaced the file under us: then we hold a lock on nothing.
            Ok(()) if stat.is_some_and(|stat| is_still_at(path, &stat)) => return Ok(Lock { _file: file }),
            Ok(()) => continue,
            Err(error) if is_contended(&error) => {}
            Err(error) => return Err(io("lock", path)(error)),
        }
        if started.elapsed() >= timeout {
            return Err(StoreError::Busy { path: path.to_owned(), waited_ms: started.elapsed().as_millis() });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Takes a lock on files of a project, where they are by then: a command in Claude Code's sandbox may move them into the project while
/// this one waits, and nobody would read what were still written to the old place.
pub(crate) fn acquire_in(
    project: &Project,
    take: impl Fn(&Project) -> Result<Lock, StoreError>,
) -> Result<Lock, StoreError> {
    loop {
        let before = project.own().to_owned();
        let lock = take(project)?;
        project.follow_move();
        if project.own() == before {
            return Ok(lock);
        }
    }
}

/// Takes a lock whose file can only be read, waiting at most this long. None if there is no such file, or its file system locks
/// none that is not open for writing: NFS.
pub(crate) fn acquire_unwritable(path: &Path, timeout: Duration) -> Result<Option<Lock>, StoreError> {
    match disk::open_sized(path)? {
        Some((file, _)) => acquire_opened(file, path, timeout),
        None => Ok(None),
    }
}

/// True while it is held.
pub fn is_held(path: &Path) -> bool {
    // `acquire` makes a file that is missing: asking must leave nothing behind.
    disk::exists(path) && matches!(acquire(path, Duration::ZERO), Err(StoreError::Busy { .. }))
}

/// What the one `plimsoll run` of a project holds: a file among the user's state, which no agent can clean away, and the
/// project's folder itself, which another home and another mount see too.
#[derive(Debug)]
pub struct RunLock {
    _file: Lock,
    _folder: Option<Lock>,
}

/// Takes the lock of the one `plimsoll run`.
pub fn acquire_run(project: &Project, timeout: Duration) -> Result<RunLock, StoreError> {
    // Every run takes the two in this order, so no two of them wait for each other.
    let _file = acquire(&project.run_lock(), timeout)?;
    Ok(RunLock { _file, _folder: acquire_folder(project.root(), timeout)? })
}

/// True while a `plimsoll run` works in a project or waits there. Nothing is written to find out.
pub fn is_run_held(project: &Project) -> bool {
    is_held(&project.run_lock()) || is_folder_held(project.root())
}

/// The process that holds the lock of the one `plimsoll run`, if the kernel tells.
pub fn run_holder(project: &Project) -> Option<u32> {
    holder(&project.run_lock()).or_else(|| holder(project.root()))
}

/// Locks a folder. None if its file system locks none: NFS asks for a file that is open for writing.
fn acquire_folder(path: &Path, timeout: Duration) -> Result<Option<Lock>, StoreError> {
    match open_anew(path) {
        Ok(file) => acquire_opened(file, path, timeout),
        Err(_) => Ok(None),
    }
}

/// Locks what has been opened for reading. None if its file system does not allow that.
fn acquire_opened(file: File, path: &Path, timeout: Duration) -> Result<Option<Lock>, StoreError> {
    let started = Instant::now();
    loop {
        match FileExt::try_lock_exclusive(&file) {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(error) if !is_contended(&error) => return Ok(None),
            Err(_) if started.elapsed() >= timeout => {
                let waited_ms = started.elapsed().as_millis();
                return Err(StoreError::Busy { path: path.to_owned(), waited_ms });
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Asked with a shared lock: asking does not get in the way of others.
fn is_folder_held(path: &Path) -> bool {
    let asked = open_anew(path).map(|file| FileExt::try_lock_shared(&file));
    asked.is_ok_and(|asked| asked.is_err_and(|error| is_contended(&error)))
}

fn is_contended(error: &std::io::Error) -> bool {
    error.raw_os_error() == fs2::lock_contended_error().raw_os_error()
}

/// The process that holds it, if the system tells.
pub fn holder(path: &Path) -> Option<u32> {
    plimsoll_system::lock_holder(path.metadata().ok()?.ino())
}

/// The name still belongs to the file that was opened. Nothing is opened by it: a plain look will do.
fn is_still_at(path: &Path, held: &Stat) -> bool {
    path.symlink_metadata().is_ok_and(|named| (named.dev(), named.ino()) == (device_of(held), held.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_waits_and_then_says_who_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let held = acquire(&path, Duration::ZERO).unwrap();
        let error = acquire(&path, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("x.lock"), "{error}");
        drop(held);
        acquire(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn the_lock_of_a_run_is_seen_where_only_its_folder_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        assert!(!is_folder_held(project.root()));
        let held = acquire_folder(project.root(), Duration::ZERO).unwrap();
        assert!(held.is_some() && is_folder_held(project.root()) && is_run_held(&project));
        assert_eq!(holder(project.root()), Some(std::process::id()));
        let busy = acquire_folder(project.root(), Duration::from_millis(20));
        assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
        drop(held);
        assert!(!is_folder_held(project.root()));
        assert!(acquire_folder(&folder.path().join("gone"), Duration::ZERO).unwrap().is_none());
    }

    #[test]
    fn a_lock_file_that_was_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let orphaned = acquire(&path, Duration::ZERO).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _new = acquire(&path, Duration::ZERO).unwrap();
        assert!(acquire(&path, Duration::ZERO).is_err(), "the new file is the lock");
        drop(orphaned);
    }
}
