//! Worktrees of a parallel run: a folder of its own for each worker, a branch's commits put onto another commit, and a branch
//! that moves only from where it was seen.
//!
//! Nothing here touches the folder that the user works in, or a branch that is checked out anywhere. The user's hooks run where
//! commits are made, as with the work-in-progress commit. A kill in the middle leaves a folder under a name of ours, which
//! [`remove`] takes away, and branches that are still there.

mod left;

pub use left::{clear_locks, clear_locks_since, take_over};

use crate::changes;
use crate::git::{self, AllowedPrograms};
use crate::time_limit::TimeLimit;
use plimsoll_domain::text::{clip, clip_start};
use plimsoll_store::disk;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;

/// A checkout of a large repository, with a `post-checkout` hook that fetches large files.
const CHECKOUT_DEADLINE: Duration = Duration::from_secs(300);
/// So many commits as one item has, with the user's hooks.
const REBASE_DEADLINE: Duration = Duration::from_secs(300);
/// The file of a worktree that is there before its words are, as git names it in any language; how often it is met, and so long that
/// takes to pass.
const HALF_MADE: &str = "/commondir";
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);
/// How much of git's message is kept: the lines about conflicts are its last ones.
const LONGEST_REASON: usize = 2_000;

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorktreeError {
    /// Git refuses, or its hook.
    #[error("git {what}: {why}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        why: String,
    },
    /// It was ended at its deadline.
    #[error("git {0} took too long")]
    TookTooLong(&'static str),
}

/// What came of putting a branch onto another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// The new end of its commits.
    Onto(String),
    /// There was nothing to put: the branch has no commit of its own, or the commit has them all.
    Nothing,
    /// It does not fit; the folder is as it was.
    Conflict {
        /// The files with conflicts.
        files: Vec<String>,
        /// What git said.
        words: String,
    },
}

/// Creates a worktree outside the working tree, on a new branch that begins at a commit. A kill may have left the branch without
/// its folder; one that has gone on is somebody's work.
pub fn add(repository: &Path, folder: &Path, branch: &str, commit: &str) -> Result<(), WorktreeError> {
    let place = folder.to_string_lossy();
    beside_others(|| {
        let is_left = end_of(repository, branch).as_deref() == Some(commit);
        let arguments: &[&str] = if is_left {
            &["worktree", "add", "--quiet", &place, branch]
        } else {
            &["worktree", "add", "--quiet", "--no-track", "-b", branch, &place, commit]
        };
        run(repository, "worktree add", arguments)
    })
}

/// Creates a worktree without a branch, at a commit.
pub fn add_detached(repository: &Path, folder: &Path, commit: &str) -> Result<(), WorktreeError> {
    let place = folder.to_string_lossy();
    let arguments = ["worktree", "add", "--quiet", "--detach", &place, commit];
    beside_others(|| run(repository, "worktree add", &arguments))
}

/// Removes a worktree with everything in it, also one that a kill has left half made. Its branch stays.
pub fn remove(repository: &Path, folder: &Path) -> Result<(), WorktreeError> {
    let place = folder.to_string_lossy();
    // Twice: a locked one, too. A folder that git does not know is none of its worktrees.
    let arguments = ["worktree", "remove", "--force", "--force", &place];
    let removed = beside_others(|| run(repository, "worktree remove", &arguments));
    disk::look_anew(folder);
    if removed.is_ok() || disk::exists(folder) {
        return removed;
    }
    run(repository, "worktree prune", &["worktree", "prune"])
}

/// Git looks at all worktrees, whatever is asked about one, and fails where another git is just making one.
fn beside_others(mut work: impl FnMut() -> Result<(), WorktreeError>) -> Result<(), WorktreeError> {
    for _ in 1..TRIES {
        match work() {
            Err(WorktreeError::Refused { why, .. }) if why.contains(HALF_MADE) => sleep(PAUSE),
            done => return done,
        }
    }
    work()
}

/// Puts the commits that a branch has beyond a commit onto another one, in a detached worktree that holds nothing else.
pub fn rebase(folder: &Path, branch: &str, beyond: &str, onto: &str) -> Result<Rebased, WorktreeError> {
    // What an earlier one has left, killed in its middle.
    abort(folder);
    run(folder, "checkout", &["checkout", "--quiet", "--force", "--detach", branch])?;
    if git::commits_between(folder, beyond, branch).is_empty() {
        return Ok(Rebased::Nothing);
    }
    let arguments = ["rebase", "--quiet", "--no-autostash", "--no-autosquash", "--onto", onto, beyond];
    let outcome = git::write(folder, AllowedPrograms::TrustedDrivers, &arguments, REBASE_DEADLINE);
    if outcome.succeeded() {
        let end = git::head(folder).unwrap_or_default();
        return Ok(if end == onto { Rebased::Nothing } else { Rebased::Onto(end) });
    }
    let files = unmerged(folder);
    abort(folder);
    if outcome.timed_out {
        return Err(WorktreeError::TookTooLong("rebase"));
    }
    // Without a conflict it is a hook, or something else that no session can repair in its branch.
    if files.is_empty() {
        return Err(WorktreeError::Refused { what: "rebase", why: said(&outcome) });
    }
    Ok(Rebased::Conflict { files, words: said(&outcome) })
}

/// The files with conflicts: of each its stages, with the path behind a tab.
fn unmerged(folder: &Path) -> Vec<String> {
    let listed = git::git(folder, &["ls-files", "--unmerged", "-z"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut files: Vec<String> =
        listed.split('\0').filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect();
    files.dedup();
    files
}

fn abort(folder: &Path) {
    let _ = git::write(folder, AllowedPrograms::TrustedDrivers, &["rebase", "--abort"], REBASE_DEADLINE);
}

/// Moves a branch from where it was seen, which is none for a new one. False if it is elsewhere by now. (To git an empty name is
/// a branch that is not there, with hashes of any length.)
pub fn move_branch(repository: &Path, name: &str, from: Option<&str>, to: &str) -> bool {
    let reference = format!("refs/heads/{name}");
    let arguments = ["update-ref", "-m", "plimsoll: landed", &reference, to, from.unwrap_or_default()];
    let moved = git::write(repository, AllowedPrograms::TrustedDrivers, &arguments, CHECKOUT_DEADLINE);
    moved.succeeded()
}

/// The commit that a branch ends at.
pub fn end_of(repository: &Path, name: &str) -> Option<String> {
    git::commit(repository, &format!("refs/heads/{name}"))
}

/// True if a commit is another one, or among those before it. A commit that is not there is not.
pub fn contains(repository: &Path, end: &str, commit: &str) -> bool {
    git::git(repository, &["merge-base", "--is-ancestor", commit, end]).succeeded()
}

/// Begins a new branch at a commit in a worktree that is there: its files that git ignores stay. Where the worktree has come further
/// than that commit, or the branch is there already and has gone on, somebody works on it, or beside it: everything stays as it is.
pub fn switch_new(folder: &Path, branch: &str, commit: &str) -> Result<(), WorktreeError> {
    let now = git::git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    if git::text(&now) == format!("refs/heads/{branch}") {
        return Ok(());
    }
    match end_of(folder, branch) {
        Some(end) if end == commit => run(folder, "switch", &["switch", "--quiet", "--no-guess", branch]),
        Some(_) => Ok(()),
        None => {
            let mut arguments = vec!["switch", "--quiet", "--no-track", "--create", branch];
            // A client that outlives its run commits until it is ended. git itself takes the end as it then is: named by us, it
            // would be the end of a moment ago, and what has been committed since would be gone from the worktree.
            if !contains(folder, "HEAD", commit) {
                arguments.push(commit);
            }
            run(folder, "switch", &arguments)
        }
    }
}

/// Checks a commit out in a detached worktree that holds nothing else.
pub fn check_out(folder: &Path, commit: &str) -> Result<(), WorktreeError> {
    abort(folder);
    run(folder, "checkout", &["checkout", "--quiet", "--force", "--detach", commit])
}

/// Takes a file that git follows out of its sight in one worktree, or puts it back: no `git add` there sees what becomes of it.
pub fn overlook(folder: &Path, file: &str, is_overlooked: bool) -> Result<(), WorktreeError> {
    let option = if is_overlooked { "--skip-worktree" } else { "--no-skip-worktree" };
    run(folder, "update-index", &["update-index", option, "--", file])
}

/// Commits one file of a worktree as it is there; answers with the new end. The user's hooks that look at a change do not:
/// it is none of the user's.
pub fn commit_file(folder: &Path, file: &str, message: &str) -> Result<String, WorktreeError> {
    run(folder, "commit", &["commit", "--quiet", "--no-verify", "-m", message, "--only", "--", file])?;
    git::head(folder).ok_or(WorktreeError::Refused { what: "commit", why: "there is no commit".into() })
}

/// Takes a file out of what git follows, and out of the worktree.
pub fn take_out_file(folder: &Path, file: &str, message: &str) -> Result<(), WorktreeError> {
    run(folder, "rm", &["rm", "--quiet", "--force", "--", file])?;
    run(folder, "commit", &["commit", "--quiet", "--no-verify", "-m", message])
}

/// Removes a branch that ends where it is said to end.
pub fn remove_branch(repository: &Path, name: &str, end: &str) {
    let reference = format!("refs/heads/{name}");
    let arguments = ["update-ref", "-d", &reference, end];
    let _ = git::write(repository, AllowedPrograms::TrustedDrivers, &arguments, CHECKOUT_DEADLINE);
}

/// True if every change of a branch is on another one too, by its commits or by others that change the same.
pub fn is_all_on(repository: &Path, target: &str, branch: &str) -> bool {
    let answer = git::git(repository, &["cherry", target, branch]);
    answer.succeeded() && !String::from_utf8_lossy(&answer.stdout).lines().any(|line| line.starts_with('+'))
}

/// Moves the branch that is checked out forward to a commit, with its files. Git refuses where anything is in the way.
pub fn fast_forward(folder: &Path, commit: &str) -> Result<(), WorktreeError> {
    run(folder, "merge", &["merge", "--quiet", "--ff-only", "--no-autostash", commit])
}

/// What differs between two commits, in some files or in all, as text; at most so many characters from its beginning.
pub fn difference(folder: &Path, from: &str, to: &str, files: &[String], most: usize) -> String {
    let question = ["diff", "--no-color", from, to, "--"];
    let question: Vec<&str> = question.into_iter().chain(files.iter().map(String::as_str)).collect();
    clip(&String::from_utf8_lossy(&git::git(folder, &question).stdout), most)
}

/// What keeps a repository from being worked on in worktrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// Its history is cut off.
    Shallow,
    /// It has submodules, which are in no worktree.
    Submodules,
}

/// The first thing that keeps this repository from it.
pub fn unfit(repository: &Path) -> Option<Unfit> {
    let answer = git::git(repository, &["rev-parse", "--is-shallow-repository"]);
    if git::text(&answer) == "true" {
        return Some(Unfit::Shallow);
    }
    let has_submodules = !git::tracked(repository, &[".gitmodules"]).is_empty();
    has_submodules.then_some(Unfit::Submodules)
}

/// The files below a folder that git ignores and that the patterns of a file name, from the folder on.
pub fn ignored_by(folder: &Path, patterns: &Path) -> Vec<String> {
    let option = format!("--exclude-from={}", patterns.display());
    let named = git::git(folder, &["ls-files", "-z", "--others", "--ignored", &option]);
    if !named.succeeded() || named.stdout.is_empty() {
        return Vec::new();
    }
    let limit = TimeLimit::within(CHECKOUT_DEADLINE);
    let ignored = changes::answer(folder, &["check-ignore", "-z", "--stdin"], Some(named.stdout), limit);
    let ignored = ignored.unwrap_or_default();
    changes::names(&ignored).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn run(folder: &Path, what: &'static str, arguments: &[&str]) -> Result<(), WorktreeError> {
    let outcome = git::write(folder, AllowedPrograms::TrustedDrivers, arguments, CHECKOUT_DEADLINE);
    match () {
        () if outcome.succeeded() => Ok(()),
        () if outcome.timed_out => Err(WorktreeError::TookTooLong(what)),
        () => Err(WorktreeError::Refused { what, why: said(&outcome) }),
    }
}

fn said(outcome: &crate::Outcome) -> String {
    let both =
        format!("{}\n{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    let words = if both.trim().is_empty() { changes::last_words(outcome) } else { both };
    clip_start(words.trim(), LONGEST_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit that is in no repository.
    const NONE: &str = "0000000000000000000000000000000000000000";

    pub(super) fn shell(folder: &Path, line: &str) {
        let outcome = crate::shell(line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {outcome:?}");
    }

    /// A repository with a first commit, and beside it a place for worktrees.
    pub(super) fn stage() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("main tree");
        std::fs::create_dir(&repository).unwrap();
        shell(
            &repository,
            "git init -q -b main && git config user.name T && git config user.email t@example.invalid && \
             printf '1\\n2\\n3\\n4\\n5\\n' > a.txt && git add -A && git commit -qm First",
        );
        (folder, repository)
    }

    fn commit(folder: &Path, change: &str) -> String {
        shell(folder, &format!("{change} && git add -A && git commit -qm '{}'", change.replace('\'', "")));
        git::head(folder).unwrap()
    }

    #[test]
    fn two_branches_come_together_one_after_the_other_and_nothing_of_the_users_moves() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let places = ["one", "two"].map(|name| folder.path().join(name));
        for (place, branch) in places.iter().zip(["p/1/1", "p/2/1"]) {
            add(&repository, place, branch, &first).unwrap();
        }
        commit(&places[0], "sed -i 1s/1/one/ a.txt");
        commit(&places[1], "sed -i 5s/5/five/ a.txt");
        std::fs::write(repository.join("a.txt"), "the user's\n").unwrap();
        let merge = folder.path().join("merge");
        add_detached(&repository, &merge, &first).unwrap();
        let Rebased::Onto(one) = rebase(&merge, "p/1/1", &first, &first).unwrap() else { panic!("it fits") };
        let Rebased::Onto(both) = rebase(&merge, "p/2/1", &first, &one).unwrap() else { panic!("it fits") };
        assert_eq!(std::fs::read_to_string(merge.join("a.txt")).unwrap(), "one\n2\n3\n4\nfive\n");
        assert!(move_branch(&repository, "plimsoll/p", None, &one));
        assert!(!move_branch(&repository, "plimsoll/p", None, &both), "it is there by now");
        assert!(!move_branch(&repository, "plimsoll/p", Some(&first), &both), "it has moved");
        assert!(move_branch(&repository, "plimsoll/p", Some(&one), &both));
        assert_eq!(end_of(&repository, "plimsoll/p"), Some(both.clone()));
        assert!(contains(&repository, &both, &one) && !contains(&repository, &one, &both));
        assert!(!contains(&repository, &both, NONE));
        assert_eq!(rebase(&merge, "p/1/1", &first, &both).unwrap(), Rebased::Nothing, "it is in already");
        assert_eq!(rebase(&merge, "p/1/1", "p/1/1", &both).unwrap(), Rebased::Nothing, "it has nothing");
        for place in [&places[0], &places[1], &merge] {
            remove(&repository, place).unwrap();
            assert!(!place.exists());
        }
        assert_eq!(std::fs::read_to_string(repository.join("a.txt")).unwrap(), "the user's\n");
        assert_eq!(git::head(&repository), Some(first));
        assert!(end_of(&repository, "p/1/1").is_some(), "branches stay");
    }

    #[test]
    fn what_conflicts_is_named_and_leaves_nothing_behind() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add(&repository, &place, "p/1/1", &first).unwrap();
        commit(&place, "sed -i 1s/1/one/ a.txt");
        commit(&place, "sed -i 2s/2/two/ a.txt");
        let tip = commit(&repository, "sed -i 2s/2/zwei/ a.txt");
        let merge = folder.path().join("merge");
        add_detached(&repository, &merge, &tip).unwrap();
        let found = rebase(&merge, "p/1/1", &first, &tip).unwrap();
        assert!(
            matches!(&found, Rebased::Conflict { files, words } if files == &["a.txt"] && words.contains("a.txt")),
            "{found:?}"
        );
        // Whatever a kill leaves in the middle of one, the next begins anew.
        let killed = crate::shell(
            &format!("git rebase -q --onto {tip} {first} p/1/1"),
            &merge,
            Duration::from_secs(20),
        );
        assert!(!killed.succeeded());
        let again = rebase(&merge, "p/1/1", &first, &tip).unwrap();
        assert_eq!(again, found);
        let status = crate::shell("git status --porcelain", &merge, Duration::from_secs(20));
        assert!(status.stdout.is_empty(), "{status:?}");
    }

    #[test]
    fn a_worktree_that_was_left_half_made_is_removed_and_made_again() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add(&repository, &place, "p/1/1", &first).unwrap();
        let taken = add(&repository, &place, "p/1/2", &first);
        assert!(matches!(taken, Err(WorktreeError::Refused { .. })), "{taken:?}");
        shell(&repository, "git worktree lock ../one");
        std::fs::remove_dir_all(&place).unwrap();
        remove(&repository, &place).unwrap();
        add(&repository, &place, "p/1/2", &first).unwrap();
        assert!(place.join("a.txt").exists());
        let unknown = add_detached(&repository, &folder.path().join("two"), NONE);
        assert!(matches!(unknown, Err(WorktreeError::Refused { .. })), "{unknown:?}");
    }

    #[test]
    fn a_worktree_that_another_git_is_just_making_is_waited_for() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add(&repository, &place, "p/1/1", &first).unwrap();
        let other = repository.join(".git/worktrees/other");
        std::fs::create_dir(&other).unwrap();
        std::fs::copy(repository.join(".git/worktrees/one/HEAD"), other.join("HEAD")).unwrap();
        let its_place = folder.path().join("other/.git");
        std::fs::write(other.join("gitdir"), format!("{}\n", its_place.display())).unwrap();
        std::fs::write(other.join("commondir"), "").unwrap();
        let arguments = ["worktree", "remove", "--force", "--force", &place.to_string_lossy()];
        let refused = run(&repository, "worktree remove", &arguments);
        assert!(
            matches!(&refused, Err(WorktreeError::Refused { why, .. }) if why.contains(HALF_MADE)),
            "{refused:?}"
        );
        std::thread::scope(|scope| {
            let removed = scope.spawn(|| remove(&repository, &place));
            sleep(PAUSE * 3);
            std::fs::write(other.join("commondir"), "../..\n").unwrap();
            removed.join().unwrap().unwrap();
        });
        assert!(!place.exists());
    }

    #[test]
    fn what_was_committed_since_a_commit_was_named_is_in_the_branch_that_begins_there() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add(&repository, &place, "p/1/1", &first).unwrap();
        let later = commit(&place, "sed -i 1s/1/one/ a.txt");
        shell(&place, "sed -i 2s/2/two/ a.txt");
        switch_new(&place, "p/1/2", &first).unwrap();
        assert_eq!((git::head(&place), end_of(&place, "p/1/2")), (Some(later.clone()), Some(later)));
        let text = std::fs::read_to_string(place.join("a.txt")).unwrap();
        assert!(text.starts_with("one\ntwo\n"), "{text}");
        // Work that was put onto others' begins where it was put.
        shell(&place, "git checkout --quiet a.txt");
        let tip = commit(&repository, "sed -i 5s/5/five/ a.txt");
        switch_new(&place, "p/1/3", &tip).unwrap();
        assert_eq!(git::head(&place), Some(tip));
    }

    #[test]
    fn a_rebase_runs_no_hook() {
        let (folder, repository) = stage();
        let first = git::head(&repository).unwrap();
        let place = folder.path().join("one");
        add(&repository, &place, "p/1/1", &first).unwrap();
        commit(&place, "sed -i 1s/1/one/ a.txt");
        let tip = commit(&repository, "sed -i 5s/5/five/ a.txt");
        shell(
            &repository,
            "printf '#!/bin/sh\\necho not today; exit 1\\n' > .git/hooks/pre-rebase && chmod +x .git/hooks/pre-rebase",
        );
        let merge = folder.path().join("merge");
        add_detached(&repository, &merge, &tip).unwrap();
        let rebased = rebase(&merge, "p/1/1", &first, &tip);
        assert!(matches!(&rebased, Ok(Rebased::Onto(_))), "{rebased:?}");
    }
}
