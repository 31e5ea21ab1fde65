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
/// if the run no longer exists.
pub(super) fn revert_ticks(
    context: &RunContext<'_>,
    reverted_ticks: &RevertedTicks,
    evidence: &mut SessionEvidence,
) -> Result<Option<RunState>, StoreError> {
    let updated_state = context.update_state(|state| {
        state.outcomes.reverted_ticks = Some(reverted_ticks.clone());
        state.clone()
    })?;
    let Some(state) = updated_state else { return Ok(None) };
    // The verify command itself may have removed the plan.
    backup::load_or_restore_plan(context.project, &state)?;
    // The plan is changed before the state: if the process is killed in between, the state still shows that
    // ticks have to be reverted.
    untick_in_plan_and_add_question(context, &state, reverted_ticks)?;
    let Some(todo) = facts::load_plan(context.project, &state) else { return Ok(Some(state)) };
    let state = context.update_state(|state| {
        ticks::reopen_reverted_items_keeping_their_costs(state, reverted_ticks, &todo);
        state.clone()
    })?;
    evidence.todo = Some(todo);
    let Some(state) = state else { return Ok(None) };
    // The copy must agree with the state, or it is not used. The paragraph is not repeated if it is already
    // there.
    backup::load_plan_and_update_copy_and_items(context.project, &state)?;
    let message = reverted_ticks.describe_revert();
    let timestamp = clock::to_timestamp(clock::now());
    backup::restore_progress_and_append_paragraph_once(
        context.project,
        &format!("[{timestamp}] Iteration {}: {message}.\n\n", reverted_ticks.iteration),
    )?;
    Ok(Some(state))
}

fn untick_in_plan_and_add_question(
    context: &RunContext<'_>,
    state: &RunState,
    reverted_ticks: &RevertedTicks,
) -> Result<(), StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(()) };
    let path = context.project.root().join(file);
    let Some(plan_text) = disk::read(&path)? else { return Ok(()) };
    let edited_plan_text = match &reverted_ticks.question {
        // A later session may commit the plan, so it must not contain a secret.
        Some(question) => plan_edit::untick_items_and_add_question(
            &plan_text,
            &reverted_ticks.items,
            &plimsoll_secrets::redact(question),
        ),
        None => plan_edit::untick_items(&plan_text, &reverted_ticks.items),
    };
    match edited_plan_text {
        Some(new_plan_text) => disk::replace(&path, &new_plan_text, Durability::Durable),
        None => Ok(()),
    }
}

/// Journals that ticks of the current session were reverted, unless the journal already says so or none were.
pub(super) fn journal_ticks_reverted_in_session(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    let is_from_session = |reverted_ticks: &&RevertedTicks| {
        reverted_ticks.iteration == state.iteration && reverted_ticks.session_id == state.session_id
    };
    let Some(reverted_ticks) = state.outcomes.reverted_ticks.as_ref().filter(is_from_session) else {
        return Ok(());
    };
    let ticks_reverted = TicksReverted {
        items: reverted_ticks.items.clone(),
        failed_commands: reverted_ticks
            .failed_commands
            .iter()
            .map(|failure| failure.command.clone())
            .collect(),
        review_findings: reverted_ticks.findings.clone(),
        protected_file_changes: reverted_ticks.protected_changes.clone(),
    };
    context.append_entry_unless_near_journal_end(JournalEntry::for_run_session(
        state,
        JournalEvent::TicksReverted(ticks_reverted),
    ))
}
