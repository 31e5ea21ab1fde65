//! The checks that a verdict or a tick depends on: verify commands, the review of ticks, protected files.

use super::gate_input::GateInput;
use crate::run::review::{ReviewTicksOutcome, Reviewer, review_due_items};
use crate::run::verify::run_verify_commands_until_canceled;
use crate::run::{protect, receipt};
use crate::run_context::RunContext;
use plimsoll_domain::Verdict;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_policy::ticks;
use plimsoll_store::StoreError;

/// The outcome of the checks.
pub(super) enum ChecksOutcome {
    /// The checks are complete; the gate judges this input next.
    Proceed(Box<GateInput>),
    /// The checks were interrupted, and the run is paused.
    Paused(Verdict),
    /// The run no longer exists.
    RunMissing,
}

impl ChecksOutcome {
    fn proceed(input: GateInput) -> ChecksOutcome {
        ChecksOutcome::Proceed(Box::new(input))
    }
}

/// Runs the commands that the verdict or a tick depends on, reviews the ticks that pass them, and reverts the
/// ticks that fail. The decision to revert ticks is written to the state before the plan changes. After a
/// crash that follows, the next process reverts them without running anything again; after an earlier crash
/// it runs the commands again.
pub(super) fn run_checks_and_revert_failed_ticks(
    context: &RunContext<'_>,
    mut input: GateInput,
    should_cancel: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<ChecksOutcome, StoreError> {
    if input.is_run_over() {
        return Ok(ChecksOutcome::proceed(input));
    }
    let pending_revert =
        input.session.state.outcomes.reverted_ticks.clone().filter(|reverted| reverted.is_pending);
    if let Some(reverted_ticks) = pending_revert {
        input.evidence.verify_outcomes = ticks::failed_verify_outcomes_of_reverted_ticks(&reverted_ticks);
        return revert_ticks_and_proceed(context, input, &reverted_ticks);
    }
    add_protected_changes(context, &mut input);
    if let Some(reverted_ticks) =
        ticks::ticks_to_revert_if_protected_files_differ(&input.session.state, &input.evidence)
    {
        return revert_ticks_and_proceed(context, input, &reverted_ticks);
    }
    if let Some(pause_verdict) = run_due_commands_or_pause_if_interrupted(context, &mut input, should_cancel)?
    {
        return Ok(ChecksOutcome::Paused(pause_verdict));
    }
    let GateInput { session, evidence, .. } = &input;
    let ticks_to_revert = ticks::ticks_to_revert_if_protected_files_differ(&session.state, evidence)
        .or_else(|| ticks::ticks_to_revert_for_regression_or_item_check(&session.state, evidence));
    match ticks_to_revert {
        Some(reverted_ticks) => revert_ticks_and_proceed(context, input, &reverted_ticks),
        None => review_passed_ticks_and_revert_rejected(context, input, should_cancel, reviewer),
    }
}

/// Runs the commands that are due, and adds their outcomes to the evidence. Pauses the run and returns the
/// pause if they were interrupted.
fn run_due_commands_or_pause_if_interrupted(
    context: &RunContext<'_>,
    input: &mut GateInput,
    should_cancel: &dyn Fn() -> bool,
) -> Result<Option<Verdict>, StoreError> {
    let commands = ticks::verify_commands_for_completion_or_ticks(&input.session.state, &input.evidence);
    input.evidence.verify_outcomes = run_verify_commands_until_canceled(
        context.project,
        context.settings,
        &input.session.state,
        &commands,
        should_cancel,
    );
    let has_new_protected_changes = add_protected_changes(context, input);
    let GateInput { session, evidence, .. } = input;
    // Only the user can resolve this: each session would undo the change, and the commands would repeat it.
    evidence.only_user_can_restore_protected |= has_new_protected_changes && !commands.is_empty();
    if evidence.protected_file_changes.is_empty() {
        receipt::save_receipt_if_all_passed_and_clean(
            context,
            &session.state,
            &commands,
            &evidence.verify_outcomes,
        )?;
    }
    if evidence.verify_outcomes.len() < commands.len() {
        pause_interrupted_run_if_open(context)
    } else {
        Ok(None)
    }
}

/// Reviews the ticks that are due after they passed the commands, and reverts those that the review rejects.
fn review_passed_ticks_and_revert_rejected(
    context: &RunContext<'_>,
    mut input: GateInput,
    should_cancel: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<ChecksOutcome, StoreError> {
    let Some(reviewer) = reviewer else { return Ok(ChecksOutcome::proceed(input)) };
    match review_due_items(context, &input.session.state, &input.evidence, reviewer, should_cancel)? {
        ReviewTicksOutcome::Finished(state) => {
            input.session.state = *state;
            let pending_revert =
                input.session.state.outcomes.reverted_ticks.clone().filter(|reverted| reverted.is_pending);
            match pending_revert {
                Some(reverted_ticks) => revert_ticks_and_proceed(context, input, &reverted_ticks),
                None => Ok(ChecksOutcome::proceed(input)),
            }
        }
        ReviewTicksOutcome::Paused(pause_verdict) => Ok(ChecksOutcome::Paused(pause_verdict)),
        // A run that was canceled in the meantime is still judged.
        ReviewTicksOutcome::Aborted => Ok(pause_interrupted_run_if_open(context)?
            .map_or_else(|| ChecksOutcome::proceed(input), ChecksOutcome::Paused)),
    }
}

/// Compares the protected files again, because a review may have taken long, and reverts ticks if files have
/// changed. For a run that has ended, the changes are only recorded. Returns `None` if the run no longer
/// exists. After a crash the next process compares the files again.
pub(super) fn revert_ticks_if_protected_files_changed(
    context: &RunContext<'_>,
    mut input: GateInput,
) -> Result<Option<GateInput>, StoreError> {
    add_protected_changes(context, &mut input);
    let is_run_over = input.is_run_over();
    match ticks::ticks_to_revert_if_protected_files_differ(&input.session.state, &input.evidence)
        .filter(|_| !is_run_over)
    {
        Some(reverted_ticks) => input.revert_ticks_and_update_evidence(context, &reverted_ticks),
        None => Ok(Some(input)),
    }
}

/// Adds the changes of protected files to the evidence; returns true if there are new changes.
fn add_protected_changes(context: &RunContext<'_>, input: &mut GateInput) -> bool {
    protect::add_changes_and_return_if_any_new(context, &input.session.state, &mut input.evidence)
}

fn revert_ticks_and_proceed(
    context: &RunContext<'_>,
    input: GateInput,
    reverted_ticks: &RevertedTicks,
) -> Result<ChecksOutcome, StoreError> {
    Ok(input
        .revert_ticks_and_update_evidence(context, reverted_ticks)?
        .map_or(ChecksOutcome::RunMissing, ChecksOutcome::proceed))
}

/// Pauses an interrupted run before its verdict, and returns the pause; `None` if the run has ended in the
/// meantime. The iteration stays in the phase `Ended`: the next `--resume` verifies and judges it.
pub(in crate::run) fn pause_interrupted_run_if_open(
    context: &RunContext<'_>,
) -> Result<Option<Verdict>, StoreError> {
    let was_paused = context.update_state(|state| {
        let is_open = !state.lifecycle.has_ended();
        if is_open {
            state.lifecycle.pause_if_open(None);
        }
        is_open
    })?;
    let pause_verdict =
        Verdict::Pause { kind: PauseKind::Interrupted, pause_end: None, reason: "interrupted".to_owned() };
    Ok(was_paused.filter(|paused| *paused).map(|_| pause_verdict))
}
