//! The gate at Stop: evidence for the one who judges, and a provisional verdict for the session itself.

use crate::call::Call;
use crate::facts;
use crate::signal::Signal;
use policy::gate::{Completion, Evidence, completion, gate};
use protocol::Reply;
use protocol::event::{Event, Stop, StopFailure};
use session::journal::Entry;
use session::record::{FailureEvidence, StopEvidence};
use session::text::{clip, clip_start};
use session::{Ending, RunState, Verdict};
use std::time::Duration;
use store::{StoreError, clock, journal, sessions};

/// So much of the last message is kept: the promise is its last line.
const WORDS_KEPT: usize = 4_000;

/// Stop and StopFailure.
pub fn stop_gate(input: &[u8]) -> Signal {
    let call = match Call::read(input) {
        Ok(call) => call,
        // A broken gate must not loop: 0 is the safe side.
        Err(complaint) => return Signal::fault(complaint),
    };
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return Signal::quiet();
    }
    let judged = match call.event() {
        Event::Stop(stop) => note_stop(&call, stop)
            .and_then(|()| judge(&call, Ending::Completed, stop.last_assistant_message.clone())),
        Event::StopFailure(failure) => {
            note_failure(&call, failure).and_then(|()| judge(&call, ending_of(failure), None))
        }
        _ => Ok(None),
    };
    match judged {
        Ok(Some(verdict)) => speak(&verdict).with_complaint(call.complaint),
        Ok(None) => Signal::quiet().with_complaint(call.complaint),
        Err(error) => Signal::fault(format!("{error}; {}", error.hint())),
    }
}

fn speak(verdict: &Verdict) -> Signal {
    let reply = Reply::default().tell_person(verdict.marker().to_string());
    // Only 0 and 1 mean something to the client; a pause ends this session like a stop.
    Signal::reply(&reply).exit(u8::from(verdict.gate_exit_code() == 1))
}

/// The verdict as far as it can be known before the verify commands have run; none in a session of no run.
fn judge(call: &Call, ending: Ending, last_message: Option<String>) -> Result<Option<Verdict>, StoreError> {
    let Some(state) = call.owned_run()? else { return Ok(None) };
    let evidence =
        Evidence { ending, last_message, todo: facts::todo(&call.project, &state), verify: Vec::new() };
    let verdict = provisional(&state, &evidence);
    let entry = Entry::new("provisional_verdict")
        .run(Some((&state.run_id, state.iteration)))
        .session(Some(&call.session_id))
        .fact("marker", verdict.marker().to_string());
    journal::note(&call.project, entry)?;
    Ok(Some(verdict))
}

fn provisional(state: &RunState, evidence: &Evidence) -> Verdict {
    let verdict = gate(&mut state.clone(), evidence);
    let unproven = completion(state, evidence) == Completion::Plausible && !state.verify.is_empty();
    match verdict {
        Verdict::Stop { status: session::Status::Completed, .. } if unproven => {
            let reason = "claims completion; the verify commands decide".to_owned();
            Verdict::Stop { status: session::Status::Completed, reason }
        }
        verdict => verdict,
    }
}

fn note_stop(call: &Call, stop: &Stop) -> Result<(), StoreError> {
    let running = stop.background_tasks.iter().filter(|task| task.status.as_deref() != Some("completed"));
    let evidence = StopEvidence {
        at: clock::stamp(clock::now()),
        last_words: clip_start(stop.last_assistant_message.as_deref().unwrap_or_default(), WORDS_KEPT),
        background_tasks: running.count(),
        session_crons: stop.session_crons,
    };
    note(call, |record| record.stop = Some(evidence))
}

fn note_failure(call: &Call, failure: &StopFailure) -> Result<(), StoreError> {
    let evidence = FailureEvidence {
        at: clock::stamp(clock::now()),
        error: failure.error.clone().unwrap_or_default(),
        details: clip(failure.error_details.as_deref().unwrap_or_default(), WORDS_KEPT),
    };
    note(call, |record| record.failure = Some(evidence))
}

/// Evidence is kept only of sessions that belong to a run: of others nobody asks.
fn note(call: &Call, change: impl FnOnce(&mut session::SessionRecord)) -> Result<(), StoreError> {
    if call.owned_run()?.is_none() {
        return Ok(());
    }
    sessions::update(&call.project, &call.session_id, Duration::from_secs(3), change)
}

/// The client's word for an API error (PROTOCOL §2).
pub fn ending_of(failure: &StopFailure) -> Ending {
    let words = failure.last_assistant_message.clone().or(failure.error_details.clone()).unwrap_or_default();
    match failure.error.as_deref().unwrap_or_default() {
        "authentication_failed" => Ending::Fatal(format!("authentication failed: {words}")),
        "billing_error" => Ending::Fatal(format!("billing: {words}")),
        "model_not_found" => Ending::Fatal(format!("model not found: {words}")),
        "rate_limit" => Ending::Limit(words),
        "server_error" => Ending::Overloaded(words),
        "invalid_request" if words.to_lowercase().contains("too long") => {
            Ending::WindowFull("prompt_too_long".to_owned())
        }
        error => Ending::Failed(format!("{error}: {words}")),
    }
}
