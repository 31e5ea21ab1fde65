//! The input of the gate: an ended session with the evidence about its work.

use crate::checkpoint::facts;
use crate::run::ended_session::EndedSession;
use crate::run::evidence::started_at_or_above_l2;
use crate::run::ticks::revert_ticks;
use crate::run::{backup, questions};
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::SessionEnding;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_policy::ticks;
use plimsoll_store::StoreError;

/// The ended session and the evidence that the gate judges.
pub(super) struct GateInput {
    pub(super) session: EndedSession,
    pub(super) evidence: SessionEvidence,
    /// Checks of ticked items that do not run because they were not in the plan when the run began.
    pub(super) skipped_checks: Vec<ItemCheck>,
}

impl GateInput {
    /// Returns true if the run has ended, so that nothing is checked and no tick is reverted.
    pub(super) fn is_run_over(&self) -> bool {
        self.session.state.lifecycle.has_ended()
    }

    /// Reverts ticks in the plan, and updates the evidence and the state. Returns `None` if the run no longer
    /// exists.
    pub(super) fn revert_ticks_and_update_evidence(
        mut self,
        context: &RunContext<'_>,
        reverted_ticks: &RevertedTicks,
    ) -> Result<Option<GateInput>, StoreError> {
        let Some(state) = revert_ticks(context, reverted_ticks, &mut self.evidence)? else { return Ok(None) };
        self.session.state = state;
        Ok(Some(self))
    }
}

/// Collects the evidence before the checks run. First restores a plan that the session removed, because a tick
/// counts even if the plan was deleted later. A question that the session asked only in its message is
/// written into the plan. After a crash the next process finds both in the plan.
pub(super) fn restore_plan_and_collect_evidence(
    context: &RunContext<'_>,
    session: EndedSession,
    result: &SessionResult,
) -> Result<GateInput, StoreError> {
    let is_run_over = session.state.lifecycle.has_ended();
    let todo = match is_run_over {
        true => facts::load_plan(context.project, &session.state),
        // A plan that could only be restored without its items counts as missing.
        false => backup::load_or_restore_plan(context.project, &session.state)?
            .filter(|todo| !facts::was_plan_emptied(todo, &session.state)),
    };
    let message_at_stop = session.record.end.stop.as_ref().map(|stop| stop.end_of_last_message.clone());
    let last_message = match &session.ending {
        // Our hook cut off the turn, so there is no last message; that of an earlier turn does not count.
        SessionEnding::HookStopped => None,
        SessionEnding::Completed => {
            result.result_text.clone().filter(|text| !text.is_empty()).or(message_at_stop)
        }
        _ => message_at_stop,
    };
    let mut evidence = SessionEvidence {
        ending: session.ending.clone(),
        last_item: session.record.continuation.as_ref().map(|notice| notice.item.clone()),
        limit_resets_at: session.state.iteration_record.resets_at.clone(),
        last_message,
        is_root_frame_popped: facts::has_session_popped_root_frame(context.project, &session.state),
        todo,
        started_at_or_above_l2: started_at_or_above_l2(&session),
        ..SessionEvidence::default()
    };
    let mut skipped_checks = Vec::new();
    if !is_run_over {
        questions::add_blocked_session_question_to_plan(context, &session.state, &mut evidence)?;
        skipped_checks = ticks::new_checks_of_ticked_items_if_plan_had_checks(&session.state, &evidence);
    }
    Ok(GateInput { session, evidence, skipped_checks })
}
