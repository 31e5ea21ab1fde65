//! The work on a claimed item in the item's worktree.

use crate::plimsoll_files::is_plimsoll_file;
use crate::run::branch::allowed_programs;
use crate::workers::board::UnfinishedWork;
use crate::workers::context::ParallelRun;
use plimsoll_domain::git_names::{CommitId, InvalidBranchName, InvalidCommitId};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_launcher::branch::{HeadState, read_head_state};
use plimsoll_launcher::wip::{WipCommitOutcome, commit_wip};
use plimsoll_launcher::{git, worktree};
use plimsoll_policy::workers::Claim;

/// Why the work on an item could not be committed to its branch.
#[derive(Debug, thiserror::Error)]
pub(super) enum ItemCommitError {
    #[error("its worktree now belongs to another repository")]
    OtherRepository,
    #[error("what it left uncommitted cannot be committed: {0}")]
    CommitRefused(String),
    #[error("its worktree is at none of the item's commits")]
    NotOnItemBranch,
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    BadBranch(#[from] InvalidBranchName),
}

/// The work on a claimed item.
pub(super) struct ItemWork<'a> {
    pub(super) parallel_run: ParallelRun<'a>,
    pub(super) claim: Claim,
}

impl ItemWork<'_> {
    /// Commits all uncommitted files, and moves the item's branch to the last commit, so that it is found
    /// after a kill. Returns that commit.
    pub(super) fn commit_all_and_move_item_branch(&self) -> Result<String, ItemCommitError> {
        let Claim { item_index: item, epoch } = self.claim;
        let workers_state = self.parallel_run.workers_state();
        let worktree = self.parallel_run.worktrees.item_worktree(item);
        let project = self.parallel_run.worktrees.project_in(&worktree);
        let repository = &self.parallel_run.worktrees.checkout.repository_root;
        if !self.parallel_run.worktrees.is_linked_worktree_of_project_repository(&worktree) {
            return Err(ItemCommitError::OtherRepository);
        }
        let message = format!(
            "plimsoll: what was left uncommitted of {}",
            truncate_end(&to_safe_single_line(&workers_state.board.items[item].text), 60)
        );
        let allowed_programs = allowed_programs(self.parallel_run.initial_state.options.runs_commit_hooks);
        if let WipCommitOutcome::Refused { reason: error } =
            commit_wip(project.root(), &message, &is_plimsoll_file, allowed_programs)
        {
            return Err(ItemCommitError::CommitRefused(error));
        }
        let end_commit = git::head_commit(&worktree).ok_or(ItemCommitError::NotOnItemBranch)?;
        let branch = workers_state.parse_attempt_branch(item, epoch)?;
        let base_commit = CommitId::parse(&workers_state.item_progress[item].base_commit_id)?;
        if !worktree::history_contains(repository, &end_commit, &base_commit) {
            return Err(ItemCommitError::NotOnItemBranch);
        }
        // A session may have switched to another branch. Its work belongs to the item's branch.
        let is_on_item_branch =
            read_head_state(&worktree).is_ok_and(|head| head == HeadState::Branch(branch.to_string()));
        let branch_tip = worktree::tip_of_branch(repository, &branch);
        if !is_on_item_branch
            && !worktree::move_or_create_branch_if_at_expected_tip(
                repository,
                &branch,
                branch_tip.as_ref(),
                &end_commit,
            )
        {
            return Err(ItemCommitError::NotOnItemBranch);
        }
        Ok(end_commit.into())
    }
}

impl UnfinishedWork for ItemWork<'_> {
    fn head_commit(&self) -> Option<String> {
        git::head_commit(&self.parallel_run.worktrees.item_worktree(self.claim.item_index)).map(String::from)
    }

    fn commit_uncommitted_files(&self) -> Option<String> {
        self.commit_all_and_move_item_branch().ok()
    }
}
