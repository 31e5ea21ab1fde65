//! Removes the worktrees of merged items.

use super::live_run::live_item_process;
use super::reporter::Reporter;
use crate::our_files::is_plimsoll_file;
use crate::run::branch::allowed_programs;
use crate::workers::context::ParallelRun;
use crate::workers::record_transfer;
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::text::to_single_line;
use plimsoll_domain::workers::WorkersState;
use plimsoll_launcher::wip::uncommitted_files;
use plimsoll_launcher::worktree;
use plimsoll_store::{Project, StoreError, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of uncommitted files that are named in a message.
const MAX_NAMED_FILES: usize = 10;

/// Removes worktrees, and remembers those that have to stay.
#[derive(Debug, Default)]
pub(super) struct MergedWorktreeCleanup {
    /// Items whose worktrees have to stay and that were reported to the user.
    reported_items: BTreeSet<usize>,
}

impl MergedWorktreeCleanup {
    /// Removes the worktrees of items that were merged by any machine, after copying their records. A
    /// worktree that has to stay is reported once. A worktree that a worker still uses is removed after its
    /// run has ended.
    pub(super) fn remove_merged_worktrees(
        &mut self,
        parallel_run: ParallelRun<'_>,
        items_in_work: &[usize],
        reporter: &mut Reporter<'_>,
    ) -> Result<(), StoreError> {
        let workers_state = parallel_run.workers_state();
        for (item, board_item) in workers_state.board.items.iter().enumerate() {
            let worktree = parallel_run.worktrees.item_worktree(item);
            // An item that was never claimed here has no worktree here.
            let is_never_worked_on_here = workers_state.item_progress[item].worker_number == 0;
            let must_stay = is_never_worked_on_here
                || items_in_work.contains(&item)
                || self.reported_items.contains(&item);
            if board_item.stage != ItemStage::Merged || must_stay || !disk::exists(&worktree) {
                continue;
            }
            let project = parallel_run.worktrees.project_in(&worktree);
            // Another attempt at the item has landed. The late run ends before its folder is removed.
            if live_item_process(&project, &workers_state.item_progress[item]).is_some() {
                continue;
            }
            // A client that outlived its run may have written notes since.
            parallel_run.target.carry_over_session_notes(item)?;
            let transfer = record_transfer::copy_records_to_project(&project, parallel_run.context.project)
                .map_err(|error| error.to_string());
            let removal = transfer
                .and_then(|()| {
                    describe_uncommitted_files(parallel_run, &project, &worktree).map_or(Ok(()), Err)
                })
                .and_then(|()| {
                    parallel_run.worktrees.remove_worktree(&worktree).map_err(|error| error.to_string())
                });
            match removal {
                Ok(()) => remove_merged_item_branches(parallel_run, &workers_state, item),
                Err(reason) => {
                    reporter.notify_observer_of_note(format!(
                        "the worktree of \"{}\" stays at {}: {reason}",
                        to_single_line(&board_item.text),
                        worktree.display()
                    ));
                    self.reported_items.insert(item);
                }
            }
        }
        Ok(())
    }
}

/// Describes the files of a worktree that are in no commit, because they look like secrets, are large, or are
/// under a filter that may not run. Returns `None` if there are no such files. The plan does not count: the
/// notes that sessions wrote into it were carried over.
fn describe_uncommitted_files(
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
    let is_expected_file =
        |name: &str| is_plimsoll_file(name) || plan_paths.contains(&project.root().join(name));
    let Some(files) = uncommitted_files(project.root(), &is_expected_file, allowed_programs) else {
        return Some("git does not say what is uncommitted there".to_owned());
    };
    let named_files: Vec<&str> = files.iter().take(MAX_NAMED_FILES).map(String::as_str).collect();
    let unnamed_count = files.len() - named_files.len();
    let unnamed_note = if unnamed_count == 0 { String::new() } else { format!(" and {unnamed_count} more") };
    (!files.is_empty()).then(|| {
        format!("these files are not committed: {}{unnamed_note}", to_single_line(&named_files.join(", ")))
    })
}

/// Removes the branches of a merged item. The branch of an earlier attempt is kept if the target does not
/// have all of its work, because an attempt after a conflict may have lost a change.
fn remove_merged_item_branches(parallel_run: ParallelRun<'_>, workers_state: &WorkersState, item: usize) {
    let repository = &parallel_run.worktrees.checkout.repository_root;
    let target_tip = parallel_run.target.last_seen_target_tip();
    let (merge_repository, plan_files) = (
        parallel_run.worktrees.merge_repository.own_repository(),
        parallel_run.worktrees.plan_files.all_paths(),
    );
    for epoch in 1..=workers_state.board.items[item].epoch {
        let Ok(branch) = workers_state.parse_attempt_branch(item, epoch) else { continue };
        let Some(branch_end) = worktree::tip_of_branch(repository, &branch) else { continue };
        let is_all_merged = || {
            let target_tip =
                target_tip.as_ref().filter(|_| merge_repository.fetch_commit_from_clone(&branch_end).is_ok());
            target_tip.is_some_and(|target_tip| {
                merge_repository.has_all_changes_of(target_tip, &branch_end, &plan_files)
            })
        };
        if epoch == workers_state.board.items[item].epoch || is_all_merged() {
            worktree::remove_branch_if_at(repository, &branch, &branch_end);
        }
    }
}
