//! The branch that is checked out, and switching to another one.

use crate::changes::{self, FolderInTree};
use crate::child::{self, Terms};
use crate::git::{self, AllowedPrograms, GitWriter};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_store::disk;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// Questions are answered in milliseconds, on a cold disk in seconds.
const QUESTION_DEADLINE: Duration = Duration::from_secs(20);
/// A `post-checkout` hook of the user's may fetch large files or build.
const SWITCH_DEADLINE: Duration = Duration::from_secs(120);
/// A longer list of files that differ is not read.
const MAX_LIST: usize = 64 * 1024 * 1024;
/// How much of git's message is shown.
const LONGEST_REASON: usize = 400;

/// What HEAD is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// The folder is in no working tree.
    NoRepository,
    /// Nothing has been committed yet.
    NoCommit,
    /// A commit is checked out, and no branch.
    Detached,
    /// This branch is checked out.
    Branch(String),
}

/// Why the run cannot work on a branch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BranchError {
    /// It cannot be a branch's name.
    #[error("`{0}` cannot be the name of a branch (see `git check-ref-format --help`)")]
    BadName(String),
    /// There is no repository.
    #[error("--branch needs a git repository, and this folder is in none: git init, then commit")]
    NoRepository,
    /// Nothing has been committed.
    #[error("--branch needs a commit to begin at, and this repository has none: commit first")]
    NoCommit,
    /// No branch is checked out.
    #[error(
        "HEAD is detached, so there is no branch to merge the work into later: check one out first (git switch BRANCH)"
    )]
    Detached,
    /// Another worktree has it.
    #[error(
        "the branch `{name}` is checked out in the worktree {folder}: start the run there, or choose another name"
    )]
    InWorktree {
        /// The branch.
        name: String,
        /// The other worktree.
        folder: String,
    },
    /// The branch of a run is gone.
    #[error(
        "the branch `{0}`, on which this run works, no longer exists: create it where the run should continue (git branch {0} COMMIT)"
    )]
    Gone(String),
    /// Git or a hook refuses.
    #[error(
        "cannot switch to the branch `{name}`: {why}\ncommit or stash what is in the way (git status shows it), then run this again"
    )]
    Refused {
        /// The branch.
        name: String,
        /// What git said.
        why: String,
    },
    /// Git gave no answer.
    #[error("cannot find out which branch is checked out: {0}")]
    Unknown(String),
}

impl From<GitError> for BranchError {
    fn from(error: GitError) -> BranchError {
        BranchError::Unknown(shown(&error.to_string()))
    }
}

fn shown(why: &str) -> String {
    clip(&one_line(why), LONGEST_REASON)
}

/// What HEAD is in this folder.
pub fn head(folder: &Path) -> Result<Head, BranchError> {
    let limit = TimeLimit::within(QUESTION_DEADLINE);
    if FolderInTree::of(folder, limit)?.is_none() {
        return Ok(Head::NoRepository);
    }
    if git::head(folder).is_none() {
        return Ok(Head::NoCommit);
    }
    // The whole name: the short one is another where a tag has the same.
    let outcome = git::git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    let name = git::text(&outcome).strip_prefix("refs/heads/").map(str::to_owned);
    match (name, outcome.code) {
        (Some(name), _) => Ok(Head::Branch(name)),
        (None, Some(1)) => Ok(Head::Detached),
        (None, _) => Err(BranchError::Unknown(shown(&git_output::last_words(&outcome)))),
    }
}

/// Parses a branch's name. What git would take for an option or another name (`-x`, `@{-1}`) is refused.
pub fn parse_name(name: &str) -> Result<BranchName, BranchError> {
    BranchName::parse(name).map_err(|error| BranchError::BadName(error.0))
}

/// True if there is a branch of this name.
pub fn exists(folder: &Path, name: &BranchName) -> bool {
    git::git(folder, &["rev-parse", "--verify", "--quiet", &name.reference()]).succeeded()
}

/// Refuses a branch that another worktree has checked out; to be asked of one that is not checked out here.
pub fn check_worktrees(folder: &Path, name: &BranchName) -> Result<(), BranchError> {
    let outcome = git::git(folder, &["for-each-ref", "--format=%(worktreepath)", &name.reference()]);
    let elsewhere = git::text(&outcome);
    // A git that does not know the field (before 2.23) refuses the switch by itself.
    if !outcome.succeeded() || elsewhere.is_empty() {
        return Ok(());
    }
    Err(BranchError::InWorktree { name: name.to_string(), folder: one_line(&elsewhere) })
}

/// The commit that HEAD names, if no branch or tag contains it: after a switch only the reflog would name it.
pub fn commit_of_no_branch(folder: &Path) -> Option<CommitId> {
    let commit = git::head(folder)?;
    let outcome = git::git(folder, &["for-each-ref", "--count=1", "--contains", commit.as_str()]);
    (outcome.succeeded() && git::text(&outcome).is_empty()).then_some(commit)
}

/// True if a file that git follows differs from HEAD, apart from ours (asked with paths from the folder on).
pub fn has_changes(folder: &Path, is_ours: &dyn Fn(&str) -> bool) -> Result<bool, BranchError> {
    let limit = TimeLimit::within(QUESTION_DEADLINE);
    let head = git::head(folder);
    let changes = changes::since_head(folder, head.as_ref(), None, limit)?;
    Ok(changes.iter().any(|change| change.is_tracked && !is_ours(&change.name())))
}

/// HEAD, if the working tree is what it says, but for what is ours (asked with paths from the folder on) and what `.gitignore`
/// files name. The index is a new one, at `index`: an agent can tell git's own to overlook a file.
pub fn clean_head(folder: &Path, index: &Path, is_ours: &dyn Fn(&str) -> bool) -> Option<CommitId> {
    let limit = TimeLimit::within(QUESTION_DEADLINE);
    let head = git::head(folder)?;
    let writer = GitWriter::new(folder, AllowedPrograms::TrustedDrivers).ok()?;
    let ask = |arguments: &[&str]| {
        let mut command = writer.command(arguments);
        command.env("GIT_INDEX_FILE", index);
        let outcome = child::run(command, Terms { most_output: MAX_LIST, ..Terms::within(limit.left()) });
        (outcome.succeeded() && outcome.stdout.len() < MAX_LIST).then_some(outcome.stdout)
    };
    let changed = ask(&["read-tree", head.as_str()]).and_then(|_| {
        // A new index knows no sizes and times: this compares the contents, and fails where one differs.
        let _ = ask(&["update-index", "-q", "--refresh"]);
        let mut changed =
            ask(&["diff-files", "--name-only", "--relative", "--ignore-submodules=dirty", "-z"])?;
        changed.extend(ask(&[
            "ls-files",
            "--others",
            "--exclude-per-directory=.gitignore",
            "-z",
            "--",
            ".",
        ])?);
        Some(changed)
    });
    let _ = disk::remove(index);
    let changed = changed?;
    git_output::names(&changed).all(|name| is_ours(&String::from_utf8_lossy(name))).then_some(head)
}

/// Switches to a branch, which is created at HEAD if there is none. Uncommitted changes come along, or git refuses.
// A kill in the middle leaves what a killed `git switch` leaves; repeated, it ends on the branch.
pub fn switch(folder: &Path, name: &BranchName, allowed: AllowedPrograms) -> Result<(), BranchError> {
    // By default git overwrites an ignored file with one that the branch has, and no copy of it is left.
    let arguments: &[&str] = if exists(folder, name) {
        &["switch", "--quiet", "--no-overwrite-ignore", "--no-guess", name.as_str()]
    } else {
        &["switch", "--quiet", "--no-overwrite-ignore", "--no-track", "--create", name.as_str()]
    };
    let outcome = git::write(folder, allowed, arguments, SWITCH_DEADLINE);
    // A hook that runs afterwards may fail, and the branch is checked out all the same.
    if head(folder)? == Head::Branch(name.to_string()) {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let why = if outcome.timed_out {
        format!("it took longer than {} seconds", SWITCH_DEADLINE.as_secs())
    } else if errors.trim().is_empty() {
        git_output::last_words(&outcome)
    } else {
        errors
    };
    Err(BranchError::Refused { name: name.to_string(), why: shown(&why) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, line: &str) {
        let name = "-c user.name=Test -c user.email=t@example.invalid -c init.defaultBranch=main";
        let line = format!("git {name} {line}");
        let outcome = crate::shell(&line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {outcome:?}");
    }

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
        git(folder.path(), "init -q");
        git(folder.path(), "add -A");
        git(folder.path(), "commit -qm First");
        folder
    }

    #[test]
    fn a_tree_is_clean_only_if_the_files_are_those_of_head_whatever_the_index_says() {
        let folder = repository();
        let here = folder.path();
        let index = tempfile::tempdir().unwrap();
        let is_clean = || clean_head(here, &index.path().join("index"), &|path| path == "ours").is_some();
        std::fs::write(here.join("ours"), "x").unwrap();
        assert!(is_clean());
        for (attack, undo) in [
            ("echo two > a.txt", "git checkout -q -- a.txt"),
            (
                "echo two > a.txt; git update-index --assume-unchanged a.txt",
                "git update-index --no-assume-unchanged a.txt; git checkout -q -- a.txt",
            ),
            (
                "echo two > a.txt; git update-index --skip-worktree a.txt",
                "git update-index --no-skip-worktree a.txt; git checkout -q -- a.txt",
            ),
            ("echo new > helper; echo helper >> .git/info/exclude", "rm helper"),
        ] {
            for (line, expected) in [(attack, false), (undo, true)] {
                let outcome = crate::shell(line, here, Duration::from_secs(20));
                assert!(outcome.succeeded(), "{line}: {outcome:?}");
                assert_eq!(is_clean(), expected, "{line}");
            }
        }
    }

    fn named(name: &str) -> BranchName {
        parse_name(name).unwrap()
    }

    fn on(name: &str) -> Result<Head, BranchError> {
        Ok(Head::Branch(name.to_owned()))
    }

    #[test]
    fn what_head_is_tells_apart_what_a_run_can_begin_on() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        assert_eq!(head(here), Ok(Head::NoRepository));
        git(here, "init -q");
        assert_eq!(head(here), Ok(Head::NoCommit));
        git(here, "commit -q --allow-empty -m First");
        assert_eq!(head(here), on("main"));
        git(here, "tag main");
        assert_eq!(head(here), on("main"));
        git(here, "switch -q --detach");
        assert_eq!(head(here), Ok(Head::Detached));
    }

    #[test]
    fn only_what_git_takes_as_a_name_is_one() {
        let folder = repository();
        git(folder.path(), "switch -qc other");
        git(folder.path(), "switch -q main");
        for name in ["night", "night/run-3", "größer", "a@b"] {
            assert_eq!(parse_name(name).map(String::from).as_deref(), Ok(name));
        }
        for name in
            ["", "-x", "--orphan", "a b", "a..b", "a~1", "@{-1}", "@", "HEAD", "a.lock", "a\nb", "a:b", "/a"]
        {
            let expected = Err(BranchError::BadName(name.to_owned()));
            assert_eq!(parse_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_branch_is_created_at_head_with_uncommitted_work_or_taken_as_it_is() {
        let folder = repository();
        let here = folder.path();
        std::fs::write(here.join("a.txt"), "two\n").unwrap();
        assert_eq!(has_changes(here, &|_| false), Ok(true));
        assert_eq!(has_changes(here, &|path| path == "a.txt"), Ok(false));
        assert_eq!(switch(here, &named("night"), AllowedPrograms::TrustedDrivers), Ok(()));
        assert_eq!(head(here), on("night"));
        assert_eq!(std::fs::read_to_string(here.join("a.txt")).unwrap(), "two\n");
        git(here, "commit -qam Second");
        assert_eq!(has_changes(here, &|_| false), Ok(false));
        assert_eq!(switch(here, &named("main"), AllowedPrograms::TrustedDrivers), Ok(()));
        std::fs::write(here.join("a.txt"), "three\n").unwrap();
        let Err(BranchError::Refused { why, .. }) =
            switch(here, &named("night"), AllowedPrograms::TrustedDrivers)
        else {
            panic!("it would overwrite")
        };
        assert!(why.contains("a.txt"), "{why}");
        assert_eq!((head(here), exists(here, &named("night"))), (on("main"), true));
    }

    #[test]
    fn a_switch_overwrites_no_file_that_git_ignores_and_knows_what_no_branch_has() {
        let folder = repository();
        let here = folder.path();
        git(here, "switch -qc night");
        std::fs::write(here.join("notes.txt"), "agent\n").unwrap();
        git(here, "add -A");
        git(here, "commit -qm Second");
        git(here, "switch -q main");
        std::fs::write(here.join(".git/info/exclude"), "notes.txt\n").unwrap();
        std::fs::write(here.join("notes.txt"), "the user's\n").unwrap();
        assert_eq!(has_changes(here, &|_| false), Ok(false));
        let refused = switch(here, &named("night"), AllowedPrograms::TrustedDrivers);
        assert!(
            matches!(&refused, Err(BranchError::Refused { why, .. }) if why.contains("notes.txt")),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_to_string(here.join("notes.txt")).unwrap(), "the user's\n");
        git(here, "switch -q --detach");
        assert_eq!(commit_of_no_branch(here), None, "main has it");
        git(here, "commit -q --allow-empty -m Third");
        assert_eq!(commit_of_no_branch(here), git::head(here));
    }

    #[test]
    fn a_branch_of_another_worktree_is_refused_with_its_place_and_hooks_run_if_allowed() {
        let folder = repository();
        let here = folder.path().join("main tree");
        git(folder.path(), "worktree add -q 'main tree' -b other");
        git(folder.path(), "worktree add -q second -b night");
        let found = check_worktrees(&here, &named("night"));
        assert!(
            matches!(&found, Err(BranchError::InWorktree { folder, .. }) if folder.ends_with("second")),
            "{found:?}"
        );
        assert_eq!(check_worktrees(&here, &named("none")), Ok(()));
        let hooks = folder.path().join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        std::fs::write(hooks.join("post-checkout"), "#!/bin/sh\ntouch ran\nexit 3\n").unwrap();
        git(folder.path(), "config core.hooksPath .git/hooks");
        let made = crate::shell("chmod +x .git/hooks/post-checkout", folder.path(), Duration::from_secs(5));
        assert!(made.succeeded());
        assert_eq!(switch(folder.path(), &named("new"), AllowedPrograms::TrustedDrivers), Ok(()));
        assert!(!folder.path().join("ran").exists());
        assert_eq!(
            switch(folder.path(), &named("newer"), AllowedPrograms::All),
            Ok(()),
            "though the hook fails"
        );
        assert!(folder.path().join("ran").exists());
    }
}
