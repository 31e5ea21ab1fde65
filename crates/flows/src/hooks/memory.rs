//! The working memory's part in the hooks. Where the load line has an entry for an event, the memory's part comes behind its
//! answer in the same process; the rest are entries of their own.

use super::{Started, subagent};
use crate::hook_invocation::{HookInvocation, InputError};
use crate::hook_response::HookResponse;
use crate::install::plugin;
use crate::memory::{OutputNumber, TIMEOUT, after_batch, at_prompt, at_start, bring_back, is_as_told};
use plimsoll_policy::words;
use plimsoll_protocol::Reply;
use plimsoll_protocol::event::Event;
use plimsoll_store::{StoreError, memory as store};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// An entry of its own: SessionStart (with the number of its output), UserPromptSubmit.
pub fn memory(started: &Started<'_>) -> HookResponse {
    let call = match HookInvocation::read(started.input) {
        Ok(call) => call,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    let number = started.arguments.first().and_then(|word| OutputNumber::from_argument(word));
    behind(HookResponse::quiet(), &call, number)
}

/// Runs the load line's half of an entry, keeps its answer, and then runs the memory's half: nothing that goes wrong there
/// changes what was decided before.
pub fn with_memory(
    started: &Started<'_>,
    load_line: impl FnOnce(&HookInvocation) -> HookResponse,
) -> HookResponse {
    let call = match HookInvocation::read(started.input) {
        // The process ends with its answer: nobody needs this memory back piece by piece.
        Ok(mut call) => {
            call.find_project_of_session();
            ManuallyDrop::new(call)
        }
        // Once a session, and where nothing needs to be remembered for that.
        Err(InputError::OtherClient { is_session_start: true }) if started.halves.load_line => {
            return HookResponse::reply(&Reply::default().tell_user(words::other_client()));
        }
        Err(error) => return HookResponse::for_input_error(&error),
    };
    if !started.halves.memory && plugin::is_given_both(&call) {
        return HookResponse::quiet();
    }
    let first = if started.halves.load_line { load_line(&call) } else { HookResponse::quiet() };
    // The session that ends here has no use for news, and must not wait for them.
    if !started.halves.memory || first.ends_session() {
        return first;
    }
    (started.keep)(&first);
    behind(first, &call, Some(OutputNumber::FIRST))
}

/// Adds what the memory has to say to an answer that is complete. Without the memory none of its stack is touched.
#[inline(never)]
fn behind(first: HookResponse, call: &HookInvocation, number: Option<OutputNumber>) -> HookResponse {
    // What the monitor says is not kept waiting by another process that holds the memory: the news come with the next batch.
    let timeout = if first.is_quiet() { TIMEOUT } else { Duration::ZERO };
    match news(call, number, first.room(), timeout) {
        Ok(text) => first.also_telling(call.event().name(), &text.unwrap_or_default()),
        Err(StoreError::Busy { .. }) if timeout.is_zero() => first,
        // Once a session: the tools of the memory and the doctor say it, too.
        Err(StoreError::LongMemory { .. }) if !matches!(call.event(), Event::SessionStart(_)) => first,
        // Whatever was not shown now is shown with the next event.
        Err(error) => first.with_complaint(Some(format!("working memory: {error}; {}", error.hint()))),
    }
}

fn news(
    call: &HookInvocation,
    number: Option<OutputNumber>,
    room: usize,
    timeout: Duration,
) -> Result<Option<String>, StoreError> {
    let is_batch = matches!(call.event(), Event::PostToolBatch(_));
    if is_batch && is_as_told(call) {
        return Ok(None);
    }
    bring_back(call);
    // Before the first write the memory is empty, and no conversation is in a frame.
    if call.session_id.is_empty() || !store::exists(&call.project) {
        return Ok(None);
    }
    match (call.event(), number) {
        (Event::SessionStart(start), Some(number)) => at_start(call, start.source, number, room),
        (Event::UserPromptSubmit { prompt }, _) => at_prompt(call, prompt.as_deref().unwrap_or_default()),
        (Event::PostToolBatch(_), _) => after_batch(call, room, timeout),
        (Event::Stop(_), _) => subagent::turn_ends(call).map(|()| None),
        (Event::SubagentStop(stop), _) => subagent::child_ends(call, stop),
        _ => Ok(None),
    }
}
