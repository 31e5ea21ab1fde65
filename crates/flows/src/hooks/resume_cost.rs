//! SessionStart's message about a resumed session whose prompt cache has expired: a fresh session may be much cheaper.

use crate::checkpoint::{CheckpointRequest, write_checkpoint};
use crate::context::measure::{self, MeasureInput};
use crate::handoffs::continue_slash_command_or_prompt;
use crate::hook_invocation::{HookInvocation, is_review_session};
use crate::hooks::handoff_offer::is_headless;
use plimsoll_policy::resume_cost::ResumeCost;
use plimsoll_protocol::event::{SessionSource, SessionStart};
use plimsoll_store::ledger;

/// Returns the costs of the resumed session and of a fresh one, for the user, and writes the handoff that the fresh one
/// continues from: writing it later would need a request of the model, which is what the fresh session saves.
///
/// Returns `None` unless an interactive session outside a run was resumed and a fresh one is clearly cheaper.
pub(super) fn write_handoff_and_compare_costs_if_resuming_is_expensive(
    invocation: &HookInvocation,
    start: &SessionStart,
) -> Option<String> {
    let is_resumed = matches!(start.source, SessionSource::Resume | SessionSource::Fork);
    // Without the part that depends on the transcript, so that a cheap session reads nothing.
    ResumeCost::compare_if_cache_expired_and_notable(&start.resumed_context, 0).filter(|_| is_resumed)?;
    if ledger::run_id_from_environment().is_some() || is_review_session() || is_headless() {
        return None;
    }
    let record = invocation.record();
    let input = MeasureInput {
        project: &invocation.project,
        settings: &invocation.settings,
        record,
        transcript_path: invocation.transcript_path(),
        pending_calls: &[],
    };
    // A forked session may have no transcript yet: then there is nothing to write a handoff from.
    let overhead_tokens = measure::estimate_prompt_overhead_if_recorded(&input)?;
    let handoff_tokens = invocation.settings.handoff_bytes as u64 / measure::BYTES_PER_TOKEN;
    let cost = ResumeCost::compare_if_cache_expired_and_notable(
        &start.resumed_context,
        overhead_tokens + handoff_tokens,
    )?;
    let request = CheckpointRequest::for_idle_session_outside_run(
        &invocation.project,
        &invocation.settings,
        &invocation.session_id,
        record,
        invocation.transcript_path().map(Into::into),
    );
    let handoff = write_checkpoint(&request).ok()?;
    Some(cost.render_for_user(&continue_slash_command_or_prompt(&invocation.project, &handoff.file)))
}
