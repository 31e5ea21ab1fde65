//! SessionEnd: the session's last word in the record, and its iteration closed.

use crate::checkpoint;
use crate::context::measure;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::keeping;
use crate::memory;
use crate::run::close;
use crate::turns::capture;
use crate::turns::capture::CaptureLimits;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, SessionEnded};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::event::Event;
use plimsoll_store::{StoreError, TurnLog, clock, journal, ledger, sessions};
use serde_json::json;
use std::time::Duration;

/// SessionEnd.
pub fn session_end(input: &[u8]) -> HookResponse {
    let mut call = match HookInvocation::read(input) {
        Ok(call) => call,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    call.find_project_of_session();
    let Event::SessionEnd { reason } = call.event() else { return HookResponse::quiet() };
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return HookResponse::quiet();
    }
    let untold = record_turns(&call, reason.as_deref()).err().map(|error| capture::complaint(&error));
    // Last, and only if the user has set it.
    let ended = end(&call, reason.clone()).and_then(|()| keeping::keep_as_set(&call.project, &call.settings));
    match ended {
        Ok(()) => HookResponse::quiet().with_complaint(call.complaint).with_complaint(untold),
        Err(error) => HookResponse::fault(format!("{error}; {}", error.hint())),
    }
}

/// The last turns, also those of subagents, and that it ended here.
fn record_turns(call: &HookInvocation, reason: Option<&str>) -> Result<(), StoreError> {
    let read = call.transcript().map_or(Ok(()), |transcript| {
        measure::wait_for_results(transcript);
        capture::at_end(&call.project, &call.session_id, transcript, CaptureLimits::END)
    });
    let noted = TurnLog::of(&call.project, &call.session_id)
        .map_or(Ok(()), |log| capture::note(&log, RecordKind::SessionEnd, &json!({"reason": reason})));
    match read {
        // The lock is held: the next session's start reads on.
        Err(StoreError::Busy { .. }) => noted,
        read => read.and(noted),
    }
}

fn end(call: &HookInvocation, reason: Option<String>) -> Result<(), StoreError> {
    let record = sessions::update(&call.project, &call.session_id, Duration::from_secs(3), |record| {
        record.end.ended_at = Some(clock::stamp(clock::now()));
        record.end.end_reason.clone_from(&reason);
        record.clone()
    })?;
    // After the record, by which other sessions know that this one is over if a kill comes here.
    memory::leave(&call.project, &call.session_id)?;
    let run = call.owned_run()?;
    let event = JournalEvent::SessionEnd(SessionEnded {
        reason,
        peak_percent: Some(record.usage.peak_percent),
        waits: Some(record.waits.count),
        waited_ms: Some(record.waits.total_ms),
        ..SessionEnded::default()
    });
    let entry = JournalEntry::new(event)
        .run(run.as_ref().map(|run| (&run.run_id, run.iteration)))
        .session(Some(&call.session_id));
    if run.is_some() || record.usage.peak_percent > 0 {
        journal::note(&call.project, entry)?;
    }
    match run {
        // Last: whoever judges closes the iteration if the client ends this hook first (after 1.5 s on 2.1.329, unless
        // the entry says more).
        Some(run) => close::close_as_read(&call.run_context(&run), &run),
        // Likewise: without it the handoff is as it was at its threshold.
        None if ledger::run_of_environment().is_none() => checkpoint::renew_at_end(
            &call.project,
            &call.settings,
            &record,
            call.transcript().map(Into::into),
        ),
        None => Ok(()),
    }
}
