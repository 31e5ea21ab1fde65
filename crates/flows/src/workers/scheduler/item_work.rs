//! What a run has left of an item, in the item's worktree.

use crate::our_files::is_ours;
use crate::run::branch::allowed_programs;
use crate::workers::board::UnfinishedWork;
use crate::workers::context::ParallelRun;
use plimsoll_domain::git_names::{CommitId, InvalidBranchName, InvalidCommitId};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_launcher::branch::{Head, head};
use plimsoll_launcher::wip::{Wip, commit_wip};
use plimsoll_launcher::{git, worktree};
use plimsoll_policy::workers::Claim;

/// Why the work of a run that is done cannot be taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotOffered {
    #[error("its worktree belongs to another repository by now")]
    OtherRepository,
    #[error("what it left uncommitted cannot be committed: {0}")]
    Uncommitted(String),
    #[error("its worktree stands on none of the item's commits")]
    Elsewhere,
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    BadBranch(#[from] InvalidBranchName),
}

/// The work on an item that was claimed.
pub(super) struct ItemWork<'a> {
    pub(super) run: ParallelRun<'a>,
    pub(super) claim: Claim,
}

impl ItemWork<'_> {
    /// Commits what is not committed, and returns the end of the item's commits, which its branch names: a kill after this finds
    /// them there.
    pub(super) fn commit(&self) -> Result<String, NotOffered> {
        let Claim { item, epoch } = self.claim;
        let now = self.run.record();
        let tree = self.run.trees.of_item(item);
        let project = self.run.trees.project(&tree);
        let repository = &self.run.trees.ground.repository;
        if !self.run.trees.is_ours(&tree) {
            return Err(NotOffered::OtherRepository);
        }
        let message = format!(
            "plimsoll: what was left uncommitted of {}",
            clip(&one_line(&now.board.items[item].text), 60)
        );
        let allowed = allowed_programs(self.run.state.options.commit_hooks);
        if let Wip::Refused { why } = commit_wip(project.root(), &message, &is_ours, allowed) {
            return Err(NotOffered::Uncommitted(why));
        }
        let end = git::head(&tree).ok_or(NotOffered::Elsewhere)?;
        let branch = now.attempt_branch(item, epoch)?;
        let beyond = CommitId::parse(&now.works[item].beyond)?;
        if !worktree::contains(repository, &end, &beyond) {
            return Err(NotOffered::Elsewhere);
        }
        // A session may have begun a branch of its own: its work is this one's.
        let is_on_it = head(&tree).is_ok_and(|head| head == Head::Branch(branch.to_string()));
        let before = worktree::end_of(repository, &branch);
        if !is_on_it && !worktree::move_branch(repository, &branch, before.as_ref(), &end) {
            return Err(NotOffered::Elsewhere);
        }
        Ok(end.into())
    }
}

impl UnfinishedWork for ItemWork<'_> {
    fn head(&self) -> Option<String> {
        git::head(&self.run.trees.of_item(self.claim.item)).map(String::from)
    }

    fn commit_all(&self) -> Option<String> {
        self.commit().ok()
    }
}
