//! Removes the locks of the index and of HEAD that a killed git process leaves in a worktree. While they exist,
//! later git commands fail there.

use plimsoll_store::{disk, layout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long to wait for a git process that outlives its parent. The hooks of a commit may take longer; then the
/// next git command reports the lock.
const GIT_EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The minimum age of a stale lock: a younger lock may still be in use by a program other than git.
const MIN_LOCK_AGE: Duration = Duration::from_secs(2);

/// Waits until no git process runs in a worktree that is no longer in use, and removes its locks. Keeps the locks
/// if git is still running at the timeout, or if the system cannot list the processes in the worktree.
pub fn wait_for_git_and_remove_locks(folder: &Path) {
    remove_listed_locks_once_no_git_runs(existing_locks(folder), GIT_EXIT_TIMEOUT, &|| {
        is_git_running_in(folder)
    });
}

/// Removes the locks in a git folder that we created, once no git process runs in its working tree.
pub(crate) fn remove_locks_in_git_folder(git_folder: &Path, work_tree: &Path) {
    let locks = existing_locks_in_git_folder(git_folder);
    if !locks.is_empty() {
        remove_listed_locks_once_no_git_runs(locks, GIT_EXIT_TIMEOUT, &|| is_git_running_in(work_tree));
    }
}

/// Removes the locks that a session's git processes left in the user's working tree: locks created since
/// `session_start`, if no git process runs there. Returns the removed locks. A program other than git holds a lock
/// only briefly, so this first waits until the locks are two seconds old.
pub fn remove_and_return_unused_git_locks_since(folder: &Path, session_start: SystemTime) -> Vec<PathBuf> {
    // A session may have created a `.git` that points outside the working tree. Git processes that use its
    // target cannot be detected by a search in this folder.
    let is_git_folder_inside_tree =
        layout::find_repository(folder).is_some_and(|(working_tree, git_folder)| {
            disk::canonicalize_or_keep(&git_folder).starts_with(disk::canonicalize_or_keep(working_tree))
        });
    let mut stale_locks = existing_locks(folder);
    stale_locks.retain(|lock| {
        is_git_folder_inside_tree
            && disk::modified_at(lock).is_some_and(|modified_at| modified_at >= session_start)
    });
    if stale_locks.is_empty() {
        return Vec::new();
    }
    let youngest_age =
        stale_locks.iter().filter_map(|lock| disk::time_since_modified(lock)).min().unwrap_or_default();
    std::thread::sleep(MIN_LOCK_AGE.saturating_sub(youngest_age));
    // A younger lock was created after the list was read.
    stale_locks.retain(|lock| disk::time_since_modified(lock).is_some_and(|age| age >= MIN_LOCK_AGE));
    remove_listed_locks_once_no_git_runs(stale_locks.clone(), GIT_EXIT_TIMEOUT, &|| {
        is_git_running_in(folder)
    });
    stale_locks.retain(|lock| !disk::exists(lock));
    stale_locks
}

fn is_git_running_in(folder: &Path) -> Option<bool> {
    plimsoll_system::is_running_in_folder("git", &disk::canonicalize_or_keep(folder))
}

/// Waits until no git process runs, then removes those of the listed locks that existed all the time. Keeps them
/// at the timeout or if the processes cannot be listed. A lock created after the list belongs to a running git
/// process.
fn remove_listed_locks_once_no_git_runs(
    mut locks: Vec<PathBuf>,
    timeout: Duration,
    is_git_running: &dyn Fn() -> Option<bool>,
) {
    let deadline = Instant::now() + timeout;
    loop {
        match is_git_running() {
            None => return,
            Some(false) => break,
            Some(true) if Instant::now() >= deadline => return,
            Some(true) => std::thread::sleep(POLL_INTERVAL),
        }
        locks.retain(|lock| disk::exists(lock));
    }
    for lock in locks {
        let _ = disk::remove_if_exists(&lock);
    }
}

fn existing_locks(folder: &Path) -> Vec<PathBuf> {
    layout::find_git_folder(folder)
        .map_or_else(Vec::new, |git_folder| existing_locks_in_git_folder(&git_folder))
}

fn existing_locks_in_git_folder(git_folder: &Path) -> Vec<PathBuf> {
    let locks = ["index.lock", "HEAD.lock"].map(|name| git_folder.join(name));
    locks.into_iter().filter(|lock| disk::exists(lock)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::tests::{add_worktree, create_repository, run_shell};
    use std::cell::Cell;

    const SHORT_TIMEOUT: Duration = Duration::from_millis(100);

    /// Creates a worktree with a locked index. Returns the worktree and the lock.
    fn create_locked_worktree() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let (folder, repository) = create_repository();
        let worktree = folder.path().join("one");
        add_worktree(&repository, &worktree, "p/1/1", &crate::git::head_commit(&repository).unwrap())
            .unwrap();
        let lock = repository.join(".git/worktrees/one/index.lock");
        std::fs::write(&lock, "half").unwrap();
        (folder, worktree, lock)
    }

    #[test]
    fn a_lock_is_removed_only_if_certainly_no_git_runs() {
        let (folder, worktree, lock) = create_locked_worktree();
        let users_lock = folder.path().join("main tree/.git/index.lock");
        std::fs::write(&users_lock, "").unwrap();
        for git_is_running in [None, Some(true)] {
            remove_listed_locks_once_no_git_runs(existing_locks(&worktree), SHORT_TIMEOUT, &|| {
                git_is_running
            });
            assert!(lock.exists(), "{git_is_running:?}");
        }
        wait_for_git_and_remove_locks(&worktree);
        assert!(!lock.exists());
        assert!(users_lock.exists(), "it is another worktree's");
        run_shell(&worktree, "touch b && git add b");
    }

    #[test]
    fn only_locks_made_since_the_session_began_are_removed_in_the_users_tree() {
        let (_folder, repository) = create_repository();
        let (index, head) = (repository.join(".git/index.lock"), repository.join(".git/HEAD.lock"));
        std::fs::write(&head, "").unwrap();
        let before_session = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&head).unwrap().set_modified(before_session).unwrap();
        std::fs::write(&index, "half").unwrap();
        let session_start = SystemTime::now() - Duration::from_secs(30);
        assert_eq!(remove_and_return_unused_git_locks_since(&repository, session_start), [index]);
        assert!(head.exists(), "it was there before");
        assert_eq!(remove_and_return_unused_git_locks_since(&repository, session_start), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_lock_behind_a_redirected_git_folder_stays() {
        let (folder, repository) = create_repository();
        let lock = repository.join(".git/index.lock");
        std::fs::write(&lock, "half").unwrap();
        let session_start = SystemTime::now() - Duration::from_secs(30);
        for redirect in ["echo 'gitdir: ../main tree/.git' > .git", "ln -s '../main tree/.git' .git"] {
            let redirected_folder = folder.path().join("laid");
            std::fs::create_dir_all(&redirected_folder).unwrap();
            run_shell(&redirected_folder, redirect);
            assert!(layout::find_git_folder(&redirected_folder).is_some(), "{redirect}");
            assert_eq!(
                remove_and_return_unused_git_locks_since(&redirected_folder, session_start),
                [] as [PathBuf; 0],
                "{redirect}"
            );
            assert!(lock.exists(), "{redirect}");
            std::fs::remove_dir_all(&redirected_folder).unwrap();
        }
    }

    #[test]
    fn a_lock_made_while_waiting_stays_with_its_git() {
        let (_folder, worktree, lock) = create_locked_worktree();
        let check_count = Cell::new(0);
        let is_git_running = || {
            check_count.set(check_count.get() + 1);
            match check_count.get() {
                // The earlier git has ended, and another one starts.
                1 => std::fs::remove_file(&lock).unwrap(),
                _ => std::fs::write(&lock, "new").unwrap(),
            }
            Some(check_count.get() < 2)
        };
        remove_listed_locks_once_no_git_runs(
            existing_locks(&worktree),
            Duration::from_secs(5),
            &is_git_running,
        );
        assert!(lock.exists());
    }

    #[test]
    fn a_running_git_is_waited_for() {
        let (folder, worktree, lock) = create_locked_worktree();
        std::fs::remove_file(&lock).unwrap();
        let hook = folder.path().join("main tree/.git/hooks/pre-commit");
        std::fs::write(&hook, "#!/bin/sh\nsleep 0.7\n").unwrap();
        run_shell(&worktree, "chmod +x '../main tree/.git/hooks/pre-commit'");
        let worktree_path = worktree.clone();
        let commit_thread =
            std::thread::spawn(move || run_shell(&worktree_path, "git commit -q --allow-empty -m Later"));
        let started_at = Instant::now();
        while !lock.exists() && started_at.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(2));
        }
        wait_for_git_and_remove_locks(&worktree);
        assert!(!lock.exists(), "it is still at work");
        commit_thread.join().expect("its lock was taken away");
        assert_eq!(crate::git::commits_since_time_oldest_first(&worktree, "2000-01-01T00:00:00Z").len(), 2);
    }
}
