//! Reverts ticks that failed a check: in the plan, in the state, and in the reports on the session.

use crate::checkpoint::facts;
use crate::run::backup;
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, TicksReverted};
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::{RunState, plan_edit};
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_policy::ticks;
use plimsoll_store::{Durability, StoreError, clock, disk};

/// Reverts ticks. The decision is written first, so that a process after a kill carries it out without
/// running the commands again; steps that are already done are skipped. Returns the resulting state; `None`
/// if the run is gone.
pub(super) fn revert_ticks(
    context: &RunContext<'_>,
    reverted: &RevertedTicks,
    evidence: &mut SessionEvidence,
) -> Result<Option<RunState>, StoreError> {
    let updated = context.update_state(|state| {
        state.outcomes.reverted_ticks = Some(reverted.clone());
        state.clone()
    })?;
    let Some(state) = updated else { return Ok(None) };
    // The verify command itself may have removed the plan.
    backup::load_or_restore_plan(context.project, &state)?;
    // The plan is changed before the state: if the process is killed in between, the state still shows that
    // ticks have to be reverted.
    untick_in_plan_and_add_question(context, &state, reverted)?;
    let Some(todo) = facts::load_plan(context.project, &state) else { return Ok(Some(state)) };
    let state = context.update_state(|state| {
        ticks::revoke_ticks(state, reverted, &todo);
        state.clone()
    })?;
    evidence.todo = Some(todo);
    let Some(state) = state else { return Ok(None) };
    // The copy must agree with the state, or it is not used. The paragraph is not repeated if it is already
    // there.
    backup::update_plan_copy_and_items(context.project, &state)?;
    let message = reverted.describe_revert();
    let timestamp = clock::to_timestamp(clock::now());
    backup::append_progress_paragraph(
        context.project,
        &format!("[{timestamp}] Iteration {}: {message}.\n\n", reverted.iteration),
    )?;
    Ok(Some(state))
}

fn untick_in_plan_and_add_question(
    context: &RunContext<'_>,
    state: &RunState,
    reverted: &RevertedTicks,
) -> Result<(), StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(()) };
    let path = context.project.root().join(file);
    let Some(plan_text) = disk::read(&path)? else { return Ok(()) };
    let changed = match &reverted.question {
        // A later session may commit the plan, so it must not contain a secret.
        Some(question) => plan_edit::untick_items_and_add_question(
            &plan_text,
            &reverted.items,
            &plimsoll_secrets::redact(question),
        ),
        None => plan_edit::untick_items(&plan_text, &reverted.items),
    };
    match changed {
        Some(new_plan_text) => disk::replace(&path, &new_plan_text, Durability::Durable),
        None => Ok(()),
    }
}

/// Journals that ticks of the current session were reverted. Does nothing if that was done, or if none were.
pub(super) fn journal_ticks_reverted_in_session(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    let is_from_session = |reverted: &&RevertedTicks| {
        reverted.iteration == state.iteration && reverted.session_id == state.session_id
    };
    let Some(reverted) = state.outcomes.reverted_ticks.as_ref().filter(is_from_session) else {
        return Ok(());
    };
    let facts = TicksReverted {
        items: reverted.items.clone(),
        failed_commands: reverted.failed_commands.iter().map(|failed| failed.command.clone()).collect(),
        review_findings: reverted.findings.clone(),
        protected_file_changes: reverted.protected_changes.clone(),
    };
    context.record_once(JournalEntry::for_run_session(state, JournalEvent::TicksReverted(facts)))
}
