//! Merges the results of items: rebases them onto the tip of the target branch in a separate worktree, verifies
//! them there, and moves the branch forward unless it has moved since. Runs in a separate thread, because
//! verify commands take long.

mod send_back_reason;

use crate::run::verify::run_verify_commands_until_canceled;
use crate::workers::connection::RejectedItem;
use crate::workers::context::ParallelRun;
use crate::workers::error::MergeError;
use crate::workers::project_checkout::ITEM_PLAN_FILE;
use crate::workers::session_notes::add_redacted_notes_of_shown_plan;
use crate::workers::shown_plan::item_texts_with_ticks;
use crate::workers::worktrees::Worktrees;
use plimsoll_domain::board::{BoardItem, ItemStage};
use plimsoll_domain::format::FormatVersion;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::journal::{ItemReturned, ItemsMerged, JournalEvent};
use plimsoll_domain::receipt::{
    ReceiptItem, VerificationReceipt, append_missing_trailers, render_commit_trailers,
};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{TodoList, plan_edit};
use plimsoll_launcher::merge_repository::MergeRepository;
use plimsoll_launcher::worktree::{RebaseOutcome, WorktreeError};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::workers::merge_queue::{self, MergeBackend};
use plimsoll_policy::workers::{Claim, record_changed_files_if_ready_to_merge};
use plimsoll_store::{Durability, Project, clock, disk, receipts, records};
use send_back_reason::SendBackReason;
use std::sync::mpsc::Sender;

/// The maximum number of characters of a git message or of a command's output in a note on the board.
const MAX_NOTE_CHARS: usize = 350;

/// Merges all items that are ready to merge, in rounds.
pub(super) struct Merger<'a> {
    parallel_run: ParallelRun<'a>,
    should_cancel: &'a (dyn Fn() -> bool + Sync),
    event_sender: Sender<JournalEvent>,
    /// If true, work that waits for a rejected item is merged, too.
    include_waiting: bool,
    merger_epoch: u64,
    target_tip: CommitId,
    /// The commit to which the target branch is to move: the last commit of the stacked items.
    merge_candidate: CommitId,
    stacked_items: Vec<StackedItem>,
    passed_commands: Vec<String>,
}

struct StackedItem {
    item_index: usize,
    /// The last commit of the item's work, without the tick in the plan.
    commit_without_tick: CommitId,
    /// The last commit that belongs to the item.
    last_commit: CommitId,
}

impl<'a> Merger<'a> {
    pub(super) fn new(
        parallel_run: ParallelRun<'a>,
        should_cancel: &'a (dyn Fn() -> bool + Sync),
        event_sender: Sender<JournalEvent>,
        include_waiting: bool,
    ) -> Merger<'a> {
        let (target_tip, merge_candidate) = (
            parallel_run.worktrees.checkout.head_commit.clone(),
            parallel_run.worktrees.checkout.head_commit.clone(),
        );
        Merger {
            parallel_run,
            should_cancel,
            event_sender,
            include_waiting,
            merger_epoch: 0,
            target_tip,
            merge_candidate,
            stacked_items: Vec::new(),
            passed_commands: Vec::new(),
        }
    }

    /// Runs a round: merges the items that pass and rejects the others. Does nothing if another machine has the
    /// merger's lease.
    pub(super) fn run_merge_round_if_lease_acquired(&mut self) -> Result<(), MergeError> {
        let Some(merger_epoch) = self.parallel_run.board.acquire_merger_lease(self.should_cancel)? else {
            return Ok(());
        };
        self.merger_epoch = merger_epoch;
        let items = self.parallel_run.board.items_to_merge(self.include_waiting);
        merge_queue::merge_items(self, &items)
    }

    /// Fetches the target branch and marks the items that it contains as merged. Returns its last commit.
    pub(super) fn fetch_target_and_mark_merged_items(&mut self) -> Result<CommitId, MergeError> {
        let target_tip = self.parallel_run.target.fetch_target_tip(&[], self.should_cancel)?;
        self.mark_items_in_target_as_merged(&target_tip)?;
        Ok(target_tip)
    }

    fn mark_items_in_target_as_merged(&self, target_tip: &CommitId) -> Result<(), MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let run_start_commit = CommitId::parse(&workers_state.start_commit_id)?;
        // Git is queried before the record is changed. No other process changes a stage in between. Commits from
        // before the run are not its work; an item that needed no change may be merged with the start commit itself.
        let target_contents = self.parallel_run.target.read_contents(&run_start_commit, target_tip)?;
        let is_in_target = |item: usize, commit: &str| target_contents.contains_item(item, commit);
        let is_open = |item: usize| {
            workers_state
                .board
                .items
                .get(item)
                .is_some_and(|board_item| board_item.stage != ItemStage::Merged)
        };
        let mut merged_item_commits = self.parallel_run.target.recorded_merge_candidates();
        // With the start commit, an item may also have been merged by an earlier fleet of the same name.
        merged_item_commits.retain(|(item, commit)| {
            is_open(*item) && is_in_target(*item, commit.as_str()) && *commit != run_start_commit
        });
        self.parallel_run.board.mark_items_in_target_as_merged(
            &is_in_target,
            &merged_item_commits,
            self.should_cancel,
        )
    }

    /// Runs the verify commands on the target branch and records which of them pass.
    pub(super) fn verify_target_and_record_passed_commands(&mut self) -> Result<(), MergeError> {
        self.merge_candidate = self.fetch_target_and_mark_merged_items()?;
        self.merge_repository().check_out_commit(&self.merge_candidate)?;
        self.verify_stack().map(drop)?;
        let passed_commands = std::mem::take(&mut self.passed_commands);
        self.record_newly_passed_commands(&passed_commands)
    }

    fn record_newly_passed_commands(&self, passed_commands: &[String]) -> Result<(), MergeError> {
        let recorded_commands = self.parallel_run.workers_state().passed_verify_commands;
        if passed_commands.iter().all(|command| recorded_commands.contains(command)) {
            return Ok(());
        }
        self.parallel_run.board.record_passed_commands(passed_commands, self.should_cancel)
    }

    /// Returns the commands to run on the merge candidate, and the commands that must pass: those that have passed
    /// on the target branch, and the allowed checks of items that are merged or stacked.
    fn verify_commands_and_those_that_must_pass(&self) -> (Vec<String>, Vec<String>) {
        let workers_state = self.parallel_run.workers_state();
        let is_merged_or_stacked = |(index, board_item): &(usize, &BoardItem)| {
            board_item.stage == ItemStage::Merged
                || self.stacked_items.iter().any(|stacked_item| stacked_item.item_index == *index)
        };
        let items = workers_state.board.items.iter().enumerate().filter(is_merged_or_stacked);
        let checks: Vec<String> = items
            .filter_map(|(_, board_item)| {
                Some(
                    self.parallel_run
                        .initial_state
                        .find_check_allowed_at_run_start(&board_item.text)?
                        .command
                        .clone(),
                )
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

    /// Moves the target branch to the merge candidate. Returns false if the target has moved meanwhile.
    fn move_target_to_merge_candidate(
        &self,
        item_commits: &[(usize, &CommitId)],
    ) -> Result<bool, MergeError> {
        self.parallel_run.target.move_target_forward(
            &self.target_tip,
            &self.merge_candidate,
            item_commits,
            self.should_cancel,
        )
    }

    fn stack_item(&mut self, item: usize) -> Result<bool, MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let ItemStage::ReadyToMerge { commit: work_commit } = &workers_state.board.items[item].stage else {
            return Ok(false);
        };
        let base_commit = CommitId::parse(&workers_state.item_progress[item].base_commit_id)?;
        let last_work_commit = CommitId::parse(work_commit)?;
        let repository = self.merge_repository();
        let (target, should_cancel) = (self.parallel_run.target, self.should_cancel);
        let offered_work = target.copy_work_into_merge_repository(item, &last_work_commit, should_cancel)?;
        let Some(copy_result) = offered_work.into_result_unless_not_yet() else { return Ok(false) };
        // Only the merger changes the user's plan, and no commit contains the plan of an item's run.
        let plan_files = self.parallel_run.worktrees.plan_files.all_paths();
        let work_without_plan = copy_result.and_then(|()| {
            repository.plimsoll_repository().rewrite_commits_without_changes_to_files(
                &base_commit,
                &last_work_commit,
                &plan_files,
            )
        });
        if let Ok(work_without_plan) = &work_without_plan {
            let changed_files = repository.changed_files(&base_commit, work_without_plan);
            self.parallel_run.update_workers_state(|workers| {
                record_changed_files_if_ready_to_merge(&mut workers.board, item, &changed_files);
            })?;
        }
        if !self.parallel_run.board.items_to_merge(self.include_waiting).contains(&item) {
            return Ok(false);
        }
        let rebase_result = work_without_plan.clone().map_err(WorktreeError::from);
        let rebase_result = rebase_result.and_then(|work_without_plan| {
            repository.rebase(&work_without_plan, &base_commit, &self.merge_candidate)
        });
        let commit_without_tick = match rebase_result {
            Ok(RebaseOutcome::Rebased(rebased_tip)) => rebased_tip,
            Ok(RebaseOutcome::NothingToRebase) => {
                repository.check_out_commit(&self.merge_candidate)?;
                self.merge_candidate.clone()
            }
            // The conflict is with an item that is stacked but not merged yet. A new attempt would begin
            // before that item and conflict again. The next round retries after that item is merged or rejected.
            Ok(RebaseOutcome::Conflict { .. }) if self.merge_candidate != self.target_tip => {
                return Ok(false);
            }
            Ok(RebaseOutcome::Conflict { conflicting_files: files, message: git_output }) => {
                // The next session gets the work without its changes to the plan, if that commit can be
                // published to it.
                let returned_commit = work_without_plan
                    .ok()
                    .filter(|work| self.parallel_run.target.publish_work(work))
                    .unwrap_or(last_work_commit);
                let work_revision =
                    self.parallel_run.target.branch_or_commit_of_work(&workers_state, item, &returned_commit);
                let send_back_reason = SendBackReason::for_conflict(
                    repository,
                    &work_revision,
                    [&returned_commit, &base_commit, &self.merge_candidate],
                    &files,
                    &git_output,
                );
                self.send_item_back(&workers_state, item, &send_back_reason, None)?;
                return Ok(false);
            }
            Err(WorktreeError::Refused { reason: git_error, .. }) => {
                let send_back_reason =
                    SendBackReason::for_git_error(&git_error, [&last_work_commit, &base_commit]);
                self.send_item_back(&workers_state, item, &send_back_reason, None)?;
                return Ok(false);
            }
            Err(error @ WorktreeError::TimedOut(_)) => return Err(error.into()),
        };
        let last_commit =
            self.commit_or_amend_with_tick_and_trailers(&workers_state, item, &commit_without_tick)?;
        self.merge_candidate.clone_from(&last_commit);
        self.stacked_items.push(StackedItem { item_index: item, commit_without_tick, last_commit });
        Ok(true)
    }

    /// Adds trailers to the message of the merge candidate, which amends the commit, and appends a receipt to a
    /// file outside the project. Both say which commands passed on its tree; the tree does not change.
    fn add_trailers_to_last_commit_and_store_receipt(
        &mut self,
        workers_state: &WorkersState,
        items: &[usize],
    ) -> Result<(), MergeError> {
        if self.merge_candidate == self.target_tip {
            return Ok(());
        }
        let repository = self.merge_repository();
        let tree = repository.tree_of_commit(&self.merge_candidate)?;
        let item_texts: Vec<&str> =
            items.iter().map(|item| workers_state.board.items[*item].text.as_str()).collect();
        let tree_and_command_count =
            Some((&tree, self.passed_commands.len())).filter(|(_, count)| *count > 0);
        let trailers = render_commit_trailers(
            &self.parallel_run.initial_state.run_id,
            &item_texts,
            tree_and_command_count,
        );
        let old_commit = self.merge_candidate.clone();
        let new_commit = repository
            .reword_commit(&old_commit, &append_missing_trailers(&repository.head_message(), &trailers))?;
        for stacked_item in self.stacked_items.iter_mut().filter(|stacked| stacked.last_commit == old_commit)
        {
            stacked_item.last_commit.clone_from(&new_commit);
        }
        self.merge_candidate.clone_from(&new_commit);
        let to_receipt_item = |item: &usize| {
            let (item_progress, project) = (
                &workers_state.item_progress[*item],
                self.parallel_run.worktrees.project_in(&self.parallel_run.worktrees.item_worktree(*item)),
            );
            ReceiptItem {
                text: workers_state.board.items[*item].text.clone(),
                sessions: records::sessions_with_record_or_turn_log(&project),
                cost_usd: item_progress.earlier_usage.cost_usd + item_progress.current_usage.cost_usd,
            }
        };
        let receipt = VerificationReceipt {
            format: FormatVersion,
            verified_at: clock::to_timestamp(clock::now()),
            run_id: self.parallel_run.initial_state.run_id.clone(),
            commit: new_commit,
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

    /// Sets the checkboxes of the plan to the state of the board and amends the last commit of the item's work with
    /// the plan and the item's trailers. An item without commits gets a new commit. Returns the new last commit.
    fn commit_or_amend_with_tick_and_trailers(
        &self,
        workers_state: &WorkersState,
        item: usize,
        commit_without_tick: &CommitId,
    ) -> Result<CommitId, MergeError> {
        let repository = self.merge_repository();
        let item_text = &workers_state.board.items[item].text;
        let trailers = render_commit_trailers(&self.parallel_run.initial_state.run_id, &[item_text], None);
        // An item without commits ends at the last commit of the previous item.
        let item_has_commits = *commit_without_tick != self.merge_candidate;
        let finish_without_tick = || match item_has_commits {
            true => repository.reword_commit(
                commit_without_tick,
                &append_missing_trailers(&repository.head_message(), &trailers),
            ),
            false => repository.head_commit(),
        };
        let plan_file =
            self.parallel_run.worktrees.plan_files.plan.as_ref().filter(|_| workers_state.plan_is_tracked);
        let Some(plan_file) = plan_file else { return Ok(finish_without_tick()?) };
        let plan_path = repository.work_tree().join(plan_file.as_str());
        let plan = disk::read(&plan_path)?.unwrap_or_default();
        let is_merging = |index: usize| {
            index == item || self.stacked_items.iter().any(|stacked_item| stacked_item.item_index == index)
        };
        let plan_with_ticks =
            plan_edit::set_item_ticks(&plan, &item_texts_with_ticks(workers_state, is_merging))
                .unwrap_or_else(|| plan.clone());
        let plan_with_ticks = self.parallel_run.target.add_session_notes_to_plan(plan_with_ticks, item)?;
        if plan_with_ticks == plan {
            return Ok(finish_without_tick()?);
        }
        disk::replace(&plan_path, &plan_with_ticks, Durability::Lazy)?;
        if !item_has_commits {
            let message = format!("Tick {}", truncate_end(&to_safe_single_line(item_text), 60));
            return Ok(repository.commit_file(plan_file, &append_missing_trailers(&message, &trailers))?);
        }
        // In the same commit, so that reverting the work also reverts the tick.
        let message = append_missing_trailers(&repository.head_message(), &trailers);
        Ok(repository.amend_with_file(plan_file, &message)?)
    }

    /// Commits and merges notes that were written after the last item was merged. The commit must pass the same
    /// commands as an item; otherwise the notes stay only in the shown plan. Returns true if notes were merged.
    pub(super) fn merge_late_notes_if_verified(&mut self) -> Result<bool, MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let plan_file =
            self.parallel_run.worktrees.plan_files.plan.clone().filter(|_| workers_state.plan_is_tracked);
        let (Some(plan_file), Some(shown_plan)) =
            (plan_file, self.parallel_run.target.read_plan_with_late_notes()?)
        else {
            return Ok(false);
        };
        self.target_tip = self.fetch_target_and_mark_merged_items()?;
        self.stacked_items.clear();
        let repository = self.merge_repository();
        repository.check_out_commit(&self.target_tip)?;
        let plan_path = repository.work_tree().join(plan_file.as_str());
        let plan = disk::read(&plan_path)?.unwrap_or_default();
        let plan_with_notes = add_redacted_notes_of_shown_plan(&plan, &shown_plan);
        if plan_with_notes == plan {
            return Ok(false);
        }
        disk::replace(&plan_path, &plan_with_notes, Durability::Lazy)?;
        let message = append_missing_trailers(
            "Note what sessions found",
            &render_commit_trailers(&self.parallel_run.initial_state.run_id, &[], None),
        );
        self.merge_candidate = repository.commit_file(&plan_file, &message)?;
        Ok(self.verify_stack()?.is_none() && self.move_target_to_merge_candidate(&[])?)
    }

    fn send_item_back(
        &self,
        workers_state: &WorkersState,
        item: usize,
        send_back_reason: &SendBackReason,
        start_and_base_commit: Option<(CommitId, CommitId)>,
    ) -> Result<(), MergeError> {
        let (requested_start_commit, base_commit) = start_and_base_commit.unzip();
        let claim = Claim { item_index: item, epoch: workers_state.board.items[item].epoch };
        let start_commit = self.parallel_run.target.save_returned_work_and_start_commit(
            claim,
            &send_back_reason.returned_work,
            requested_start_commit,
            self.should_cancel,
        )?;
        let base_commit = base_commit.filter(|_| start_commit.is_some());
        let rejected_item = RejectedItem {
            merger_epoch: self.merger_epoch,
            item,
            next_session_note: send_back_reason.summary.clone(),
            start_commit_id: start_commit.map_or(String::new(), String::from),
            base_commit_id: base_commit.map_or(String::new(), String::from),
        };
        let is_set_aside = self.parallel_run.board.reject_merge_candidate(
            &rejected_item,
            &send_back_reason.conflict_files,
            self.should_cancel,
        )?;
        let _ = self.event_sender.send(JournalEvent::ItemReturned(ItemReturned {
            item: workers_state.board.items[item].text.clone(),
            item_number: item + 1,
            reason: send_back_reason.summary.clone(),
            is_set_aside,
        }));
        Ok(())
    }
}

/// Returns the notes that an item's sessions wrote in its plan on this machine, with secrets redacted.
pub(super) fn redacted_notes_of_item_sessions(worktrees: &Worktrees, item: usize) -> Vec<String> {
    let project = worktrees.project_in(&worktrees.item_worktree(item));
    let plan = disk::read_text(&project.root().join(ITEM_PLAN_FILE)).ok().flatten().unwrap_or_default();
    let notes = TodoList::parse(&plan).items.into_iter().flat_map(|item_in_plan| item_in_plan.notes);
    // Notes are committed, so they must not contain secrets.
    notes.map(|note| plimsoll_secrets::redact(&note)).collect()
}

impl MergeBackend for Merger<'_> {
    type Error = MergeError;

    fn rebase_stack_onto_target(&mut self, items: &[usize]) -> Result<Vec<usize>, MergeError> {
        self.target_tip = self.parallel_run.target.fetch_target_tip(items, self.should_cancel)?;
        self.mark_items_in_target_as_merged(&self.target_tip)?;
        self.merge_candidate.clone_from(&self.target_tip);
        self.stacked_items.clear();
        let mut stacked_item_indexes = Vec::new();
        for item in items {
            if (self.should_cancel)() {
                return Err(MergeError::Aborted);
            }
            if self.stack_item(*item)? {
                stacked_item_indexes.push(*item);
            }
        }
        // A conflict of an item may have left another commit checked out.
        self.merge_repository().check_out_commit(&self.merge_candidate)?;
        Ok(stacked_item_indexes)
    }

    fn verify_stack(&mut self) -> Result<Option<String>, MergeError> {
        let (commands, required_commands) = self.verify_commands_and_those_that_must_pass();
        let outcomes = run_verify_commands_until_canceled(
            &self.merge_project(),
            self.parallel_run.context.settings,
            self.parallel_run.initial_state,
            &commands,
            &self.should_cancel,
        );
        if outcomes.len() < commands.len() || outcomes.iter().any(|outcome| outcome.is_inconclusive) {
            return Err(MergeError::Aborted);
        }
        // Only the run's verify commands are recorded as passed, not the checks of items.
        let is_verify_command = |outcome: &&VerifyOutcome| {
            self.parallel_run.initial_state.options.verify_commands.contains(&outcome.command)
        };
        let passed_outcomes = outcomes.iter().filter(|outcome| outcome.passed).filter(is_verify_command);
        self.passed_commands = passed_outcomes.map(|outcome| outcome.command.clone()).collect();
        let first_failure =
            outcomes.iter().find(|outcome| !outcome.passed && required_commands.contains(&outcome.command));
        Ok(first_failure
            .map(|outcome| format!("`{}` {}", to_safe_single_line(&outcome.command), outcome.summary)))
    }

    fn move_target_to_stack(&mut self, items: &[usize]) -> Result<bool, MergeError> {
        let workers_state = self.parallel_run.workers_state();
        self.add_trailers_to_last_commit_and_store_receipt(&workers_state, items)?;
        let items_to_merge: Vec<&StackedItem> = self
            .stacked_items
            .iter()
            .filter(|stacked_item| items.contains(&stacked_item.item_index))
            .collect();
        let item_commits: Vec<(usize, &CommitId)> = items_to_merge
            .iter()
            .map(|stacked_item| (stacked_item.item_index, &stacked_item.last_commit))
            .collect();
        // Recorded before the branch moves. After a kill, these commits show whether it was moved.
        self.parallel_run.board.record_merge_candidate_commits(
            self.merger_epoch,
            &item_commits,
            self.should_cancel,
        )?;
        if self.merge_candidate != self.target_tip && !self.move_target_to_merge_candidate(&item_commits)? {
            return Ok(false);
        }
        let passed_commands = self.passed_commands.clone();
        let item_texts = items_to_merge
            .iter()
            .map(|stacked_item| workers_state.board.items[stacked_item.item_index].text.clone())
            .collect();
        let item_numbers = items_to_merge.iter().map(|stacked_item| stacked_item.item_index + 1).collect();
        let branch_head = self.merge_candidate.to_string();
        // The target has moved, so the event is sent before the board calls, which may fail.
        let _ = self.event_sender.send(JournalEvent::ItemsMerged(ItemsMerged {
            items: item_texts,
            item_numbers,
            branch_head,
        }));
        self.mark_items_in_target_as_merged(&self.merge_candidate)?;
        self.record_newly_passed_commands(&passed_commands)?;
        let merged_items: Vec<(usize, u64)> = items_to_merge
            .iter()
            .map(|stacked_item| {
                (stacked_item.item_index, workers_state.board.items[stacked_item.item_index].epoch)
            })
            .collect();
        self.parallel_run.target.remove_branches_of_merged_items(&merged_items, self.should_cancel);
        Ok(true)
    }

    fn reject_item(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let commit_without_tick = self
            .stacked_items
            .iter()
            .find(|stacked_item| stacked_item.item_index == item)
            .map(|stacked_item| stacked_item.commit_without_tick.clone());
        let last_work_commit = commit_without_tick.as_ref().unwrap_or(&self.merge_candidate);
        let send_back_reason = SendBackReason::for_failed_verify(
            self.merge_repository(),
            &self.target_tip,
            last_work_commit,
            output,
        );
        let start_and_base_commit =
            commit_without_tick.map(|commit_without_tick| (commit_without_tick, self.target_tip.clone()));
        self.send_item_back(&workers_state, item, &send_back_reason, start_and_base_commit)
    }

    fn report_flaky_verify(&mut self, item: usize, output: &str) -> Result<(), MergeError> {
        let workers_state = self.parallel_run.workers_state();
        let message = format!(
            "a verify command failed and then passed on the same commit (\"{}\"): {}",
            to_safe_single_line(&workers_state.board.items[item].text),
            truncate_end(&to_safe_single_line(output), MAX_NOTE_CHARS)
        );
        let _ = self.event_sender.send(JournalEvent::Note { text: message });
        Ok(())
    }
}
