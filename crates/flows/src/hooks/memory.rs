//! The working memory's part of the hooks. If an event already has an entry for the context monitor, the
//! memory's part is appended to its response in the same process; the other events have entries of their own.

use super::{HookStart, subagent};
use crate::hook_invocation::{HookInvocation, InputError};
use crate::hook_response::HookResponse;
use crate::install::hook_precedence;
use crate::memory::{
    LOCK_TIMEOUT, StartEntryNumber, abandon_frames_and_render_changes, count_answer_if_nothing_new,
    render_changes_after_batch, render_memory_at_start, restore_memory_of_run,
};
use plimsoll_policy::messages;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::HookEvent;
use plimsoll_store::{StoreError, memory as store};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// Runs the entry for the working memory alone: SessionStart (with the number of its output) and
/// UserPromptSubmit.
pub fn run_memory_hook(start: &HookStart<'_>) -> HookResponse {
    let invocation = match HookInvocation::from_input(start.input) {
        Ok(invocation) => invocation,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    let output_number =
        start.arguments.first().and_then(|argument| StartEntryNumber::from_argument(argument));
    update_memory_and_append_text(HookResponse::empty(), &invocation, output_number)
}

/// Runs the monitoring part of an entry, saves its response, and then runs the memory's part, so that no
/// failure there changes what was decided before.
pub fn run_with_memory(
    start: &HookStart<'_>,
    usage_part: impl FnOnce(&HookInvocation) -> HookResponse,
) -> HookResponse {
    let invocation = match HookInvocation::from_input(start.input) {
        // The process ends with its response, so dropping this piece by piece would be wasted time.
        Ok(mut invocation) => {
            invocation.switch_to_project_of_session();
            ManuallyDrop::new(invocation)
        }
        // Once per session, at an event that needs no stored state for that.
        Err(InputError::OtherClient { is_session_start: true }) if start.parts.usage => {
            return HookResponse::from_reply(
                &HookReply::default().with_user_message(messages::render_other_client_notice()),
            );
        }
        Err(error) => return HookResponse::for_input_error(&error),
    };
    if !start.parts.memory && hook_precedence::run_provides_both_parts(&invocation) {
        return HookResponse::empty();
    }
    let usage_response = if start.parts.usage { usage_part(&invocation) } else { HookResponse::empty() };
    // A session that ends here needs no memory text, and must not wait for the memory.
    if !start.parts.memory || usage_response.ends_session() {
        return usage_response;
    }
    (start.save_response)(&usage_response);
    update_memory_and_append_text(usage_response, &invocation, Some(StartEntryNumber::FIRST))
}

/// Appends the memory's text to a complete response. Not inlined, so that hooks without the memory do not
/// touch its part of the stack.
#[inline(never)]
fn update_memory_and_append_text(
    response: HookResponse,
    invocation: &HookInvocation,
    output_number: Option<StartEntryNumber>,
) -> HookResponse {
    // The monitor's message does not wait for another process that holds the memory; the changes are shown
    // with the next batch.
    let timeout = if response.is_empty() { LOCK_TIMEOUT } else { Duration::ZERO };
    match update_memory_and_render_for_event(
        invocation,
        output_number,
        response.remaining_context_units(),
        timeout,
    ) {
        Ok(text) => response.append_model_context(invocation.event().name(), &text.unwrap_or_default()),
        Err(StoreError::Locked { .. }) if timeout.is_zero() => response,
        // Once per session; the memory's tools and the doctor report it, too.
        Err(StoreError::MemoryLogTooLong { .. })
            if !matches!(invocation.event(), HookEvent::SessionStart(_)) =>
        {
            response
        }
        // Anything not shown now is shown with the next event.
        Err(error) => response.with_stderr_line(Some(format!("working memory: {error}; {}", error.hint()))),
    }
}

fn update_memory_and_render_for_event(
    invocation: &HookInvocation,
    output_number: Option<StartEntryNumber>,
    max_units: usize,
    timeout: Duration,
) -> Result<Option<String>, StoreError> {
    let is_batch = matches!(invocation.event(), HookEvent::PostToolBatch(_));
    if is_batch && count_answer_if_nothing_new(invocation) {
        return Ok(None);
    }
    restore_memory_of_run(invocation);
    // Before the first write the memory is empty, and no conversation is in a frame.
    if invocation.session_id.is_empty() || !store::exists(&invocation.project) {
        return Ok(None);
    }
    match (invocation.event(), output_number) {
        (HookEvent::SessionStart(start), Some(output_number)) => {
            render_memory_at_start(invocation, start.source, output_number, max_units)
        }
        (HookEvent::UserPromptSubmit { prompt }, _) => {
            abandon_frames_and_render_changes(invocation, prompt.as_deref().unwrap_or_default())
        }
        (HookEvent::PostToolBatch(_), _) => render_changes_after_batch(invocation, max_units, timeout),
        (HookEvent::Stop(_), _) => subagent::abandon_frames_at_turn_end(invocation).map(|()| None),
        (HookEvent::SubagentStop(stop), _) => subagent::handle_subagent_stop(invocation, stop),
        _ => Ok(None),
    }
}
