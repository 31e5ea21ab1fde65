//! Removes the worktrees of merged items.

use super::live_run::live_recorded_process_or_lock_holder;
use super::reporter::Reporter;
use crate::plimsoll_files::is_plimsoll_file;
use crate::run::branch::allowed_programs;
use crate::workers::context::ParallelRun;
use crate::workers::record_transfer;
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::workers::WorkersState;
use plimsoll_launcher::wip::uncommitted_files;
use plimsoll_launcher::worktree;
use plimsoll_store::{Project, StoreError, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of uncommitted files that a notice names, so that it stays short; further files are only counted.
const MAX_LISTED_FILES: usize = 10;

/// Removes worktrees, and remembers those that must be kept.
#[derive(Debug, Default)]
pub(super) struct MergedWorktreeCleanup {
    /// Items whose worktrees must be kept and were reported to the user.
    reported_items: BTreeSet<usize>,
}

impl MergedWorktreeCleanup {
    /// Copies the records of items that were merged by any machine, and removes their worktrees. A worktree
    /// that must be kept is reported once. A worktree that a worker still uses is removed after its run has
    /// ended.
    pub(super) fn copy_records_and_remove_merged_worktrees(
        &mut self,
        parallel_run: ParallelRun<'_>,
        active_items: &[usize],
        reporter: &mut Reporter<'_>,
    ) -> Result<(), StoreError> {
        let workers_state = parallel_run.workers_state();
        for (item, board_item) in workers_state.board.items.iter().enumerate() {
            let worktree = parallel_run.worktrees.item_worktree(item);
            // An item that was never claimed here has no worktree here.
            let was_never_claimed_here = workers_state.item_progress[item].worker_number == 0;
            let must_keep =
                was_never_claimed_here || active_items.contains(&item) || self.reported_items.contains(&item);
            if board_item.stage != ItemStage::Merged || must_keep || !disk::exists(&worktree) {
                continue;
            }
            let project = parallel_run.worktrees.project_in(&worktree);
            // Another attempt at the item was merged. This run must end before its folder is removed.
            if live_recorded_process_or_lock_holder(&project, &workers_state.item_progress[item]).is_some() {
                continue;
            }
            // A client that outlived its run may have written notes since.
            parallel_run.target.carry_over_session_notes(item)?;
            let transfer_result = record_transfer::record_missing_turns_then_copy_and_verify(
                &project,
                parallel_run.context.project,
            )
            .map_err(|error| error.to_string());
            let removal_result = transfer_result
                .and_then(|()| {
                    describe_uncommitted_files_or_git_failure(parallel_run, &project, &worktree)
                        .map_or(Ok(()), Err)
                })
                .and_then(|()| {
                    parallel_run.worktrees.remove_worktree(&worktree).map_err(|error| error.to_string())
                });
            match removal_result {
                Ok(()) => remove_current_and_merged_attempt_branches(parallel_run, &workers_state, item),
                Err(reason) => {
                    reporter.send_notice_to_observer(format!(
                        "kept the worktree of \"{}\" at {}: {reason}",
                        to_safe_single_line(&board_item.text),
                        worktree.display()
                    ));
                    self.reported_items.insert(item);
                }
            }
        }
        Ok(())
    }
}

/// Describes the uncommitted files of a worktree, which look like secrets, are large, or need a filter that
/// may not run. Returns `None` if there are no such files, and a message if git fails. Plan files do not
/// count, because the notes in them were already copied.
fn describe_uncommitted_files_or_git_failure(
    parallel_run: ParallelRun<'_>,
    project: &Project,
    worktree: &Path,
) -> Option<String> {
    let allowed_programs = allowed_programs(parallel_run.initial_state.options.runs_commit_hooks);
    let plan_paths: Vec<PathBuf> = parallel_run
        .worktrees
        .plan_files
        .all_paths()
        .iter()
        .map(|plan| worktree.join(plan.as_str()))
        .collect();
    let is_plimsoll_or_plan_file =
        |name: &str| is_plimsoll_file(name) || plan_paths.contains(&project.root().join(name));
    let Some(files) = uncommitted_files(project.root(), &is_plimsoll_or_plan_file, allowed_programs) else {
        return Some("git cannot list the uncommitted files there".to_owned());
    };
    let listed_files: Vec<&str> = files.iter().take(MAX_LISTED_FILES).map(String::as_str).collect();
    let unlisted_count = files.len() - listed_files.len();
    let unlisted_suffix =
        if unlisted_count == 0 { String::new() } else { format!(" and {unlisted_count} more") };
    (!files.is_empty()).then(|| {
        format!(
            "these files are not committed: {}{unlisted_suffix}",
            to_safe_single_line(&listed_files.join(", "))
        )
    })
}

/// Removes the branches of a merged item. The branch of an earlier attempt is kept if the target lacks any of
/// its changes, because an attempt after a conflict may have lost a change.
fn remove_current_and_merged_attempt_branches(
    parallel_run: ParallelRun<'_>,
    workers_state: &WorkersState,
    item: usize,
) {
    let repository = &parallel_run.worktrees.checkout.repository_root;
    let target_tip = parallel_run.target.target_tip_without_fetch();
    let (merge_repository, plan_files) = (
        parallel_run.worktrees.merge_repository.plimsoll_repository(),
        parallel_run.worktrees.plan_files.all_paths(),
    );
    for epoch in 1..=workers_state.board.items[item].epoch {
        let Ok(branch) = workers_state.parse_attempt_branch(item, epoch) else { continue };
        let Some(branch_tip) = worktree::tip_of_branch(repository, &branch) else { continue };
        let is_fully_merged = || {
            let target_tip = target_tip
                .as_ref()
                .filter(|_| merge_repository.fetch_and_verify_commit_from_clone(&branch_tip).is_ok());
            target_tip.is_some_and(|target_tip| {
                merge_repository.target_contains_all_changes_of_commit(target_tip, &branch_tip, &plan_files)
            })
        };
        if epoch == workers_state.board.items[item].epoch || is_fully_merged() {
            worktree::remove_branch_if_at_expected_tip(repository, &branch, &branch_tip);
        }
    }
}
