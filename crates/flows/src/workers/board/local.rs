//! The board of a run on a single machine: the record of that machine, which no other process changes.

use super::{
    Board, SchedulerOrders, UnfinishedWork, WorkersPause, local_now, write_merge_candidate_commits,
    write_next_start_commit,
};
use crate::run::Interrupt;
use crate::workers::closing_reason::ClosingReason;
use crate::workers::connection::{LocalWorkerReport, RejectedItem};
use crate::workers::error::MergeError;
use crate::workers::item_budget::ItemBudget;
use crate::workers::shown_plan::reopen_answered_items;
use crate::workers::workers_file::WorkersFile;
use plimsoll_domain::board::{BoardItem, BoardMillis, ItemStage, SetAsideReason};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_launcher::worktree;
use plimsoll_policy::workers::{
    BoardProgress, Claim, acquire_or_renew_merger_lease, claim_next_item, classify_board_progress,
    items_to_merge, mark_claimed_item_ready_to_merge, mark_items_in_target_as_merged,
    pause_claims_at_least_until, renew_claim_unless_expired_and_area_taken, reopen_conflicting_item,
    reopen_or_set_aside_after_failed_attempt, reopen_or_set_aside_rejected_item, set_claimed_item_aside,
};
use plimsoll_store::{Project, StoreError};
use std::path::PathBuf;

/// The name of the merger; there is only one.
const MERGER_NAME: &str = "merger";

pub(in super::super) struct LocalBoard {
    workers_file: WorkersFile,
    project: Project,
    /// The clone that has the target branch.
    repository: PathBuf,
    clock: fn() -> BoardMillis,
}

impl LocalBoard {
    /// Returns the board that this record contains.
    pub(in super::super) fn new(
        workers_file: WorkersFile,
        project: &Project,
        repository: PathBuf,
    ) -> LocalBoard {
        LocalBoard { workers_file, project: project.clone(), repository, clock: local_now }
    }

    /// Replaces the clock.
    #[cfg(test)]
    pub(super) fn with_clock(self, clock: fn() -> BoardMillis) -> LocalBoard {
        LocalBoard { clock, ..self }
    }

    /// Returns the last commit of the target branch; empty if the branch does not exist.
    fn target_tip(&self) -> String {
        let target_branch = self.workers_file.workers_state().parse_target_branch().ok();
        target_branch
            .and_then(|target_branch| worktree::tip_of_branch(&self.repository, &target_branch))
            .map_or(String::new(), String::from)
    }
}

impl Board for LocalBoard {
    fn workers_file(&self) -> &WorkersFile {
        &self.workers_file
    }

    fn board_now(&self) -> BoardMillis {
        (self.clock)()
    }

    fn paused_until(&self) -> BoardMillis {
        self.workers_file.workers_state().board.paused_until
    }

    fn pause_all_workers(
        &self,
        WorkersPause { ends_at, is_daily_limit }: &WorkersPause,
    ) -> Result<bool, StoreError> {
        let is_new = *ends_at > self.paused_until();
        self.workers_file.update_and_write_file(|workers| {
            pause_claims_at_least_until(&mut workers.board, *ends_at);
            if is_new {
                workers.waits_for_next_day = *is_daily_limit;
            }
        })?;
        Ok(is_new)
    }

    fn can_claim_item(&self, _: &[Claim]) -> bool {
        classify_board_progress(&self.workers_file.workers_state().board, self.board_now())
            == BoardProgress::ItemAvailable
    }

    fn claim_next_item(
        &self,
        worker_number: usize,
        worker_claims: &[Claim],
        continues_run: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError> {
        let (target_tip, now) = (self.target_tip(), self.board_now());
        self.workers_file.update_and_write_file(|workers| {
            for worker_claim in worker_claims {
                // A claim with a stale epoch is already merged; the cleanup ends its run.
                let _ = renew_claim_unless_expired_and_area_taken(&mut workers.board, *worker_claim, now);
            }
            let claim = claim_next_item(&mut workers.board, &format!("worker {worker_number}"), now)?;
            workers.move_current_usage_to_earlier_totals(claim.item_index, continues_run(claim.item_index));
            let item_progress = &mut workers.item_progress[claim.item_index];
            item_progress.worker_number = worker_number;
            item_progress.pid = None;
            if item_progress.start_commit_id.is_empty() {
                (item_progress.start_commit_id, item_progress.base_commit_id) =
                    (target_tip.clone(), target_tip);
            }
            Some(claim)
        })
    }

    /// Returns true, because no other machine takes items.
    fn is_claim_valid(&self, _: Claim) -> bool {
        true
    }

    fn claims_to_recover(&self) -> Vec<Claim> {
        let is_leased = |board_item: &BoardItem| matches!(board_item.stage, ItemStage::Leased { .. });
        let workers_state = self.workers_file.workers_state();
        let leased_items =
            workers_state.board.items.iter().enumerate().filter(|(_, board_item)| is_leased(board_item));
        leased_items.map(|(item, board_item)| Claim { item_index: item, epoch: board_item.epoch }).collect()
    }

    /// Does nothing. Leases are renewed when the next item is claimed, because only then do they matter.
    fn set_leases_to_renew(&self, _: Vec<Claim>, _: bool, _: &dyn Fn() -> Vec<LocalWorkerReport>) {}

    fn reserve_item_budget(&self, _: usize, _: usize, local_budget: ItemBudget) -> ItemBudget {
        local_budget
    }

    fn mark_work_ready_to_merge(&self, claim: Claim, end_commit: &str) -> Result<(), StoreError> {
        self.workers_file.update_and_write_file(|workers| {
            workers.item_progress[claim.item_index].pid = None;
            // A stale epoch means that the item is already merged.
            let _ = mark_claimed_item_ready_to_merge(&mut workers.board, claim, end_commit);
        })
    }

    fn record_failed_attempt(
        &self,
        claim: Claim,
        reason: &str,
        next_start_commit: Option<String>,
    ) -> Result<bool, StoreError> {
        self.workers_file.update_and_write_file(|workers| {
            let _ = reopen_or_set_aside_after_failed_attempt(&mut workers.board, claim, reason);
            workers.item_progress[claim.item_index].pid = None;
            // The next attempt continues from the commits of this one.
            if let Some(next_start_commit) = next_start_commit {
                workers.item_progress[claim.item_index].start_commit_id = next_start_commit;
            }
            matches!(workers.board.items[claim.item_index].stage, ItemStage::SetAside { .. })
        })
    }

    fn park_item(
        &self,
        claim: Claim,
        question: &str,
        unfinished_work: &dyn UnfinishedWork,
    ) -> Result<(), StoreError> {
        self.workers_file.update_and_write_file(|workers| {
            workers.item_progress[claim.item_index].pid = None;
            let _ = set_claimed_item_aside(
                &mut workers.board,
                claim,
                SetAsideReason::Question(question.to_owned()),
            );
        })?;
        // The next session continues from the unfinished work.
        let head_commit = unfinished_work.head_commit().unwrap_or_default();
        self.workers_file.update_and_write_file(|workers| {
            workers.item_progress[claim.item_index].start_commit_id = head_commit;
        })
    }

    /// Does nothing. The item stays with its worker, and the next `--resume` continues it.
    fn release_claim(&self, _: Claim, _: &dyn UnfinishedWork) -> Result<(), StoreError> {
        Ok(())
    }

    fn keep_branch_of_lost_claim(&self, _: Claim, _: &dyn UnfinishedWork) -> Result<(), StoreError> {
        Ok(())
    }

    fn reopen_answered_items(&self) -> Result<bool, StoreError> {
        reopen_answered_items(&self.project, &self.workers_file)
    }

    fn scheduler_orders(&self, _: Option<&ClosingReason>) -> SchedulerOrders {
        SchedulerOrders::default()
    }

    fn should_wait_for_delivery(&self, _: Option<Interrupt>, _: bool) -> bool {
        false
    }

    fn closing_reason_if_drained(&self) -> Option<ClosingReason> {
        None
    }

    fn leave_fleet(&self, _: &[RepoPath], _: &dyn Fn() -> bool) {}

    fn items_to_merge(&self, include_waiting: bool) -> Vec<usize> {
        items_to_merge(&self.workers_file.workers_state().board, include_waiting)
    }

    fn try_begin_merge_round(&self) -> bool {
        true
    }

    fn should_wait_for_merges(&self, _: bool) -> bool {
        true
    }

    fn acquire_merger_lease(&self, _: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError> {
        let now = self.board_now();
        Ok(self.workers_file.update_and_write_file(|workers| {
            acquire_or_renew_merger_lease(&mut workers.board, MERGER_NAME, now)
        })?)
    }

    fn mark_items_in_target_as_merged(
        &self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
        _: &[(usize, CommitId)],
        _: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        self.workers_file.update_and_write_file(|workers| {
            mark_items_in_target_as_merged(&mut workers.board, is_in_target)
        })?;
        Ok(())
    }

    fn record_passed_commands(&self, commands: &[String], _: &dyn Fn() -> bool) -> Result<(), MergeError> {
        Ok(self.workers_file.update_and_write_file(|workers| workers.record_passed_commands(commands))?)
    }

    fn record_merge_candidate_commits(
        &self,
        merger_epoch: u64,
        landing_commits: &[(usize, &CommitId)],
        _: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        Ok(write_merge_candidate_commits(&self.workers_file, merger_epoch, landing_commits)?)
    }

    fn reject_merge_candidate(
        &self,
        rejected_item: &RejectedItem,
        conflict_files: &[String],
        _: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        let RejectedItem { merger_epoch: merger, item, next_session_note: note, .. } = rejected_item;
        Ok(self.workers_file.update_and_write_file(|workers| {
            let board = &mut workers.board;
            // A stale epoch means that the item is already merged.
            let _ = if conflict_files.is_empty() {
                reopen_or_set_aside_rejected_item(board, *merger, *item, note)
            } else {
                reopen_conflicting_item(board, *merger, *item, note, conflict_files)
            };
            write_next_start_commit(workers, rejected_item)
        })?)
    }
}
