//! The memory part of the hooks. For an event that the context monitor also handles, the memory text is appended to the
//! monitor's response in the same process; the other events have separate entries for the memory.

use super::{HookStart, subagent};
use crate::hook_invocation::{HookInvocation, InputError};
use crate::hook_response::HookResponse;
use crate::install::hook_precedence;
use crate::memory::{
    LOCK_TIMEOUT, StartEntryNumber, abandon_frames_at_prompt_and_render_changes,
    count_main_response_if_memory_unchanged, render_and_record_changes_or_due_overview,
    render_and_record_memory_part_at_start, restore_run_memory_from_copy,
};
use plimsoll_policy::messages;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::HookEvent;
use plimsoll_store::{StoreError, memory as store};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// Runs an entry that only handles the working memory: UserPromptSubmit, and SessionStart with the number of the entry.
pub fn run_memory_hook(start: &HookStart<'_>) -> HookResponse {
    let invocation = match HookInvocation::parse_input_and_load_project(start.input) {
        Ok(invocation) => invocation,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    let start_entry_number =
        start.arguments.first().and_then(|argument| StartEntryNumber::from_argument(argument));
    update_memory_and_append_text(HookResponse::empty(), &invocation, start_entry_number)
}

/// Runs the usage part of an entry, saves its response, and then runs the memory part. If the memory part fails, the saved
/// response is still printed.
pub fn run_usage_part_then_memory_part(
    start: &HookStart<'_>,
    usage_part: impl FnOnce(&HookInvocation) -> HookResponse,
) -> HookResponse {
    let invocation = match HookInvocation::parse_input_and_load_project(start.input) {
        // The process exits after its response, so the values are not dropped.
        Ok(mut invocation) => {
            invocation.switch_project_if_session_has_no_record();
            ManuallyDrop::new(invocation)
        }
        // Only at SessionStart, so that the notice appears once per session without stored state.
        Err(InputError::OtherClient { is_session_start: true }) if start.parts.runs_usage => {
            return HookResponse::from_reply(
                &HookReply::default().with_user_message(messages::render_other_client_notice()),
            );
        }
        Err(error) => return HookResponse::for_input_error(&error),
    };
    if !start.parts.runs_memory && hook_precedence::run_provides_usage_and_memory(&invocation) {
        return HookResponse::empty();
    }
    let usage_response = if start.parts.runs_usage { usage_part(&invocation) } else { HookResponse::empty() };
    // A session that is about to end needs no memory text and must not wait for the memory's lock.
    if !start.parts.runs_memory || usage_response.ends_session() {
        return usage_response;
    }
    (start.save_response)(&usage_response);
    update_memory_and_append_text(usage_response, &invocation, Some(StartEntryNumber::FIRST))
}

/// Updates the memory and appends its text to a complete response. Not inlined, so that hooks without the memory do not
/// use its stack space.
#[inline(never)]
fn update_memory_and_append_text(
    response: HookResponse,
    invocation: &HookInvocation,
    start_entry_number: Option<StartEntryNumber>,
) -> HookResponse {
    // A response with a monitor message does not wait for the memory's lock; the next batch shows the changes.
    let timeout = if response.has_no_effect_on_client() { LOCK_TIMEOUT } else { Duration::ZERO };
    match update_memory_and_render_for_event(
        invocation,
        start_entry_number,
        response.remaining_context_units(),
        timeout,
    ) {
        Ok(text) => response.append_model_context(invocation.event().name(), &text.unwrap_or_default()),
        Err(StoreError::Locked { .. }) if timeout.is_zero() => response,
        // Reported only at SessionStart, once per session; the memory tools and the doctor report it as well.
        Err(StoreError::MemoryLogTooLong { .. })
            if !matches!(invocation.event(), HookEvent::SessionStart(_)) =>
        {
            response
        }
        // The next event shows the changes that this one could not show.
        Err(error) => response.with_stderr_line(Some(format!("working memory: {error}; {}", error.hint()))),
    }
}

fn update_memory_and_render_for_event(
    invocation: &HookInvocation,
    start_entry_number: Option<StartEntryNumber>,
    max_utf16_units: usize,
    timeout: Duration,
) -> Result<Option<String>, StoreError> {
    let is_batch = matches!(invocation.event(), HookEvent::PostToolBatch(_));
    if is_batch && count_main_response_if_memory_unchanged(invocation) {
        return Ok(None);
    }
    restore_run_memory_from_copy(invocation);
    // Before the first write, the memory is empty and has no frames.
    if invocation.session_id.is_empty() || !store::memory_exists(&invocation.project) {
        return Ok(None);
    }
    match (invocation.event(), start_entry_number) {
        (HookEvent::SessionStart(start), Some(start_entry_number)) => render_and_record_memory_part_at_start(
            invocation,
            start.source,
            start_entry_number,
            max_utf16_units,
        ),
        (HookEvent::UserPromptSubmit { prompt }, _) => {
            abandon_frames_at_prompt_and_render_changes(invocation, prompt.as_deref().unwrap_or_default())
        }
        (HookEvent::PostToolBatch(_), _) => {
            render_and_record_changes_or_due_overview(invocation, max_utf16_units, timeout)
        }
        (HookEvent::Stop(_), _) => {
            subagent::abandon_unreturned_frames_after_main_turn(invocation).map(|()| None)
        }
        (HookEvent::SubagentStop(stop), _) => subagent::remind_to_pop_once_then_close_frame(invocation, stop),
        _ => Ok(None),
    }
}
