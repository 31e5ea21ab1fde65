//! Finishes an iteration: the steps from the end of its session to the verdict.
//!
//! Each step takes the result of the previous one and passes it on, so data that only this process changes is
//! read once. The state records the completed steps (`IterationPhase::Ended`, `is_closed`,
//! `IterationPhase::Judged`), and each step writes before the next one begins. After a crash, the next process
//! therefore runs all steps again: a step that was completed does nothing. Each step documents the state after
//! a crash. The gate judges once per (run, iteration).

pub(super) mod checks;
mod gate_input;
mod verdict;

pub use verdict::FinishedIteration;

use crate::run::ended_session::{capture_turns_and_measure_ended_session, record_session_end_and_cost_once};
use crate::run::review::Reviewer;
use crate::run::{backup, close, save_work};
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use checks::{ChecksOutcome, revert_ticks_if_protected_files_changed, run_checks_and_revert_failed_ticks};
use gate_input::restore_plan_and_collect_evidence;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_store::StoreError;
use verdict::{journal_missing_verdict_and_archive_if_over, judge_once_and_journal_if_run_exists};

/// Finishes the iteration without a review and without interruption. Returns `None` if there is no run, or
/// nothing to judge.
pub fn finish_iteration(
    context: &RunContext<'_>,
    result: &SessionResult,
) -> Result<Option<FinishedIteration>, StoreError> {
    finish_iteration_or_pause_if_interrupted(context, result, &|| false, None)
}

/// Finishes the iteration, but stops waiting for verify commands and the review once `should_cancel` returns
/// true. The run is then paused, the pause is returned, and the iteration still has to be judged. Without a
/// reviewer there is no review. Returns `None` if the run no longer exists.
pub(super) fn finish_iteration_or_pause_if_interrupted(
    context: &RunContext<'_>,
    result: &SessionResult,
    should_cancel: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Option<FinishedIteration>, StoreError> {
    // A failed copy must not end the run.
    let _ = backup::sync_journal(context.project);
    let Some(state) = record_session_end_and_cost_once(context, result)? else { return Ok(None) };
    if state.iteration_record.phase == IterationPhase::Judged {
        journal_missing_verdict_and_archive_if_over(context, &state)?;
        return Ok(state.lifecycle.last_verdict().cloned().map(FinishedIteration::from_verdict_only));
    }
    let session = capture_turns_and_measure_ended_session(context, state);
    let Some(session) = save_work::hand_off_and_commit_if_run_open_then_reload(context, session)? else {
        return Ok(None);
    };
    // After the commit, so that the handoff contains the new HEAD.
    let Some(session) = close::close_iteration_and_reload_if_run_exists(context, session)? else {
        return Ok(None);
    };
    let input = restore_plan_and_collect_evidence(context, session, result)?;
    let input = match run_checks_and_revert_failed_ticks(context, input, should_cancel, reviewer)? {
        ChecksOutcome::Proceed(input) => *input,
        ChecksOutcome::Paused(pause_verdict) => {
            return Ok(Some(FinishedIteration::from_verdict_only(pause_verdict)));
        }
        ChecksOutcome::RunMissing => return Ok(None),
    };
    let Some(input) = revert_ticks_if_protected_files_changed(context, input)? else { return Ok(None) };
    judge_once_and_journal_if_run_exists(context, input)
}

/// Restores lost journal lines, and journals the last verdict if a kill prevented it. Called when a run is
/// resumed.
pub(crate) fn sync_journal_and_add_missing_verdict(context: &RunContext<'_>) -> Result<(), StoreError> {
    // First, because the report depends on the lines in the journal. A failed copy must not prevent the
    // resume.
    let _ = backup::sync_journal(context.project);
    match context.load_newest_state()? {
        Some(state) if state.iteration_record.phase == IterationPhase::Judged => {
            journal_missing_verdict_and_archive_if_over(context, &state)
        }
        _ => Ok(()),
    }
}

/// Returns the message that the check of an item was not run because it was not in the plan when the run
/// began.
pub fn describe_check_missing_from_original_plan(check: &ItemCheck) -> String {
    format!(
        "the check `{}` of \"{}\" was not run: it was not in the plan when the run began",
        truncate_end(&to_safe_single_line(&check.command), 120),
        truncate_end(&to_safe_single_line(&check.item_text), 80)
    )
}
