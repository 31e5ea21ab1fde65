//! The checks that a verdict or a tick depends on: verify commands, the review of ticks, protected files.

use super::gate_input::GateInput;
use crate::run::review::{ReviewTicksOutcome, Reviewer, review_due_items};
use crate::run::verify::run_verify_commands;
use crate::run::{protect, receipt};
use crate::run_context::RunContext;
use plimsoll_domain::Verdict;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_policy::ticks;
use plimsoll_store::StoreError;

/// The outcome of the checks.
pub(super) enum ChecksOutcome {
    /// The input that the gate judges next.
    Proceed(Box<GateInput>),
    /// The checks were given up, and the run is paused.
    Paused(Verdict),
    /// The run is gone.
    RunGone,
}

impl ChecksOutcome {
    fn proceed(input: GateInput) -> ChecksOutcome {
        ChecksOutcome::Proceed(Box::new(input))
    }
}

/// Runs the commands that the verdict or a tick depends on, has the ticks reviewed that pass them, and
/// reverts those that fail. The decision to revert ticks is in the state before the plan changes: after a
/// crash the next process carries it out and runs nothing again. After a crash before the decision it runs
/// the commands again.
pub(super) fn run_checks(
    context: &RunContext<'_>,
    mut input: GateInput,
    should_give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<ChecksOutcome, StoreError> {
    if input.is_run_over() {
        return Ok(ChecksOutcome::proceed(input));
    }
    let pending_revert =
        input.session.state.outcomes.reverted_ticks.clone().filter(|reverted| reverted.is_pending);
    if let Some(reverted) = pending_revert {
        input.evidence.verify_outcomes = ticks::outcomes_of_failed_commands(&reverted);
        return revert_ticks(context, input, &reverted);
    }
    add_protected_changes(context, &mut input);
    if let Some(reverted) = ticks::ticks_to_revoke_for_protected_files(&input.session.state, &input.evidence)
    {
        return revert_ticks(context, input, &reverted);
    }
    if let Some(paused) = run_due_commands(context, &mut input, should_give_up)? {
        return Ok(ChecksOutcome::Paused(paused));
    }
    let GateInput { session, evidence, .. } = &input;
    let ticks_to_revert = ticks::ticks_to_revoke_for_protected_files(&session.state, evidence)
        .or_else(|| ticks::ticks_to_revoke_for_failed_commands(&session.state, evidence));
    match ticks_to_revert {
        Some(reverted) => revert_ticks(context, input, &reverted),
        None => review_passed_ticks(context, input, should_give_up, reviewer),
    }
}

/// Runs the commands that are due. Returns the run's pause if they were given up.
fn run_due_commands(
    context: &RunContext<'_>,
    input: &mut GateInput,
    should_give_up: &dyn Fn() -> bool,
) -> Result<Option<Verdict>, StoreError> {
    let commands = ticks::verify_commands_to_run(&input.session.state, &input.evidence);
    input.evidence.verify_outcomes = run_verify_commands(
        context.project,
        context.settings,
        &input.session.state,
        &commands,
        should_give_up,
    );
    let has_new_changes = add_protected_changes(context, input);
    let GateInput { session, evidence, .. } = input;
    // The next session would undo what the commands change, and the commands would change it again.
    evidence.protected_needs_user |= has_new_changes && !commands.is_empty();
    if evidence.changed_protected.is_empty() {
        receipt::save_receipt_if_passed(context, &session.state, &commands, &evidence.verify_outcomes)?;
    }
    if evidence.verify_outcomes.len() < commands.len() {
        pause_interrupted_run_if_open(context)
    } else {
        Ok(None)
    }
}

/// Reviews ticks that pass the commands, and reverts those in which the review found something.
fn review_passed_ticks(
    context: &RunContext<'_>,
    mut input: GateInput,
    should_give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<ChecksOutcome, StoreError> {
    let Some(reviewer) = reviewer else { return Ok(ChecksOutcome::proceed(input)) };
    match review_due_items(context, &input.session.state, &input.evidence, reviewer, should_give_up)? {
        ReviewTicksOutcome::Finished(state) => {
            input.session.state = *state;
            let pending_revert =
                input.session.state.outcomes.reverted_ticks.clone().filter(|reverted| reverted.is_pending);
            match pending_revert {
                Some(reverted) => revert_ticks(context, input, &reverted),
                None => Ok(ChecksOutcome::proceed(input)),
            }
        }
        ReviewTicksOutcome::Paused(paused) => Ok(ChecksOutcome::Paused(paused)),
        // A run that was canceled meanwhile is still judged.
        ReviewTicksOutcome::GivenUp => Ok(pause_interrupted_run_if_open(context)?
            .map_or_else(|| ChecksOutcome::proceed(input), ChecksOutcome::Paused)),
    }
}

/// Compares the protected files once more, because a review may have taken long; the changes are also
/// recorded for a run that the user has stopped. Reverts ticks if files have changed. After a crash the next
/// process compares them again.
pub(super) fn revert_ticks_if_protected_files_changed(
    context: &RunContext<'_>,
    mut input: GateInput,
) -> Result<Option<GateInput>, StoreError> {
    add_protected_changes(context, &mut input);
    let is_run_over = input.is_run_over();
    match ticks::ticks_to_revoke_for_protected_files(&input.session.state, &input.evidence)
        .filter(|_| !is_run_over)
    {
        Some(reverted) => input.revert_ticks(context, &reverted),
        None => Ok(Some(input)),
    }
}

/// Adds the changes of protected files to the evidence; returns true if there are more than before.
fn add_protected_changes(context: &RunContext<'_>, input: &mut GateInput) -> bool {
    protect::add_changes_to_evidence(context, &input.session.state, &mut input.evidence)
}

fn revert_ticks(
    context: &RunContext<'_>,
    input: GateInput,
    reverted: &RevertedTicks,
) -> Result<ChecksOutcome, StoreError> {
    Ok(input.revert_ticks(context, reverted)?.map_or(ChecksOutcome::RunGone, ChecksOutcome::proceed))
}

/// Pauses an interrupted run before its verdict, and returns the pause; `None` if the run was canceled
/// meanwhile. The iteration stays "ended": the next `--resume` verifies and judges it.
pub(in crate::run) fn pause_interrupted_run_if_open(
    context: &RunContext<'_>,
) -> Result<Option<Verdict>, StoreError> {
    let is_paused = context.update_state(|state| {
        let is_open = !state.lifecycle.is_over();
        if is_open {
            state.lifecycle.pause_if_open(None);
        }
        is_open
    })?;
    let pause_verdict =
        Verdict::Pause { kind: PauseKind::Interrupted, until: None, reason: "interrupted".to_owned() };
    Ok(is_paused.filter(|paused| *paused).map(|_| pause_verdict))
}
