//! The target of a run on one machine: a branch of the clone.

use super::merged_items::TargetContents;
use super::{CompletionCheck, OfferedWork, Target};
use crate::workers::error::MergeError;
use crate::workers::returned_work_store;
use crate::workers::session_notes::{add_redacted_notes_of_shown_plan, add_session_notes_to_shown_plan};
use crate::workers::shown_plan::read_shown_plan_or_user_plan;
use crate::workers::workers_file::WorkersFile;
use crate::workers::worktrees::{WorktreeSetupError, WorktreeSpec, Worktrees};
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{RunState, TodoList};
use plimsoll_launcher::branch::check_not_checked_out_elsewhere;
use plimsoll_launcher::plimsoll_repository::{PlimsollRepository, PlimsollRepositoryError};
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree;
use plimsoll_policy::todo_list::render_unclear_lines_if_no_item_open;
use plimsoll_policy::workers::Claim;
use plimsoll_store::{Project, StoreError, clock, disk};
use std::path::Path;

pub(in super::super) struct LocalTarget<'a> {
    workers_file: &'a WorkersFile,
    project: &'a Project,
    run_state: &'a RunState,
    worktrees: &'a Worktrees,
}

impl<'a> LocalTarget<'a> {
    /// Returns the target of the run with this record.
    pub(in super::super) fn new(
        workers_file: &'a WorkersFile,
        project: &'a Project,
        run_state: &'a RunState,
        worktrees: &'a Worktrees,
    ) -> LocalTarget<'a> {
        LocalTarget { workers_file, project, run_state, worktrees }
    }

    fn repository(&self) -> &Path {
        &self.worktrees.checkout.repository_root
    }

    fn merge_repository(&self) -> &PlimsollRepository {
        self.worktrees.merge_repository.plimsoll_repository()
    }

    /// Returns why the clone's branch is not what was verified, if that is so. Everything was verified in our
    /// own repository, but the user has the clone.
    fn unverified_target_reason(&self, workers_state: &WorkersState) -> Option<String> {
        let branch_text = to_safe_single_line(&workers_state.target_branch_name);
        let Some(target_tip) = self.target_tip_without_fetch() else {
            return Some(format!("the branch `{branch_text}` is gone"));
        };
        let attempted_commits = workers_state.board.items.iter().flat_map(|row| &row.attempted_merge_commits);
        if !attempted_commits
            .chain([&workers_state.start_commit_id])
            .any(|commit| commit == target_tip.as_str())
        {
            return Some(format!(
                "every item is merged, and something other than this run moved `{branch_text}` to {target_tip}, which was not verified: look at it (git log {branch_text})"
            ));
        }
        let run_start = clock::parse_timestamp(&self.run_state.project_at_start.started_at)?;
        let clone_check = self.merge_repository().verify_clone_objects_written_since(run_start.into());
        clone_check.err().map(|error| format!("every item is merged and verified, and {error}; see git fsck"))
    }

    /// Returns a message about lines that came into the plan since the run began and that look like items but
    /// are none.
    fn unclear_lines_reason(&self, workers_state: &WorkersState) -> Option<String> {
        let plans = [
            read_shown_plan_or_user_plan(self.project, workers_state).ok(),
            disk::read(&self.project.root().join(&workers_state.plan_path)).ok().flatten(),
        ];
        plans.into_iter().flatten().find_map(|plan| {
            let unclear_lines = TodoList::parse(&String::from_utf8_lossy(&plan)).unclear_lines;
            // The user's own file lacks ticks of the run, so only unclear lines count here.
            render_unclear_lines_if_no_item_open(
                &TodoList { unclear_lines, ..TodoList::default() },
                &workers_state.plan_path,
            )
        })
    }
}

impl Target for LocalTarget<'_> {
    fn fetch_target_tip(&self, _: &[usize], _: &dyn Fn() -> bool) -> Result<CommitId, MergeError> {
        let workers_state = self.workers_file.workers_state();
        let target_tip = worktree::tip_of_branch(self.repository(), &workers_state.parse_target_branch()?);
        let target_tip =
            target_tip.ok_or(MergeError::TargetBranchMissing(workers_state.target_branch_name))?;
        self.merge_repository().fetch_and_verify_commit_from_clone(&target_tip)?;
        Ok(target_tip)
    }

    fn target_tip_without_fetch(&self) -> Option<CommitId> {
        worktree::tip_of_branch(
            self.repository(),
            &self.workers_file.workers_state().parse_target_branch().ok()?,
        )
    }

    /// Returns nothing: the record has the landings.
    /// Does not look at the plan: only this machine writes the record of the run.
    fn read_contents(
        &self,
        start_commit: &CommitId,
        target_tip: &CommitId,
    ) -> Result<TargetContents, PlimsollRepositoryError> {
        let repository = self.worktrees.merge_repository.plimsoll_repository();
        TargetContents::read(repository, start_commit, target_tip, None)
    }

    fn recorded_merge_candidates(&self) -> Vec<(usize, CommitId)> {
        Vec::new()
    }

    fn copy_work_into_merge_repository(
        &self,
        _: usize,
        commit: &CommitId,
        _: &dyn Fn() -> bool,
    ) -> Result<OfferedWork, MergeError> {
        let copy_result = self.merge_repository().fetch_and_verify_commit_from_clone(commit);
        Ok(copy_result.map_or_else(OfferedWork::Unavailable, |()| OfferedWork::Available))
    }

    fn move_target_forward(
        &self,
        from: &CommitId,
        to: &CommitId,
        _: &[(usize, &CommitId)],
        _: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        let workers_state = self.workers_file.workers_state();
        let target_branch = workers_state.parse_target_branch()?;
        if check_not_checked_out_elsewhere(self.repository(), &target_branch).is_err() {
            return Err(MergeError::TargetBranchCheckedOut(workers_state.target_branch_name));
        }
        self.merge_repository().transfer_commit_to_clone_without_reference(to)?;
        Ok(worktree::move_or_create_branch_if_at_expected_tip(
            self.repository(),
            &target_branch,
            Some(from),
            to,
        ))
    }

    /// Does nothing: the branches of an item are removed with its worktree.
    fn remove_branches_of_merged_items(&self, _: &[(usize, u64)], _: &dyn Fn() -> bool) {}

    fn add_work_pushed_to_remote(
        &self,
        worktree_spec: WorktreeSpec,
        _: &dyn Fn() -> bool,
    ) -> Result<WorktreeSpec, WorktreeSetupError> {
        Ok(worktree_spec)
    }

    /// Does nothing: the clone is on this machine.
    fn record_outage(&self, _: &RemoteError) {}

    fn load_returned_work(&self, item: usize) -> Option<ReturnedWork> {
        returned_work_store::load_or_convert_board_note(
            self.project,
            self.run_state,
            &self.workers_file.workers_state(),
            item,
        )
    }

    fn save_returned_work_and_start_commit(
        &self,
        Claim { item_index: item, .. }: Claim,
        returned_work: &ReturnedWork,
        start_commit: Option<CommitId>,
        _: &dyn Fn() -> bool,
    ) -> Result<Option<CommitId>, MergeError> {
        if let Some(saved_commit) = &start_commit {
            // The item's next worktree begins at this commit, so the clone needs it.
            self.merge_repository().transfer_commit_to_clone_without_reference(saved_commit)?;
        }
        // Saved before the record, because the next attempt reads it.
        returned_work_store::save(self.project, self.run_state, item, returned_work)?;
        Ok(start_commit)
    }

    fn publish_work(&self, commit: &CommitId) -> bool {
        self.merge_repository().transfer_commit_to_clone_without_reference(commit).is_ok()
    }

    fn branch_or_commit_of_work(
        &self,
        workers_state: &WorkersState,
        item: usize,
        end_commit: &CommitId,
    ) -> String {
        match &workers_state.board.items[item].stage {
            // If a session's plan changes were dropped, the work is a different commit from the offered one.
            ItemStage::ReadyToMerge { commit } if commit != end_commit.as_str() => end_commit.to_string(),
            ItemStage::ReadyToMerge { .. }
            | ItemStage::Open
            | ItemStage::Leased { .. }
            | ItemStage::Merged
            | ItemStage::SetAside { .. } => {
                workers_state.attempt_branch_name(item, workers_state.board.items[item].epoch)
            }
        }
    }

    fn carry_over_session_notes(&self, item: usize) -> Result<(), StoreError> {
        add_session_notes_to_shown_plan(
            self.project,
            &self.workers_file.workers_state(),
            self.worktrees,
            item,
        )
    }

    /// Adds all notes of the shown plan, not only those of this item.
    fn add_session_notes_to_plan(&self, plan: Vec<u8>, _: usize) -> Result<Vec<u8>, StoreError> {
        Ok(add_redacted_notes_of_shown_plan(
            &plan,
            &read_shown_plan_or_user_plan(self.project, &self.workers_file.workers_state())?,
        ))
    }

    fn read_plan_with_late_notes(&self) -> Result<Option<Vec<u8>>, StoreError> {
        read_shown_plan_or_user_plan(self.project, &self.workers_file.workers_state()).map(Some)
    }

    fn check_completed_run(&self) -> CompletionCheck {
        let workers_state = self.workers_file.workers_state();
        let objection = self
            .unverified_target_reason(&workers_state)
            .or_else(|| self.unclear_lines_reason(&workers_state));
        // Warns about settings that make git show a different history in this clone than in other clones.
        CompletionCheck { notes: worktree::history_override_warnings(self.repository()), objection }
    }
}
