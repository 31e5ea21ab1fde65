//! Takes ticks back that do not hold: in the plan, in the state, and in what is told of the session.

use crate::checkpoint::facts;
use crate::run::backup;
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, TicksTakenBack};
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::{RunState, plan_edit};
use plimsoll_policy::gate::Evidence;
use plimsoll_policy::ticks;
use plimsoll_store::{Durability, StoreError, clock, disk};

/// Takes ticks back. The decision is written first, so a process that comes after a kill carries it out without running the
/// commands once more; what it finds done it does not do again. Returns the state after it; none if the run is gone.
pub(super) fn take_back(
    context: &RunContext<'_>,
    taken: &TakenBack,
    evidence: &mut Evidence,
) -> Result<Option<RunState>, StoreError> {
    let decided = context.update(|state| {
        state.outcomes.taken_back = Some(taken.clone());
        state.clone()
    })?;
    let Some(state) = decided else { return Ok(None) };
    // The command itself may have removed the plan.
    backup::mend_todo(context.project, &state)?;
    // Before the state forgets the ticks: until then it is known that there is something to do.
    take_out_of_plan(context, &state, taken)?;
    let Some(todo) = facts::todo(context.project, &state) else { return Ok(Some(state)) };
    let state = context.update(|state| {
        ticks::take_back(state, taken, &todo);
        state.clone()
    })?;
    evidence.todo = Some(todo);
    let Some(state) = state else { return Ok(None) };
    // The copy must agree with the state, or it is not used. The paragraph is recognized if it is there already.
    backup::todo(context.project, &state)?;
    let words = taken.words();
    let at = clock::stamp(clock::now());
    backup::append_progress(context.project, &format!("[{at}] Iteration {}: {words}.\n\n", taken.iteration))?;
    Ok(Some(state))
}

fn take_out_of_plan(context: &RunContext<'_>, state: &RunState, taken: &TakenBack) -> Result<(), StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(()) };
    let path = context.project.root().join(file);
    let Some(plan) = disk::read(&path)? else { return Ok(()) };
    let changed = match &taken.question {
        // A later session may commit the plan, so it must not contain a secret.
        Some(question) => {
            plan_edit::with_questions_for_ticks(&plan, &taken.items, &plimsoll_secrets::without(question))
        }
        None => plan_edit::without_ticks(&plan, &taken.items),
    };
    match changed {
        Some(plan) => disk::replace(&path, &plan, Durability::Durable),
        None => Ok(()),
    }
}

/// Journals that ticks of the current session were taken back; nothing if that was done, or if none were.
pub(super) fn note(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let is_of_session =
        |taken: &&TakenBack| taken.iteration == state.iteration && taken.session_id == state.session_id;
    let Some(taken) = state.outcomes.taken_back.as_ref().filter(is_of_session) else { return Ok(()) };
    let event = TicksTakenBack {
        items: taken.items.clone(),
        failed: taken.failed.iter().map(|failed| failed.command.clone()).collect(),
        findings: taken.findings.clone(),
        protected: taken.protected.clone(),
    };
    context.note_once(JournalEntry::of_run_session(state, JournalEvent::TicksTakenBack(event)))
}
