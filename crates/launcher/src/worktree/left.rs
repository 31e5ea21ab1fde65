//! What a git leaves in a worktree that was killed there: the locks of its index and of its HEAD. Every later git refuses to begin
//! before they are gone.

use plimsoll_store::{disk, layout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long a git that outlives whoever started it is waited for. A commit's hooks may take longer: then git itself says so.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// So long a lock stands that nobody is at work with.
const A_MOMENT: Duration = Duration::from_secs(2);

/// Takes a worktree over in which nobody is to be at work any more: waits for a git that still is, and removes the locks that
/// none is there for. Where the system does not tell who works in it, they stay.
pub fn take_over(folder: &Path) {
    clear(locks(folder), GIT_TIMEOUT, &|| is_git_there(folder));
}

/// Removes the locks in a git folder of ours whose git worked in this working tree, once no git is there any more.
pub(crate) fn clear_locks_of(git_folder: &Path, work_tree: &Path) {
    let locks = locks_in(git_folder);
    if !locks.is_empty() {
        clear(locks, GIT_TIMEOUT, &|| is_git_there(work_tree));
    }
}

/// Removes the locks that a session's git has left in the user's own tree: made since the session began, and no git is there.
/// Answers with those that are gone. A program that is no git and holds one does so for a moment.
pub fn clear_locks_since(folder: &Path, began: SystemTime) -> Vec<PathBuf> {
    // A `.git` that leads out of the tree may be the session's work: whoever is at work where it leads is not seen from here.
    let is_inside = layout::repository(folder)
        .is_some_and(|(tree, git)| disk::canonical(&git).starts_with(disk::canonical(tree)));
    let mut left = locks(folder);
    left.retain(|lock| is_inside && disk::modified(lock).is_some_and(|made| made >= began));
    if left.is_empty() {
        return Vec::new();
    }
    let youngest = left.iter().filter_map(|lock| disk::age(lock)).min().unwrap_or_default();
    std::thread::sleep(A_MOMENT.saturating_sub(youngest));
    // One that is younger was made since.
    left.retain(|lock| disk::age(lock).is_some_and(|age| age >= A_MOMENT));
    clear(left.clone(), GIT_TIMEOUT, &|| is_git_there(folder));
    left.retain(|lock| !disk::exists(lock));
    left
}

fn is_git_there(folder: &Path) -> Option<bool> {
    plimsoll_system::is_at_work("git", &disk::canonical(folder))
}

/// Removes locks that were listed before we look for git: a lock that is made later belongs to a git that runs.
fn clear(mut locks: Vec<PathBuf>, timeout: Duration, is_git_there: &dyn Fn() -> Option<bool>) {
    let until = Instant::now() + timeout;
    loop {
        match is_git_there() {
            None => return,
            Some(false) => break,
            Some(true) if Instant::now() >= until => return,
            Some(true) => std::thread::sleep(LOOK_INTERVAL),
        }
        locks.retain(|lock| disk::exists(lock));
    }
    for lock in locks {
        let _ = disk::remove(&lock);
    }
}

fn locks(folder: &Path) -> Vec<PathBuf> {
    layout::git_folder_of(folder).map_or_else(Vec::new, |git| locks_in(&git))
}

fn locks_in(git: &Path) -> Vec<PathBuf> {
    let locks = ["index.lock", "HEAD.lock"].map(|name| git.join(name));
    locks.into_iter().filter(|lock| disk::exists(lock)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::tests::{add_worktree, shell, stage};
    use std::cell::Cell;

    const SOON: Duration = Duration::from_millis(100);

    /// A worktree whose index somebody has locked, and the lock.
    fn locked() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let (folder, repository) = stage();
        let place = folder.path().join("one");
        add_worktree(&repository, &place, "p/1/1", &crate::git::head(&repository).unwrap()).unwrap();
        let lock = repository.join(".git/worktrees/one/index.lock");
        std::fs::write(&lock, "half").unwrap();
        (folder, place, lock)
    }

    #[test]
    fn a_lock_goes_when_no_git_is_there_and_stays_as_long_as_one_may_be() {
        let (folder, place, lock) = locked();
        let of_the_user = folder.path().join("main tree/.git/index.lock");
        std::fs::write(&of_the_user, "").unwrap();
        for unclear in [None, Some(true)] {
            clear(locks(&place), SOON, &|| unclear);
            assert!(lock.exists(), "{unclear:?}");
        }
        take_over(&place);
        assert!(!lock.exists());
        assert!(of_the_user.exists(), "it is another worktree's");
        shell(&place, "touch b && git add b");
    }

    #[test]
    fn of_the_users_tree_only_what_was_locked_since_a_session_began_is_set_free() {
        let (_folder, repository) = stage();
        let (index, head) = (repository.join(".git/index.lock"), repository.join(".git/HEAD.lock"));
        std::fs::write(&head, "").unwrap();
        let before = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&head).unwrap().set_modified(before).unwrap();
        std::fs::write(&index, "half").unwrap();
        let began = SystemTime::now() - Duration::from_secs(30);
        assert_eq!(clear_locks_since(&repository, began), [index]);
        assert!(head.exists(), "it was there before");
        assert_eq!(clear_locks_since(&repository, began), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_lock_to_which_a_session_has_laid_a_way_stays() {
        let (folder, repository) = stage();
        let lock = repository.join(".git/index.lock");
        std::fs::write(&lock, "half").unwrap();
        let began = SystemTime::now() - Duration::from_secs(30);
        for way in ["echo 'gitdir: ../main tree/.git' > .git", "ln -s '../main tree/.git' .git"] {
            let laid = folder.path().join("laid");
            std::fs::create_dir_all(&laid).unwrap();
            shell(&laid, way);
            assert!(layout::git_folder_of(&laid).is_some(), "{way}");
            assert_eq!(clear_locks_since(&laid, began), [] as [PathBuf; 0], "{way}");
            assert!(lock.exists(), "{way}");
            std::fs::remove_dir_all(&laid).unwrap();
        }
    }

    #[test]
    fn a_lock_that_was_made_while_we_waited_has_its_git() {
        let (_folder, place, lock) = locked();
        let looks = Cell::new(0);
        let is_git_there = || {
            looks.set(looks.get() + 1);
            match looks.get() {
                // The git of before has ended, and another begins.
                1 => std::fs::remove_file(&lock).unwrap(),
                _ => std::fs::write(&lock, "new").unwrap(),
            }
            Some(looks.get() < 2)
        };
        clear(locks(&place), Duration::from_secs(5), &is_git_there);
        assert!(lock.exists());
    }

    #[test]
    fn a_git_that_is_at_work_is_waited_for() {
        let (folder, place, lock) = locked();
        std::fs::remove_file(&lock).unwrap();
        let hook = folder.path().join("main tree/.git/hooks/pre-commit");
        std::fs::write(&hook, "#!/bin/sh\nsleep 0.7\n").unwrap();
        shell(&place, "chmod +x '../main tree/.git/hooks/pre-commit'");
        let there = place.clone();
        let committing = std::thread::spawn(move || shell(&there, "git commit -q --allow-empty -m Later"));
        let begun = Instant::now();
        while !lock.exists() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(2));
        }
        take_over(&place);
        assert!(!lock.exists(), "it is still at work");
        committing.join().expect("its lock was taken away");
        assert_eq!(crate::git::log_since(&place, "2000-01-01T00:00:00Z").len(), 2);
    }
}
