//! The branch that is checked out, and switching to another one.

use crate::changes::{self, FolderInWorkingTree};
use crate::child::{self, ChildOptions};
use crate::git::{self, AllowedPrograms, GitWriter};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_store::disk;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The timeout for queries: git answers in milliseconds, on a cold disk in seconds.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for a switch: the user's `post-checkout` hook may fetch large files or run a build.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of a list of changed files.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;
/// Maximum length of git's message in an error.
const MAX_REASON_CHARS: usize = 400;

/// The state of HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadState {
    /// The folder is not in a working tree.
    NoRepository,
    /// Nothing has been committed yet.
    NoCommit,
    /// A commit is checked out instead of a branch.
    Detached,
    /// This branch is checked out.
    Branch(String),
}

/// The reason why a run cannot work on a branch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BranchError {
    /// The text is not a valid branch name.
    #[error("`{0}` cannot be the name of a branch (see `git check-ref-format --help`)")]
    InvalidName(String),
    /// The folder is not in a repository.
    #[error("--branch needs a git repository, but this folder is not in one: git init, then commit")]
    NoRepository,
    /// Nothing has been committed.
    #[error("--branch needs a commit to start from, but this repository has none: commit first")]
    NoCommit,
    #[error(
        "HEAD is detached, so there is no branch to merge the work into later: check one out first (git switch BRANCH)"
    )]
    DetachedHead,
    /// Another worktree has checked out the branch.
    #[error(
        "the branch `{name}` is checked out in the worktree {folder}: start the run there, or choose another name"
    )]
    CheckedOutElsewhere {
        name: String,
        /// The other worktree.
        folder: String,
    },
    /// The branch of a run no longer exists.
    #[error(
        "the branch `{0}`, on which this run works, no longer exists: create it where the run should continue (git branch {0} COMMIT)"
    )]
    BranchMissing(String),
    /// Git or a hook refuses the switch.
    #[error(
        "cannot switch to the branch `{name}`: {reason}\ncommit or stash what is in the way (git status shows it), then run this again"
    )]
    SwitchRefused {
        name: String,
        /// Git's message.
        reason: String,
    },
    /// Git failed to report the state of HEAD.
    #[error("cannot find out which branch is checked out: {0}")]
    HeadUnreadable(String),
}

impl From<GitError> for BranchError {
    fn from(error: GitError) -> BranchError {
        BranchError::HeadUnreadable(shorten_reason(&error.to_string()))
    }
}

fn shorten_reason(reason: &str) -> String {
    truncate_end(&to_safe_single_line(reason), MAX_REASON_CHARS)
}

/// Returns the state of HEAD in this folder.
pub fn read_head_state(folder: &Path) -> Result<HeadState, BranchError> {
    let limit = TimeLimit::from_now(QUERY_TIMEOUT);
    if FolderInWorkingTree::locate(folder, limit)?.is_none() {
        return Ok(HeadState::NoRepository);
    }
    if git::head_commit(folder).is_none() {
        return Ok(HeadState::NoCommit);
    }
    // The full name, because the short one is ambiguous if a tag has the same name.
    let outcome = git::run_query(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    let name = git::trimmed_stdout(&outcome).strip_prefix("refs/heads/").map(str::to_owned);
    match (name, outcome.exit_code) {
        (Some(name), _) => Ok(HeadState::Branch(name)),
        (None, Some(1)) => Ok(HeadState::Detached),
        (None, _) => Err(BranchError::HeadUnreadable(shorten_reason(
            &git_output::fatal_message_or_last_output_line(&outcome),
        ))),
    }
}

/// Parses a branch name. Rejects names that git would take as an option or as another name (`-x`, `@{-1}`).
pub fn parse_branch_name(name: &str) -> Result<BranchName, BranchError> {
    BranchName::parse(name).map_err(|error| BranchError::InvalidName(error.0))
}

/// Returns true if a branch with this name exists.
pub fn branch_exists(folder: &Path, branch: &BranchName) -> bool {
    git::run_query(folder, &["rev-parse", "--verify", "--quiet", &branch.full_ref_name()]).succeeded()
}

/// Returns an error if another worktree has checked out the branch. Call it only for a branch that is not
/// checked out here.
pub fn check_not_checked_out_elsewhere(folder: &Path, branch: &BranchName) -> Result<(), BranchError> {
    let outcome =
        git::run_query(folder, &["for-each-ref", "--format=%(worktreepath)", &branch.full_ref_name()]);
    let worktree_path = git::trimmed_stdout(&outcome);
    // A git that does not know the field (before 2.23) refuses the switch by itself.
    if !outcome.succeeded() || worktree_path.is_empty() {
        return Ok(());
    }
    Err(BranchError::CheckedOutElsewhere {
        name: branch.to_string(),
        folder: to_safe_single_line(&worktree_path),
    })
}

/// Returns the commit of HEAD if no branch or tag contains it: after a switch only the reflog would name it.
pub fn head_commit_without_branch(folder: &Path) -> Option<CommitId> {
    let head_commit = git::head_commit(folder)?;
    let outcome = git::run_query(folder, &["for-each-ref", "--count=1", "--contains", head_commit.as_str()]);
    (outcome.succeeded() && git::trimmed_stdout(&outcome).is_empty()).then_some(head_commit)
}

/// Returns true if a tracked file differs from HEAD, except files for which `is_plimsoll_file` returns true.
/// Paths are relative to the folder.
pub fn has_tracked_changes(
    folder: &Path,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
) -> Result<bool, BranchError> {
    let limit = TimeLimit::from_now(QUERY_TIMEOUT);
    let head = git::head_commit(folder);
    let changes = changes::changes_since_head_with_untracked(folder, head.as_ref(), None, limit)?;
    Ok(changes.iter().any(|change| change.is_tracked && !is_plimsoll_file(&change.path_text())))
}

/// Returns the commit of HEAD if the working tree equals it, except files for which `is_plimsoll_file` returns
/// true and files that `.gitignore` files ignore. Compares contents through a new index, which is created at
/// `temporary_index_path` and removed, because an agent can mark files in git's own index as unchanged.
pub fn head_commit_if_clean(
    folder: &Path,
    temporary_index_path: &Path,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
) -> Option<CommitId> {
    let limit = TimeLimit::from_now(QUERY_TIMEOUT);
    let head = git::head_commit(folder)?;
    let writer = GitWriter::new(folder, AllowedPrograms::TrustedDrivers).ok()?;
    let run_git = |arguments: &[&str]| {
        let mut command = writer.command(arguments);
        command.env("GIT_INDEX_FILE", temporary_index_path);
        let outcome = child::run(
            command,
            ChildOptions {
                max_output_bytes: MAX_LIST_BYTES,
                ..ChildOptions::with_timeout(limit.remaining())
            },
        );
        (outcome.succeeded() && outcome.stdout.len() < MAX_LIST_BYTES).then_some(outcome.stdout)
    };
    let changed_paths_output = run_git(&["read-tree", head.as_str()]).and_then(|_| {
        // A new index has no sizes and times, so this compares contents. It fails if a file differs.
        let _ = run_git(&["update-index", "-q", "--refresh"]);
        let mut output =
            run_git(&["diff-files", "--name-only", "--relative", "--ignore-submodules=dirty", "-z"])?;
        output.extend(run_git(&[
            "ls-files",
            "--others",
            "--exclude-per-directory=.gitignore",
            "-z",
            "--",
            ".",
        ])?);
        Some(output)
    });
    let _ = disk::remove_if_exists(temporary_index_path);
    let changed_paths_output = changed_paths_output?;
    git_output::split_nul_terminated(&changed_paths_output)
        .all(|name| is_plimsoll_file(&String::from_utf8_lossy(name)))
        .then_some(head)
}

/// Switches to a branch, which is created at HEAD if it does not exist. Uncommitted changes are kept, or git
/// refuses.
// If this process is killed, it leaves the state of a killed `git switch`; repeating the call ends on the
// branch.
pub fn switch_to_or_create_branch(
    folder: &Path,
    branch: &BranchName,
    allowed_programs: AllowedPrograms,
) -> Result<(), BranchError> {
    // By default git overwrites an ignored file with the branch's version without keeping a copy.
    let arguments: &[&str] = if branch_exists(folder, branch) {
        &["switch", "--quiet", "--no-overwrite-ignore", "--no-guess", branch.as_str()]
    } else {
        &["switch", "--quiet", "--no-overwrite-ignore", "--no-track", "--create", branch.as_str()]
    };
    let outcome = git::run_write_command(folder, allowed_programs, arguments, SWITCH_TIMEOUT);
    // A hook that runs after the switch may fail although the branch is checked out.
    if read_head_state(folder)? == HeadState::Branch(branch.to_string()) {
        return Ok(());
    }
    let stderr_text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let reason = if outcome.timed_out {
        format!("it took longer than {} seconds", SWITCH_TIMEOUT.as_secs())
    } else if stderr_text.trim().is_empty() {
        git_output::fatal_message_or_last_output_line(&outcome)
    } else {
        stderr_text
    };
    Err(BranchError::SwitchRefused { name: branch.to_string(), reason: shorten_reason(&reason) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_git(folder: &Path, arguments: &str) {
        let settings = "-c user.name=Test -c user.email=t@example.invalid -c init.defaultBranch=main";
        let command_line = format!("git {settings} {arguments}");
        let outcome = crate::run_user_shell_command(&command_line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{command_line}: {outcome:?}");
    }

    fn create_repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
        run_git(folder.path(), "init -q");
        run_git(folder.path(), "add -A");
        run_git(folder.path(), "commit -qm First");
        folder
    }

    #[test]
    fn a_tree_is_clean_only_if_its_files_equal_head_whatever_the_index_says() {
        let folder = create_repository();
        let path = folder.path();
        let index = tempfile::tempdir().unwrap();
        let is_clean =
            || head_commit_if_clean(path, &index.path().join("index"), &|path| path == "ours").is_some();
        std::fs::write(path.join("ours"), "x").unwrap();
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
                let outcome = crate::run_user_shell_command(line, path, Duration::from_secs(20));
                assert!(outcome.succeeded(), "{line}: {outcome:?}");
                assert_eq!(is_clean(), expected, "{line}");
            }
        }
    }

    fn branch_name(name: &str) -> BranchName {
        parse_branch_name(name).unwrap()
    }

    fn on_branch(name: &str) -> Result<HeadState, BranchError> {
        Ok(HeadState::Branch(name.to_owned()))
    }

    #[test]
    fn each_state_of_head_is_recognized() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(read_head_state(path), Ok(HeadState::NoRepository));
        run_git(path, "init -q");
        assert_eq!(read_head_state(path), Ok(HeadState::NoCommit));
        run_git(path, "commit -q --allow-empty -m First");
        assert_eq!(read_head_state(path), on_branch("main"));
        run_git(path, "tag main");
        assert_eq!(read_head_state(path), on_branch("main"));
        run_git(path, "switch -q --detach");
        assert_eq!(read_head_state(path), Ok(HeadState::Detached));
    }

    #[test]
    fn only_valid_branch_names_are_accepted() {
        let folder = create_repository();
        run_git(folder.path(), "switch -qc other");
        run_git(folder.path(), "switch -q main");
        for name in ["night", "night/run-3", "größer", "a@b"] {
            assert_eq!(parse_branch_name(name).map(String::from).as_deref(), Ok(name));
        }
        for name in
            ["", "-x", "--orphan", "a b", "a..b", "a~1", "@{-1}", "@", "HEAD", "a.lock", "a\nb", "a:b", "/a"]
        {
            let expected = Err(BranchError::InvalidName(name.to_owned()));
            assert_eq!(parse_branch_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_branch_is_created_with_uncommitted_work_or_switched_to_as_it_is() {
        let folder = create_repository();
        let path = folder.path();
        std::fs::write(path.join("a.txt"), "two\n").unwrap();
        assert_eq!(has_tracked_changes(path, &|_| false), Ok(true));
        assert_eq!(has_tracked_changes(path, &|path| path == "a.txt"), Ok(false));
        assert_eq!(
            switch_to_or_create_branch(path, &branch_name("night"), AllowedPrograms::TrustedDrivers),
            Ok(())
        );
        assert_eq!(read_head_state(path), on_branch("night"));
        assert_eq!(std::fs::read_to_string(path.join("a.txt")).unwrap(), "two\n");
        run_git(path, "commit -qam Second");
        assert_eq!(has_tracked_changes(path, &|_| false), Ok(false));
        assert_eq!(
            switch_to_or_create_branch(path, &branch_name("main"), AllowedPrograms::TrustedDrivers),
            Ok(())
        );
        std::fs::write(path.join("a.txt"), "three\n").unwrap();
        let Err(BranchError::SwitchRefused { reason: why, .. }) =
            switch_to_or_create_branch(path, &branch_name("night"), AllowedPrograms::TrustedDrivers)
        else {
            panic!("it would overwrite")
        };
        assert!(why.contains("a.txt"), "{why}");
        assert_eq!(
            (read_head_state(path), branch_exists(path, &branch_name("night"))),
            (on_branch("main"), true)
        );
    }

    #[test]
    fn a_switch_overwrites_no_ignored_file_and_unbranched_commits_are_found() {
        let folder = create_repository();
        let path = folder.path();
        run_git(path, "switch -qc night");
        std::fs::write(path.join("notes.txt"), "agent\n").unwrap();
        run_git(path, "add -A");
        run_git(path, "commit -qm Second");
        run_git(path, "switch -q main");
        std::fs::write(path.join(".git/info/exclude"), "notes.txt\n").unwrap();
        std::fs::write(path.join("notes.txt"), "the user's\n").unwrap();
        assert_eq!(has_tracked_changes(path, &|_| false), Ok(false));
        let result = switch_to_or_create_branch(path, &branch_name("night"), AllowedPrograms::TrustedDrivers);
        assert!(
            matches!(&result, Err(BranchError::SwitchRefused { reason: why, .. }) if why.contains("notes.txt")),
            "{result:?}"
        );
        assert_eq!(std::fs::read_to_string(path.join("notes.txt")).unwrap(), "the user's\n");
        run_git(path, "switch -q --detach");
        assert_eq!(head_commit_without_branch(path), None, "main has it");
        run_git(path, "commit -q --allow-empty -m Third");
        assert_eq!(head_commit_without_branch(path), git::head_commit(path));
    }

    #[test]
    fn a_branch_of_another_worktree_is_refused_and_hooks_run_if_allowed() {
        let folder = create_repository();
        let worktree = folder.path().join("main tree");
        run_git(folder.path(), "worktree add -q 'main tree' -b other");
        run_git(folder.path(), "worktree add -q second -b night");
        let result = check_not_checked_out_elsewhere(&worktree, &branch_name("night"));
        assert!(
            matches!(&result, Err(BranchError::CheckedOutElsewhere { folder, .. }) if folder.ends_with("second")),
            "{result:?}"
        );
        assert_eq!(check_not_checked_out_elsewhere(&worktree, &branch_name("none")), Ok(()));
        let hooks = folder.path().join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        std::fs::write(hooks.join("post-checkout"), "#!/bin/sh\ntouch ran\nexit 3\n").unwrap();
        run_git(folder.path(), "config core.hooksPath .git/hooks");
        let chmod_outcome = crate::run_user_shell_command(
            "chmod +x .git/hooks/post-checkout",
            folder.path(),
            Duration::from_secs(5),
        );
        assert!(chmod_outcome.succeeded());
        assert_eq!(
            switch_to_or_create_branch(folder.path(), &branch_name("new"), AllowedPrograms::TrustedDrivers),
            Ok(())
        );
        assert!(!folder.path().join("ran").exists());
        assert_eq!(
            switch_to_or_create_branch(folder.path(), &branch_name("newer"), AllowedPrograms::AllPrograms),
            Ok(()),
            "though the hook fails"
        );
        assert!(folder.path().join("ran").exists());
    }
}
