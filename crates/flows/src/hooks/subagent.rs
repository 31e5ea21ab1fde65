//! Frames and the subagents that work in them: which agent may write, how a pushed frame's subagent is started with its
//! brief, and what its parent receives.
//!
//! `push_frame` leaves a waiting frame. The Agent call that names it gets the frame's brief as its prompt, and PostToolUse replaces the
//! call's answer by the frame's report. A frame whose call, session or client has ended is abandoned.

use super::Started;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::install::plugin::HookOrigin;
use crate::memory::{
    BY, TIMEOUT, abandon, abandon_own, bring_back, is_beside_a_run, owner, recover, stream, tell,
};
use plimsoll_domain::memory::render::ENTRY_UNITS;
use plimsoll_domain::memory::{Closing, Op, render};
use plimsoll_policy::frames::{self, Begin, Caller, FrameAgent, FrameRefusal, Use};
use plimsoll_protocol::Reply;
use plimsoll_protocol::agent::{AgentCall, answer_telling};
use plimsoll_protocol::event::{Event, Stop};
use plimsoll_protocol::tool::{Intent, ToolCall};
use plimsoll_store::memory::{self, By, Pushed, SeenRevision};
use plimsoll_store::{StoreError, environment};

/// PreToolUse and PostToolUse of our tools and of Agent, and SubagentStart. Whatever installed this hook brings the frames' agent too.
pub fn frames(started: &Started<'_>) -> HookResponse {
    let kind = match HookOrigin::of(started.arguments) {
        HookOrigin::ByHand | HookOrigin::Guarded => FrameAgent::Own,
        HookOrigin::ByPlugin => FrameAgent::Plugins,
    };
    let call = match HookInvocation::read(started.input) {
        Ok(call) => call,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    if call.session_id.is_empty() {
        return HookResponse::quiet();
    }
    bring_back(&call);
    let reply = match call.event() {
        Event::PreToolUse(intent) => before_tool(&call, intent, kind),
        // Before the first write the memory is empty, and no conversation is in a frame.
        _ if !memory::exists(&call.project) => Ok(Reply::default()),
        Event::PostToolUse(tool) => after_agent(&call, tool),
        Event::SubagentStart => enter(&call),
        _ => Ok(Reply::default()),
    };
    match reply {
        Ok(reply) => HookResponse::reply(&reply),
        // SessionStart has said it, and so does the tool that is called.
        Err(StoreError::LongMemory { .. }) => HookResponse::quiet(),
        Err(error) => HookResponse::fault(format!("working memory: {error}; {}", error.hint())),
    }
}

fn agent(call: &HookInvocation) -> Option<&str> {
    call.hook.agent_id.as_deref()
}

fn before_tool(call: &HookInvocation, intent: &Intent, kind: FrameAgent) -> Result<Reply, StoreError> {
    if intent.tool_name == plimsoll_protocol::agent::TOOL {
        return start(call, intent, kind);
    }
    let Some(what) = Use::of_tool(&intent.tool_name) else { return Ok(Reply::default()) };
    let memory = recover(call, false)?;
    let seen = memory::seen(&call.project, &call.session_id);
    let who = Caller { agent: agent(call), pushed: seen.pushed_call() };
    let nesting = environment::number(frames::NESTING_VARIABLE).map(|number| number as usize);
    if let Err(why) = frames::may(&memory, who, what, (kind, nesting)) {
        return Ok(Reply::default().deny(why.to_string()));
    }
    let is_root = what == Use::Pop && memory.depth() == 0;
    let reopens = memory.done.is_some() && what != Use::Read && !seen.done;
    if (is_root || reopens) && is_beside_a_run(call)? {
        return Ok(Reply::default().deny(FrameRefusal::RootOfRun.to_string()));
    }
    if what == Use::Push || is_root || reopens {
        let mut held = memory::hold(&call.project, TIMEOUT)?;
        if reopens {
            // Another session has said that it is done; this one is not. Reopening is never refused.
            let _ = held.change(BY, &Op::Reopen);
        }
        let pushed = Pushed { call: intent.tool_use_id.clone(), owner: owner(call) };
        held.note_seen(&call.session_id, |seen| {
            seen.done |= is_root;
            if what == Use::Push {
                seen.pushed = Some(pushed);
            }
        })?;
        held.close()?;
    }
    // A user who installed the memory wants it written.
    Ok(Reply::default().allow(None))
}

/// The Agent tool starts the frame that waits, with its brief in the place of the prompt.
fn start(call: &HookInvocation, intent: &Intent, kind: FrameAgent) -> Result<Reply, StoreError> {
    let wanted = AgentCall::read(intent.tool_input.as_deref());
    if !frames::is_frame(&wanted.kind) {
        return Ok(Reply::default());
    }
    let mut held = memory::hold(&call.project, TIMEOUT)?;
    let seen = memory::seen(&call.project, &call.session_id);
    let who = Caller { agent: agent(call), pushed: seen.pushed_call() };
    match frames::begin(held.memory(), who, &wanted, kind) {
        Begin::Other => return Ok(Reply::default()),
        Begin::Refuse(why) => return Ok(Reply::default().deny(why.to_string())),
        Begin::Start => {}
    }
    // Written before the client starts the subagent: a kill in between leaves a started frame without one, which is
    // abandoned when its call, its session or its client is over.
    let op = Op::StartFrame { call: intent.tool_use_id.clone(), owner: owner(call) };
    if let Err(refusal) = held.change(by(&intent.tool_use_id), &op) {
        return Ok(Reply::default().deny(refusal.to_string()));
    }
    let memory = held.close()?;
    // An Agent call answers at once unless its input says that it is waited for (2.1.329), and then has no report.
    let input = wanted.telling(kind.to_start(&wanted.kind), &render::brief(&memory));
    Ok(Reply::default().allow(Some(input)))
}

fn by(call: &str) -> By<'_> {
    By { who: BY, call: Some(call) }
}

/// Enters the waiting frame. The client does not name the call here, so the subagent is taken for the one that was started
/// last.
fn enter(call: &HookInvocation) -> Result<Reply, StoreError> {
    let Some(agent) = agent(call) else { return Ok(Reply::default()) };
    if !frames::is_frame(call.hook.agent_type.as_deref().unwrap_or_default()) {
        return Ok(Reply::default());
    }
    let mut held = memory::hold(&call.project, TIMEOUT)?;
    let started =
        held.memory().top().started.clone().filter(|started| started.owner.session == call.session_id);
    // One that has returned may be woken up by a message: it works in no frame any more. One whose hook was killed here
    // is noted as of this very start, and in no frame yet: it begins again.
    let seen = memory::seen(&call.project, &call.session_id);
    let noted = seen.of(agent).map(|sight| sight.rev);
    let is_inside = held.memory().depth_of(Some(agent)).is_some();
    let begins_again = !is_inside && noted.is_some() && noted == started.as_ref().map(|started| started.rev);
    let is_old = seen.knows(agent) && !begins_again;
    if is_old {
        return Ok(Reply::default());
    }
    let Some(started) = started else { return Ok(Reply::default()) };
    if held.change(BY, &Op::EnterFrame { agent: agent.to_owned() }).is_ok() {
        let sight = SeenRevision { rev: started.rev, ..SeenRevision::default() };
        held.note_seen(&call.session_id, |seen| seen.note(agent, sight))?;
    }
    held.close()?;
    Ok(Reply::default())
}

/// A subagent ends its turn: in its frame it is reminded once to return from it, and then it has returned.
pub(super) fn child_ends(call: &HookInvocation, stop: &Stop) -> Result<Option<String>, StoreError> {
    let Some(agent) = agent(call) else { return Ok(None) };
    let is_known = memory::seen(&call.project, &call.session_id).of(agent).is_some();
    // SubagentStop also comes for the client's own summarizer at a compaction (2.1.329), which is in no frame.
    if !is_known && memory::load(&call.project)?.depth_of(Some(agent)).is_none() {
        return Ok(None);
    }
    let mut held = memory::hold(&call.project, TIMEOUT)?;
    if let Some(depth) = held.memory().depth_of(Some(agent)) {
        let who = Caller { agent: Some(agent), pushed: None };
        let left = frames::left_behind(held.memory(), who, &call.session_id);
        abandon(&mut held, left);
        held.answered(&call.session_id);
        if !stop.stop_hook_active {
            // It continues without a batch of tools, and must not miss what others have changed meanwhile.
            let reminder = frames::reminder(held.memory());
            let room = ENTRY_UNITS.saturating_sub(reminder.encode_utf16().count() + 1);
            let news = tell(&held, call, depth, room)?;
            let words: Vec<String> = [Some(reminder), news].into_iter().flatten().collect();
            held.close()?;
            return Ok(Some(words.join("\n")));
        }
        let words = stop.last_assistant_message.clone().unwrap_or_default();
        // It is the current frame: it cannot be refused.
        let _ = held.change(BY, &Op::CloseFrame { how: Closing::Unpopped, words });
    }
    held.note_seen(&call.session_id, |seen| seen.forget(agent))?;
    held.close()?;
    Ok(None)
}

/// Replaces the subagent's answer to its parent by the frame's report.
fn after_agent(call: &HookInvocation, tool: &ToolCall) -> Result<Reply, StoreError> {
    let (Some(id), Some(response)) = (&tool.tool_use_id, &tool.tool_response) else {
        return Ok(Reply::default());
    };
    let mut memory = memory::load(&call.project)?;
    if frames::over(&memory, &[id]) > 0 {
        let mut held = memory::hold(&call.project, TIMEOUT)?;
        let left = frames::over(held.memory(), &[id]);
        abandon(&mut held, left);
        memory = held.close()?;
    }
    let reply = Reply::default().tell_model("PostToolUse", much(call)?.unwrap_or_default());
    let returned = memory.returned.filter(|returned| returned.call.as_ref() == Some(id));
    // In the tool's own shape: of any other the client keeps the original answer and adds an error (2.1.329).
    let output = returned.and_then(|returned| answer_telling(response, &frames::report(&returned)));
    Ok(match output {
        Some(output) => reply.replace_output(output),
        None => reply,
    })
}

/// If a frame has written more than one hook can report, the parent receives the first part here and the rest with the
/// batch.
fn much(call: &HookInvocation) -> Result<Option<String>, StoreError> {
    let held = memory::hold(&call.project, TIMEOUT)?;
    let Some(depth) = held.memory().depth_of(agent(call)) else { return Ok(None) };
    let seen = memory::seen(&call.project, &call.session_id).of(stream(call)).unwrap_or_default();
    let fits = render::delta(held.memory(), depth, seen.knows(), &[]).shown_to == held.memory().rev;
    if fits { Ok(None) } else { tell(&held, call, depth, ENTRY_UNITS) }
}

/// The session's turn is over: no agent works in its frames any more.
pub(super) fn turn_ends(call: &HookInvocation) -> Result<(), StoreError> {
    if call.hook.in_subagent() {
        return Ok(());
    }
    let mut held = memory::hold(&call.project, TIMEOUT)?;
    abandon_own(&mut held, &call.project, &call.session_id);
    held.answered(&call.session_id);
    held.close().map(drop)
}
