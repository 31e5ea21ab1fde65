//! SessionEnd: records the last turns and the end of the session, and closes its iteration.

use crate::checkpoint;
use crate::context::measure;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::memory;
use crate::retention;
use crate::run::close;
use crate::turns::capture;
use crate::turns::capture::CaptureLimits;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, SessionEnded};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::event::HookEvent;
use plimsoll_store::{StoreError, TurnLog, clock, journal, ledger, sessions};
use serde_json::json;
use std::time::Duration;

pub fn run_session_end_hook(input: &[u8]) -> HookResponse {
    let mut invocation = match HookInvocation::parse_input_and_load_project(input) {
        Ok(invocation) => invocation,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    invocation.switch_project_if_session_has_no_record();
    let HookEvent::SessionEnd { reason } = invocation.event() else { return HookResponse::empty() };
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    let turn_log_warning = write_last_turns_and_end_to_turn_log(&invocation, reason.as_deref())
        .err()
        .map(|error| capture::turn_log_failure_message(&error));
    // Pruning runs last, and only if the user has enabled it.
    let result = record_session_end_and_close_iteration(&invocation, reason.clone())
        .and_then(|()| retention::prune_and_compress_by_settings(&invocation.project, &invocation.settings));
    match result {
        Ok(()) => HookResponse::empty()
            .with_stderr_line(invocation.settings_error)
            .with_stderr_line(turn_log_warning),
        Err(error) => HookResponse::from_error(format!("{error}; {}", error.hint())),
    }
}

/// Writes the last turns, including those of subagents, and the end of the session to the turn log.
fn write_last_turns_and_end_to_turn_log(
    invocation: &HookInvocation,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let capture_result = invocation.transcript_path().map_or(Ok(()), |transcript_path| {
        measure::wait_for_tool_results(transcript_path);
        capture::capture_transcripts_of_ended_session(
            &invocation.project,
            &invocation.session_id,
            transcript_path,
            CaptureLimits::FOR_SESSION_END_HOOK,
        )
    });
    let append_result = TurnLog::for_session_where_started_or_current(
        &invocation.project,
        &invocation.session_id,
    )
    .map_or(Ok(()), |log| {
        capture::append_or_defer_event_record(&log, RecordKind::SessionEnd, &json!({"reason": reason}))
    });
    match capture_result {
        // Another process holds the lock: the start of the next session captures the missing turns.
        Err(StoreError::Locked { .. }) => append_result,
        capture_result => capture_result.and(append_result),
    }
}

fn record_session_end_and_close_iteration(
    invocation: &HookInvocation,
    reason: Option<String>,
) -> Result<(), StoreError> {
    let record = sessions::update_session_record(
        &invocation.project,
        &invocation.session_id,
        Duration::from_secs(3),
        |record| {
            record.end.ended_at = Some(clock::to_timestamp(clock::now()));
            record.end.client_end_reason.clone_from(&reason);
            record.clone()
        },
    )?;
    // After the record is saved, so that other sessions see this one as ended even if this hook is killed now.
    memory::mark_shown_memory_stored_and_abandon_frames(&invocation.project, &invocation.session_id)?;
    let run = invocation.load_owned_run()?;
    let event = JournalEvent::SessionEnd(SessionEnded {
        reason,
        peak_percent: Some(record.usage.peak_projected_percent),
        wait_count: Some(record.writer_waits.count),
        waited_ms: Some(record.writer_waits.total_ms),
        ..SessionEnded::default()
    });
    let entry = JournalEntry::new(event)
        .with_run(run.as_ref().map(|run| (&run.run_id, run.iteration)))
        .with_session(Some(&invocation.session_id));
    if run.is_some() || record.usage.peak_projected_percent > 0 {
        journal::append_entry(&invocation.project, entry)?;
    }
    match run {
        // Last, because the client may kill this hook (after 1.5 s on 2.1.329, unless the entry sets a longer timeout).
        // Then the process that judges the session closes the iteration.
        Some(run) => close::close_iteration_at_session_end(&invocation.run_context(&run), &run),
        // Last, because the client may kill this hook. Then the handoff stays as it was written at the threshold.
        None if ledger::run_id_from_environment().is_none() => {
            checkpoint::refresh_existing_handoff_at_session_end(
                &invocation.project,
                &invocation.settings,
                &record,
                invocation.transcript_path().map(Into::into),
            )
        }
        None => Ok(()),
    }
}
