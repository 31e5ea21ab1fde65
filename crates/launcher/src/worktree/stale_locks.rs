//! Removes the locks of the index and of HEAD that a killed git leaves in a worktree. Until they are gone,
//! every later git refuses to work there.

use plimsoll_store::{disk, layout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long to wait for a git that outlives its parent process. The hooks of a commit may take longer; git
/// itself then reports the lock.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A younger lock may still be in use by a program that is not git.
const MIN_LOCK_AGE: Duration = Duration::from_secs(2);

/// Prepares a worktree in which nobody should work any more: waits for a git that still runs, and removes the
/// locks if none does. If the system cannot tell which processes run in the worktree, the locks stay.
pub fn wait_for_git_and_remove_locks(folder: &Path) {
    remove_locks_when_no_git_runs(existing_locks(folder), GIT_TIMEOUT, &|| is_git_running_in(folder));
}

/// Removes the locks in a git folder of ours once no git runs in its working tree.
pub(crate) fn remove_locks_in_git_folder(git_folder: &Path, work_tree: &Path) {
    let locks = existing_locks_in_git_folder(git_folder);
    if !locks.is_empty() {
        remove_locks_when_no_git_runs(locks, GIT_TIMEOUT, &|| is_git_running_in(work_tree));
    }
}

/// Removes the locks that a session's git has left in the user's own tree: locks made since the session
/// began, if no git runs there. Returns the removed locks. A program other than git holds a lock only for a
/// moment, so very young locks are given time first.
pub fn remove_locks_since(folder: &Path, session_start: SystemTime) -> Vec<PathBuf> {
    // A session may have created a `.git` that points outside the tree. Git processes that use its target
    // cannot be detected from here.
    let is_git_folder_inside = layout::find_repository(folder).is_some_and(|(working_tree, git)| {
        disk::canonicalize_or_keep(&git).starts_with(disk::canonicalize_or_keep(working_tree))
    });
    let mut stale_locks = existing_locks(folder);
    stale_locks.retain(|lock| {
        is_git_folder_inside
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
    remove_locks_when_no_git_runs(stale_locks.clone(), GIT_TIMEOUT, &|| is_git_running_in(folder));
    stale_locks.retain(|lock| !disk::exists(lock));
    stale_locks
}

fn is_git_running_in(folder: &Path) -> Option<bool> {
    plimsoll_system::is_running_in_folder("git", &disk::canonicalize_or_keep(folder))
}

/// Removes locks that were listed before the search for git: a lock made later belongs to a running git.
fn remove_locks_when_no_git_runs(
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
    layout::find_git_folder(folder).map_or_else(Vec::new, |git| existing_locks_in_git_folder(&git))
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
            remove_locks_when_no_git_runs(existing_locks(&worktree), SHORT_TIMEOUT, &|| git_is_running);
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
        assert_eq!(remove_locks_since(&repository, session_start), [index]);
        assert!(head.exists(), "it was there before");
        assert_eq!(remove_locks_since(&repository, session_start), [] as [PathBuf; 0]);
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
                remove_locks_since(&redirected_folder, session_start),
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
        remove_locks_when_no_git_runs(existing_locks(&worktree), Duration::from_secs(5), &is_git_running);
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
        assert_eq!(crate::git::commits_since_time(&worktree, "2000-01-01T00:00:00Z").len(), 2);
    }
}
