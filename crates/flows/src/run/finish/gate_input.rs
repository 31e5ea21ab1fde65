//! What the gate judges: an ended session with the evidence for and against what it says of its work.

use crate::checkpoint::facts;
use crate::run::ended_session::EndedSession;
use crate::run::evidence::started_above;
use crate::run::ticks::take_back;
use crate::run::{backup, questions};
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::Ending;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_policy::gate::Evidence;
use plimsoll_policy::ticks;
use plimsoll_store::StoreError;

/// What the gate judges.
pub(super) struct GateInput {
    pub(super) session: EndedSession,
    pub(super) evidence: Evidence,
    /// Checks of ticked items that do not run, for they were not in the plan when the run began.
    pub(super) not_run: Vec<ItemCheck>,
}

impl GateInput {
    /// True if the run has ended, so that nothing is checked and no tick is taken back.
    pub(super) fn is_over(&self) -> bool {
        self.session.state.lifecycle.is_over()
    }

    /// Takes ticks back. Returns none if the run is gone.
    pub(super) fn take_back(
        mut self,
        context: &RunContext<'_>,
        taken: &TakenBack,
    ) -> Result<Option<GateInput>, StoreError> {
        let Some(state) = take_back(context, taken, &mut self.evidence)? else { return Ok(None) };
        self.session.state = state;
        Ok(Some(self))
    }
}

/// Gathers the evidence that is there before anything is checked. A plan that the session removed is written again first, because a
/// tick counts whatever has become of the plan since; a question that it only asked is written into the plan. After a crash the next
/// process finds both in the plan.
pub(super) fn gather_evidence(
    context: &RunContext<'_>,
    session: EndedSession,
    ended: &SessionResult,
) -> Result<GateInput, StoreError> {
    let is_over = session.state.lifecycle.is_over();
    let todo = match is_over {
        true => facts::todo(context.project, &session.state),
        // A plan that could only be written again without its items is missing.
        false => backup::mend_todo(context.project, &session.state)?
            .filter(|todo| !facts::is_emptied(todo, &session.state)),
    };
    let at_stop = session.record.end.stop.as_ref().map(|stop| stop.last_words.clone());
    let last_message = match &session.ending {
        // What a hook of ours cut off is no last word; an earlier turn's is not either.
        Ending::HookStopped => None,
        Ending::Completed => ended.result_text.clone().filter(|text| !text.is_empty()).or(at_stop),
        _ => at_stop,
    };
    let mut evidence = Evidence {
        ending: session.ending.clone(),
        item: session.record.continuation.as_ref().map(|told| told.item.clone()),
        resets_at: session.state.iteration_record.resets_at.clone(),
        last_message,
        root_popped: facts::root_popped(context.project, &session.state),
        todo,
        started_above: started_above(&session),
        ..Evidence::default()
    };
    let mut not_run = Vec::new();
    if !is_over {
        questions::write_down(context, &session.state, &mut evidence)?;
        not_run = ticks::not_run(&session.state, &evidence);
    }
    Ok(GateInput { session, evidence, not_run })
}
