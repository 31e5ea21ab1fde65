//! Ends a parallel run, because its board requires no more work or because the end was requested.

use super::abort_flag::AbortFlag;
use super::reporter::Reporter;
use crate::plimsoll_files::is_plimsoll_file;
use crate::run::RunEvent;
use crate::run::archive::archive_run_and_clean_up_prompt_and_memory;
use crate::run::branch::allowed_programs;
use crate::run::changed_checks::list_check_files_changed_since_run_start;
use crate::run::notify::notify_user_of_end_or_pause;
use crate::workers::WorkersError;
use crate::workers::closing_reason::ClosingReason;
use crate::workers::context::ParallelRun;
use crate::workers::merger::Merger;
use plimsoll_domain::board::{ItemStage, SetAsideReason};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEvent, VerdictReached};
use plimsoll_domain::state::DeliveryMode;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{RunState, RunStatus, Timestamp, Verdict};
use plimsoll_launcher::branch::{HeadState, has_tracked_changes, read_head_state};
use plimsoll_launcher::{git, worktree};
use plimsoll_store::{clock, disk};

/// Returns why a run closes in which every item is merged: it is completed, or blocked if a verify command
/// has not passed.
pub(super) fn completed_or_blocked_by_failing_verify(
    run_state: &RunState,
    workers_state: &WorkersState,
) -> ClosingReason {
    match run_state
        .options
        .verify_commands
        .iter()
        .find(|command| !workers_state.passed_verify_commands.contains(command))
    {
        None => ClosingReason::Stop(
            RunStatus::Completed,
            match run_state.options.verify_commands.len() {
                0 => format!("{} merged", count_with_noun(workers_state.board.items.len(), "item")),
                command_count => format!(
                    "{} merged, {} passed",
                    count_with_noun(workers_state.board.items.len(), "item"),
                    count_with_noun(command_count, "verify command")
                ),
            },
        ),
        Some(command) => ClosingReason::Stop(
            RunStatus::Blocked,
            format!(
                "every item is merged, but `{}` does not pass on the branch",
                to_safe_single_line(command)
            ),
        ),
    }
}

/// Returns why a run closes in which every open item is set aside or depends on such an item.
pub(super) fn closing_reason_for_stuck_run(workers_state: &WorkersState) -> ClosingReason {
    let mut reasons = Vec::new();
    let mut has_failed_item = false;
    for board_item in &workers_state.board.items {
        let item_text = truncate_end(&to_safe_single_line(&board_item.text), 60);
        match &board_item.stage {
            ItemStage::SetAside { reason: SetAsideReason::Question(question) } => {
                reasons.push(format!("{} (item \"{item_text}\")", truncate_end(question, 200)));
            }
            ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges } => {
                has_failed_item = true;
                reasons.push(format!(
                    "\"{item_text}\" could not be merged: {}",
                    truncate_end(&board_item.next_session_note, 200)
                ));
            }
            ItemStage::SetAside { reason: SetAsideReason::RunEnded(reason) } => {
                has_failed_item = true;
                reasons.push(format!("\"{item_text}\" could not be done: {}", truncate_end(reason, 200)));
            }
            ItemStage::Open
            | ItemStage::Leased { .. }
            | ItemStage::ReadyToMerge { .. }
            | ItemStage::Merged => {}
        }
    }
    if reasons.is_empty() {
        return ClosingReason::Stop(
            RunStatus::Blocked,
            "the open items wait for each other: see plimsoll plan".to_owned(),
        );
    }
    ClosingReason::Stop(
        if has_failed_item { RunStatus::CircuitBreaker } else { RunStatus::Blocked },
        reasons.join("; "),
    )
}

/// Returns when the pause of all workers ends, or `None` if there is no pause.
pub(super) fn workers_paused_until(parallel_run: ParallelRun<'_>) -> Option<Timestamp> {
    let pause_end = clock::from_unix_seconds(parallel_run.board.paused_until() / 1_000)?;
    (pause_end > clock::now()).then(|| clock::to_timestamp(pause_end))
}

/// Ends the run: records its status, reports where its work is, and delivers the work if that is configured.
/// Returns the exit code.
pub(super) fn finish_run(
    parallel_run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
    abort_flag: &AbortFlag,
    closing_reason: ClosingReason,
) -> Result<u8, WorkersError> {
    parallel_run
        .board
        .leave_fleet(&parallel_run.worktrees.plan_files.all_paths(), &abort_flag.second_interrupt_check());
    parallel_run.update_shown_plan_and_state()?;
    merge_unmerged_notes_if_stopped_incomplete(parallel_run, reporter, abort_flag, &closing_reason);
    let closing_reason = block_if_completion_check_fails(parallel_run, reporter, closing_reason);
    record_target_check_file_changes_in_state(parallel_run)?;
    let _ = parallel_run.worktrees.remove_merge_worktree_and_review_exports();
    report_merged_count_and_kept_worktrees(parallel_run, reporter);
    let exit_code = match closing_reason {
        ClosingReason::Interrupted => record_and_report_ctrl_c_pause(parallel_run, reporter)?,
        ClosingReason::Canceled => RunStatus::Canceled.exit_code(),
        ClosingReason::Stop(status, reason) => {
            deliver_to_user_branch_if_configured(parallel_run, reporter);
            record_verdict_archive_and_notify(parallel_run, reporter, &Verdict::Stop { status, reason })?
        }
        ClosingReason::Pause(kind, reason) => record_verdict_archive_and_notify(
            parallel_run,
            reporter,
            &Verdict::Pause { kind, pause_end: workers_paused_until(parallel_run), reason },
        )?,
    };
    let state = parallel_run.context.load_newest_state()?;
    reporter.notify_observer(&RunEvent::ProgramEnded { state: state.as_ref(), exit_code });
    Ok(exit_code)
}

/// Records which check files were changed on the run's branch.
fn record_target_check_file_changes_in_state(parallel_run: ParallelRun<'_>) -> Result<(), WorkersError> {
    let target_branch = parallel_run.workers_state().parse_target_branch().ok();
    let target_tip = target_branch.and_then(|target_branch| {
        worktree::tip_of_branch(&parallel_run.worktrees.checkout.repository_root, &target_branch)
    });
    let Some(target_tip) = target_tip else { return Ok(()) };
    let changed_checks = list_check_files_changed_since_run_start(
        parallel_run.context.project,
        parallel_run.initial_state,
        Some(&target_tip),
    );
    parallel_run.context.update_state_without_sync(|state| state.outcomes.changed_checks = changed_checks)?;
    Ok(())
}

/// Merges the notes of unmerged items if the run stops and is not completed. The notes of a merged item are
/// merged with it, and a run that will continue merges notes with the next item.
fn merge_unmerged_notes_if_stopped_incomplete(
    parallel_run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
    abort_flag: &AbortFlag,
    closing_reason: &ClosingReason,
) {
    let stops_incomplete = match closing_reason {
        ClosingReason::Stop(status, _) => !matches!(status, RunStatus::Completed | RunStatus::Canceled),
        ClosingReason::Interrupted | ClosingReason::Canceled | ClosingReason::Pause(..) => false,
    };
    let should_abort = abort_flag.second_interrupt_check();
    let mut merger = Merger::new(parallel_run, &should_abort, reporter.event_sender(), true);
    if stops_incomplete && merger.merge_late_notes_if_verified().unwrap_or(false) {
        reporter.send_notice_to_observer(
            "the notes of items that are not merged were added to the plan on the branch",
        );
    }
}

/// Replaces the status `Completed` with `Blocked`, so that nothing is delivered, if the user's branch is not
/// what was verified, or if lines of the plan look like items but are not.
fn block_if_completion_check_fails(
    parallel_run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
    closing_reason: ClosingReason,
) -> ClosingReason {
    if !matches!(closing_reason, ClosingReason::Stop(RunStatus::Completed, _)) {
        return closing_reason;
    }
    let completion_check = parallel_run.target.check_completed_run();
    completion_check.notes.into_iter().for_each(|note| reporter.send_notice_to_observer(note));
    completion_check
        .objection
        .map_or(closing_reason, |reason| ClosingReason::Stop(RunStatus::Blocked, reason))
}

fn report_merged_count_and_kept_worktrees(parallel_run: ParallelRun<'_>, reporter: &mut Reporter<'_>) {
    let workers_state = parallel_run.workers_state();
    let merged_count =
        workers_state.board.items.iter().filter(|board_item| board_item.stage == ItemStage::Merged).count();
    reporter.send_notice_to_observer(format!(
        "{merged_count} of {} merged",
        count_with_noun(workers_state.board.items.len(), "item")
    ));
    for (item, board_item) in workers_state
        .board
        .items
        .iter()
        .enumerate()
        .filter(|(_, board_item)| board_item.stage != ItemStage::Merged)
    {
        let worktree = parallel_run.worktrees.item_worktree(item);
        if disk::exists(&worktree) {
            reporter.send_notice_to_observer(format!(
                "the work on \"{}\" so far is in {}",
                truncate_end(&to_safe_single_line(&board_item.text), 60),
                worktree.display()
            ));
        }
    }
}

fn record_and_report_ctrl_c_pause(
    parallel_run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<u8, WorkersError> {
    let reason = "stopped with Ctrl-C".to_owned();
    let verdict = Verdict::Pause { kind: PauseKind::Interrupted, pause_end: None, reason };
    parallel_run.context.update_state(|state| state.lifecycle.pause_and_record_verdict_if_open(&verdict))?;
    reporter.send_notice_to_observer("stopped, as requested with Ctrl-C");
    Ok(ExitStatus::Interrupted.code())
}

fn record_verdict_archive_and_notify(
    parallel_run: ParallelRun<'_>,
    reporter: &mut Reporter<'_>,
    verdict: &Verdict,
) -> Result<u8, WorkersError> {
    let now = clock::to_timestamp(clock::now());
    let state = parallel_run.context.update_state(|state| {
        match verdict {
            Verdict::Stop { status, .. } => state.lifecycle.stop_if_open(*status, verdict, now),
            Verdict::Pause { .. } | Verdict::Continue { .. } => state.lifecycle.apply_verdict(verdict),
        }
        state.clone()
    })?;
    let Some(state) = state else { return Ok(1) };
    let event = JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(verdict)));
    parallel_run.context.journal_run_event(&state, event)?;
    if state.lifecycle.has_ended() {
        archive_run_and_clean_up_prompt_and_memory(parallel_run.context.project, &state)?;
    }
    reporter.notify_observer(&RunEvent::VerdictReached { state: &state, verdict });
    notify_user_of_end_or_pause(parallel_run.context.project, &state, verdict);
    Ok(state.lifecycle.status().exit_code())
}

/// Implements `--deliver merge`: fast-forwards the user's branch unless the user's changes prevent it.
fn deliver_to_user_branch_if_configured(parallel_run: ParallelRun<'_>, reporter: &mut Reporter<'_>) {
    let workers = parallel_run.initial_state.options.workers.as_ref();
    if workers.is_none_or(|workers| workers.delivery_mode != DeliveryMode::Merge) {
        return;
    }
    let message = fast_forward_user_branch_and_describe(parallel_run)
        .unwrap_or_else(|error| format!("nothing was delivered: {error}"));
    reporter.send_notice_to_observer(message);
}

fn fast_forward_user_branch_and_describe(
    parallel_run: ParallelRun<'_>,
) -> Result<String, BranchDeliveryError> {
    let workers_state = parallel_run.workers_state();
    let project_root = parallel_run.context.project.root();
    let branch = workers_state.user_branch.clone();
    let target_branch =
        workers_state.parse_target_branch().map_err(|_| BranchDeliveryError::RunBranchMissing)?;
    let target_tip =
        worktree::tip_of_branch(project_root, &target_branch).ok_or(BranchDeliveryError::RunBranchMissing)?;
    if !read_head_state(project_root).is_ok_and(|head| head == HeadState::Branch(branch.clone())) {
        return Err(BranchDeliveryError::NotCheckedOut(branch));
    }
    let user_branch_tip = git::head_commit(project_root).ok_or(BranchDeliveryError::RunBranchMissing)?;
    if user_branch_tip != target_tip
        && user_branch_tip.as_str() != workers_state.start_commit_id
        && !worktree::history_contains(project_root, &target_tip, &user_branch_tip)
    {
        return Err(BranchDeliveryError::UserBranchMoved(branch));
    }
    if has_tracked_changes(project_root, &is_plimsoll_file).unwrap_or(true) {
        return Err(BranchDeliveryError::UncommittedChanges);
    }
    worktree::fast_forward_checked_out_branch(
        project_root,
        &target_tip,
        allowed_programs(parallel_run.initial_state.options.runs_commit_hooks),
    )?;
    Ok(format!("the merged work is on `{branch}`"))
}

/// Why the user's branch was not moved forward.
#[derive(Debug, thiserror::Error)]
enum BranchDeliveryError {
    #[error("the run's branch no longer exists")]
    RunBranchMissing,
    #[error("`{0}` is not checked out")]
    NotCheckedOut(String),
    #[error("`{0}` has moved since the run began")]
    UserBranchMoved(String),
    #[error("there are uncommitted changes")]
    UncommittedChanges,
    #[error(transparent)]
    Git(#[from] worktree::WorktreeError),
}
