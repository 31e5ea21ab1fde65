//! PreCompact and PostCompact: writes a checkpoint before the client compacts, and resets the record
//! afterwards.

use crate::checkpoint::{self, CheckpointRequest};
use crate::context::measure;
use crate::hook_invocation::{HookInvocation, InputError};
use crate::hook_response::HookResponse;
use plimsoll_domain::record::LevelAnnouncement;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::to_single_line;
use plimsoll_domain::{RunState, SessionRecord};
use plimsoll_policy::messages;
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::untrusted_text::sanitize_for_model;
use plimsoll_store::{StoreError, sessions};
use std::time::Duration;

/// Runs PreCompact and PostCompact. The client passes PreCompact's standard output to its summarizer as
/// instructions, so anything but plain text would end up there.
pub fn run_pre_or_post_compact_hook(input: &[u8]) -> HookResponse {
    let mut invocation = match HookInvocation::from_input(input) {
        Ok(invocation) => invocation,
        Err(InputError::OtherClient { .. }) => return HookResponse::from_text(None),
        Err(error) => return HookResponse::from_text(None).with_stderr_line(Some(error)),
    };
    // Subagents compact too, and their events carry an `agent_id` (2.1.329); the session itself loses
    // nothing.
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::from_text(None);
    }
    invocation.switch_to_project_of_session();
    let result = match invocation.event() {
        HookEvent::PreCompact => checkpoint_and_render_compaction_instructions(&invocation),
        HookEvent::PostCompact => reset_session_after_compaction(&invocation).map(|()| None),
        _ => Ok(None),
    };
    match result {
        Ok(text) => HookResponse::from_text(text.map(|text| sanitize_for_model(&text)))
            .with_stderr_line(invocation.settings_error),
        Err(error) => {
            HookResponse::from_text(None).with_stderr_line(Some(format!("{error}; {}", error.hint())))
        }
    }
}

fn checkpoint_and_render_compaction_instructions(
    invocation: &HookInvocation,
) -> Result<Option<String>, StoreError> {
    let run = invocation.owned_run()?.filter(|run| !run.lifecycle.is_over());
    let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
    let measurement = measure::measure_hook_session(invocation, &record);
    let level = measurement.projected_level().unwrap_or_default();
    let handoff_file = checkpoint::write_checkpoint(&CheckpointRequest {
        project: &invocation.project,
        settings: &invocation.settings,
        session_id: &invocation.session_id,
        transcript_path: invocation.transcript_path().map(Into::into),
        run: run.as_ref(),
        cause: CheckpointCause::Compact,
        level,
        reading: measurement.reading.as_ref(),
        thresholds: measurement.thresholds.as_ref(),
        transcript_wait: None,
        pending_calls: &[],
        notes: plimsoll_domain::handoff::HandoffNotes::default(),
    })?;
    Ok(Some(messages::render_compaction_instructions(&lines_for_summarizer(run.as_ref(), &handoff_file))))
}

fn lines_for_summarizer(run: Option<&RunState>, handoff_file: &str) -> Vec<String> {
    let mut lines =
        vec![format!("A handoff with the facts of this session is in {}.", to_single_line(handoff_file))];
    let Some(run) = run else { return lines };
    lines.push(format!(
        "This session is iteration {} of the run \"{}\"; its instructions are in PROMPT.md.",
        run.iteration,
        to_single_line(&run.options.task_name)
    ));
    lines.extend(run.plan_items.todo_items.first().map(|item| {
        format!("The current item is \"{}\"; finished items stay finished.", to_single_line(item))
    }));
    if !run.options.ends_with_last_tick() {
        lines.push(format!(
            "The line that ends the run, only when everything is done: {}",
            plimsoll_domain::promise::render_completion_line(
                &run.options.completion_promise,
                &run.promise_code
            )
        ));
    }
    lines
}

/// Resets a session's record after a compaction: earlier readings are void, and every level may be announced
/// again.
pub fn reset_session_after_compaction(invocation: &HookInvocation) -> Result<(), StoreError> {
    // SessionStart has done this already if it comes before PostCompact (2.1.329); doing it twice changes
    // nothing.
    sessions::update_session_record(
        &invocation.project,
        &invocation.session_id,
        Duration::from_secs(3),
        reset_record_after_compaction,
    )
}

/// Resets the record of a session whose conversation has just been replaced by a summary.
pub fn reset_record_after_compaction(record: &mut SessionRecord) {
    record.usage.last_reading = None;
    record.usage.projected_percent = None;
    record.usage.percent_used_by_client = None;
    record.highest_announcement = LevelAnnouncement::default();
    record.checkpoint_progress.open_claim = None;
    record.own_commits.usage_samples.clear();
    record.own_commits.was_told_to_end = false;
    record.checkpoint_progress.tool_batches_since = 0;
    record.checkpoint_progress.announced_at_tokens = 0;
}
