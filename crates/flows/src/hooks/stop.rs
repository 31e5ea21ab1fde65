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
use plimsoll_domain::marker::CLAIMED_COMPLETION_PREFIX;
use plimsoll_domain::record::{FailureEvidence, StopEvidence};
use plimsoll_domain::text::{truncate_end, truncate_start};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunState, SessionEnding, Settings, Verdict};
use plimsoll_policy::completion::{ClaimAssessment, assess_completion_claim, claims_to_be_blocked};
use plimsoll_policy::gate::{SessionEvidence, judge_session_and_apply_verdict};
use plimsoll_policy::messages;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::{HookEvent, Stop, StopFailure};
use plimsoll_store::{StoreError, clock, journal, sessions};
use std::time::Duration;

/// Each writer holds the lock for only a millisecond or two.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs Stop and StopFailure.
pub fn run_stop_hook(invocation: &HookInvocation) -> HookResponse {
    let turn_log_warning = capture::capture_turns_after_hook_or_explain_failure(invocation);
    respond_to_stop_unless_in_subagent(invocation).with_stderr_line(turn_log_warning)
}

fn respond_to_stop_unless_in_subagent(invocation: &HookInvocation) -> HookResponse {
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    match record_evidence_and_respond_with_verdict(invocation) {
        Ok(response) => response.with_stderr_line(invocation.settings_error.as_ref()),
        // The exit code is 0, so that a failing gate cannot cause an endless loop.
        Err(error) => HookResponse::from_error(format!("{error}; {}", error.hint())),
    }
}

fn record_evidence_and_respond_with_verdict(invocation: &HookInvocation) -> Result<HookResponse, StoreError> {
    // Evidence is needed only for sessions of a run. The state is read once, because a run's plan may be long.
    let Some(run) = invocation.load_owned_run()? else { return Ok(HookResponse::empty()) };
    let verdict = match invocation.event() {
        HookEvent::Stop(stop) => {
            // The evidence is recorded first: the verdict below is provisional, and the final judgment needs the last
            // message.
            save_stop_evidence_and_close_continuation(invocation, stop)?;
            let verdict = judge_and_journal_provisional_verdict(
                invocation,
                &run,
                SessionEnding::Completed,
                stop.last_assistant_message.clone(),
            )?;
            if let Some(message) =
                record_costs_and_offer_item_if_run_continues(invocation, &run, stop, &verdict)?
            {
                return Ok(continue_session_with_model_context(&message));
            }
            verdict
        }
        HookEvent::StopFailure(failure) => {
            // `-p` does not wait for this hook and may kill it at any time (2.1.329), so the evidence is recorded first.
            save_failure_evidence_in_session_record(invocation, failure)?;
            judge_and_journal_provisional_verdict(invocation, &run, ending_from_failure(failure), None)?
        }
        _ => return Ok(HookResponse::empty()),
    };
    Ok(respond_with_verdict(&verdict))
}

/// Returns the message that continues this session with the next item. `None` if the run does not continue with an item, if
/// the session is blocked, or if the item must start in a new session.
fn record_costs_and_offer_item_if_run_continues(
    invocation: &HookInvocation,
    run: &RunState,
    stop: &Stop,
    verdict: &Verdict,
) -> Result<Option<String>, StoreError> {
    let run_continues = matches!(verdict, Verdict::Continue { kind: ContinueKind::NextItem, .. });
    // A session that claims to be blocked does not continue; the next session works on the open items.
    if !run_continues || claims_to_be_blocked(run, stop.last_assistant_message.as_deref()) {
        return Ok(None);
    }
    item_packing::record_item_costs_and_offer_next_item(invocation, run, stop)
}

/// Returns a response that continues the session: the client sends the message to the model, and shows no error.
fn continue_session_with_model_context(message: &str) -> HookResponse {
    // At Stop, model context continues the session as `decision:block` does, which would send the text twice (2.1.329).
    let marker = Marker::Continue { kind: ContinueKind::NextItem, reason: "in this session".to_owned() };
    HookResponse::from_reply(
        &HookReply::default().with_model_context("Stop", message.to_owned()).with_user_message(
            messages::render_description_and_marker_for_user(
                "the item is done, and the context window has room for the next one",
                &marker,
                "The session continues.",
            ),
        ),
    )
    .with_exit_status(ExitStatus::Failure)
}

fn respond_with_verdict(verdict: &Verdict) -> HookResponse {
    let reply = HookReply::default().with_user_message(render_verdict_for_user(verdict));
    // Only 0 and 1 are used as exit codes; a pause ends this session, as a stop does.
    HookResponse::from_reply(&reply)
        .with_exit_status(ExitStatus::failure_if(matches!(verdict, Verdict::Continue { .. })))
}

fn render_verdict_for_user(verdict: &Verdict) -> String {
    let marker = verdict.to_marker();
    let description = marker.describe(|pause_end| {
        clock::parse_timestamp(pause_end).map_or(pause_end.to_string(), clock::format_short_local_time)
    });
    let sentence = match verdict {
        Verdict::Continue { kind: ContinueKind::RefusedPromise, .. } => "The next session continues.",
        _ => "",
    };
    messages::render_description_and_marker_for_user(&description, &marker, sentence)
}

/// Judges the session before the verify commands have run, and appends the provisional verdict to the journal.
fn judge_and_journal_provisional_verdict(
    invocation: &HookInvocation,
    run: &RunState,
    ending: SessionEnding,
    last_message: Option<String>,
) -> Result<Verdict, StoreError> {
    let plan = facts::load_plan(&invocation.project, run);
    let now = clock::to_timestamp(clock::now());
    let limit_resets_at = limit_reset_time(&ending, None);
    let is_root_frame_popped = facts::has_session_popped_root_frame(&invocation.project, run);
    let evidence = SessionEvidence {
        ending,
        limit_resets_at,
        last_message,
        is_root_frame_popped,
        todo: plan,
        now,
        ..SessionEvidence::default()
    };
    let verdict = judge_session_and_mention_pending_checks(run, &evidence, &invocation.settings);
    let entry = JournalEntry::for_run(run, JournalEvent::ProvisionalVerdict { marker: verdict.to_marker() });
    journal::append_entry(&invocation.project, entry.with_session(Some(&invocation.session_id)))?;
    Ok(verdict)
}

fn judge_session_and_mention_pending_checks(
    run: &RunState,
    evidence: &SessionEvidence,
    settings: &Settings,
) -> Verdict {
    let verdict = judge_session_and_apply_verdict(&mut run.clone(), evidence, settings);
    let has_checks =
        !run.options.unique_verify_and_check_commands().is_empty() || !run.options.protected_paths.is_empty();
    let awaits_checks =
        has_checks && assess_completion_claim(run, evidence) == ClaimAssessment::PendingVerification;
    match verdict {
        Verdict::Stop { status: plimsoll_domain::RunStatus::Completed, .. } if awaits_checks => {
            let deciding_checks = if run.options.unique_verify_and_check_commands().is_empty() {
                "protected files"
            } else {
                "verify commands"
            };
            let reason = format!("{CLAIMED_COMPLETION_PREFIX}the {deciding_checks} decide");
            Verdict::Stop { status: plimsoll_domain::RunStatus::Completed, reason }
        }
        verdict => verdict,
    }
}

fn save_stop_evidence_and_close_continuation(
    invocation: &HookInvocation,
    stop: &Stop,
) -> Result<(), StoreError> {
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

fn save_failure_evidence_in_session_record(
    invocation: &HookInvocation,
    failure: &StopFailure,
) -> Result<(), StoreError> {
    let evidence = FailureEvidence {
        failed_at: clock::to_timestamp(clock::now()),
        error_kind: failure.error.clone().unwrap_or_default(),
        details: truncate_end(failure_message(failure), MAX_MESSAGE_CHARS),
    };
    sessions::update_session_record(&invocation.project, &invocation.session_id, LOCK_TIMEOUT, |record| {
        record.end.failure = Some(evidence);
    })
}
