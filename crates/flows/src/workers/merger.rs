//! Merges the results of items: rebases them onto the end of the target branch in a worktree that nobody
//! works in, verifies them there, and moves the branch from where it was last seen. Runs in its own thread,
//! because verify commands take long.

mod refusal;

use crate::run::verify::run_verify_commands;
use crate::workers::connection::RejectedItem;
use crate::workers::context::ParallelRun;
use crate::workers::error::MergeError;
use crate::workers::project_checkout::ITEM_PLAN_FILE;
use crate::workers::session_notes::add_notes_of_shown_plan;
use crate::workers::shown_plan::item_ticks;
use crate::workers::worktrees::Worktrees;
use plimsoll_domain::board::{BoardItem, ItemStage};
use plimsoll_domain::format::FormatVersion;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::journal::{ItemReturned, ItemsMerged, JournalEvent};
use plimsoll_domain::receipt::{
    ReceiptItem, VerificationReceipt, append_missing_trailers, render_commit_trailers,
};
use plimsoll_domain::text::{to_single_line, truncate_end};
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{TodoList, plan_edit};
use plimsoll_launcher::merge_repository::MergeRepository;
use plimsoll_launcher::worktree::{RebaseOutcome, WorktreeError};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::workers::merge_queue::{self, MergeBackend};
use plimsoll_policy::workers::{Claim, record_written_files};
use plimsoll_store::{Durability, Project, clock, disk, receipts, records};
use refusal::SendBackReason;
use std::sync::mpsc::Sender;

/// The maximum number of characters of git's messages, or of a command's output, in a note on the board.
const MAX_NOTE_CHARS: usize = 350;

/// One round of merging, over all items that wait to be merged.
pub(super) struct Merger<'a> {
    parallel_run: ParallelRun<'a>,
    give_up: &'a (dyn Fn() -> bool + Sync),
    event_sender: Sender<JournalEvent>,
    /// True to merge also work that waits for an item that was sent back.
    include_waiting: bool,
    merger_epoch: u64,
    target_tip: CommitId,
    /// The last commit of the stacked items.
    stack_end: CommitId,
    stacked_items: Vec<StackedItem>,
    passed_commands: Vec<String>,
}

struct StackedItem {
    item_index: usize,
    /// The last commit of its own work, without the tick in the plan.
    commit_without_tick: CommitId,
    /// The last commit that belongs to the item.
    last_commit: CommitId,
}

impl<'a> Merger<'a> {
    pub(super) fn new(
        parallel_run: ParallelRun<'a>,
        give_up: &'a (dyn Fn() -> bool + Sync),
        event_sender: Sender<JournalEvent>,
        include_waiting: bool,
    ) -> Merger<'a> {
        let (target_tip, stack_end) = (
            parallel_run.worktrees.checkout.head_commit.clone(),
            parallel_run.worktrees.checkout.head_commit.clone(),
        );
        Merger {
            parallel_run,
            give_up,
            event_sender,
            include_waiting,
            merger_epoch: 0,
            target_tip,
            stack_end,
            stacked_items: Vec::new(),
            passed_commands: Vec::new(),
        }
    }

    /// Runs a round: lands the items that can be landed and sends the others back. Does nothing if another
    /// machine is the merger.
    pub(super) fn run_merge_round(&mut self) -> Result<(), MergeError> {
        let Some(merger_epoch) = self.parallel_run.board.acquire_merger_lease(self.give_up)? else {
            return Ok(());
        };
        self.merger_epoch = merger_epoch;
        let items = self.parallel_run.board.items_to_merge(self.include_waiting);
        merge_queue::merge_items(self, &items)
    }

    /// Marks the items as merged that are on the target branch by now. Returns the last commit of the branch.
    pub(super) fn mark_landed_items_merged(&mut self) -> Result<CommitId, MergeError> {
        let target_tip = self.parallel_run.target.fetch_target_tip(&[], self.give_up)?;
        self.mark_items_landed_at(&target_tip)?;
        Ok(target_tip)
    }

    fn mark_items_landed_at(&self, target_tip: &CommitId) -> Result<(), MergeError> {
        let repository = self.merge_repository();
        // Git is queried before the record is written. No other process changes a stage in between.
        let is_in_target = |commit: &str| {
            CommitId::parse(commit).is_ok_and(|commit| repository.history_contains(target_tip, &commit))
        };
        let workers_state = self.parallel_run.workers_state();
        let is_open = |item: usize| {
            workers_state
                .board
                .items
                .get(item)
                .is_some_and(|board_item| board_item.stage != ItemStage::Merged)
        };
        let mut landed_items = self.parallel_run.target.recorded_landings();
        // Only open items are checked, because a long plan has many landings.
        landed_items.retain(|(item, _)| is_open(*item));
        if !landed_items.is_empty() {
            // Commits that were there when the run began are not its work.
            let run_start_commit = CommitId::parse(&workers_state.start_commit_id)?;
            landed_items.retain(|(_, commit)| {
                repository.history_contains(target_tip, commit)
                    && !repository.history_contains(&run_start_commit, commit)
            });
        }
        self.parallel_run.board.mark_landed_items_merged(&is_in_target, &landed_items, self.give_up)
    }

    /// Runs the verify commands on the branch before the first item, and records which of them pass.
    pub(super) fn record_commands_passing_now(&mut self) -> Result<(), MergeError> {
        self.stack_end = self.mark_landed_items_merged()?;
        self.merge_repository().check_out_commit(&self.stack_end)?;
        self.verify_stacked().map(drop)?;
        let passed_commands = std::mem::take(&mut self.passed_commands);
        self.record_newly_passed_commands(&passed_commands)
    }

    fn record_newly_passed_commands(&self, passed_commands: &[String]) -> Result<(), MergeError> {
        let known_passed_commands = self.parallel_run.workers_state().passed_verify_commands;
        if passed_commands.iter().all(|command| known_passed_commands.contains(command)) {
            return Ok(());
        }
        self.parallel_run.board.record_passed_commands(passed_commands, self.give_up)
    }

    /// Returns the commands to run on a result, and the commands that must pass: those that have passed on
    /// the branch, and the checks that the user allowed for items that are merged or in the result.
    fn commands_and_required_commands(&self) -> (Vec<String>, Vec<String>) {
        let workers_state = self.parallel_run.workers_state();
        let is_merged_or_stacked = |(index, board_item): &(usize, &BoardItem)| {
            board_item.stage == ItemStage::Merged
                || self.stacked_items.iter().any(|stacked_item| stacked_item.item_index == *index)
        };
        let items = workers_state.board.items.iter().enumerate().filter(is_merged_or_stacked);
        let checks: Vec<String> = items
            .filter_map(|(_, board_item)| {
                Some(self.parallel_run.initial_state.allowed_check_of_item(&board_item.text)?.command.clone())
            })
            .collect();
        let mut commands = self.parallel_run.initial_state.options.verify_commands.clone();
        commands.extend(
            checks
                .iter()
                .filter(|check| !self.parallel_run.initial_state.options.verify_commands.contains(check))
                .cloned(),
        );
        commands.dedup();
        (commands, workers_state.passed_verify_commands.into_iter().chain(checks).collect())
    }

    fn merge_repository(&self) -> &MergeRepository {
        &self.parallel_run.worktrees.merge_repository
    }

    fn merge_project(&self) -> Project {
        self.parallel_run.worktrees.project_in(&self.parallel_run.worktrees.merge_worktree())
    }

    /// Moves the target to the last commit of the stacked items. Returns false if the target has moved
    /// meanwhile.
    fn move_target_to_stack_end(&self, landing_commits: &[(usize, &CommitId)]) -> Result<bool, MergeError> {
        self.parallel_run.target.move_target_forward(
            &self.target_tip,
            &self.stack_end,
            landing_commits,
            self.give_up,
        )
    }

    fn stack_item(&mut self, item: usize) -> Result<bool, MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let (board_item, item_progress) =
            (&workers_state.board.items[item], &workers_state.item_progress[item]);
        let ItemStage::ReadyToMerge { commit: offered_commit } = &board_item.stage else { return Ok(false) };
        let (work_end, base_commit) =
            (CommitId::parse(offered_commit)?, CommitId::parse(&item_progress.base_commit_id)?);
        let repository = self.merge_repository();
        let take_result = self.parallel_run.target.copy_work_into_merge_repository(&work_end);
        // Only the merger changes the user's plan, and the plan of an item's own run is in no commit.
        let plan_files = self.parallel_run.worktrees.plan_files.all_paths();
        let work_without_plan = take_result.and_then(|()| {
            repository.own_repository().rewrite_without_changes_to(&base_commit, &work_end, &plan_files)
        });
        if let Ok(work_without_plan) = &work_without_plan {
            let changed_files = repository.changed_files(&base_commit, work_without_plan);
            self.parallel_run.update_workers_state(|workers| {
                record_written_files(&mut workers.board, item, &changed_files);
            })?;
        }
        if !self.parallel_run.board.items_to_merge(self.include_waiting).contains(&item) {
            return Ok(false);
        }
        let rebase_result = work_without_plan.clone().map_err(WorktreeError::from);
        let rebase_result = rebase_result.and_then(|work_without_plan| {
            repository.rebase(&work_without_plan, &base_commit, &self.stack_end)
        });
        let commit_without_tick = match rebase_result {
            Ok(RebaseOutcome::Rebased(rebased_end)) => rebased_end,
            Ok(RebaseOutcome::NothingToRebase) => {
                repository.check_out_commit(&self.stack_end)?;
                self.stack_end.clone()
            }
            // The conflict is with an item that is stacked but not on the branch yet. A new attempt would
            // begin before that item and meet the conflict again. The next round sees what has landed.
            Ok(RebaseOutcome::Conflict { .. }) if self.stack_end != self.target_tip => return Ok(false),
            Ok(RebaseOutcome::Conflict { conflicting_files: files, message: git_output }) => {
                // The next session gets the work without the plan's changes, if its repository can have that
                // commit.
                let returned_commit = work_without_plan
                    .ok()
                    .filter(|work| self.parallel_run.target.publish_work(work))
                    .unwrap_or(work_end);
                let end_name = self.parallel_run.target.branch_or_commit_of_offered_work(
                    &workers_state,
                    item,
                    &returned_commit,
                );
                let send_back_reason = SendBackReason::for_conflict(
                    repository,
                    &end_name,
                    [&returned_commit, &base_commit, &self.stack_end],
                    &files,
                    &git_output,
                );
                self.send_item_back(&workers_state, item, &send_back_reason, None)?;
                return Ok(false);
            }
            Err(WorktreeError::Refused { reason: git_error, .. }) => {
                let send_back_reason = SendBackReason::for_git_error(&git_error, [&work_end, &base_commit]);
                self.send_item_back(&workers_state, item, &send_back_reason, None)?;
                return Ok(false);
            }
            Err(error @ WorktreeError::TimedOut(_)) => return Err(error.into()),
        };
        let last_commit = self.tick_item_in_plan(&workers_state, item, &commit_without_tick)?;
        self.stack_end.clone_from(&last_commit);
        self.stacked_items.push(StackedItem { item_index: item, commit_without_tick, last_commit });
        Ok(true)
    }

    /// Adds trailers to the message of the last commit that say which commands passed on its tree, and keeps
    /// a receipt outside the project. The tree is the one that was verified.
    fn add_trailers_and_store_receipt(
        &mut self,
        workers_state: &WorkersState,
        items: &[usize],
    ) -> Result<(), MergeError> {
        if self.stack_end == self.target_tip {
            return Ok(());
        }
        let repository = self.merge_repository();
        let tree = repository.tree_of_commit(&self.stack_end)?;
        let item_texts: Vec<&str> =
            items.iter().map(|item| workers_state.board.items[*item].text.as_str()).collect();
        let tree_and_command_count =
            Some((&tree, self.passed_commands.len())).filter(|(_, count)| *count > 0);
        let trailers = render_commit_trailers(
            &self.parallel_run.initial_state.run_id,
            &item_texts,
            tree_and_command_count,
        );
        let old_end = self.stack_end.clone();
        let new_end = repository
            .reword_commit(&old_end, &append_missing_trailers(&repository.head_message(), &trailers))?;
        for stacked_item in self.stacked_items.iter_mut().filter(|stacked| stacked.last_commit == old_end) {
            stacked_item.last_commit.clone_from(&new_end);
        }
        self.stack_end.clone_from(&new_end);
        let to_receipt_item = |item: &usize| {
            let (item_progress, project) = (
                &workers_state.item_progress[*item],
                self.parallel_run.worktrees.project_in(&self.parallel_run.worktrees.item_worktree(*item)),
            );
            ReceiptItem {
                text: workers_state.board.items[*item].text.clone(),
                sessions: records::sessions_with_files(&project),
                cost_usd: item_progress.earlier_usage.cost_usd + item_progress.current_usage.cost_usd,
            }
        };
        let receipt = VerificationReceipt {
            format: FormatVersion,
            verified_at: clock::to_timestamp(clock::now()),
            run_id: self.parallel_run.initial_state.run_id.clone(),
            commit: new_end,
            tree,
            commands: self.passed_commands.clone(),
            items: items.iter().map(to_receipt_item).collect(),
        };
        Ok(receipts::append_receipt(
            &self.merge_project(),
            &self.parallel_run.initial_state.run_id,
            &receipt,
        )?)
    }

    /// Sets the checkboxes of the plan to the state of the board, whoever has changed them, in the last
    /// commit of the item's work. That commit gets the item's trailers. Returns the new end.
    fn tick_item_in_plan(
        &self,
        workers_state: &WorkersState,
        item: usize,
        commit_without_tick: &CommitId,
    ) -> Result<CommitId, MergeError> {
        let repository = self.merge_repository();
        let text = &workers_state.board.items[item].text;
        let trailers = render_commit_trailers(&self.parallel_run.initial_state.run_id, &[text], None);
        // An item without a commit of its own ends at the same commit as the one before it.
        let has_commit = *commit_without_tick != self.stack_end;
        let end_without_tick = || match has_commit {
            true => repository.reword_commit(
                commit_without_tick,
                &append_missing_trailers(&repository.head_message(), &trailers),
            ),
            false => repository.head_commit(),
        };
        let plan_file =
            self.parallel_run.worktrees.plan_files.plan.as_ref().filter(|_| workers_state.plan_is_tracked);
        let Some(plan_file) = plan_file else { return Ok(end_without_tick()?) };
        let path = repository.work_tree().join(plan_file.as_str());
        let plan = disk::read(&path)?.unwrap_or_default();
        let is_landing = |index: usize| {
            index == item || self.stacked_items.iter().any(|stacked_item| stacked_item.item_index == index)
        };
        let plan_with_ticks = plan_edit::set_item_ticks(&plan, &item_ticks(workers_state, is_landing))
            .unwrap_or_else(|| plan.clone());
        let plan_with_ticks = self.parallel_run.target.add_session_notes_to_plan(plan_with_ticks, item)?;
        if plan_with_ticks == plan {
            return Ok(end_without_tick()?);
        }
        disk::replace(&path, &plan_with_ticks, Durability::Lazy)?;
        if !has_commit {
            let message = format!("Tick {}", truncate_end(&to_single_line(text), 60));
            return Ok(repository.commit_file(plan_file, &append_missing_trailers(&message, &trailers))?);
        }
        // In the same commit, so that reverting the work also reverts the tick.
        let message = append_missing_trailers(&repository.head_message(), &trailers);
        Ok(repository.amend_with_file(plan_file, &message)?)
    }

    /// Merges notes that were written after the last item was merged. The result must pass the same commands
    /// as any other result; otherwise the notes stay only in the plan that the run shows. Returns true if
    /// there were notes and they are merged.
    pub(super) fn merge_late_notes(&mut self) -> Result<bool, MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let plan_file =
            self.parallel_run.worktrees.plan_files.plan.clone().filter(|_| workers_state.plan_is_tracked);
        let (Some(plan_file), Some(shown_plan)) =
            (plan_file, self.parallel_run.target.read_plan_with_late_notes()?)
        else {
            return Ok(false);
        };
        self.target_tip = self.mark_landed_items_merged()?;
        self.stacked_items.clear();
        let repository = self.merge_repository();
        repository.check_out_commit(&self.target_tip)?;
        let path = repository.work_tree().join(plan_file.as_str());
        let plan = disk::read(&path)?.unwrap_or_default();
        let plan_with_notes = add_notes_of_shown_plan(&plan, &shown_plan);
        if plan_with_notes == plan {
            return Ok(false);
        }
        disk::replace(&path, &plan_with_notes, Durability::Lazy)?;
        let message = append_missing_trailers(
            "Note what sessions found",
            &render_commit_trailers(&self.parallel_run.initial_state.run_id, &[], None),
        );
        self.stack_end = repository.commit_file(&plan_file, &message)?;
        Ok(self.verify_stacked()?.is_none() && self.move_target_to_stack_end(&[])?)
    }

    fn send_item_back(
        &self,
        workers_state: &WorkersState,
        item: usize,
        send_back_reason: &SendBackReason,
        start_and_base: Option<(CommitId, CommitId)>,
    ) -> Result<(), MergeError> {
        let (wanted_start, base_commit) = start_and_base.unzip();
        let claim = Claim { item, epoch: workers_state.board.items[item].epoch };
        let start_commit = self.parallel_run.target.save_returned_work_and_start_commit(
            claim,
            &send_back_reason.returned_work,
            wanted_start,
            self.give_up,
        )?;
        let base_commit = base_commit.filter(|_| start_commit.is_some());
        let rejected_item = RejectedItem {
            merger_epoch: self.merger_epoch,
            item,
            next_session_note: send_back_reason.summary.clone(),
            start_commit_id: start_commit.map_or(String::new(), String::from),
            base_commit_id: base_commit.map_or(String::new(), String::from),
        };
        let is_set_aside = self.parallel_run.board.reject_offered_item(
            &rejected_item,
            &send_back_reason.conflict_files,
            self.give_up,
        )?;
        let (item, reason) = (workers_state.board.items[item].text.clone(), send_back_reason.summary.clone());
        let _ =
            self.event_sender.send(JournalEvent::ItemReturned(ItemReturned { item, reason, is_set_aside }));
        Ok(())
    }
}

/// Returns what the sessions of an item noted in its plan on this machine, without secrets.
pub(super) fn notes_of_item_sessions(worktrees: &Worktrees, item: usize) -> Vec<String> {
    let project = worktrees.project_in(&worktrees.item_worktree(item));
    let plan = disk::read_text(&project.root().join(ITEM_PLAN_FILE)).ok().flatten().unwrap_or_default();
    let notes = TodoList::parse(&plan).items.into_iter().flat_map(|item_in_plan| item_in_plan.notes);
    // Notes are committed, so they may contain no secrets.
    notes.map(|note| plimsoll_secrets::redact(&note)).collect()
}

impl MergeBackend for Merger<'_> {
    type Error = MergeError;

    fn stack_onto_target(&mut self, items: &[usize]) -> Result<Vec<usize>, MergeError> {
        self.target_tip = self.parallel_run.target.fetch_target_tip(items, self.give_up)?;
        self.mark_items_landed_at(&self.target_tip)?;
        self.stack_end.clone_from(&self.target_tip);
        self.stacked_items.clear();
        let mut stacked_items = Vec::new();
        for item in items {
            if (self.give_up)() {
                return Err(MergeError::GivenUp);
            }
            if self.stack_item(*item)? {
                stacked_items.push(*item);
            }
        }
        // An item with a conflict may have left another commit checked out.
        self.merge_repository().check_out_commit(&self.stack_end)?;
        Ok(stacked_items)
    }

    fn verify_stacked(&mut self) -> Result<Option<String>, MergeError> {
        let (commands, required_commands) = self.commands_and_required_commands();
        let outcomes = run_verify_commands(
            &self.merge_project(),
            self.parallel_run.context.settings,
            self.parallel_run.initial_state,
            &commands,
            &self.give_up,
        );
        if outcomes.len() < commands.len() || outcomes.iter().any(|outcome| outcome.is_undecided) {
            return Err(MergeError::GivenUp);
        }
        // Only the verify commands of the run. An item's check is run for its own tick, and here.
        let is_verify_command = |outcome: &&VerifyOutcome| {
            self.parallel_run.initial_state.options.verify_commands.contains(&outcome.command)
        };
        let passed_outcomes = outcomes.iter().filter(|outcome| outcome.passed).filter(is_verify_command);
        self.passed_commands = passed_outcomes.map(|outcome| outcome.command.clone()).collect();
        let first_failure =
            outcomes.iter().find(|outcome| !outcome.passed && required_commands.contains(&outcome.command));
        Ok(first_failure.map(|outcome| format!("`{}` {}", to_single_line(&outcome.command), outcome.summary)))
    }

    fn move_target_to_stacked(&mut self, items: &[usize]) -> Result<bool, MergeError> {
        let workers_state = self.parallel_run.workers_state();
        self.add_trailers_and_store_receipt(&workers_state, items)?;
        let landing_items: Vec<&StackedItem> = self
            .stacked_items
            .iter()
            .filter(|stacked_item| items.contains(&stacked_item.item_index))
            .collect();
        let landing_commits: Vec<(usize, &CommitId)> = landing_items
            .iter()
            .map(|stacked_item| (stacked_item.item_index, &stacked_item.last_commit))
            .collect();
        // The record is written first. After a kill, these commits show whether the branch was moved.
        self.parallel_run.board.record_landing_commits(self.merger_epoch, &landing_commits, self.give_up)?;
        if self.stack_end != self.target_tip && !self.move_target_to_stack_end(&landing_commits)? {
            return Ok(false);
        }
        let passed_commands = self.passed_commands.clone();
        let item_texts = landing_items
            .iter()
            .map(|stacked_item| workers_state.board.items[stacked_item.item_index].text.clone())
            .collect();
        let target_commit = self.stack_end.to_string();
        // The target has moved, so the event is sent even if the board fails.
        let _ = self
            .event_sender
            .send(JournalEvent::ItemsMerged(ItemsMerged { items: item_texts, branch_head: target_commit }));
        self.mark_items_landed_at(&self.stack_end)?;
        self.record_newly_passed_commands(&passed_commands)?;
        let merged_items: Vec<(usize, u64)> = landing_items
            .iter()
            .map(|stacked_item| {
                (stacked_item.item_index, workers_state.board.items[stacked_item.item_index].epoch)
            })
            .collect();
        self.parallel_run.target.remove_branches_of_merged_items(&merged_items, self.give_up);
        Ok(true)
    }

    fn reject_item(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let commit_without_tick = self
            .stacked_items
            .iter()
            .find(|stacked_item| stacked_item.item_index == item)
            .map(|stacked_item| stacked_item.commit_without_tick.clone());
        let work_end = commit_without_tick.as_ref().unwrap_or(&self.stack_end);
        let send_back_reason =
            SendBackReason::for_failed_verify(self.merge_repository(), &self.target_tip, work_end, output);
        let start_and_base =
            commit_without_tick.map(|commit_without_tick| (commit_without_tick, self.target_tip.clone()));
        self.send_item_back(&workers_state, item, &send_back_reason, start_and_base)
    }

    fn report_flaky_verify(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let message = format!(
            "a verify command failed and then passed on the same commit (\"{}\"): {}",
            to_single_line(&workers_state.board.items[item].text),
            truncate_end(&to_single_line(output), MAX_NOTE_CHARS)
        );
        let _ = self.event_sender.send(JournalEvent::Note { text: message });
        Ok(())
    }
}
