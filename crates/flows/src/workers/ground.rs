//! Where several workers can share a plan: a repository whose work can be done in worktrees, with nothing uncommitted that
//! they would not see.

use crate::our_files::is_ours;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_launcher::branch::{BranchError, Head, has_changes, head};
use plimsoll_launcher::{git, worktree};
use plimsoll_store::{Project, layout};
use std::path::{Component, PathBuf};

/// The plan of an item's own run: beside the other files, so that the client asks nobody before it is edited, and git is told
/// to ignore it.
pub(super) const ITEM_PLAN: &str = "plimsoll-item.md";

/// Why they cannot.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// No repository.
    #[error("workers need a git repository, and {} is in none: git init, then commit", .0.display())]
    NoRepository(PathBuf),
    /// No commit.
    #[error("workers need a commit to begin at, and this repository has none: commit first")]
    NoCommit,
    /// No branch.
    #[error(
        "HEAD is detached, so there is no branch to merge the work into: check one out first (git switch BRANCH)"
    )]
    Detached,
    /// A part of the history.
    #[error("this is a shallow clone, in which branches cannot be put together: git fetch --unshallow")]
    Shallow,
    /// Objects that are elsewhere.
    #[error(
        "this is a partial clone, which does not have all objects: a repository to verify in cannot be copied from it; clone it without --filter"
    )]
    Partial,
    /// Submodules.
    #[error("this repository has submodules, which worktrees do not have: run it without --workers")]
    Submodules,
    /// What workers would not see.
    #[error(
        "there are uncommitted changes, which no worker would see: commit or stash them (git status shows them), then run this again"
    )]
    Dirty,
    /// A file of the user's where one of ours would be.
    #[error(
        "git follows a file {ITEM_PLAN}, which is where the plan of a worker would be: rename it, and commit"
    )]
    PlanInTheWay,
    /// Git.
    #[error(transparent)]
    Git(#[from] BranchError),
}

/// Where the work begins.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The repository's working tree.
    pub repository: PathBuf,
    /// The project, from there on; empty at its root.
    pub below: PathBuf,
    /// The branch that is checked out.
    pub branch: String,
    /// Its end.
    pub commit: CommitId,
}

impl Ground {
    /// Returns where the repository has a file that is named from the project on. None outside of the repository.
    pub(super) fn repo_path(&self, file: &str) -> Option<RepoPath> {
        let whole = self.repository.join(&self.below).join(file);
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.strip_prefix(&self.repository).ok()?.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(parts.pop()?),
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        RepoPath::parse(&parts.join("/")).ok()
    }

    /// Whether git tracks a file that is named from the project on.
    pub(super) fn is_tracked(&self, file: &str) -> bool {
        self.repo_path(file).is_some_and(|path| !git::tracked(&self.repository, &[path]).is_empty())
    }
}

/// Could a parallel run begin here? Nothing is written.
pub fn check(project: &Project) -> Result<Ground, Unfit> {
    let ground = look(project)?;
    match worktree::unfit(&ground.repository) {
        Some(worktree::Unfit::Shallow) => return Err(Unfit::Shallow),
        Some(worktree::Unfit::Partial) => return Err(Unfit::Partial),
        Some(worktree::Unfit::Submodules) => return Err(Unfit::Submodules),
        None => {}
    }
    if git::is_tracked(project.root(), ITEM_PLAN) {
        return Err(Unfit::PlanInTheWay);
    }
    if has_changes(project.root(), &is_ours)? {
        return Err(Unfit::Dirty);
    }
    Ok(ground)
}

/// Where a parallel run goes on, whatever is uncommitted there.
pub fn look(project: &Project) -> Result<Ground, Unfit> {
    let root = project.root();
    let gone = || Unfit::NoRepository(root.to_owned());
    let (tree, _) = layout::repository(root).ok_or_else(gone)?;
    let branch = match head(root)? {
        Head::NoRepository => return Err(gone()),
        Head::NoCommit => return Err(Unfit::NoCommit),
        Head::Detached => return Err(Unfit::Detached),
        Head::Branch(name) => name,
    };
    let below = root.strip_prefix(tree).map(PathBuf::from).unwrap_or_default();
    let commit = git::head(root).ok_or(Unfit::NoCommit)?;
    Ok(Ground { repository: tree.to_owned(), below, branch, commit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_one_path_in_the_repository_however_it_is_named() {
        let commit = CommitId::parse(&"a".repeat(40)).unwrap();
        let ground = |below: &str| Ground {
            repository: PathBuf::from("/home/me/repo"),
            below: PathBuf::from(below),
            branch: "main".to_owned(),
            commit: commit.clone(),
        };
        for (below, file, expected) in [
            ("", "fix_plan.md", Some("fix_plan.md")),
            ("", "./docs//my plan.md", Some("docs/my plan.md")),
            ("pkg", "fix_plan.md", Some("pkg/fix_plan.md")),
            ("pkg", "../fix_plan.md", Some("fix_plan.md")),
            ("pkg", "/home/me/repo/docs/./plan.md", Some("docs/plan.md")),
            ("pkg", "../../plan.md", None),
            ("", "/home/me/plan.md", None),
            ("", ".git/plan.md", None),
            ("", ".", None),
        ] {
            let path = ground(below).repo_path(file);
            assert_eq!(path.as_ref().map(RepoPath::as_str), expected, "{below} {file}");
        }
    }
}
