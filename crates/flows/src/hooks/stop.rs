//! The gate at Stop: records evidence for the final verdict, and gives the session a provisional one.

use crate::checkpoint::facts;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::pack;
use crate::session_result::{WORDS_KEPT, ending_of, reset_of, words_of};
use crate::turns::capture;
use plimsoll_domain::exit_status::ExitStatus;
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

/// A lock is held for a millisecond or two.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Stop and StopFailure.
pub fn stop_gate(call: &HookInvocation) -> HookResponse {
    let untold = capture::at_hook(call);
    answer(call).with_complaint(untold)
}

fn answer(call: &HookInvocation) -> HookResponse {
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return HookResponse::quiet();
    }
    match at_end_of_turn(call) {
        Ok(signal) => signal.with_complaint(call.complaint.as_ref()),
        // A broken gate must not loop: 0 is the safe side.
        Err(error) => HookResponse::fault(format!("{error}; {}", error.hint())),
    }
}

fn at_end_of_turn(call: &HookInvocation) -> Result<HookResponse, StoreError> {
    // Read once: the plan of a run may be long. Evidence is kept only for sessions of a run: it is not needed for others.
    let Some(run) = call.owned_run()? else { return Ok(HookResponse::quiet()) };
    let verdict = match call.event() {
        Event::Stop(stop) => {
            // The evidence first: the verdict below is provisional, and whoever judges finally needs these words.
            note_stop(call, stop)?;
            let verdict = judge(call, &run, Ending::Completed, stop.last_assistant_message.clone())?;
            if let Some(words) = in_this_session(call, &run, stop, &verdict)? {
                return Ok(go_on(&words));
            }
            verdict
        }
        Event::StopFailure(failure) => {
            // `-p` does not wait for this hook and may kill it at any moment (2.1.329): the evidence goes first.
            note_failure(call, failure)?;
            judge(call, &run, ending_of(failure), None)?
        }
        _ => return Ok(HookResponse::quiet()),
    };
    Ok(speak(&verdict))
}

/// With `--pack`: the words that keep the session going, if the run continues and the window has room.
fn in_this_session(
    call: &HookInvocation,
    run: &RunState,
    stop: &Stop,
    verdict: &Verdict,
) -> Result<Option<String>, StoreError> {
    let goes_on = matches!(verdict, Verdict::Continue { kind: ContinueKind::Next, .. });
    // Where it cannot go on, what is open waits for the next session.
    if !goes_on || says_blocked(run, stop.last_assistant_message.as_deref()) {
        return Ok(None);
    }
    pack::next_item(call, run, stop)
}

/// A polite block: the client sends the words and continues.
fn go_on(words: &str) -> HookResponse {
    // Context at Stop keeps a session going like `decision:block`, which would send the words twice (2.1.329).
    let marker = Marker::Continue { kind: ContinueKind::Next, reason: "in this session".to_owned() };
    HookResponse::reply(&Reply::default().tell_model("Stop", words.to_owned()).tell_user(marker.to_string()))
        .exit(ExitStatus::Failure)
}

fn speak(verdict: &Verdict) -> HookResponse {
    let reply = Reply::default().tell_user(verdict.marker().to_string());
    // Only 0 and 1 mean something to the client; a pause ends this session like a stop.
    HookResponse::reply(&reply).exit(ExitStatus::failure_if(matches!(verdict, Verdict::Continue { .. })))
}

/// The verdict as far as it can be known before the verify commands have run.
fn judge(
    call: &HookInvocation,
    state: &RunState,
    ending: Ending,
    last_message: Option<String>,
) -> Result<Verdict, StoreError> {
    let todo = facts::todo(&call.project, state);
    let now = clock::stamp(clock::now());
    let resets_at = reset_of(&ending, None);
    let root_popped = facts::root_popped(&call.project, state);
    let evidence =
        Evidence { ending, resets_at, last_message, root_popped, todo, now, ..Evidence::default() };
    let verdict = provisional(state, &evidence, &call.settings);
    let entry = JournalEntry::of_run(state, JournalEvent::ProvisionalVerdict { marker: verdict.marker() });
    journal::note(&call.project, entry.session(Some(&call.session_id)))?;
    Ok(verdict)
}

fn provisional(state: &RunState, evidence: &Evidence, settings: &Settings) -> Verdict {
    let verdict = gate(&mut state.clone(), evidence, settings);
    let is_checked = !state.options.commands().is_empty() || !state.options.protect.is_empty();
    let unproven = is_checked && completion(state, evidence) == Completion::Plausible;
    match verdict {
        Verdict::Stop { status: plimsoll_domain::Status::Completed, .. } if unproven => {
            let deciding =
                if state.options.commands().is_empty() { "protected files" } else { "verify commands" };
            let reason = format!("claims completion; the {deciding} decide");
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
    sessions::update(&call.project, &call.session_id, TIMEOUT, |record| {
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
    sessions::update(&call.project, &call.session_id, TIMEOUT, |record| record.end.failure = Some(evidence))
}
