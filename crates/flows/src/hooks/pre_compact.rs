//! PreCompact and PostCompact: a checkpoint before the client forgets, and a clean slate after it has.

use crate::checkpoint::{self, Request};
use crate::context::measure;
use crate::hook_invocation::{HookInvocation, InputError};
use crate::hook_response::HookResponse;
use plimsoll_domain::record::Announced;
use plimsoll_domain::state::Cause;
use plimsoll_domain::text::one_line;
use plimsoll_domain::{RunState, SessionRecord};
use plimsoll_policy::words;
use plimsoll_protocol::event::Event;
use plimsoll_protocol::foreign_words::for_model;
use plimsoll_store::{StoreError, sessions};
use std::time::Duration;

/// PreCompact (whose standard output the client hands to its summarizer as instructions, so that anything but
/// plain text would end up there) and PostCompact.
pub fn pre_compact(input: &[u8]) -> HookResponse {
    let mut call = match HookInvocation::read(input) {
        Ok(call) => call,
        Err(InputError::OtherClient { .. }) => return HookResponse::text(None),
        Err(complaint) => return HookResponse::text(None).with_complaint(Some(complaint)),
    };
    // Subagents compact too, and their events carry an `agent_id` (2.1.329): the session itself forgets nothing.
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return HookResponse::text(None);
    }
    call.find_project_of_session();
    let answered = match call.event() {
        Event::PreCompact => before(&call),
        Event::PostCompact => forget(&call).map(|()| None),
        _ => Ok(None),
    };
    match answered {
        Ok(text) => HookResponse::text(text.map(|text| for_model(&text))).with_complaint(call.complaint),
        Err(error) => HookResponse::text(None).with_complaint(Some(format!("{error}; {}", error.hint()))),
    }
}

fn before(call: &HookInvocation) -> Result<Option<String>, StoreError> {
    let run = call.owned_run()?.filter(|run| !run.lifecycle.is_over());
    let record = sessions::load(&call.project, &call.session_id);
    let measurement = measure::of_call(call, &record);
    let level = measurement.level().unwrap_or_default();
    let handoff = checkpoint::write(&Request {
        project: &call.project,
        settings: &call.settings,
        session_id: &call.session_id,
        transcript: call.transcript().map(Into::into),
        run: run.as_ref(),
        cause: Cause::Compact,
        level,
        reading: measurement.reading.as_ref(),
        thresholds: measurement.thresholds.as_ref(),
        waited: None,
        calls: &[],
        notes: plimsoll_domain::handoff::Notes::default(),
    })?;
    Ok(Some(words::keep(&kept(run.as_ref(), &handoff))))
}

fn kept(run: Option<&RunState>, handoff: &str) -> Vec<String> {
    let mut lines = vec![format!("A handoff with the facts of this session is in {}.", one_line(handoff))];
    let Some(run) = run else { return lines };
    lines.push(format!(
        "This session is iteration {} of the run \"{}\"; its instructions are in PROMPT.md.",
        run.iteration,
        one_line(&run.options.task_name)
    ));
    lines.extend(
        run.items
            .todo_items
            .first()
            .map(|item| format!("The current item is \"{}\"; finished items stay finished.", one_line(item))),
    );
    if !run.options.ends_with_last_tick() {
        lines.push(format!(
            "The line that ends the run, only when everything is done: {}",
            plimsoll_domain::promise::line(&run.options.completion_promise, &run.nonce)
        ));
    }
    lines
}

/// After a compaction all earlier readings are void, and every level may be announced again.
pub fn forget(call: &HookInvocation) -> Result<(), StoreError> {
    // SessionStart has done this already where it comes before PostCompact (2.1.329); twice changes nothing.
    sessions::update(&call.project, &call.session_id, Duration::from_secs(3), start_over)
}

/// The record of a session whose conversation has just been replaced by a summary.
pub fn start_over(record: &mut SessionRecord) {
    record.usage.reading = None;
    record.usage.percent = None;
    record.usage.percent_used = None;
    record.announced = Announced::default();
    record.checkpoint.claim = None;
    record.commits.fills.clear();
    record.commits.told = false;
    record.checkpoint.batches_since = 0;
    record.checkpoint.tokens = 0;
}
