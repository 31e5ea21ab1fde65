//! Handles the end of an item's run: its work is marked as ready to merge, or the item waits for an answer,
//! is tried again, or is set aside.

use super::item_work::ItemWork;
use super::{ClosingReason, Scheduler};
use crate::run::notify::{notify_user_of_end_or_pause, notify_user_of_questions};
use crate::run::{RunEvent, daily_spending};
use crate::workers::WorkersError;
use crate::workers::board::WorkersPause;
use crate::workers::item_run::{self, ItemRunOutcome};
use crate::workers::slot::{Slot, SlotStage};
use plimsoll_domain::journal::{JournalEvent, WorkerEnded};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{ProcessExit, RunStatus, Verdict};
use plimsoll_launcher::worktree;
use plimsoll_policy::workers::Claim;
use plimsoll_store::{clock, state_file};

/// The slot of a worker after its item's run has ended; `None` if the worker is free.
type NextSlotResult<'scope> = Result<Option<Slot<'scope>>, WorkersError>;

impl<'scope> Scheduler<'scope, '_> {
    /// Handles the end of an item's run according to its outcome. Returns the worker's next slot.
    pub(super) fn handle_item_run_end(
        &mut self,
        slot: Slot<'scope>,
        exit: &ProcessExit,
    ) -> NextSlotResult<'scope> {
        self.budget_shortage_found_at = None;
        let Claim { item_index: item, epoch } = slot.claim;
        let worktree = self.parallel_run.worktrees.item_worktree(item);
        if self.parallel_run.worktrees.is_linked_worktree_of_project_repository(&worktree) {
            // Cleans up after a session that was ended in the middle of a commit.
            worktree::wait_for_git_and_remove_locks(&worktree);
        }
        self.parallel_run.target.carry_over_session_notes(item)?;
        let project = self.parallel_run.worktrees.project_in(&worktree);
        let errors_path = item_run::item_run_file_paths(
            self.parallel_run.context.project,
            self.parallel_run.initial_state,
            item,
            epoch,
        )
        .errors;
        let earlier_run_id = self.parallel_run.workers_state().item_progress[item].earlier_run_id.clone();
        let outcome = item_run::item_run_outcome(&project, &earlier_run_id, exit, &errors_path);
        let usage = item_run::usage_of_current_run(&project, &earlier_run_id);
        self.parallel_run.update_workers_state(|workers| {
            let item_progress = &mut workers.item_progress[item];
            item_progress.current_usage = usage.usage_since(item_progress.already_counted_usage);
        })?;
        self.report_item_run_end(&slot, &outcome)?;
        if !self.parallel_run.board.is_claim_valid(slot.claim) {
            self.keep_branch_of_lost_claim(&slot)?;
            return Ok(None);
        }
        let next_slot = self.handle_outcome(slot, outcome);
        self.parallel_run.update_shown_plan_and_state()?;
        next_slot
    }

    fn handle_outcome(&mut self, slot: Slot<'scope>, outcome: ItemRunOutcome) -> NextSlotResult<'scope> {
        match outcome {
            ItemRunOutcome::Done => self.commit_and_mark_ready_or_record_failure(&slot).map(|()| None),
            ItemRunOutcome::WaitsForAnswer(question) => {
                self.park_item_and_notify_user(&slot, question).map(|()| None)
            }
            ItemRunOutcome::PausedByLimit {
                limit_resets_at: limit_reset_time,
                reason,
                consecutive_pauses: pause_count,
            } => {
                let pause_end_millis =
                    item_run::pause_end_unix_millis(limit_reset_time.as_ref(), pause_count);
                self.pause_all_workers_and_close_if_no_wait(
                    slot,
                    PauseKind::Limit,
                    pause_end_millis,
                    &reason,
                    pause_count,
                )
                .map(Some)
            }
            // More budget may be available once other item runs have ended.
            ItemRunOutcome::BudgetExhausted => Ok(Some(Slot { stage: SlotStage::Waiting, ..slot })),
            ItemRunOutcome::DeadlineReached => self.set_closing_reason_and_release_claim(
                &slot,
                ClosingReason::Stop(RunStatus::Deadline, "the deadline has passed".to_owned()),
            ),
            ItemRunOutcome::SessionLimitReached => Ok(Some(Slot { stage: SlotStage::Waiting, ..slot })),
            ItemRunOutcome::FatalError(reason) => self.set_closing_reason_and_release_claim(
                &slot,
                ClosingReason::Stop(RunStatus::FatalError, reason),
            ),
            // The scheduler requested the end. On one machine the item stays with its worker, and the next
            // `--resume` continues it.
            ItemRunOutcome::Interrupted if self.closing_reason.is_some() => {
                self.release_claim(&slot).map(|()| None)
            }
            ItemRunOutcome::Interrupted => Ok(Some(Slot { stage: SlotStage::Waiting, ..slot })),
            ItemRunOutcome::Failed(_) if self.closing_reason.is_some() => {
                self.release_claim(&slot).map(|()| None)
            }
            ItemRunOutcome::Failed(reason) => {
                self.commit_leftovers_and_record_failed_attempt(&slot, &reason).map(|()| None)
            }
        }
    }

    /// Prevents new items from starting, and releases this one. The item's run continues once the user has
    /// fixed the cause.
    fn set_closing_reason_and_release_claim(
        &mut self,
        slot: &Slot<'_>,
        closing_reason: ClosingReason,
    ) -> NextSlotResult<'scope> {
        self.parallel_run
            .update_workers_state(|workers| workers.item_progress[slot.claim.item_index].pid = None)?;
        self.closing_reason.get_or_insert(closing_reason);
        self.release_claim(slot)?;
        Ok(None)
    }

    /// Releases the claim on an item that is not done.
    pub(super) fn release_claim(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        Ok(self.parallel_run.board.release_claim(slot.claim, &self.item_work(slot))?)
    }

    /// Keeps the work on an item that another machine has claimed meanwhile.
    pub(super) fn keep_branch_of_lost_claim(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        Ok(self.parallel_run.board.keep_branch_of_lost_claim(slot.claim, &self.item_work(slot))?)
    }

    fn item_work(&self, slot: &Slot<'_>) -> ItemWork<'_> {
        ItemWork { parallel_run: self.parallel_run, claim: slot.claim }
    }

    fn report_item_run_end(&mut self, slot: &Slot<'_>, outcome: &ItemRunOutcome) -> Result<(), WorkersError> {
        let workers_state = self.parallel_run.workers_state();
        let (board_item, item_progress) = (
            &workers_state.board.items[slot.claim.item_index],
            &workers_state.item_progress[slot.claim.item_index],
        );
        let project = self.parallel_run.item_project(slot.claim.item_index);
        let outcome_text = match outcome {
            ItemRunOutcome::Done => "is done".to_owned(),
            ItemRunOutcome::WaitsForAnswer(question) => {
                format!("waits for an answer: {}", truncate_end(&to_safe_single_line(question), 200))
            }
            ItemRunOutcome::PausedByLimit { reason, .. } => format!("paused: {}", truncate_end(reason, 200)),
            ItemRunOutcome::BudgetExhausted => "has used its share of the budget".to_owned(),
            ItemRunOutcome::DeadlineReached => "was ended at the deadline".to_owned(),
            ItemRunOutcome::SessionLimitReached => "has used all sessions".to_owned(),
            ItemRunOutcome::FatalError(reason) => format!("cannot continue: {}", truncate_end(reason, 200)),
            ItemRunOutcome::Interrupted => "was asked to end".to_owned(),
            ItemRunOutcome::Failed(reason) => format!("failed: {}", truncate_end(reason, 200)),
        };
        self.reporter.notify_and_record_event(JournalEvent::WorkerEnded(WorkerEnded {
            worker_number: slot.worker_number,
            item: board_item.text.clone(),
            outcome_text,
            cost_usd: item_progress.earlier_usage.cost_usd + item_progress.current_usage.cost_usd,
            cost_basis: item_progress.earlier_usage.cost_basis.max(item_progress.current_usage.cost_basis),
            session_count: item_progress.earlier_usage.sessions + item_progress.current_usage.sessions,
            item_run_id: item_run::load_current_run_id(&project, &item_progress.earlier_run_id),
        }))
    }

    /// Commits what the run left uncommitted, and marks its work as ready to merge. If the commit fails,
    /// records a failed attempt.
    fn commit_and_mark_ready_or_record_failure(&mut self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        match self.item_work(slot).commit_all_and_move_item_branch() {
            Ok(commit) => {
                self.parallel_run.board.mark_work_ready_to_merge(slot.claim, &commit)?;
                self.copy_item_cost_to_run_state(slot)
            }
            Err(error) => self.commit_leftovers_and_record_failed_attempt(slot, &error.to_string()),
        }
    }

    /// Copies the cost of an item from the state of its run to the state of the whole run, for later
    /// estimates.
    fn copy_item_cost_to_run_state(&self, slot: &Slot<'_>) -> Result<(), WorkersError> {
        let project = self.parallel_run.item_project(slot.claim.item_index);
        let item_cost = state_file::load_state(&project, None)?
            .and_then(|state| state.plan_items.item_costs.last().cloned());
        if let Some(item_cost) = item_cost {
            self.parallel_run.context.update_state_without_sync(|state| state.record_item_cost(item_cost))?;
        }
        Ok(())
    }

    /// Sets the item aside until the user has answered the question, and notifies the user.
    fn park_item_and_notify_user(&mut self, slot: &Slot<'_>, question: String) -> Result<(), WorkersError> {
        self.parallel_run.board.park_item(slot.claim, &question, &self.item_work(slot))?;
        self.parallel_run.update_shown_plan_and_state()?;
        let item_text = self.parallel_run.workers_state().board.items[slot.claim.item_index].text.clone();
        let open_question = OpenQuestion { item: item_text, question, iteration: 0, was_notified: true };
        self.reporter.notify_observer(&RunEvent::QuestionAsked { question: &open_question });
        let event = JournalEvent::Parked {
            item: open_question.item.clone(),
            question: open_question.question.clone(),
        };
        self.reporter.record_event(event)?;
        if let Some(state) = self.parallel_run.context.load_newest_state()? {
            notify_user_of_questions(self.parallel_run.context.project, &state, &[open_question]);
        }
        Ok(())
    }

    /// Pauses all workers until the next day, because the user's daily limit is used up.
    pub(super) fn pause_all_workers_until_next_day(
        &mut self,
        slot: Slot<'scope>,
        reason: &str,
    ) -> Result<Slot<'scope>, WorkersError> {
        let day_end_millis = clock::end_of_local_day(clock::now()).timestamp_millis();
        self.pause_all_workers_and_close_if_no_wait(
            slot,
            PauseKind::Quota,
            u64::try_from(day_end_millis).unwrap_or_default(),
            reason,
            1,
        )
    }

    /// Pauses all workers until `pause_end_millis`, because one of them has reached a limit. With
    /// `--no-wait`, also closes the run. This does not count as a failed attempt.
    fn pause_all_workers_and_close_if_no_wait(
        &mut self,
        mut slot: Slot<'scope>,
        pause_kind: PauseKind,
        pause_end_millis: u64,
        reason: &str,
        pause_count: u32,
    ) -> Result<Slot<'scope>, WorkersError> {
        self.start_stagger.clear_started_workers();
        let is_daily_limit = daily_spending::daily_limit_pause_ignoring_deadline(
            self.parallel_run.context.project,
            self.parallel_run.initial_state,
        )
        .is_some()
            || pause_kind == PauseKind::Quota;
        let is_new_pause = self
            .parallel_run
            .board
            .pause_all_workers(&WorkersPause { ends_at: pause_end_millis, is_daily_limit })?;
        if !self.parallel_run.launch_options.should_wait {
            self.closing_reason.get_or_insert(ClosingReason::Pause(pause_kind, reason.to_owned()));
        } else if is_new_pause
            && let Some(pause_end_time) = clock::from_unix_seconds(pause_end_millis / 1_000)
        {
            let seconds = u64::try_from((pause_end_time - clock::now()).num_seconds()).unwrap_or_default();
            self.reporter.notify_observer(&RunEvent::PauseStarted {
                pause_end: pause_end_time,
                seconds,
                reason,
            });
            let verdict = Verdict::Pause {
                kind: pause_kind,
                pause_end: Some(clock::to_timestamp(pause_end_time)),
                reason: reason.to_owned(),
            };
            self.is_pause_recorded = true;
            let state = self.parallel_run.context.update_state(|state| {
                state.lifecycle.pause_and_record_verdict_if_open(&verdict);
                state.clone()
            })?;
            if let (Some(state), true) = (state, pause_count <= 1) {
                notify_user_of_end_or_pause(self.parallel_run.context.project, &state, &verdict);
            }
        }
        (slot.stage, slot.requested_interrupt) = (SlotStage::Waiting, None);
        Ok(slot)
    }
}
