//! Prepares a parallel run before its first item, and starts items: claims an item, prepares its worktree and
//! starts its run, or records that this failed.

use super::live_run::{self, live_recorded_process_or_lock_holder};
use super::{ClosingReason, FILE_POLL_INTERVAL, Scheduler};
use crate::run::{RunEvent, baseline, daily_spending};
use crate::workers::error::MergeError;
use crate::workers::item_budget::{ItemBudget, compute_item_budget};
use crate::workers::item_run::{self, ItemRunLaunch};
use crate::workers::merger::Merger;
use crate::workers::retry::{START_TIMEOUT, retry_while_transient};
use crate::workers::returned_work_store;
use crate::workers::shown_plan::read_plan_item_with_answers;
use crate::workers::slot::{Slot, SlotStage};
use crate::workers::worktrees::{WorktreeSetupError, WorktreeSpec};
use crate::workers::{WorkersError, task_file_path};
use plimsoll_domain::item_brief::{ItemBrief, ReturnReason, ReturnedWork};
use plimsoll_domain::journal::{ItemReturned, JournalEvent, WorkerStarted};
use plimsoll_domain::workers::WorkersState;
use plimsoll_launcher::process::ProcessIdentity;
use plimsoll_policy::workers::Claim;
use std::time::Instant;

impl<'scope> Scheduler<'scope, '_> {
    /// Prepares the worktree in which results are merged, and records which verify commands pass there.
    pub(super) fn prepare_merge_worktree_and_record_baseline(&mut self) -> Result<(), WorkersError> {
        let should_abort = self.abort_flag.first_interrupt_check();
        let mut merger = Merger::new(
            self.parallel_run,
            &should_abort,
            self.reporter.event_sender(),
            self.should_merge_waiting_items(),
        );
        let to_verify_error = |error: MergeError| WorkersError::CannotRunVerifyCommands(error.to_string());
        let target_tip =
            retry_while_transient(START_TIMEOUT, &should_abort, MergeError::is_transient, || {
                merger.fetch_target_and_mark_merged_items()
            })
            .map_err(to_verify_error)?;
        let preparation_result =
            self.parallel_run.worktrees.prepare_merge_worktree_unless_ready(&target_tip, &should_abort);
        if should_abort() {
            self.closing_reason = Some(ClosingReason::Interrupted);
            return Ok(());
        }
        preparation_result.map_err(|error| WorkersError::CannotPrepareMergeWorktree(error.to_string()))?;
        let verify_commands = &self.parallel_run.initial_state.options.verify_commands;
        if !verify_commands.is_empty() && self.parallel_run.workers_state().passed_verify_commands.is_empty()
        {
            self.reporter.notify_observer(&RunEvent::Notice(baseline::render_baseline_start_notice(
                self.parallel_run.initial_state,
                verify_commands,
            )));
            match retry_while_transient(START_TIMEOUT, &should_abort, MergeError::is_transient, || {
                merger.verify_target_and_record_passed_commands()
            }) {
                Err(MergeError::Aborted) => self.closing_reason = Some(ClosingReason::Interrupted),
                baseline_result => baseline_result.map_err(to_verify_error)?,
            }
        }
        self.remove_merged_worktrees()?;
        Ok(self.parallel_run.update_shown_plan_and_state()?)
    }

    /// Recovers the items that an earlier process has left: live runs are monitored, items whose claim is no longer
    /// valid are dropped, ended runs are evaluated, and the worktrees of the others are prepared again.
    pub(super) fn recover_items_of_earlier_process(&mut self) -> Result<(), WorkersError> {
        let workers_state = self.parallel_run.workers_state();
        self.slots.resize_with(self.parallel_run.worker_count(), || None);
        for claim in self.parallel_run.board.claims_to_recover() {
            let mut slot_index =
                workers_state.item_progress[claim.item_index].worker_number.saturating_sub(1);
            if self.slots.get(slot_index).is_some_and(Option::is_some) {
                slot_index = self.slots.len();
            }
            if self.slots.len() <= slot_index {
                self.slots.resize_with(slot_index + 1, || None);
            }
            let slot = Slot {
                worker_number: slot_index + 1,
                claim,
                stage: SlotStage::Waiting,
                requested_interrupt: None,
            };
            let recovered_slot = self.recover_claimed_item(slot, &workers_state)?;
            self.slots[slot_index] = recovered_slot;
        }
        Ok(())
    }

    fn recover_claimed_item(
        &mut self,
        mut slot: Slot<'scope>,
        workers_state: &WorkersState,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        let item = slot.claim.item_index;
        let project = self.parallel_run.item_project(item);
        if let Some(client) =
            live_recorded_process_or_lock_holder(&project, &workers_state.item_progress[item])
        {
            if let Some(process_identity) = client.identity() {
                self.parallel_run.update_workers_state(|workers| {
                    let item_progress = &mut workers.item_progress[item];
                    (item_progress.pid, item_progress.process_start_ticks) =
                        (Some(process_identity.pid), process_identity.start_time);
                })?;
            }
            slot.stage = SlotStage::Running(client);
            return Ok(Some(slot));
        }
        if !self.parallel_run.board.is_claim_valid(slot.claim) {
            self.parallel_run.update_workers_state(|workers| workers.item_progress[item].pid = None)?;
            return Ok(None);
        }
        let item_progress = &workers_state.item_progress[item];
        if item_run::has_current_run_ended(&project, &item_progress.earlier_run_id)
            && item_progress.pid.is_some()
        {
            return self.handle_item_run_end(slot, &plimsoll_domain::ProcessExit::default());
        }
        self.parallel_run.update_workers_state(|workers| workers.item_progress[item].pid = None)?;
        self.spawn_worktree_preparation(slot).map(Some)
    }

    /// If a worker is free, claims the next item and starts to prepare its worktree.
    pub(super) fn claim_next_item_and_prepare_worktree(&mut self) -> Result<(), WorkersError> {
        let free_slot =
            (0..self.parallel_run.worker_count()).find(|slot_index| self.slots[*slot_index].is_none());
        let (Some(slot_index), None) = (free_slot, &self.closing_reason) else { return Ok(()) };
        let (board, worker, worker_claims) = (self.parallel_run.board, slot_index + 1, self.worker_claims());
        if board.is_paused()
            || !board.can_claim_item(&worker_claims)
            || !self.start_stagger.try_start_worker_unless_other_just_started(worker)
        {
            return Ok(());
        }
        let has_run_to_continue = |item| item_run::has_run_to_continue(&self.parallel_run.item_project(item));
        let Some(claim) = board.claim_next_item(worker, &worker_claims, &has_run_to_continue)? else {
            return Ok(());
        };
        let slot =
            Slot { worker_number: worker, claim, stage: SlotStage::Waiting, requested_interrupt: None };
        self.slots[slot_index] = Some(self.spawn_worktree_preparation(slot)?);
        Ok(())
    }

    /// Starts a thread that prepares the worktree of an item. Before that, copies the notes of its sessions.
    fn spawn_worktree_preparation(&mut self, mut slot: Slot<'scope>) -> Result<Slot<'scope>, WorkersError> {
        let Claim { item_index: item, epoch } = slot.claim;
        let (workers_state, parallel_run) = (self.parallel_run.workers_state(), self.parallel_run);
        parallel_run.target.carry_over_session_notes(item)?;
        let worktree_spec = WorktreeSpec {
            item_index: item,
            worker_number: slot.worker_number,
            branch: workers_state
                .parse_attempt_branch(item, epoch)
                .map_err(|error| WorkersError::CannotCreateTarget(error.0))?,
            start_commit: workers_state.item_progress[item].parse_start_commit().and_then(Result::ok),
            plan_item: read_plan_item_with_answers(parallel_run.context.project, &workers_state, item)?,
            keeps_existing_plan: item_run::keeps_existing_plan(&parallel_run.item_project(item)),
            returned_work: parallel_run.target.load_returned_work(item),
        };
        let should_abort = self.abort_flag.first_interrupt_check();
        let handle = self.scope.spawn(move || {
            parallel_run.worktrees.prepare_item_worktree(
                &parallel_run.target.add_work_pushed_to_remote(worktree_spec, &should_abort)?,
                &should_abort,
            )
        });
        slot.stage = SlotStage::Preparing(handle);
        Ok(slot)
    }

    /// Handles a change of a worker's stage. Returns the worker's slot, or `None` if the worker is free.
    pub(super) fn advance_worker(
        &mut self,
        mut slot: Slot<'scope>,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        if let Some(exit) = slot.take_exit_if_ended() {
            return self.handle_item_run_end(slot, &exit);
        }
        let (board, claim) = (self.parallel_run.board, slot.claim);
        let is_still_claimed = || board.is_claim_valid(claim);
        match slot.stage {
            SlotStage::Running(_) => Ok(Some(slot)),
            SlotStage::Preparing(handle) if !handle.is_finished() => {
                Ok(Some(Slot { stage: SlotStage::Preparing(handle), ..slot }))
            }
            // The claim is released; on one machine the item stays with its worker, and the next `--resume`
            // continues it.
            SlotStage::Preparing(handle) if self.closing_reason.is_some() => {
                drop(handle.join());
                self.release_claim(&Slot { stage: SlotStage::Waiting, ..slot }).map(|()| None)
            }
            SlotStage::Preparing(handle) => {
                let slot = Slot { stage: SlotStage::Waiting, ..slot };
                match handle.join() {
                    _ if !is_still_claimed() => Ok(None),
                    Ok(Ok(())) => self.start_item_run_if_affordable(slot),
                    // An unreachable remote does not count as a failed attempt: the item is released and
                    // claimed again once the remote is reachable.
                    Ok(Err(WorktreeSetupError::Remote(error))) => {
                        self.parallel_run.target.record_outage(&error);
                        self.release_claim(&slot).map(|()| None)
                    }
                    Ok(Err(error)) => self
                        .commit_leftovers_and_record_failed_attempt(&slot, &error.to_string())
                        .map(|()| None),
                    Err(_) => self
                        .commit_leftovers_and_record_failed_attempt(
                            &slot,
                            "its worktree could not be prepared",
                        )
                        .map(|()| None),
                }
            }
            SlotStage::Waiting if !is_still_claimed() => self.keep_branch_of_lost_claim(&slot).map(|()| None),
            SlotStage::Waiting if self.closing_reason.is_some() => self.release_claim(&slot).map(|()| None),
            SlotStage::Waiting if self.parallel_run.board.is_paused() => Ok(Some(slot)),
            // The remaining daily limit is computed from the ledgers of all runs, which is too slow for each
            // pass.
            SlotStage::Waiting
                if self
                    .budget_shortage_found_at
                    .is_some_and(|found_at| found_at.elapsed() < FILE_POLL_INTERVAL) =>
            {
                Ok(Some(slot))
            }
            SlotStage::Waiting
                if !self.start_stagger.try_start_worker_unless_other_just_started(slot.worker_number) =>
            {
                Ok(Some(slot))
            }
            SlotStage::Waiting => self.start_item_run_if_affordable(slot),
        }
    }

    /// Marks the run as running again if the state says that it is paused.
    fn mark_running_if_pause_recorded(&mut self) -> Result<(), WorkersError> {
        if std::mem::take(&mut self.is_pause_recorded) {
            self.parallel_run.context.update_state(|state| state.lifecycle.mark_running_if_open())?;
        }
        Ok(())
    }

    /// Reserves the budget for an item's run, and returns it.
    fn reserve_item_budget(&self, slot: &Slot<'_>, workers_state: &WorkersState) -> ItemBudget {
        // Workers that wait for a budget reserve none. Otherwise two of them would wait for each other
        // forever.
        let running_slots =
            self.slots.iter().flatten().filter(|slot| matches!(slot.stage, SlotStage::Running(_)));
        let other_running_items: Vec<usize> = running_slots.map(|slot| slot.claim.item_index).collect();
        let remaining_today_usd = daily_spending::remaining_today(
            self.parallel_run.context.project,
            self.parallel_run.initial_state,
        );
        let item = slot.claim.item_index;
        let local_budget = compute_item_budget(
            self.parallel_run.initial_state,
            workers_state,
            item,
            &other_running_items,
            self.parallel_run.worker_count(),
            remaining_today_usd,
        );
        self.parallel_run.board.reserve_item_budget(slot.worker_number, item, local_budget)
    }

    /// Starts the item's run if the budget allows it. Otherwise the worker waits, and this is called again
    /// later.
    fn start_item_run_if_affordable(
        &mut self,
        slot: Slot<'scope>,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        let workers_state = self.parallel_run.workers_state();
        let Claim { item_index: item, epoch } = slot.claim;
        let (max_cost_usd, max_tokens, max_sessions) = match self.reserve_item_budget(&slot, &workers_state) {
            ItemBudget::Enough { cost_usd: max_cost_usd, tokens: max_tokens, sessions: max_sessions } => {
                (max_cost_usd, max_tokens, max_sessions)
            }
            ItemBudget::WaitForOthers => {
                self.budget_shortage_found_at = Some(Instant::now());
                return Ok(Some(slot));
            }
            ItemBudget::WaitForNextDay(reason) => {
                return self.pause_all_workers_until_next_day(slot, &reason).map(Some);
            }
            ItemBudget::Exhausted(status, reason) => {
                self.closing_reason.get_or_insert(ClosingReason::Stop(status, reason));
                return Ok(Some(slot));
            }
        };
        self.mark_running_if_pause_recorded()?;
        let project = self.parallel_run.item_project(item);
        let item_run_files = item_run::item_run_file_paths(
            self.parallel_run.context.project,
            self.parallel_run.initial_state,
            item,
            epoch,
        );
        let task_path = task_file_path(self.parallel_run.context.project, self.parallel_run.initial_state)
            .unwrap_or_default();
        let item_run_launch = ItemRunLaunch {
            run_state: self.parallel_run.initial_state,
            client_program: &self.parallel_run.launch_options.client,
            project: &project,
            merge_repository: self.parallel_run.worktrees.merge_repository.plimsoll_repository().git_folder(),
            worker_number: slot.worker_number,
            item_text: &workers_state.board.items[item].text,
            item_number: item + 1,
            attempt_number: epoch,
            exports_spans: self.parallel_run.launch_options.exports_spans,
            verify_commands: &workers_state.passed_verify_commands,
            brief: &self.build_item_brief(&workers_state, item),
            brief_path: &item_run_files.brief,
            task_path: &task_path,
            // The limits apply to the whole current run, including what it used in an earlier attempt.
            max_sessions: max_sessions
                .saturating_add(workers_state.item_progress[item].already_counted_usage.sessions),
            max_cost_usd: max_cost_usd
                .map(|max| max + workers_state.item_progress[item].already_counted_usage.cost_usd),
            max_tokens: max_tokens.map(|max| {
                max.saturating_add(workers_state.item_progress[item].already_counted_usage.tokens)
            }),
            output_path: &item_run_files.output,
            errors_path: &item_run_files.errors,
        };
        // Recorded before the process starts. If both were killed later, the state would otherwise look like
        // the result of another attempt.
        let ended_run_id = item_run::load_ended_run_id(&project)?;
        self.parallel_run
            .update_workers_state(|workers| workers.item_progress[item].earlier_run_id = ended_run_id)?;
        // After a kill before the process is recorded, the process is found by the lock of its worktree.
        let (client, continues_run) = match item_run_launch.write_brief_and_start_or_resume_process() {
            Ok(started_process) => started_process,
            Err(error) => {
                return self
                    .commit_leftovers_and_record_failed_attempt(&slot, &error.to_string())
                    .map(|()| None);
            }
        };
        self.record_process_and_report_start(&slot, client.identity(), max_cost_usd, continues_run)?;
        Ok(Some(Slot { stage: SlotStage::Running(client), requested_interrupt: None, ..slot }))
    }

    /// Returns the brief for an item's run, with what it needs to know about the whole plan.
    fn build_item_brief(&self, workers_state: &WorkersState, item: usize) -> ItemBrief {
        let verify_commands = &self.parallel_run.initial_state.options.verify_commands;
        let failing_commands =
            verify_commands.iter().filter(|command| !workers_state.passed_verify_commands.contains(command));
        ItemBrief {
            plan_path: workers_state.plan_path.clone(),
            worker_count: self.parallel_run.worker_count(),
            verify_commands: verify_commands.clone(),
            failing_commands: failing_commands.cloned().collect(),
            returned_work: self
                .parallel_run
                .target
                .load_returned_work(item)
                .map(|returned_work| returned_work.clip_for_prompt()),
        }
    }

    /// Records the process of an item's run, so that a later scheduler finds it, and reports the start.
    fn record_process_and_report_start(
        &mut self,
        slot: &Slot<'_>,
        process_identity: Option<ProcessIdentity>,
        max_cost_usd: Option<f64>,
        continues_run: bool,
    ) -> Result<(), WorkersError> {
        let Claim { item_index: item, epoch } = slot.claim;
        let item_text = self.parallel_run.update_workers_state(|workers| {
            let item_progress = &mut workers.item_progress[item];
            item_progress.pid = process_identity.map(|process_identity| process_identity.pid);
            item_progress.process_start_ticks =
                process_identity.map_or(0, |process_identity| process_identity.start_time);
            item_progress.allowed_cost_usd = max_cost_usd;
            workers.board.items[item].text.clone()
        })?;
        self.reporter.notify_and_record_event(JournalEvent::WorkerBegan(WorkerStarted {
            worker_number: slot.worker_number,
            item: item_text,
            item_number: item + 1,
            attempt_number: epoch,
            worktree_path: self.parallel_run.worktrees.item_worktree(item).display().to_string(),
            is_continued_attempt: continues_run,
        }))
    }

    /// Commits what a failed run has left, and records the failed attempt. The item is tried again or set
    /// aside.
    pub(super) fn commit_leftovers_and_record_failed_attempt(
        &mut self,
        slot: &Slot<'_>,
        reason: &str,
    ) -> Result<(), WorkersError> {
        let item = slot.claim.item_index;
        let worktree = self.parallel_run.worktrees.item_worktree(item);
        let workers_state = self.parallel_run.workers_state();
        let is_linked_worktree =
            self.parallel_run.worktrees.is_linked_worktree_of_project_repository(&worktree);
        let commit_leftover_work = || {
            live_run::commit_leftovers_if_run_ended_and_return_head(
                &self.parallel_run.worktrees.project_in(&worktree),
                &workers_state.item_progress[item].earlier_run_id,
            )
        };
        let end_commit = is_linked_worktree.then(commit_leftover_work).flatten();
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::Unfinished,
            base_commit: workers_state.item_progress[item].base_commit_id.clone(),
            end_revision: end_commit.clone().unwrap_or_default(),
            output: reason.to_owned(),
            ..ReturnedWork::default()
        };
        // Saved before the board is updated, because the next attempt reads it.
        returned_work_store::save(
            self.parallel_run.context.project,
            self.parallel_run.initial_state,
            item,
            &returned_work,
        )?;
        let is_set_aside = self.parallel_run.board.record_failed_attempt(slot.claim, reason, end_commit)?;
        let (item_text, reason) = (workers_state.board.items[item].text.clone(), reason.to_owned());
        self.reporter.notify_and_record_event(JournalEvent::ItemReturned(ItemReturned {
            item: item_text,
            item_number: item + 1,
            reason,
            is_set_aside,
        }))
    }
}
