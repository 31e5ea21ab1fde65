//! The main loop of a parallel run: gives items to workers, follows their runs, and starts the merging of
//! finished work. All decisions are made by `plimsoll_policy::workers`.

mod cleanup;
mod finish;
mod give_up_flag;
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
use cleanup::MergedWorktreeCleanup;
use finish::finish_run;
use give_up_flag::GiveUpFlag;
use merge_rounds::{MergeRoundEnd, MergeRounds};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::ItemProgress;
use plimsoll_domain::{RunStatus, Verdict};
use plimsoll_policy::workers::{BoardProgress, Claim, board_progress};
use plimsoll_store::state_file;
use reporter::Reporter;
use start_stagger::StartStagger;
use std::thread::{Scope, sleep};
use std::time::{Duration, Instant};
use usage::ItemRunUsage;

/// How long the loop sleeps between two rounds.
const LOOP_INTERVAL: Duration = Duration::from_millis(50);
/// How often to read the usage of sessions, and answers and orders in files.
const FILES_INTERVAL: Duration = Duration::from_millis(1_000);

pub(super) struct Scheduler<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    parallel_run: ParallelRun<'env>,
    reporter: Reporter<'env>,
    give_up_flag: GiveUpFlag,
    /// The workers in order; `None` for a worker without an item.
    slots: Vec<Option<Slot<'scope>>>,
    start_stagger: StartStagger,
    merge_rounds: MergeRounds<'scope>,
    cleanup: MergedWorktreeCleanup,
    usage: ItemRunUsage,
    /// Why no new item begins, if that is so.
    closing_reason: Option<ClosingReason>,
    /// True while the run's state says that all workers are paused.
    is_pause_recorded: bool,
    /// When files were last read.
    files_read_at: Option<Instant>,
    /// When the whole budget was last found to be reserved for other items; `None` once one of their runs has
    /// ended since.
    budget_reserved_since: Option<Instant>,
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
        let give_up_flag = GiveUpFlag::new(observer.interrupts().clone());
        Scheduler {
            scope,
            parallel_run,
            reporter: Reporter::new(parallel_run, observer, reports_to_linear),
            give_up_flag,
            slots: Vec::new(),
            start_stagger: StartStagger::default(),
            merge_rounds: MergeRounds::default(),
            cleanup: MergedWorktreeCleanup::default(),
            usage: ItemRunUsage::default(),
            closing_reason: None,
            is_pause_recorded: false,
            files_read_at: None,
            budget_reserved_since: None,
        }
    }

    /// Runs the loop until the run ends. Returns the exit code.
    pub(super) fn run(mut self) -> Result<u8, WorkersError> {
        let result = self.run_loop();
        if let Err(error) = &result {
            self.reporter.notify_observer(&RunEvent::RunFailed { error: error.to_string() });
            // Running items end with their present session; the next `--resume` finds them.
            self.give_up_flag.set();
            self.slots.iter_mut().flatten().for_each(|slot| slot.request_end(Interrupt::AfterSession));
        }
        result
    }

    fn run_loop(&mut self) -> Result<u8, WorkersError> {
        self.reporter.notify_observer(&RunEvent::RunStarted { state: self.parallel_run.initial_state });
        self.write_initial_status()?;
        self.prepare_merge_worktree_and_baseline()?;
        self.recover_items_of_earlier_process()?;
        loop {
            self.apply_interrupts_and_board_orders()?;
            self.close_if_paused_without_wait();
            self.advance_workers()?;
            self.advance_merge_rounds()?;
            self.reporter.report_events_of_threads()?;
            if let Some(exit_code) = self.finish_run_if_idle()? {
                return Ok(exit_code);
            }
            self.claim_next_item()?;
            self.record_waiting_items_and_stop_reason();
            self.reporter.notify_observer(&RunEvent::FiguresUpdated {
                figures: &self.usage.run_figures(self.parallel_run),
            });
            sleep(LOOP_INTERVAL);
        }
    }

    /// Applies the interrupts of the user and the orders of the board, and updates the usage.
    fn apply_interrupts_and_board_orders(&mut self) -> Result<(), WorkersError> {
        let requested_interrupt = self.give_up_flag.interrupts.highest_request();
        if requested_interrupt.is_some() && self.closing_reason.is_none() {
            self.closing_reason = Some(ClosingReason::Interrupted);
        }
        if self.files_read_at.is_none_or(|read_at| read_at.elapsed() >= FILES_INTERVAL) {
            self.files_read_at = Some(Instant::now());
            self.read_usage_answers_and_cancellation()?;
        }
        let SchedulerOrders { user_message, closing_reason: ordered_closing } =
            self.parallel_run.board.scheduler_orders(self.closing_reason.as_ref());
        user_message.into_iter().for_each(|user_message| self.reporter.notify_observer_of_note(user_message));
        self.closing_reason = ordered_closing.or_else(|| self.closing_reason.take());
        // Ends the run of an item whose claim another machine now holds: only the process group of that run.
        for slot in
            self.slots.iter_mut().flatten().filter(|slot| !self.parallel_run.board.is_claim_held(slot.claim))
        {
            slot.request_end(Interrupt::EndSession);
        }
        if self.should_end_sessions_at_once() {
            self.give_up_flag.set();
        }
        let interrupt_for_workers = match &self.closing_reason {
            _ if requested_interrupt >= Some(Interrupt::EndSession) => Some(Interrupt::EndSession),
            Some(reason) if reason.ends_sessions_at_once() => Some(Interrupt::EndSession),
            Some(_) => Some(Interrupt::AfterSession),
            None => None,
        };
        if let Some(interrupt_for_workers) = interrupt_for_workers {
            self.slots.iter_mut().flatten().for_each(|slot| slot.request_end(interrupt_for_workers));
        }
        Ok(())
    }

    fn read_usage_answers_and_cancellation(&mut self) -> Result<(), WorkersError> {
        self.usage.update_facts_and_running_usage(self.parallel_run, &self.slots);
        self.parallel_run.board.set_leases_to_renew(
            self.held_claims(),
            self.merge_rounds.is_running(),
            &|| self.worker_reports(),
        );
        // Another machine may have merged items that were worked on here.
        self.remove_merged_worktrees()?;
        let no_run_error =
            || StartError::NoRun(self.parallel_run.context.project.root().display().to_string());
        let state = self.parallel_run.context.load_newest_state()?.ok_or_else(no_run_error)?;
        if state.lifecycle.status() == RunStatus::Canceled {
            self.closing_reason = Some(ClosingReason::Cancelled);
        }
        if self.parallel_run.board.reopen_answered_items()? {
            self.parallel_run.show_in_plan_and_state()?;
        }
        usage::write_usage_to_state_if_changed(self.parallel_run, &state);
        let limit_reached = usage::closing_reason_if_limit_reached(self.parallel_run, state);
        self.closing_reason = self.closing_reason.take().or(limit_reached);
        Ok(())
    }

    /// Removes the worktrees of merged items that have no worker.
    fn remove_merged_worktrees(&mut self) -> Result<(), WorkersError> {
        let items_in_work: Vec<usize> = self.held_claims().iter().map(|claim| claim.item).collect();
        Ok(self.cleanup.remove_merged_worktrees(self.parallel_run, &items_in_work, &mut self.reporter)?)
    }

    /// Returns the claims of all workers.
    fn held_claims(&self) -> Vec<Claim> {
        self.slots.iter().flatten().map(|slot| slot.claim).collect()
    }

    /// Returns a report about each worker for the board.
    fn worker_reports(&self) -> Vec<LocalWorkerReport> {
        let workers_state = self.parallel_run.workers_state();
        let worker_reports = (1..=self.parallel_run.worker_count().max(self.slots.len())).map(|worker| {
            let slot = self.slots.get(worker - 1).and_then(Option::as_ref);
            let slot_with_process = slot.filter(|slot| matches!(slot.stage, SlotStage::Running(_)));
            let item_run_state = slot_with_process.and_then(|slot| {
                let project = self.parallel_run.item_project(slot.claim.item);
                state_file::load_state_without_history(&project, None).ok().flatten()
            });
            let session_id = item_run_state.and_then(|state| state.session_id).map(|id| id.to_string());
            LocalWorkerReport {
                worker_number: worker,
                item: slot.map(|slot| slot.claim.item),
                session_id: session_id.unwrap_or_default(),
                context_percent: slot_with_process
                    .and_then(|slot| self.usage.context_percent(slot.claim.item)),
                cost_usd: workers_state.worker_cost_usd(worker),
            }
        });
        worker_reports.collect()
    }

    /// Returns true if running sessions are ended instead of being allowed to finish.
    fn should_end_sessions_at_once(&self) -> bool {
        self.closing_reason.as_ref().is_some_and(ClosingReason::ends_sessions_at_once)
    }

    /// With `--no-wait`, a pause that an earlier process has left ends this process in the same way.
    fn close_if_paused_without_wait(&mut self) {
        if !self.parallel_run.board.is_paused()
            || self.parallel_run.launch_options.should_wait
            || self.closing_reason.is_some()
        {
            return;
        }
        if let Verdict::Pause { kind, reason, .. } = self.current_pause_verdict() {
            self.closing_reason = Some(ClosingReason::Pause(kind, reason));
        }
    }

    fn advance_workers(&mut self) -> Result<(), WorkersError> {
        for slot_index in 0..self.slots.len() {
            let Some(slot) = self.slots[slot_index].take() else { continue };
            self.slots[slot_index] = self.advance_worker(slot)?;
        }
        Ok(())
    }

    /// Handles the end of a merge round, and begins another one if items wait to be merged.
    fn advance_merge_rounds(&mut self) -> Result<(), WorkersError> {
        if let Some(round_end) = self.merge_rounds.take_finished_round(self.closing_reason.is_some()) {
            if let MergeRoundEnd::Failed(error) = round_end {
                let closing_reason =
                    ClosingReason::Pause(PauseKind::Fault, format!("nothing can be merged: {error}"));
                self.closing_reason.get_or_insert(closing_reason);
            }
            self.remove_merged_worktrees()?;
            self.parallel_run.show_in_plan_and_state()?;
        }
        if !self.merge_rounds.is_running()
            && self.has_mergeable_items()
            && self.parallel_run.board.try_begin_merge_round()
        {
            let (event_sender, include_waiting) =
                (self.reporter.event_sender(), self.should_merge_waiting_items());
            self.merge_rounds.start_round(
                self.scope,
                self.parallel_run,
                &self.give_up_flag,
                event_sender,
                include_waiting,
            );
        }
        Ok(())
    }

    /// Returns true if items wait to be merged and nothing prevents this process from merging them.
    fn has_mergeable_items(&self) -> bool {
        !self.merge_rounds.is_merging_impossible()
            && !self.give_up_flag.interrupts.has_requested(Interrupt::EndSession)
            && !self.should_end_sessions_at_once()
            && !self.parallel_run.board.items_to_merge(self.should_merge_waiting_items()).is_empty()
    }

    /// Returns true if merging does not wait for another attempt at an item, because no attempt will begin.
    fn should_merge_waiting_items(&self) -> bool {
        let is_idle = self.slots.iter().all(Option::is_none);
        // Without a running worker and an available item, waiting would never end.
        self.closing_reason.is_some() || is_idle && self.board_progress() != BoardProgress::ItemAvailable
    }

    fn board_progress(&self) -> BoardProgress {
        board_progress(&self.parallel_run.workers_state().board, self.parallel_run.board.board_now())
    }

    /// Finishes the run if nothing is running any more. Returns the exit code in that case.
    fn finish_run_if_idle(&mut self) -> Result<Option<u8>, WorkersError> {
        let workers_state = self.parallel_run.workers_state();
        let (requested_interrupt, is_closing) =
            (self.give_up_flag.interrupts.highest_request(), self.closing_reason.is_some());
        let is_busy = self.slots.iter().any(Option::is_some)
            || self.merge_rounds.is_running()
            || self.has_mergeable_items() && self.parallel_run.board.should_wait_for_merges(is_closing)
            || self.parallel_run.board.should_wait_for_delivery(requested_interrupt, is_closing);
        if is_busy {
            return Ok(None);
        }
        self.reporter.report_events_of_threads()?;
        self.closing_reason =
            self.closing_reason.take().or_else(|| self.parallel_run.board.closing_reason_if_drained());
        // If everything is merged, the run is completed, whatever else was about to end it.
        let progress = board_progress(&workers_state.board, self.parallel_run.board.board_now());
        let closing_reason = match (progress, self.closing_reason.clone()) {
            (BoardProgress::Done, reason_to_close) if reason_to_close != Some(ClosingReason::Cancelled) => {
                finish::completed_or_blocked_by_failing_verify(
                    self.parallel_run.initial_state,
                    &workers_state,
                )
            }
            (_, Some(reason_to_close)) => reason_to_close,
            (BoardProgress::ItemAvailable | BoardProgress::InProgress, None) => return Ok(None),
            (BoardProgress::Blocked | BoardProgress::Done, None) => {
                finish::closing_reason_if_stuck(&workers_state)
            }
        };
        self.remove_merged_worktrees()?;
        finish_run(self.parallel_run, &mut self.reporter, &self.give_up_flag, closing_reason).map(Some)
    }

    /// Sets the status at the start of this process. The state may still say "paused"; that is true only if
    /// the limit still applies.
    fn write_initial_status(&mut self) -> Result<(), WorkersError> {
        self.is_pause_recorded = self.parallel_run.board.is_paused();
        let current_pause = self.is_pause_recorded.then(|| self.current_pause_verdict());
        if self.parallel_run.workers_state().stop_reason.is_some() {
            self.parallel_run.update_workers_state(|workers| workers.stop_reason = None)?;
        }
        self.parallel_run.context.update_state(|state| match &current_pause {
            Some(current_pause) => state.lifecycle.pause_if_open_without_counting(current_pause),
            None => state.lifecycle.mark_running_if_open(),
        })?;
        Ok(())
    }

    /// Returns the verdict for the pause of an earlier process that still lasts.
    fn current_pause_verdict(&self) -> Verdict {
        let until = finish::workers_paused_until(self.parallel_run);
        match self.parallel_run.initial_state.lifecycle.last_verdict() {
            Some(Verdict::Pause { kind, reason, .. }) if kind.resolves_by_waiting() => {
                Verdict::Pause { kind: *kind, until, reason: reason.clone() }
            }
            _ => Verdict::Pause { kind: PauseKind::Limit, until, reason: "a limit still holds".to_owned() },
        }
    }

    /// Records what `plimsoll status` cannot find out by itself: which workers wait, and why no new item
    /// starts.
    fn record_waiting_items_and_stop_reason(&self) {
        let workers_state = self.parallel_run.workers_state();
        let is_waiting = |slot: &&Slot<'_>| slot.is_waiting();
        let waiting_items: Vec<usize> =
            self.slots.iter().flatten().filter(is_waiting).map(|slot| slot.claim.item).collect();
        let stop_reason = self.closing_reason.as_ref().map(ClosingReason::describe);
        let is_unchanged = |(item, item_progress): (usize, &ItemProgress)| {
            item_progress.is_waiting == waiting_items.contains(&item)
        };
        if workers_state.stop_reason == stop_reason
            && workers_state.item_progress.iter().enumerate().all(is_unchanged)
        {
            return;
        }
        // An error must not end the run: the write is repeated in the next round.
        let _ = self.parallel_run.update_workers_state(|workers| {
            workers.stop_reason = stop_reason;
            for (item, item_progress) in workers.item_progress.iter_mut().enumerate() {
                item_progress.is_waiting = waiting_items.contains(&item);
            }
        });
    }
}
