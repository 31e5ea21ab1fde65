//! The main loop of a parallel run: assigns items to workers, monitors their runs, and starts the merging of
//! finished work. All decisions are made by `plimsoll_policy::workers`.

mod abort_flag;
mod cleanup;
mod finish;
mod item_start;
mod item_work;
mod live_run;
mod merge_rounds;
mod reporter;
mod run_end;
mod start_stagger;
mod usage;

use crate::run::lifecycle::StartError;
use crate::run::{Interrupt, RunEvent, RunObserver};
use crate::workers::WorkersError;
use crate::workers::board::SchedulerOrders;
use crate::workers::closing_reason::ClosingReason;
use crate::workers::connection::LocalWorkerReport;
use crate::workers::context::ParallelRun;
use crate::workers::slot::{Slot, SlotStage};
use abort_flag::AbortFlag;
use cleanup::MergedWorktreeCleanup;
use finish::finish_run;
use merge_rounds::{MergeRoundOutcome, MergeRounds};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::ItemProgress;
use plimsoll_domain::{RunStatus, Verdict};
use plimsoll_policy::workers::{BoardProgress, Claim, classify_board_progress};
use plimsoll_store::state_file;
use reporter::Reporter;
use start_stagger::StartStagger;
use std::thread::{Scope, sleep};
use std::time::{Duration, Instant};
use usage::ItemRunUsage;

/// How long the loop sleeps after each pass.
const LOOP_INTERVAL: Duration = Duration::from_millis(50);
/// How often to read the usage of sessions, and answers and orders in files.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(1_000);

pub(super) struct Scheduler<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    parallel_run: ParallelRun<'env>,
    reporter: Reporter<'env>,
    abort_flag: AbortFlag,
    /// The workers in order; `None` for a worker without an item.
    slots: Vec<Option<Slot<'scope>>>,
    start_stagger: StartStagger,
    merge_rounds: MergeRounds<'scope>,
    cleanup: MergedWorktreeCleanup,
    usage: ItemRunUsage,
    /// Why no new item starts; `None` while items may start.
    closing_reason: Option<ClosingReason>,
    /// True while the run's state says that all workers are paused.
    is_pause_recorded: bool,
    /// When files were last read.
    files_read_at: Option<Instant>,
    /// When the remaining budget was last found to be reserved for other items; `None` after the run of an
    /// item has ended.
    budget_shortage_found_at: Option<Instant>,
}

impl<'scope, 'env> Scheduler<'scope, 'env> {
    /// Creates the scheduler of a run. `reports_to_linear` is true if no other machine reports these items to
    /// Linear.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        parallel_run: ParallelRun<'env>,
        observer: &'env mut dyn RunObserver,
        reports_to_linear: bool,
    ) -> Scheduler<'scope, 'env> {
        let abort_flag = AbortFlag::new(observer.interrupts().clone());
        Scheduler {
            scope,
            parallel_run,
            reporter: Reporter::new(parallel_run, observer, reports_to_linear),
            abort_flag,
            slots: Vec::new(),
            start_stagger: StartStagger::default(),
            merge_rounds: MergeRounds::default(),
            cleanup: MergedWorktreeCleanup::default(),
            usage: ItemRunUsage::default(),
            closing_reason: None,
            is_pause_recorded: false,
            files_read_at: None,
            budget_shortage_found_at: None,
        }
    }

    /// Runs the loop until the run ends, and returns the exit code. On an error, makes all threads stop, and
    /// requests that running items end after their current session.
    pub(super) fn run_loop_and_request_worker_end_on_error(mut self) -> Result<u8, WorkersError> {
        let result = self.prepare_and_run_loop();
        if let Err(error) = &result {
            self.reporter.notify_observer(&RunEvent::RunFailed { error: error.to_string() });
            // The next `--resume` finds the items that are still running.
            self.abort_flag.set();
            self.slots
                .iter_mut()
                .flatten()
                .for_each(|slot| slot.request_end_if_stronger(Interrupt::AfterSession));
        }
        result
    }

    fn prepare_and_run_loop(&mut self) -> Result<u8, WorkersError> {
        self.reporter.notify_observer(&RunEvent::RunStarted { state: self.parallel_run.initial_state });
        self.record_running_or_remaining_pause()?;
        self.prepare_merge_worktree_and_record_baseline()?;
        self.recover_items_of_earlier_process()?;
        loop {
            self.apply_interrupts_and_board_orders()?;
            self.set_closing_reason_if_paused_without_wait();
            self.advance_occupied_slots()?;
            self.handle_finished_and_start_next_merge_round()?;
            self.reporter.report_thread_events()?;
            if let Some(exit_code) = self.finish_run_if_idle()? {
                return Ok(exit_code);
            }
            self.claim_next_item_and_prepare_worktree()?;
            self.record_waiting_and_stop_reason_if_changed();
            self.reporter.notify_observer(&RunEvent::FiguresUpdated {
                figures: &self.usage.run_figures(self.parallel_run),
            });
            sleep(LOOP_INTERVAL);
        }
    }

    /// Applies the interrupts of the user and the orders of the board, and reads files if the poll interval
    /// has passed.
    fn apply_interrupts_and_board_orders(&mut self) -> Result<(), WorkersError> {
        let requested_interrupt = self.abort_flag.interrupts.highest_request();
        if requested_interrupt.is_some() && self.closing_reason.is_none() {
            self.closing_reason = Some(ClosingReason::Interrupted);
        }
        if self.files_read_at.is_none_or(|read_at| read_at.elapsed() >= FILE_POLL_INTERVAL) {
            self.files_read_at = Some(Instant::now());
            self.refresh_usage_leases_answers_and_limits()?;
        }
        let SchedulerOrders { user_message, closing_reason: closing_reason_from_board } =
            self.parallel_run.board.scheduler_orders(self.closing_reason.as_ref());
        user_message.into_iter().for_each(|user_message| self.reporter.send_notice_to_observer(user_message));
        self.closing_reason = closing_reason_from_board.or_else(|| self.closing_reason.take());
        // If another machine has claimed an item meanwhile, ends the item's run here, and only its process
        // group.
        for slot in
            self.slots.iter_mut().flatten().filter(|slot| !self.parallel_run.board.is_claim_valid(slot.claim))
        {
            slot.request_end_if_stronger(Interrupt::EndSession);
        }
        if self.should_end_sessions_at_once() {
            self.abort_flag.set();
        }
        let interrupt_for_workers = match &self.closing_reason {
            _ if requested_interrupt >= Some(Interrupt::EndSession) => Some(Interrupt::EndSession),
            Some(reason) if reason.should_end_sessions_immediately() => Some(Interrupt::EndSession),
            Some(_) => Some(Interrupt::AfterSession),
            None => None,
        };
        if let Some(interrupt_for_workers) = interrupt_for_workers {
            self.slots
                .iter_mut()
                .flatten()
                .for_each(|slot| slot.request_end_if_stronger(interrupt_for_workers));
        }
        Ok(())
    }

    fn refresh_usage_leases_answers_and_limits(&mut self) -> Result<(), WorkersError> {
        self.usage.refresh_item_runs_and_running_usage(self.parallel_run, &self.slots);
        self.parallel_run.board.set_leases_to_renew(
            self.worker_claims(),
            self.merge_rounds.is_running(),
            &|| self.worker_reports(),
        );
        // Another machine may have merged items that were worked on here.
        self.remove_merged_worktrees()?;
        let no_run_error =
            || StartError::NoRun(self.parallel_run.context.project.root().display().to_string());
        let state = self.parallel_run.context.load_newest_state()?.ok_or_else(no_run_error)?;
        if state.lifecycle.status() == RunStatus::Canceled {
            self.closing_reason = Some(ClosingReason::Canceled);
        }
        if self.parallel_run.board.reopen_answered_items()? {
            self.parallel_run.update_shown_plan_and_state()?;
        }
        usage::write_usage_to_state_if_changed(self.parallel_run, &state);
        let limit_reached = usage::closing_reason_if_limit_reached(self.parallel_run, state);
        self.closing_reason = self.closing_reason.take().or(limit_reached);
        Ok(())
    }

    /// Removes the worktrees of merged items that have no worker.
    fn remove_merged_worktrees(&mut self) -> Result<(), WorkersError> {
        let active_items: Vec<usize> = self.worker_claims().iter().map(|claim| claim.item_index).collect();
        Ok(self.cleanup.copy_records_and_remove_merged_worktrees(
            self.parallel_run,
            &active_items,
            &mut self.reporter,
        )?)
    }

    /// Returns the claims of all workers that have an item.
    fn worker_claims(&self) -> Vec<Claim> {
        self.slots.iter().flatten().map(|slot| slot.claim).collect()
    }

    /// Returns a report about each worker for the board.
    fn worker_reports(&self) -> Vec<LocalWorkerReport> {
        let workers_state = self.parallel_run.workers_state();
        let worker_reports = (1..=self.parallel_run.worker_count().max(self.slots.len())).map(|worker| {
            let slot = self.slots.get(worker - 1).and_then(Option::as_ref);
            let running_slot = slot.filter(|slot| matches!(slot.stage, SlotStage::Running(_)));
            let item_run_state = running_slot.and_then(|slot| {
                let project = self.parallel_run.item_project(slot.claim.item_index);
                state_file::load_reconciled_state_without_history(&project, None).ok().flatten()
            });
            let session_id = item_run_state.and_then(|state| state.session_id).map(|id| id.to_string());
            LocalWorkerReport {
                worker_number: worker,
                item: slot.map(|slot| slot.claim.item_index),
                session_id: session_id.unwrap_or_default(),
                context_percent: running_slot
                    .and_then(|slot| self.usage.context_percent(slot.claim.item_index)),
                cost_usd: workers_state.worker_cost_usd(worker),
            }
        });
        worker_reports.collect()
    }

    /// Returns true if running sessions are ended instead of being allowed to finish.
    fn should_end_sessions_at_once(&self) -> bool {
        self.closing_reason.as_ref().is_some_and(ClosingReason::should_end_sessions_immediately)
    }

    /// With `--no-wait`, a pause that an earlier process recorded also ends this process.
    fn set_closing_reason_if_paused_without_wait(&mut self) {
        if !self.parallel_run.board.is_paused()
            || self.parallel_run.launch_options.should_wait
            || self.closing_reason.is_some()
        {
            return;
        }
        if let Verdict::Pause { kind, reason, .. } = self.last_pause_or_limit_verdict_with_current_end() {
            self.closing_reason = Some(ClosingReason::Pause(kind, reason));
        }
    }

    fn advance_occupied_slots(&mut self) -> Result<(), WorkersError> {
        for slot_index in 0..self.slots.len() {
            let Some(slot) = self.slots[slot_index].take() else { continue };
            self.slots[slot_index] = self.advance_worker(slot)?;
        }
        Ok(())
    }

    /// Handles the end of a merge round, and starts another one if items wait to be merged.
    fn handle_finished_and_start_next_merge_round(&mut self) -> Result<(), WorkersError> {
        if let Some(round_outcome) = self.merge_rounds.join_finished_round(self.closing_reason.is_some()) {
            if let MergeRoundOutcome::Failed(error) = round_outcome {
                let closing_reason =
                    ClosingReason::Pause(PauseKind::Fault, format!("nothing can be merged: {error}"));
                self.closing_reason.get_or_insert(closing_reason);
            }
            self.remove_merged_worktrees()?;
            self.parallel_run.update_shown_plan_and_state()?;
        }
        if !self.merge_rounds.is_running()
            && self.has_mergeable_items()
            && self.parallel_run.board.try_begin_merge_round()
        {
            let (event_sender, include_waiting_items) =
                (self.reporter.event_sender(), self.should_merge_waiting_items());
            self.merge_rounds.spawn_merge_round(
                self.scope,
                self.parallel_run,
                &self.abort_flag,
                event_sender,
                include_waiting_items,
            );
        }
        Ok(())
    }

    /// Returns true if items wait to be merged and nothing prevents this process from merging them.
    fn has_mergeable_items(&self) -> bool {
        !self.merge_rounds.is_merging_impossible()
            && !self.abort_flag.interrupts.has_requested(Interrupt::EndSession)
            && !self.should_end_sessions_at_once()
            && !self.parallel_run.board.items_to_merge(self.should_merge_waiting_items()).is_empty()
    }

    /// Returns true if merging does not wait for another attempt at an item, because no attempt will start.
    fn should_merge_waiting_items(&self) -> bool {
        let is_idle = self.slots.iter().all(Option::is_none);
        // Without a running worker and an available item, waiting would never end.
        self.closing_reason.is_some() || is_idle && self.board_progress() != BoardProgress::ItemAvailable
    }

    fn board_progress(&self) -> BoardProgress {
        classify_board_progress(&self.parallel_run.workers_state().board, self.parallel_run.board.board_now())
    }

    /// Finishes the run if nothing is running anymore. Returns the exit code in that case.
    fn finish_run_if_idle(&mut self) -> Result<Option<u8>, WorkersError> {
        let workers_state = self.parallel_run.workers_state();
        let (requested_interrupt, is_closing) =
            (self.abort_flag.interrupts.highest_request(), self.closing_reason.is_some());
        let is_busy = self.slots.iter().any(Option::is_some)
            || self.merge_rounds.is_running()
            || self.has_mergeable_items() && self.parallel_run.board.should_wait_for_merges(is_closing)
            || self.parallel_run.board.should_wait_for_delivery(requested_interrupt, is_closing);
        if is_busy {
            return Ok(None);
        }
        self.reporter.report_thread_events()?;
        self.closing_reason =
            self.closing_reason.take().or_else(|| self.parallel_run.board.closing_reason_if_drained());
        // If everything is merged, the run is completed, even if it was closing for a reason other than
        // cancellation.
        let progress = classify_board_progress(&workers_state.board, self.parallel_run.board.board_now());
        let closing_reason = match (progress, self.closing_reason.clone()) {
            (BoardProgress::Done, reason_to_close) if reason_to_close != Some(ClosingReason::Canceled) => {
                finish::completed_or_blocked_by_failing_verify(
                    self.parallel_run.initial_state,
                    &workers_state,
                )
            }
            (_, Some(reason_to_close)) => reason_to_close,
            (BoardProgress::ItemAvailable | BoardProgress::InProgress, None) => return Ok(None),
            (BoardProgress::Blocked | BoardProgress::Done, None) => {
                finish::closing_reason_for_stuck_run(&workers_state)
            }
        };
        self.remove_merged_worktrees()?;
        finish_run(self.parallel_run, &mut self.reporter, &self.abort_flag, closing_reason).map(Some)
    }

    /// Records in the state whether the run is running or still paused. An earlier process may have recorded
    /// a pause, which applies only while its limit does.
    fn record_running_or_remaining_pause(&mut self) -> Result<(), WorkersError> {
        self.is_pause_recorded = self.parallel_run.board.is_paused();
        let current_pause =
            self.is_pause_recorded.then(|| self.last_pause_or_limit_verdict_with_current_end());
        if self.parallel_run.workers_state().stop_reason.is_some() {
            self.parallel_run.update_workers_state(|workers| workers.stop_reason = None)?;
        }
        self.parallel_run.context.update_state(|state| match &current_pause {
            Some(current_pause) => state.lifecycle.pause_and_record_verdict_if_open(current_pause),
            None => state.lifecycle.mark_running_if_open(),
        })?;
        Ok(())
    }

    /// Returns the verdict for a pause that an earlier process recorded and that is still in effect.
    fn last_pause_or_limit_verdict_with_current_end(&self) -> Verdict {
        let pause_end = finish::workers_paused_until(self.parallel_run);
        match self.parallel_run.initial_state.lifecycle.last_verdict() {
            Some(Verdict::Pause { kind, reason, .. }) if kind.resolves_by_waiting() => {
                Verdict::Pause { kind: *kind, pause_end, reason: reason.clone() }
            }
            _ => Verdict::Pause {
                kind: PauseKind::Limit,
                pause_end,
                reason: "a limit is still in force".to_owned(),
            },
        }
    }

    /// Records what `plimsoll status` cannot determine by itself: which workers wait, and why no new item
    /// starts.
    fn record_waiting_and_stop_reason_if_changed(&self) {
        let workers_state = self.parallel_run.workers_state();
        let is_waiting = |slot: &&Slot<'_>| slot.is_waiting();
        let waiting_items: Vec<usize> =
            self.slots.iter().flatten().filter(is_waiting).map(|slot| slot.claim.item_index).collect();
        let stop_reason = self.closing_reason.as_ref().map(ClosingReason::describe);
        let is_unchanged = |(item, item_progress): (usize, &ItemProgress)| {
            item_progress.is_waiting == waiting_items.contains(&item)
        };
        if workers_state.stop_reason == stop_reason
            && workers_state.item_progress.iter().enumerate().all(is_unchanged)
        {
            return;
        }
        // An error must not end the run: the write is repeated in the next pass.
        let _ = self.parallel_run.update_workers_state(|workers| {
            workers.stop_reason = stop_reason;
            for (item, item_progress) in workers.item_progress.iter_mut().enumerate() {
                item_progress.is_waiting = waiting_items.contains(&item);
            }
        });
    }
}
