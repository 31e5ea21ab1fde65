//! Whether git may write into a git folder at all. A session can write most of the files there, and git follows links and
//! `commondir` wherever they lead: a reflog that is a link to a file outside, or a `commondir` that leads to other settings.
//!
//! Not defended against: a process of the session that still lives, and changes a file between this look and git's work.

use plimsoll_store::disk;
use plimsoll_store::layout::{common_folder, repository};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What git writes to or reads settings from, in a git folder.
const NO_LINKS: [&str; 11] = [
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

/// Why git must not write there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum UnsafeGitFolder {
    /// A link.
    #[error("{} is a link, which git would follow: look where it leads, and remove it", .0.display())]
    Link(PathBuf),
    /// Another git folder.
    #[error("{} leads git to the settings of another repository: look at it, and remove it", .0.display())]
    OtherCommonFolder(PathBuf),
}

/// The git folder that all worktrees of a repository share, if git may write to it: none outside a repository.
pub(super) fn check(folder: &Path) -> Result<Option<PathBuf>, UnsafeGitFolder> {
    let Some((root, git)) = repository(folder).map(|(root, git)| (root.to_owned(), git)) else {
        return Ok(None);
    };
    let commondir = git.join("commondir");
    let common = if disk::exists(&commondir) {
        // Git itself writes `../..` into it, in `.git/worktrees/NAME`.
        let expected = git.parent().and_then(Path::parent).map(disk::canonical);
        let is_worktree = !disk::is_folder_itself(&root.join(".git"))
            && git.parent().is_some_and(|above| above.ends_with("worktrees"));
        let found = common_folder(&git).map(|common| disk::canonical(&common));
        match found.filter(|found| is_worktree && Some(found) == expected.as_ref()) {
            Some(common) => common,
            None => return Err(UnsafeGitFolder::OtherCommonFolder(commondir)),
        }
    } else {
        disk::canonical(&git)
    };
    for place in [&git, &common] {
        refuse_links(place)?;
    }
    let worktrees = common.join("worktrees");
    refuse_link(&worktrees)?;
    for name in disk::names(&worktrees) {
        refuse_link(&worktrees.join(name))?;
    }
    Ok(Some(common))
}

fn refuse_links(git: &Path) -> Result<(), UnsafeGitFolder> {
    NO_LINKS.iter().try_for_each(|name| refuse_link(&git.join(name)))?;
    ["logs", "refs"].iter().try_for_each(|name| refuse_links_below(&git.join(name)))
}

fn refuse_links_below(folder: &Path) -> Result<(), UnsafeGitFolder> {
    for name in disk::names(folder) {
        let path = folder.join(name);
        refuse_link(&path)?;
        if disk::is_folder_itself(&path) {
            refuse_links_below(&path)?;
        }
    }
    Ok(())
}

fn refuse_link(path: &Path) -> Result<(), UnsafeGitFolder> {
    if disk::is_link(path) { Err(UnsafeGitFolder::Link(path.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::tests::{add_worktree, shell, stage};

    #[test]
    fn links_and_other_settings_in_a_git_folder_keep_git_from_writing() {
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
            let (folder, repository) = stage();
            let first = crate::git::head(&repository).unwrap();
            let one = folder.path().join("one");
            add_worktree(&repository, &one, "p/one/1", &first).unwrap();
            shell(&repository, "mkdir -p evil && cp -r .git/HEAD .git/objects .git/refs .git/config evil/");
            assert!(matches!((check(&repository), check(&one)), (Ok(Some(_)), Ok(Some(_)))), "{attack}");
            shell(&repository, attack);
            assert!(check(&repository).is_err() || check(&one).is_err(), "{attack}");
            shell(&repository, undo);
            assert!(matches!((check(&repository), check(&one)), (Ok(Some(_)), Ok(Some(_)))), "{undo}");
        }
    }
}
