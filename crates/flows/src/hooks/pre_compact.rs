//! PreCompact and PostCompact: writes a checkpoint before the client compacts, and resets the record
//! afterwards.

use crate::compaction::{Replacement, write_checkpoint_before_replacement};
use crate::context::measure;
use crate::hook_invocation::{HookInvocation, InputError};
use crate::hook_response::HookResponse;
use plimsoll_domain::record::LevelAnnouncement;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::{RunState, SessionRecord};
use plimsoll_policy::messages;
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::untrusted_text::sanitize_for_model;
use plimsoll_store::{StoreError, sessions};
use std::time::Duration;

/// Runs PreCompact and PostCompact. The output is plain text and not JSON, because the client passes PreCompact's standard
/// output to its summarizer as instructions.
pub fn run_pre_or_post_compact_hook(input: &[u8]) -> HookResponse {
    let mut invocation = match HookInvocation::parse_input_and_load_project(input) {
        Ok(invocation) => invocation,
        Err(InputError::OtherClient { .. }) => return HookResponse::from_text(None),
        Err(error) => return HookResponse::from_text(None).with_stderr_line(Some(error)),
    };
    // Ignores the compaction of a subagent, whose event has an `agent_id` (2.1.329): the main session is not compacted.
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::from_text(None);
    }
    invocation.switch_project_if_session_has_no_record();
    let result = match invocation.event() {
        HookEvent::PreCompact => write_checkpoint_and_render_instructions(&invocation),
        HookEvent::PostCompact => reset_usage_in_record_after_compaction(&invocation).map(|()| None),
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

fn write_checkpoint_and_render_instructions(
    invocation: &HookInvocation,
) -> Result<Option<String>, StoreError> {
    let run = invocation.load_owned_run()?.filter(|run| !run.lifecycle.has_ended());
    let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
    let measurement = measure::measure_hook_session_waiting_near_threshold(invocation, &record);
    let replacement = Replacement {
        project: &invocation.project,
        settings: &invocation.settings,
        session_id: &invocation.session_id,
        transcript_path: invocation.transcript_path().map(Into::into),
        run: run.as_ref(),
        measurement: &measurement,
    };
    let handoff_file = write_checkpoint_before_replacement(&replacement, CheckpointCause::Compact)?.file;
    Ok(Some(messages::render_compaction_instructions(&handoff_and_run_lines_for_summarizer(
        run.as_ref(),
        &handoff_file,
    ))))
}

fn handoff_and_run_lines_for_summarizer(run: Option<&RunState>, handoff_file: &str) -> Vec<String> {
    let mut lines = vec![format!(
        "A handoff with the facts of this session is in {}.",
        to_safe_single_line(handoff_file)
    )];
    let Some(run) = run else { return lines };
    lines.push(format!(
        "This session is iteration {} of the run \"{}\"; its instructions are in PROMPT.md.",
        run.iteration,
        to_safe_single_line(&run.options.task_name)
    ));
    lines.extend(run.plan_items.todo_items.first().map(|item| {
        format!("The current item is \"{}\"; finished items stay finished.", to_safe_single_line(item))
    }));
    if !run.options.completes_without_promise() {
        lines.push(format!(
            "Only when everything is done, end the run with this line: {}",
            plimsoll_domain::promise::render_completion_line(
                &run.options.completion_promise,
                &run.promise_code
            )
        ));
    }
    lines
}

/// Resets a session's stored record after a compaction: earlier readings no longer apply, and every level may be announced
/// again.
pub fn reset_usage_in_record_after_compaction(invocation: &HookInvocation) -> Result<(), StoreError> {
    // SessionStart may already have reset the record if it fires before PostCompact (2.1.329); a second reset has no
    // effect.
    sessions::update_session_record(
        &invocation.project,
        &invocation.session_id,
        Duration::from_secs(3),
        clear_usage_open_claim_and_announced_level,
    )
}

/// Clears the usage, the open checkpoint claim and the announced level of a session that has just been compacted.
pub fn clear_usage_open_claim_and_announced_level(record: &mut SessionRecord) {
    record.usage.last_reading = None;
    record.usage.projected_percent = None;
    record.usage.percent_used_by_client = None;
    record.highest_announcement = LevelAnnouncement::default();
    record.checkpoint_progress.open_claim = None;
    record.own_commits.usage_samples.clear();
    record.own_commits.was_asked_to_end = false;
    record.checkpoint_progress.tool_batches_since = 0;
    record.checkpoint_progress.announced_at_tokens = 0;
}
