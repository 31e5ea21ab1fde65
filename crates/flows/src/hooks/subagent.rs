//! Frames and the subagents that work in them: which agent may write, how a pushed frame's subagent is
//! started with its brief, and what its parent receives.
//!
//! `push_frame` leaves a waiting frame. The Agent call that names it gets the frame's brief as its prompt,
//! and PostToolUse replaces the call's result by the frame's report. A frame whose call, session or client
//! has ended is abandoned.

use super::HookStart;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::install::hook_precedence::HookOrigin;
use crate::memory::{
    HOOK_AUTHOR, LOCK_TIMEOUT, abandon_frames_of_ended_sessions, abandon_top_frames,
    abandon_unreturned_frames, conversation_key, frame_owner, is_outside_active_run,
    render_and_record_changes, restore_memory_of_run,
};
use plimsoll_domain::memory::render::MAX_ENTRY_UTF16_UNITS;
use plimsoll_domain::memory::{AbnormalEnd, MemoryOp, render};
use plimsoll_policy::frames::{self, Caller, FrameAgent, FrameRefusal, FrameStart, MemoryAccess};
use plimsoll_protocol::HookReply;
use plimsoll_protocol::agent::{AgentCall, replace_response_text};
use plimsoll_protocol::event::{HookEvent, Stop};
use plimsoll_protocol::tool::{PendingToolCall, ToolCall};
use plimsoll_store::memory::{self, ChangeAuthor, FramePush, ShownRevision};
use plimsoll_store::{StoreError, environment};

/// Runs PreToolUse and PostToolUse of our tools and of Agent, and SubagentStart. The installation that added
/// this hook also provides the frames' agent.
pub fn run_frame_hook(start: &HookStart<'_>) -> HookResponse {
    let frame_agent = match HookOrigin::from_arguments(start.arguments) {
        HookOrigin::SettingsOrRun | HookOrigin::GuardedSettings => FrameAgent::Own,
        HookOrigin::Plugin => FrameAgent::Plugin,
    };
    let invocation = match HookInvocation::from_input(start.input) {
        Ok(invocation) => invocation,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    if invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    restore_memory_of_run(&invocation);
    let reply = match invocation.event() {
        HookEvent::PreToolUse(pending_call) => {
            check_memory_tool_or_start_frame(&invocation, pending_call, frame_agent)
        }
        // Before the first write the memory is empty, and no conversation is in a frame.
        _ if !memory::exists(&invocation.project) => Ok(HookReply::default()),
        HookEvent::PostToolUse(tool) => replace_result_with_report(&invocation, tool),
        HookEvent::SubagentStart => enter_waiting_frame(&invocation),
        _ => Ok(HookReply::default()),
    };
    match reply {
        Ok(reply) => HookResponse::from_reply(&reply),
        // SessionStart has reported it, and the called tool reports it, too.
        Err(StoreError::MemoryLogTooLong { .. }) => HookResponse::empty(),
        Err(error) => HookResponse::from_fault(format!("working memory: {error}; {}", error.hint())),
    }
}

fn agent_id(invocation: &HookInvocation) -> Option<&str> {
    invocation.payload.agent_id.as_deref()
}

fn check_memory_tool_or_start_frame(
    invocation: &HookInvocation,
    pending_call: &PendingToolCall,
    frame_agent: FrameAgent,
) -> Result<HookReply, StoreError> {
    if pending_call.tool_name == plimsoll_protocol::agent::TOOL_NAME {
        return start_waiting_frame(invocation, pending_call, frame_agent);
    }
    let Some(access) = MemoryAccess::from_tool_name(&pending_call.tool_name) else {
        return Ok(HookReply::default());
    };
    let memory = abandon_frames_of_ended_sessions(invocation, false)?;
    let shown_record = memory::load_shown_record(&invocation.project, &invocation.session_id);
    let caller = Caller { agent: agent_id(invocation), last_push_call: shown_record.last_push_call_id() };
    let nesting_limit =
        environment::numeric_variable(frames::NESTING_LIMIT_VARIABLE).map(|number| number as usize);
    if let Err(refusal) = frames::check_access(&memory, caller, access, (frame_agent, nesting_limit)) {
        return Ok(HookReply::default().deny_tool_call(refusal.to_string()));
    }
    let pops_root = access == MemoryAccess::Pop && memory.depth() == 0;
    let reopens_memory =
        memory.root_result.is_some() && access != MemoryAccess::Read && !shown_record.is_root_popped;
    if (pops_root || reopens_memory) && is_outside_active_run(invocation)? {
        return Ok(HookReply::default().deny_tool_call(FrameRefusal::RootOfRun.to_string()));
    }
    if access == MemoryAccess::Push || pops_root || reopens_memory {
        let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
        if reopens_memory {
            // Another session marked the root frame as done, but this one goes on. Reopening is never
            // refused.
            let _ = locked_memory.apply(HOOK_AUTHOR, &MemoryOp::Reopen);
        }
        let push = FramePush { call_id: pending_call.tool_use_id.clone(), owner: frame_owner(invocation) };
        locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
            shown_record.is_root_popped |= pops_root;
            if access == MemoryAccess::Push {
                shown_record.last_push = Some(push);
            }
        })?;
        locked_memory.write_and_release()?;
    }
    // A user who installed the memory wants it to be written.
    Ok(HookReply::default().allow_tool_call(None))
}

/// Lets the Agent tool start the waiting frame, with the frame's brief as its prompt.
fn start_waiting_frame(
    invocation: &HookInvocation,
    pending_call: &PendingToolCall,
    frame_agent: FrameAgent,
) -> Result<HookReply, StoreError> {
    let agent_call = AgentCall::from_input(pending_call.tool_input.as_deref());
    if !frames::is_frame_agent(&agent_call.subagent_type) {
        return Ok(HookReply::default());
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let shown_record = memory::load_shown_record(&invocation.project, &invocation.session_id);
    let caller = Caller { agent: agent_id(invocation), last_push_call: shown_record.last_push_call_id() };
    match frames::check_frame_start(locked_memory.memory(), caller, &agent_call, frame_agent) {
        FrameStart::NotAFrame => return Ok(HookReply::default()),
        FrameStart::Refuse(refusal) => return Ok(HookReply::default().deny_tool_call(refusal.to_string())),
        FrameStart::Start => {}
    }
    // Written before the client starts the subagent: a kill in between leaves a started frame without one,
    // which is abandoned when its call, session or client has ended.
    let op = MemoryOp::StartFrame {
        started_by_call: pending_call.tool_use_id.clone(),
        owner: frame_owner(invocation),
    };
    if let Err(refusal) = locked_memory.apply(author_of_call(&pending_call.tool_use_id), &op) {
        return Ok(HookReply::default().deny_tool_call(refusal.to_string()));
    }
    let memory = locked_memory.write_and_release()?;
    // An Agent call returns at once, without a report, unless its input says that it is waited for (2.1.329).
    let input = agent_call.foreground_input_with_prompt(
        frame_agent.subagent_type_to_start(&agent_call.subagent_type),
        &render::render_frame_brief(&memory),
    );
    Ok(HookReply::default().allow_tool_call(Some(input)))
}

fn author_of_call(call_id: &str) -> ChangeAuthor<'_> {
    ChangeAuthor { name: HOOK_AUTHOR, call_id: Some(call_id) }
}

/// Enters the waiting frame. The client does not name the call here, so the subagent is assumed to be the one
/// started last.
fn enter_waiting_frame(invocation: &HookInvocation) -> Result<HookReply, StoreError> {
    let Some(agent_id) = agent_id(invocation) else { return Ok(HookReply::default()) };
    if !frames::is_frame_agent(invocation.payload.agent_type.as_deref().unwrap_or_default()) {
        return Ok(HookReply::default());
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let launch = locked_memory
        .memory()
        .current_frame()
        .subagent_launch
        .clone()
        .filter(|launch| launch.owner.session_id == invocation.session_id);
    // A message may wake a subagent that has returned; it then works in no frame. If this hook was killed
    // halfway, the subagent is recorded but not yet in a frame, so it enters the frame now.
    let shown_record = memory::load_shown_record(&invocation.project, &invocation.session_id);
    let recorded_rev = shown_record.shown_to(agent_id).map(|revision| revision.rev);
    let is_in_frame = locked_memory.memory().frame_depth_of_agent(Some(agent_id)).is_some();
    let restarts = !is_in_frame
        && recorded_rev.is_some()
        && recorded_rev == launch.as_ref().map(|launch| launch.brief_revision);
    let has_worked_before = shown_record.has_worked_in_frame(agent_id) && !restarts;
    if has_worked_before {
        return Ok(HookReply::default());
    }
    let Some(launch) = launch else { return Ok(HookReply::default()) };
    if locked_memory.apply(HOOK_AUTHOR, &MemoryOp::EnterFrame { agent: agent_id.to_owned() }).is_ok() {
        let revision = ShownRevision { rev: launch.brief_revision, ..ShownRevision::default() };
        locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
            shown_record.record_shown(agent_id, revision);
        })?;
    }
    locked_memory.write_and_release()?;
    Ok(HookReply::default())
}

/// Handles the end of a subagent's turn. In its frame it is reminded once to pop; the second time its frame
/// is closed.
pub(super) fn handle_subagent_stop(
    invocation: &HookInvocation,
    stop: &Stop,
) -> Result<Option<String>, StoreError> {
    let Some(agent_id) = agent_id(invocation) else { return Ok(None) };
    let was_shown_memory =
        memory::load_shown_record(&invocation.project, &invocation.session_id).shown_to(agent_id).is_some();
    // SubagentStop also fires for the client's own summarizer at a compaction (2.1.329), which is in no
    // frame.
    if !was_shown_memory
        && memory::load_memory(&invocation.project)?.frame_depth_of_agent(Some(agent_id)).is_none()
    {
        return Ok(None);
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    if let Some(depth) = locked_memory.memory().frame_depth_of_agent(Some(agent_id)) {
        let caller = Caller { agent: Some(agent_id), last_push_call: None };
        let unreturned_count =
            frames::count_unreturned_frames(locked_memory.memory(), caller, &invocation.session_id);
        abandon_top_frames(&mut locked_memory, unreturned_count);
        locked_memory.count_answer(&invocation.session_id);
        if !stop.stop_hook_active {
            // The subagent continues without a batch of tools, so other changes can be reported only here.
            let reminder = frames::render_pop_reminder(locked_memory.memory());
            let max_units = MAX_ENTRY_UTF16_UNITS.saturating_sub(reminder.encode_utf16().count() + 1);
            let changes_text = render_and_record_changes(&locked_memory, invocation, depth, max_units)?;
            let texts: Vec<String> = [Some(reminder), changes_text].into_iter().flatten().collect();
            locked_memory.write_and_release()?;
            return Ok(Some(texts.join("\n")));
        }
        let last_message = stop.last_assistant_message.clone().unwrap_or_default();
        // It is the current frame, so closing it cannot be refused.
        let _ = locked_memory.apply(
            HOOK_AUTHOR,
            &MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::TurnEndedWithoutPop, last_message },
        );
    }
    locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
        shown_record.record_subagent_end(agent_id);
    })?;
    locked_memory.write_and_release()?;
    Ok(None)
}

/// Replaces the Agent call's result by the frame's report.
fn replace_result_with_report(
    invocation: &HookInvocation,
    tool_call: &ToolCall,
) -> Result<HookReply, StoreError> {
    let (Some(call_id), Some(response)) = (&tool_call.tool_use_id, &tool_call.tool_response) else {
        return Ok(HookReply::default());
    };
    let mut memory = memory::load_memory(&invocation.project)?;
    if frames::count_frames_ended_by_calls(&memory, &[call_id]) > 0 {
        let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
        let ended_count = frames::count_frames_ended_by_calls(locked_memory.memory(), &[call_id]);
        abandon_top_frames(&mut locked_memory, ended_count);
        memory = locked_memory.write_and_release()?;
    }
    let reply = HookReply::default().with_model_context(
        "PostToolUse",
        render_changes_if_too_long_for_batch(invocation)?.unwrap_or_default(),
    );
    let returned_frame = memory.last_returned_frame.filter(|frame| frame.call_id.as_ref() == Some(call_id));
    // In the tool's own shape: with any other shape, the client keeps the original result and adds an error
    // (2.1.329).
    let output = returned_frame
        .and_then(|frame| replace_response_text(response, &frames::render_return_report(&frame)));
    Ok(match output {
        Some(output) => reply.replace_tool_output(output),
        None => reply,
    })
}

/// Returns the first part of the changes if a frame has written more than one hook can report. The rest is
/// shown with the batch.
fn render_changes_if_too_long_for_batch(invocation: &HookInvocation) -> Result<Option<String>, StoreError> {
    let locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let Some(depth) = locked_memory.memory().frame_depth_of_agent(agent_id(invocation)) else {
        return Ok(None);
    };
    let shown_revision = memory::load_shown_record(&invocation.project, &invocation.session_id)
        .shown_to(conversation_key(invocation))
        .unwrap_or_default();
    let fits_in_batch =
        render::render_changes_since(locked_memory.memory(), depth, shown_revision.shown_up_to(), &[])
            .shown_up_to_rev
            == locked_memory.memory().revision;
    if fits_in_batch {
        Ok(None)
    } else {
        render_and_record_changes(&locked_memory, invocation, depth, MAX_ENTRY_UTF16_UNITS)
    }
}

/// Abandons the session's frames at the end of its turn, because no agent works in them any more.
pub(super) fn abandon_frames_at_turn_end(invocation: &HookInvocation) -> Result<(), StoreError> {
    if invocation.payload.is_in_subagent() {
        return Ok(());
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    abandon_unreturned_frames(&mut locked_memory, &invocation.project, &invocation.session_id);
    locked_memory.count_answer(&invocation.session_id);
    locked_memory.write_and_release().map(drop)
}
