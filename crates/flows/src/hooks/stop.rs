//! The gate at Stop: records evidence for the final verdict, and gives the session a provisional one.

use crate::context::facts;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::pack;
use crate::session_result::{ending_of, reset_of, words_of};
use crate::turns::capture;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::record::{FailureEvidence, StopEvidence};
use plimsoll_domain::text::{clip, clip_start};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Ending, Marker, RunState, Settings, Verdict};
use plimsoll_policy::completion::{Completion, completion, says_blocked};
use plimsoll_policy::gate::{Evidence, gate};
use plimsoll_protocol::Reply;
use plimsoll_protocol::event::{Event, Stop, StopFailure};
use plimsoll_store::{StoreError, clock, journal, sessions};
use std::time::Duration;

/// How much of the last message is kept: the promise is its last line.
pub(crate) const WORDS_KEPT: usize = 4_000;

/// Stop and StopFailure.
pub fn stop_gate(input: &[u8]) -> HookResponse {
    let call = match HookInvocation::read(input) {
        Ok(call) => call,
        // A broken gate must not loop: 0 is the safe side.
        Err(complaint) => return HookResponse::fault(complaint),
    };
    let untold = capture::at_hook(&call);
    answer(call).with_complaint(untold)
}

fn answer(call: HookInvocation) -> HookResponse {
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return HookResponse::quiet();
    }
    match at_end_of_turn(&call) {
        Ok(signal) => signal.with_complaint(call.complaint),
        Err(error) => HookResponse::fault(format!("{error}; {}", error.hint())),
    }
}

fn at_end_of_turn(call: &HookInvocation) -> Result<HookResponse, StoreError> {
    let judged = match call.event() {
        Event::Stop(stop) => {
            // The evidence first: the verdict below is provisional, and whoever judges finally needs these words.
            note_stop(call, stop)?;
            let verdict = judge(call, Ending::Completed, stop.last_assistant_message.clone())?;
            if let Some(words) = in_this_session(call, stop, verdict.as_ref())? {
                return Ok(go_on(&words));
            }
            verdict
        }
        Event::StopFailure(failure) => {
            // `-p` does not wait for this hook and may kill it at any moment (2.1.329): the evidence goes first.
            note_failure(call, failure)?;
            judge(call, ending_of(failure), None)?
        }
        _ => None,
    };
    Ok(judged.map_or_else(HookResponse::quiet, |verdict| speak(&verdict)))
}

/// With `--pack`: the words that keep the session going, if the run continues and the window has room.
fn in_this_session(
    call: &HookInvocation,
    stop: &Stop,
    verdict: Option<&Verdict>,
) -> Result<Option<String>, StoreError> {
    if !matches!(verdict, Some(Verdict::Continue { kind: ContinueKind::Next, .. })) {
        return Ok(None);
    }
    match call.owned_run()? {
        // It cannot go on: what is open waits for the next session.
        Some(run) if says_blocked(&run, stop.last_assistant_message.as_deref()) => Ok(None),
        Some(run) => pack::next_item(call, &run, stop),
        None => Ok(None),
    }
}

/// A polite block: the client sends the words and continues.
fn go_on(words: &str) -> HookResponse {
    // Context at Stop keeps a session going like `decision:block`, which would send the words twice (2.1.329).
    let marker = Marker::Continue { kind: ContinueKind::Next, reason: "in this session".to_owned() };
    HookResponse::reply(&Reply::default().tell_model("Stop", words.to_owned()).tell_user(marker.to_string()))
        .exit(1)
}

fn speak(verdict: &Verdict) -> HookResponse {
    let reply = Reply::default().tell_user(verdict.marker().to_string());
    // Only 0 and 1 mean something to the client; a pause ends this session like a stop.
    HookResponse::reply(&reply).exit(u8::from(verdict.gate_exit_code() == 1))
}

/// The verdict as far as it can be known before the verify commands have run; none in a session outside a run.
fn judge(
    call: &HookInvocation,
    ending: Ending,
    last_message: Option<String>,
) -> Result<Option<Verdict>, StoreError> {
    let Some(state) = call.owned_run()? else { return Ok(None) };
    let todo = facts::todo(&call.project, &state);
    let now = clock::stamp(clock::now());
    let resets_at = reset_of(&ending, None);
    let root_popped = facts::root_popped(&call.project, &state);
    let evidence =
        Evidence { ending, resets_at, last_message, root_popped, todo, now, ..Evidence::default() };
    let verdict = provisional(&state, &evidence, &call.settings);
    let entry = JournalEntry::of_run(&state, JournalEvent::ProvisionalVerdict { marker: verdict.marker() });
    journal::note(&call.project, entry.session(Some(&call.session_id)))?;
    Ok(Some(verdict))
}

fn provisional(state: &RunState, evidence: &Evidence, settings: &Settings) -> Verdict {
    let verdict = gate(&mut state.clone(), evidence, settings);
    let unproven =
        completion(state, evidence) == Completion::Plausible && !state.options.commands().is_empty();
    match verdict {
        Verdict::Stop { status: plimsoll_domain::Status::Completed, .. } if unproven => {
            let reason = "claims completion; the verify commands decide".to_owned();
            Verdict::Stop { status: plimsoll_domain::Status::Completed, reason }
        }
        verdict => verdict,
    }
}

fn note_stop(call: &HookInvocation, stop: &Stop) -> Result<(), StoreError> {
    let running = stop.background_tasks.iter().filter(|task| task.status.as_deref() != Some("completed"));
    let evidence = StopEvidence {
        at: clock::stamp(clock::now()),
        last_words: clip_start(stop.last_assistant_message.as_deref().unwrap_or_default(), WORDS_KEPT),
        background_tasks: running.count(),
        session_crons: stop.session_crons,
    };
    note(call, |record| {
        record.end.stop = Some(evidence);
        if let Some(continuation) = &mut record.continuation {
            continuation.open = false;
        }
    })
}

fn note_failure(call: &HookInvocation, failure: &StopFailure) -> Result<(), StoreError> {
    let evidence = FailureEvidence {
        at: clock::stamp(clock::now()),
        error: failure.error.clone().unwrap_or_default(),
        details: clip(words_of(failure), WORDS_KEPT),
    };
    note(call, |record| record.end.failure = Some(evidence))
}

/// Evidence is kept only for sessions of a run: it is not needed for others.
fn note(
    call: &HookInvocation,
    change: impl FnOnce(&mut plimsoll_domain::SessionRecord),
) -> Result<(), StoreError> {
    if call.owned_run()?.is_none() {
        return Ok(());
    }
    sessions::update(&call.project, &call.session_id, Duration::from_secs(3), change)
}
