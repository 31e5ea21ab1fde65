//! SessionEnd: the session's last word in the record, and its iteration closed.

use crate::call::Call;
use crate::capture::{self, Patience};
use crate::close;
use crate::memory;
use crate::signal::Signal;
use protocol::event::Event;
use serde_json::json;
use session::journal::Entry;
use session::log_line::Kind;
use std::time::Duration;
use store::{StoreError, TurnLog, clock, journal, sessions};

/// SessionEnd.
pub fn session_end(input: &[u8]) -> Signal {
    let call = match Call::read(input) {
        Ok(call) => call,
        Err(complaint) => return Signal::fault(complaint),
    };
    let Event::SessionEnd { reason } = call.event() else { return Signal::quiet() };
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return Signal::quiet();
    }
    let untold = record_turns(&call, reason.as_deref()).err().map(|error| capture::complaint(&error));
    match end(&call, reason.clone()) {
        Ok(()) => Signal::quiet().with_complaint(call.complaint).with_complaint(untold),
        Err(error) => Signal::fault(format!("{error}; {}", error.hint())),
    }
}

/// The last turns, also those of subagents, and that it ended here.
fn record_turns(call: &Call, reason: Option<&str>) -> Result<(), StoreError> {
    let read = call.transcript().map_or(Ok(()), |transcript| {
        capture::at_end(&call.project, &call.session_id, &transcript, Patience::END)
    });
    let noted = TurnLog::of(&call.project, &call.session_id)
        .map_or(Ok(()), |log| capture::note(&log, Kind::SessionEnd, &json!({"reason": reason})));
    match read {
        // The lock is held: the next session's start reads on.
        Err(StoreError::Busy { .. }) => noted,
        read => read.and(noted),
    }
}

fn end(call: &Call, reason: Option<String>) -> Result<(), StoreError> {
    let record = sessions::update(&call.project, &call.session_id, Duration::from_secs(3), |record| {
        record.ended_at = Some(clock::stamp(clock::now()));
        record.end_reason.clone_from(&reason);
        record.clone()
    })?;
    memory::leave(&call.project, &call.session_id)?;
    let run = call.owned_run()?;
    let entry = Entry::new("session_end")
        .run(run.as_ref().map(|run| (run.run_id.as_str(), run.iteration)))
        .session(Some(&call.session_id))
        .fact("reason", reason)
        .fact("peak_percent", record.peak_percent)
        .fact("waits", record.waits)
        .fact("waited_ms", record.waited_ms);
    if run.is_some() || record.peak_percent > 0 {
        journal::note(&call.project, entry)?;
    }
    match run {
        Some(run) => close::close(&call.project, &call.settings, &run.run_id, run.iteration),
        None => Ok(()),
    }
}
