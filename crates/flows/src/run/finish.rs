//! The end of an iteration: a list of steps, from the end of its session to the verdict.
//!
//! Each step takes what the one before it has found and hands it on, so nothing is read twice that no other program can have changed.
//! The state says how far an iteration has come (`Phase::Ended`, `closed`, `Phase::Judged`), and each step has written before the next
//! one begins. So the process that comes after a crash begins at the top again: a step that was done finds that it was, and does
//! nothing. What a crash leaves behind is said at each step. The gate judges once per (run, iteration).

pub(super) mod checks;
mod gate_input;
mod verdict;

pub use verdict::Finished;

use crate::run::ended_session::{observe_end, record_end};
use crate::run::review::Reviewer;
use crate::run::{backup, close, save_work};
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use checks::{Checked, check, recheck_protected};
use gate_input::gather_evidence;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::state::Phase;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_store::StoreError;
use verdict::{judge, make_up};

/// Takes an iteration from its end to its verdict. None if there is no run, or nothing to judge.
pub fn finish(context: &RunContext<'_>, ended: &SessionResult) -> Result<Option<Finished>, StoreError> {
    finish_unless(context, ended, &|| false, None)
}

/// Finishes like [`finish`], but waits for no verify command and no review once `give_up` returns true: then the run is paused, and the
/// iteration stays to be judged. Without a reviewer there is no review.
pub(super) fn finish_unless(
    context: &RunContext<'_>,
    ended: &SessionResult,
    give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Option<Finished>, StoreError> {
    // A copy that fails must not end the run.
    let _ = backup::journal(context.project);
    let Some(state) = record_end(context, ended)? else { return Ok(None) };
    if state.iteration_record.phase == Phase::Judged {
        make_up(context, &state)?;
        return Ok(state.lifecycle.last_verdict().cloned().map(Finished::with));
    }
    let session = observe_end(context, state);
    let Some(session) = save_work::save(context, session)? else { return Ok(None) };
    // After the commit: a handoff that is closed here names the new HEAD.
    let Some(session) = close::close(context, session)? else { return Ok(None) };
    let input = gather_evidence(context, session, ended)?;
    let input = match check(context, input, give_up, reviewer)? {
        Checked::Judge(input) => *input,
        Checked::Paused(paused) => return Ok(Some(Finished::with(paused))),
        Checked::Gone => return Ok(None),
    };
    let Some(input) = recheck_protected(context, input)? else { return Ok(None) };
    judge(context, input)
}

/// Completes the last iteration of a run that is resumed, where a kill came after its verdict.
pub(crate) fn complete(context: &RunContext<'_>) -> Result<(), StoreError> {
    // First: it brings back lines that only the journal itself has lost. A copy that fails must not prevent the resume.
    let _ = backup::journal(context.project);
    match context.load_state()? {
        Some(state) if state.iteration_record.phase == Phase::Judged => make_up(context, &state),
        _ => Ok(()),
    }
}

/// That an item names a check which was not there when the run began.
pub fn not_run_words(check: &ItemCheck) -> String {
    format!(
        "the check `{}` of \"{}\" was not run: it was not in the plan when the run began",
        clip(&one_line(&check.command), 120),
        clip(&one_line(&check.item), 80)
    )
}
