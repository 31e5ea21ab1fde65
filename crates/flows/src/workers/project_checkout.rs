//! Checks whether several workers can share a plan in a repository: worktrees must be possible, and nothing
//! may be uncommitted, because workers would not see it.

use crate::plimsoll_files::is_plimsoll_file;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_launcher::branch::{BranchError, HeadState, has_tracked_changes, read_head_state};
use plimsoll_launcher::{git, worktree};
use plimsoll_store::{Project, layout};
use std::path::{Component, PathBuf};

/// The plan file of an item's own run. It is among the project's files, so that the client needs no
/// permission to edit it, and git is told to ignore it.
pub(super) const ITEM_PLAN_FILE: &str = "plimsoll-item.md";

/// Why workers cannot share a plan in this repository.
#[derive(Debug, thiserror::Error)]
pub enum UnsuitableRepository {
    /// The project is in no git repository.
    #[error("workers need a git repository, but {} is not in one: git init, then commit", .0.display())]
    NoRepository(PathBuf),
    /// The repository has no commit.
    #[error("workers need a commit to start from, but this repository has none: commit first")]
    NoCommit,
    /// HEAD is detached.
    #[error(
        "HEAD is detached, so there is no branch to merge the work into: check one out first (git switch BRANCH)"
    )]
    DetachedHead,
    /// The clone is shallow.
    #[error("this is a shallow clone, in which branches cannot be merged: git fetch --unshallow")]
    ShallowClone,
    /// The clone is partial.
    #[error(
        "this is a partial clone, which does not have all objects: Plimsoll cannot copy a repository to verify in; clone it without --filter"
    )]
    PartialClone,
    /// The repository has submodules.
    #[error("this repository has submodules, which worktrees do not have: run it without --workers")]
    Submodules,
    /// A tracked file other than Plimsoll's own has uncommitted changes.
    #[error(
        "there are uncommitted changes, which workers would not see: commit or stash them, then run this again"
    )]
    UncommittedChanges,
    /// Git tracks a file with the name of the item's plan.
    #[error("git tracks a file {ITEM_PLAN_FILE}, which workers need for their plan: rename it and commit")]
    ItemPlanIsTracked,
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] BranchError),
}

/// The git checkout that the project is in.
#[derive(Debug, Clone)]
pub struct ProjectCheckout {
    /// The root of the repository's working tree.
    pub repository_root: PathBuf,
    /// The path of the project below the root; empty if the project is at the root.
    pub project_path: PathBuf,
    pub branch: String,
    /// The last commit of the branch.
    pub head_commit: CommitId,
}

impl ProjectCheckout {
    /// Returns the repository path of a file whose path is relative to the project. Returns `None` for a file
    /// outside of the repository.
    pub(super) fn path_in_repository_unless_outside(&self, file: &str) -> Option<RepoPath> {
        let full_path = self.repository_root.join(&self.project_path).join(file);
        let mut parts: Vec<&str> = Vec::new();
        for part in full_path.strip_prefix(&self.repository_root).ok()?.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(parts.pop()?),
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        RepoPath::parse(&parts.join("/")).ok()
    }

    /// Returns true if git tracks a file whose path is relative to the project.
    pub(super) fn is_tracked(&self, file: &str) -> bool {
        self.path_in_repository_unless_outside(file)
            .is_some_and(|path| !git::tracked_files_at_or_below(&self.repository_root, &[path]).is_empty())
    }
}

/// Checks that a parallel run can begin here. Writes nothing.
pub fn check_suitable_for_workers(project: &Project) -> Result<ProjectCheckout, UnsuitableRepository> {
    let checkout = read_checkout_with_branch_and_head(project)?;
    match worktree::worktree_obstacle(&checkout.repository_root) {
        Some(worktree::WorktreeObstacle::ShallowClone) => return Err(UnsuitableRepository::ShallowClone),
        Some(worktree::WorktreeObstacle::PartialClone) => return Err(UnsuitableRepository::PartialClone),
        Some(worktree::WorktreeObstacle::Submodules) => return Err(UnsuitableRepository::Submodules),
        None => {}
    }
    if git::is_tracked(project.root(), ITEM_PLAN_FILE) {
        return Err(UnsuitableRepository::ItemPlanIsTracked);
    }
    if has_tracked_changes(project.root(), &is_plimsoll_file)? {
        return Err(UnsuitableRepository::UncommittedChanges);
    }
    Ok(checkout)
}

/// Reads the checkout of a project. Fails if there is no commit or HEAD is detached. Uncommitted changes are
/// ignored, because a resumed run may have them.
pub fn read_checkout_with_branch_and_head(
    project: &Project,
) -> Result<ProjectCheckout, UnsuitableRepository> {
    let project_root = project.root();
    let no_repository_error = || UnsuitableRepository::NoRepository(project_root.to_owned());
    let (repository_root, _) = layout::find_repository(project_root).ok_or_else(no_repository_error)?;
    let branch = match read_head_state(project_root)? {
        HeadState::NoRepository => return Err(no_repository_error()),
        HeadState::NoCommit => return Err(UnsuitableRepository::NoCommit),
        HeadState::Detached => return Err(UnsuitableRepository::DetachedHead),
        HeadState::Branch(name) => name,
    };
    let project_path = project_root.strip_prefix(repository_root).map(PathBuf::from).unwrap_or_default();
    let head_commit = git::head_commit(project_root).ok_or(UnsuitableRepository::NoCommit)?;
    Ok(ProjectCheckout { repository_root: repository_root.to_owned(), project_path, branch, head_commit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_plan_are_normalized_below_the_repository_root() {
        let commit = CommitId::parse(&"a".repeat(40)).unwrap();
        let checkout = |project_path: &str| ProjectCheckout {
            repository_root: PathBuf::from("/home/me/repo"),
            project_path: PathBuf::from(project_path),
            branch: "main".to_owned(),
            head_commit: commit.clone(),
        };
        for (project_path, file, expected) in [
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
            let path = checkout(project_path).path_in_repository_unless_outside(file);
            assert_eq!(path.as_ref().map(RepoPath::as_str), expected, "{project_path} {file}");
        }
    }
}
