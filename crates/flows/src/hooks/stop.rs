//! The gate at Stop: records evidence for the final verdict, and returns a provisional verdict to the
//! session.

use crate::checkpoint::facts;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::item_packing;
use crate::session_result::{MAX_MESSAGE_CHARS, ending_from_failure, failure_message, limit_reset_time};
use crate::turns::capture;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::record::{FailureEvidence, StopEvidence};
use plimsoll_domain::text::{truncate_end, truncate_start};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunState, SessionEnding, Settings, Verdict};
use plimsoll_policy::completion::{CompletionClaim, assess_completion, is_blocked_claim};
use plimsoll_policy::gate::{SessionEvidence, judge_session};
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::{HookEvent, Stop, StopFailure};
use plimsoll_store::{StoreError, clock, journal, sessions};
use std::time::Duration;

/// Our writers hold a lock for a millisecond or two.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs Stop and StopFailure.
pub fn run_stop_hook(invocation: &HookInvocation) -> HookResponse {
    let turn_log_warning = capture::capture_after_hook(invocation);
    respond_to_stop(invocation).with_stderr_line(turn_log_warning)
}

fn respond_to_stop(invocation: &HookInvocation) -> HookResponse {
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    match judge_end_of_turn(invocation) {
        Ok(response) => response.with_stderr_line(invocation.settings_error.as_ref()),
        // A broken gate must not loop, so the exit code is 0.
        Err(error) => HookResponse::from_fault(format!("{error}; {}", error.hint())),
    }
}

fn judge_end_of_turn(invocation: &HookInvocation) -> Result<HookResponse, StoreError> {
    // Read once, because the plan of a run may be long. Evidence is needed only for sessions of a run.
    let Some(run) = invocation.owned_run()? else { return Ok(HookResponse::empty()) };
    let verdict = match invocation.event() {
        HookEvent::Stop(stop) => {
            // The evidence first: the verdict below is provisional, and the final judgment needs the last
            // message.
            record_stop_evidence(invocation, stop)?;
            let verdict = record_provisional_verdict(
                invocation,
                &run,
                SessionEnding::Completed,
                stop.last_assistant_message.clone(),
            )?;
            if let Some(message) = next_item_message(invocation, &run, stop, &verdict)? {
                return Ok(continue_session(&message));
            }
            verdict
        }
        HookEvent::StopFailure(failure) => {
            // `-p` does not wait for this hook and may kill it at any moment (2.1.329), so the evidence goes
            // first.
            record_failure_evidence(invocation, failure)?;
            record_provisional_verdict(invocation, &run, ending_from_failure(failure), None)?
        }
        _ => return Ok(HookResponse::empty()),
    };
    Ok(respond_with_verdict(&verdict))
}

/// Returns the message that continues the session with the next item, if the run continues and the window has
/// room (`--pack`).
fn next_item_message(
    invocation: &HookInvocation,
    run: &RunState,
    stop: &Stop,
    verdict: &Verdict,
) -> Result<Option<String>, StoreError> {
    let run_continues = matches!(verdict, Verdict::Continue { kind: ContinueKind::NextItem, .. });
    // A blocked session cannot go on; its open items wait for the next session.
    if !run_continues || is_blocked_claim(run, stop.last_assistant_message.as_deref()) {
        return Ok(None);
    }
    item_packing::continue_with_next_item(invocation, run, stop)
}

/// Continues the session without an error: the client sends the message to the model.
fn continue_session(message: &str) -> HookResponse {
    // Context at Stop continues a session like `decision:block`, which would send the text twice (2.1.329).
    let marker = Marker::Continue { kind: ContinueKind::NextItem, reason: "in this session".to_owned() };
    HookResponse::from_reply(
        &HookReply::default()
            .with_model_context("Stop", message.to_owned())
            .with_user_message(marker.to_string()),
    )
    .with_exit_status(ExitStatus::Failure)
}

fn respond_with_verdict(verdict: &Verdict) -> HookResponse {
    let reply = HookReply::default().with_user_message(verdict.to_marker().to_string());
    // The client knows only 0 and 1; a pause ends this session like a stop.
    HookResponse::from_reply(&reply)
        .with_exit_status(ExitStatus::failure_if(matches!(verdict, Verdict::Continue { .. })))
}

/// Records the verdict as far as it can be known before the verify commands have run.
fn record_provisional_verdict(
    invocation: &HookInvocation,
    state: &RunState,
    ending: SessionEnding,
    last_message: Option<String>,
) -> Result<Verdict, StoreError> {
    let plan = facts::load_plan(&invocation.project, state);
    let now = clock::to_timestamp(clock::now());
    let resets_at = limit_reset_time(&ending, None);
    let root_popped = facts::has_session_popped_root_frame(&invocation.project, state);
    let evidence = SessionEvidence {
        ending,
        limit_resets_at: resets_at,
        last_message,
        is_root_frame_popped: root_popped,
        todo: plan,
        now,
        ..SessionEvidence::default()
    };
    let verdict = provisional_verdict(state, &evidence, &invocation.settings);
    let entry =
        JournalEntry::for_run(state, JournalEvent::ProvisionalVerdict { marker: verdict.to_marker() });
    journal::append_entry(&invocation.project, entry.with_session(Some(&invocation.session_id)))?;
    Ok(verdict)
}

fn provisional_verdict(state: &RunState, evidence: &SessionEvidence, settings: &Settings) -> Verdict {
    let verdict = judge_session(&mut state.clone(), evidence, settings);
    let has_checks =
        !state.options.all_verify_commands().is_empty() || !state.options.protected_paths.is_empty();
    let is_unproven = has_checks && assess_completion(state, evidence) == CompletionClaim::Uncontradicted;
    match verdict {
        Verdict::Stop { status: plimsoll_domain::RunStatus::Completed, .. } if is_unproven => {
            let deciding_checks = if state.options.all_verify_commands().is_empty() {
                "protected files"
            } else {
                "verify commands"
            };
            let reason = format!("claims completion; the {deciding_checks} decide");
            Verdict::Stop { status: plimsoll_domain::RunStatus::Completed, reason }
        }
        verdict => verdict,
    }
}

fn record_stop_evidence(invocation: &HookInvocation, stop: &Stop) -> Result<(), StoreError> {
    let running_tasks =
        stop.background_tasks.iter().filter(|task| task.status.as_deref() != Some("completed"));
    let evidence = StopEvidence {
        stopped_at: clock::to_timestamp(clock::now()),
        end_of_last_message: truncate_start(
            stop.last_assistant_message.as_deref().unwrap_or_default(),
            MAX_MESSAGE_CHARS,
        ),
        background_tasks: running_tasks.count(),
        session_crons: stop.session_cron_count,
    };
    sessions::update_session_record(&invocation.project, &invocation.session_id, LOCK_TIMEOUT, |record| {
        record.end.stop = Some(evidence);
        if let Some(continuation) = &mut record.continuation {
            continuation.is_open = false;
        }
    })
}

fn record_failure_evidence(invocation: &HookInvocation, failure: &StopFailure) -> Result<(), StoreError> {
    let evidence = FailureEvidence {
        failed_at: clock::to_timestamp(clock::now()),
        error_kind: failure.error.clone().unwrap_or_default(),
        details: truncate_end(failure_message(failure), MAX_MESSAGE_CHARS),
    };
    sessions::update_session_record(&invocation.project, &invocation.session_id, LOCK_TIMEOUT, |record| {
        record.end.failure = Some(evidence);
    })
}
