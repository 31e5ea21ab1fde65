//! The end of an iteration: a list of steps from the end of its session to the verdict.
//!
//! Each step takes the result of the previous one and passes it on, so nothing is read twice that no other
//! program can have changed. The state records how far an iteration has come (`Phase::Ended`, `closed`,
//! `Phase::Judged`), and each step has written before the next one begins. The process that comes after a
//! crash therefore starts from the top: a step that was done recognizes it and does nothing. Each step
//! documents what a crash leaves behind. The gate judges once per (run, iteration).

pub(super) mod checks;
mod gate_input;
mod verdict;

pub use verdict::FinishedIteration;

use crate::run::ended_session::{observe_session_end, record_session_end};
use crate::run::review::Reviewer;
use crate::run::{backup, close, save_work};
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use checks::{ChecksOutcome, revert_ticks_if_protected_files_changed, run_checks};
use gate_input::gather_evidence;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::text::{to_single_line, truncate_end};
use plimsoll_store::StoreError;
use verdict::{complete_report, judge_and_report};

/// Takes an iteration from its end to its verdict. Returns `None` if there is no run, or nothing to judge.
pub fn finish_iteration(
    context: &RunContext<'_>,
    result: &SessionResult,
) -> Result<Option<FinishedIteration>, StoreError> {
    finish_iteration_unless_given_up(context, result, &|| false, None)
}

/// Finishes the iteration, but stops waiting for verify commands and the review once `should_give_up`
/// returns true. The run is then paused, and the iteration still has to be judged. Without a reviewer there
/// is no review.
pub(super) fn finish_iteration_unless_given_up(
    context: &RunContext<'_>,
    result: &SessionResult,
    should_give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Option<FinishedIteration>, StoreError> {
    // A failed copy must not end the run.
    let _ = backup::sync_journal(context.project);
    let Some(state) = record_session_end(context, result)? else { return Ok(None) };
    if state.iteration_record.phase == IterationPhase::Judged {
        complete_report(context, &state)?;
        return Ok(state.lifecycle.last_verdict().cloned().map(FinishedIteration::with_verdict_only));
    }
    let session = observe_session_end(context, state);
    let Some(session) = save_work::save_unfinished_work(context, session)? else { return Ok(None) };
    // After the commit, so that a handoff that is closed here names the new HEAD.
    let Some(session) = close::close_iteration(context, session)? else { return Ok(None) };
    let input = gather_evidence(context, session, result)?;
    let input = match run_checks(context, input, should_give_up, reviewer)? {
        ChecksOutcome::Proceed(input) => *input,
        ChecksOutcome::Paused(paused) => return Ok(Some(FinishedIteration::with_verdict_only(paused))),
        ChecksOutcome::RunGone => return Ok(None),
    };
    let Some(input) = revert_ticks_if_protected_files_changed(context, input)? else { return Ok(None) };
    judge_and_report(context, input)
}

/// Completes the last iteration of a run that is resumed after a kill that followed its verdict.
pub(crate) fn complete_after_kill(context: &RunContext<'_>) -> Result<(), StoreError> {
    // First, because it restores lines that only the journal has lost. A failed copy must not prevent the
    // resume.
    let _ = backup::sync_journal(context.project);
    match context.load_newest_state()? {
        Some(state) if state.iteration_record.phase == IterationPhase::Judged => {
            complete_report(context, &state)
        }
        _ => Ok(()),
    }
}

/// Describes that the check of an item was not run because it was not in the plan when the run began.
pub fn describe_check_not_run(check: &ItemCheck) -> String {
    format!(
        "the check `{}` of \"{}\" was not run: it was not in the plan when the run began",
        truncate_end(&to_single_line(&check.command), 120),
        truncate_end(&to_single_line(&check.item_text), 80)
    )
}
