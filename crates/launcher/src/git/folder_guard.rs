//! Checks whether git may write to a git folder. A session can write most files there, and git follows
//! symbolic links and `commondir` wherever they lead: for example a reflog that is a link to a file outside,
//! or a `commondir` that leads to other settings.
//!
//! Not covered: a process of the session that is still alive and changes a file between this check and git's
//! work.

use plimsoll_store::disk;
use plimsoll_store::layout::{find_repository, shared_git_folder};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Files and folders in a git folder that git writes to, or from which it reads settings: none may be a
/// symbolic link.
const ENTRIES_WITHOUT_SYMLINKS: [&str; 11] = [
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "COMMIT_EDITMSG",
    "index",
    "packed-refs",
    "config",
    "info",
    "objects",
    "logs",
    "refs",
];

/// The reason why git must not write to a git folder.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum UnsafeGitFolder {
    /// A symbolic link.
    #[error("{} is a symbolic link that git would follow: check where it leads, and remove it", .0.display())]
    SymbolicLink(PathBuf),
    /// A `commondir` file that leads to another git folder.
    #[error("{} makes git use the settings of another repository: check it, and remove it", .0.display())]
    OtherCommonFolder(PathBuf),
}

/// Checks a folder's repository and returns the git folder that all its worktrees share. Returns `None`
/// outside a repository, and an error if git must not write there.
pub(super) fn checked_common_git_folder(folder: &Path) -> Result<Option<PathBuf>, UnsafeGitFolder> {
    let Some((root, git_folder)) = find_repository(folder).map(|(root, git)| (root.to_owned(), git)) else {
        return Ok(None);
    };
    let commondir_file = git_folder.join("commondir");
    let common_git_folder = if disk::exists(&commondir_file) {
        // In `.git/worktrees/NAME`, git itself writes `../..` into this file.
        let expected_common_folder =
            git_folder.parent().and_then(Path::parent).map(disk::canonicalize_or_keep);
        let is_linked_worktree = !disk::is_folder_and_not_link(&root.join(".git"))
            && git_folder.parent().is_some_and(|parent| parent.ends_with("worktrees"));
        let actual_common_folder =
            shared_git_folder(&git_folder).map(|common| disk::canonicalize_or_keep(&common));
        match actual_common_folder
            .filter(|actual| is_linked_worktree && Some(actual) == expected_common_folder.as_ref())
        {
            Some(common_git_folder) => common_git_folder,
            None => return Err(UnsafeGitFolder::OtherCommonFolder(commondir_file)),
        }
    } else {
        disk::canonicalize_or_keep(&git_folder)
    };
    for folder in [&git_folder, &common_git_folder] {
        reject_symlinks_in_git_folder(folder)?;
    }
    let worktrees = common_git_folder.join("worktrees");
    reject_symlink(&worktrees)?;
    for name in disk::list_names(&worktrees) {
        reject_symlink(&worktrees.join(name))?;
    }
    Ok(Some(common_git_folder))
}

fn reject_symlinks_in_git_folder(git_folder: &Path) -> Result<(), UnsafeGitFolder> {
    ENTRIES_WITHOUT_SYMLINKS.iter().try_for_each(|name| reject_symlink(&git_folder.join(name)))?;
    ["logs", "refs"].iter().try_for_each(|name| reject_symlinks_below(&git_folder.join(name)))
}

fn reject_symlinks_below(folder: &Path) -> Result<(), UnsafeGitFolder> {
    for name in disk::list_names(folder) {
        let path = folder.join(name);
        reject_symlink(&path)?;
        if disk::is_folder_and_not_link(&path) {
            reject_symlinks_below(&path)?;
        }
    }
    Ok(())
}

fn reject_symlink(path: &Path) -> Result<(), UnsafeGitFolder> {
    if disk::is_link(path) { Err(UnsafeGitFolder::SymbolicLink(path.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::tests::{add_worktree, create_repository, run_shell};

    #[test]
    fn links_and_other_settings_in_a_git_folder_prevent_writing() {
        for (attack, undo) in [
            ("ln -s /etc .git/worktrees/evil", "rm .git/worktrees/evil"),
            ("mv .git/worktrees w && ln -s ../w .git/worktrees", "rm .git/worktrees && mv w .git/worktrees"),
            (
                "mv .git/logs/HEAD l && ln -s ../../l .git/logs/HEAD",
                "rm .git/logs/HEAD && mv l .git/logs/HEAD",
            ),
            ("ln -s ../x .git/refs/heads/zz", "rm .git/refs/heads/zz"),
            ("ln -sf /tmp/x .git/COMMIT_EDITMSG", "rm .git/COMMIT_EDITMSG"),
            ("mv .git/index i && ln -s ../i .git/index", "rm .git/index && mv i .git/index"),
            ("echo ../evil > .git/commondir", "rm .git/commondir"),
            ("ln -s /tmp/x .git/worktrees/one/COMMIT_EDITMSG", "rm .git/worktrees/one/COMMIT_EDITMSG"),
            (
                "echo ../../../evil > .git/worktrees/one/commondir",
                "echo ../.. > .git/worktrees/one/commondir",
            ),
        ] {
            let (folder, repository) = create_repository();
            let first_commit = crate::git::head_commit(&repository).unwrap();
            let worktree = folder.path().join("one");
            add_worktree(&repository, &worktree, "p/one/1", &first_commit).unwrap();
            run_shell(
                &repository,
                "mkdir -p evil && cp -r .git/HEAD .git/objects .git/refs .git/config evil/",
            );
            assert!(
                matches!(
                    (checked_common_git_folder(&repository), checked_common_git_folder(&worktree)),
                    (Ok(Some(_)), Ok(Some(_)))
                ),
                "{attack}"
            );
            run_shell(&repository, attack);
            assert!(
                checked_common_git_folder(&repository).is_err()
                    || checked_common_git_folder(&worktree).is_err(),
                "{attack}"
            );
            run_shell(&repository, undo);
            assert!(
                matches!(
                    (checked_common_git_folder(&repository), checked_common_git_folder(&worktree)),
                    (Ok(Some(_)), Ok(Some(_)))
                ),
                "{undo}"
            );
        }
    }
}
