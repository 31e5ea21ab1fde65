//! Frames and the subagents that work in them: which agent may write, how a pushed frame's subagent is
//! started with its brief, and what its parent receives.
//!
//! `push_frame` creates a frame that waits for its subagent. The Agent call that starts this subagent gets the
//! frame's brief as its prompt, and PostToolUse replaces the call's result with the frame's report. A frame
//! whose call, session or client has ended is abandoned.

use super::HookStart;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::install::hook_precedence::HookOrigin;
use crate::memory::{
    HOOK_AUTHOR, LOCK_TIMEOUT, abandon_all_frames_if_their_session_ended, abandon_top_frames,
    abandon_unreturned_frames, conversation_key, frame_owner, is_outside_active_run,
    render_and_record_changes_by_others, restore_run_memory_from_copy,
};
use plimsoll_domain::memory::render::MAX_ENTRY_UTF16_UNITS;
use plimsoll_domain::memory::{AbnormalEnd, MemoryOp, render};
use plimsoll_policy::frames::{self, Caller, FrameAgent, FrameRefusal, FrameStartDecision, MemoryAccess};
use plimsoll_protocol::HookReply;
use plimsoll_protocol::agent::{AgentCall, replace_response_content_with_text};
use plimsoll_protocol::event::{HookEvent, Stop};
use plimsoll_protocol::tool::{PendingToolCall, ToolCall};
use plimsoll_store::memory::{self, ChangeAuthor, FramePush, ShownRevision};
use plimsoll_store::{StoreError, environment};

/// Handles PreToolUse and PostToolUse of our memory tools and of Agent, and SubagentStart. The installation
/// that added this hook (settings or plugin) also provides the frames' agent.
pub fn run_frame_hook(start: &HookStart<'_>) -> HookResponse {
    let frame_agent = match HookOrigin::from_plugin_flag_or_team_guarded_flag(start.arguments) {
        HookOrigin::PersonalSettingsOrRun | HookOrigin::TeamSettings => FrameAgent::Standalone,
        HookOrigin::Plugin => FrameAgent::Plugin,
    };
    let invocation = match HookInvocation::parse_input_and_load_project(start.input) {
        Ok(invocation) => invocation,
        Err(error) => return HookResponse::for_input_error(&error),
    };
    if invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    restore_run_memory_from_copy(&invocation);
    let reply = match invocation.event() {
        HookEvent::PreToolUse(pending_call) => {
            allow_or_deny_memory_tool_or_start_frame(&invocation, pending_call, frame_agent)
        }
        // Before the first write, the memory is empty and no conversation works in a frame.
        _ if !memory::memory_exists(&invocation.project) => Ok(HookReply::default()),
        HookEvent::PostToolUse(tool_call) => replace_agent_result_with_frame_report(&invocation, tool_call),
        HookEvent::SubagentStart => assign_subagent_to_started_frame(&invocation),
        _ => Ok(HookReply::default()),
    };
    match reply {
        Ok(reply) => HookResponse::from_reply(&reply),
        // SessionStart has already reported this error, and the called tool reports it as well.
        Err(StoreError::MemoryLogTooLong { .. }) => HookResponse::empty(),
        Err(error) => HookResponse::from_error(format!("working memory: {error}; {}", error.hint())),
    }
}

fn agent_id(invocation: &HookInvocation) -> Option<&str> {
    invocation.payload.agent_id.as_deref()
}

fn allow_or_deny_memory_tool_or_start_frame(
    invocation: &HookInvocation,
    pending_call: &PendingToolCall,
    frame_agent: FrameAgent,
) -> Result<HookReply, StoreError> {
    if pending_call.tool_name == plimsoll_protocol::agent::TOOL_NAME {
        return start_waiting_frame_with_brief_as_prompt(invocation, pending_call, frame_agent);
    }
    let Some(access) = MemoryAccess::from_plimsoll_tool_name(&pending_call.tool_name) else {
        return Ok(HookReply::default());
    };
    let memory = abandon_all_frames_if_their_session_ended(invocation, false)?;
    let shown_memory = memory::load_shown_memory_state(&invocation.project, &invocation.session_id);
    let caller = Caller { agent: agent_id(invocation), last_push_call: shown_memory.last_push_call_id() };
    let nesting_limit =
        environment::numeric_variable(frames::NESTING_LIMIT_VARIABLE).map(|number| number as usize);
    if let Err(refusal) = frames::check_memory_access(&memory, caller, access, (frame_agent, nesting_limit)) {
        return Ok(HookReply::default().deny_tool_call(refusal.to_string()));
    }
    let pops_root = access == MemoryAccess::Pop && memory.depth() == 0;
    let reopens_memory =
        memory.root_result.is_some() && access != MemoryAccess::Read && !shown_memory.is_root_popped;
    if (pops_root || reopens_memory) && is_outside_active_run(invocation)? {
        return Ok(HookReply::default().deny_tool_call(FrameRefusal::RootOfRun.to_string()));
    }
    if access == MemoryAccess::Push || pops_root || reopens_memory {
        let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
        if reopens_memory {
            // Another session marked the root frame as done, but this session continues. Reopening is
            // never refused.
            let _ = locked_memory.apply_and_queue_record(HOOK_AUTHOR, &MemoryOp::Reopen);
        }
        let frame_push =
            FramePush { call_id: pending_call.tool_use_id.clone(), owner: frame_owner(invocation) };
        locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
            shown_memory.is_root_popped |= pops_root;
            if access == MemoryAccess::Push {
                shown_memory.last_push = Some(frame_push);
            }
        })?;
        locked_memory.save_changes_and_unlock()?;
    }
    // A user who installed the memory wants the model to write to it, so no permission prompt is shown.
    Ok(HookReply::default().allow_tool_call(None))
}

/// Allows an Agent call that starts the subagent of the waiting frame, with the frame's brief as its prompt.
/// Denies the call if the frame may not be started. Other Agent calls are not changed.
fn start_waiting_frame_with_brief_as_prompt(
    invocation: &HookInvocation,
    pending_call: &PendingToolCall,
    frame_agent: FrameAgent,
) -> Result<HookReply, StoreError> {
    let agent_call = AgentCall::from_input(pending_call.tool_input.as_deref());
    if !frames::is_frame_agent(&agent_call.subagent_type) {
        return Ok(HookReply::default());
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let shown_memory = memory::load_shown_memory_state(&invocation.project, &invocation.session_id);
    let caller = Caller { agent: agent_id(invocation), last_push_call: shown_memory.last_push_call_id() };
    match frames::decide_frame_start(locked_memory.memory(), caller, &agent_call, frame_agent) {
        FrameStartDecision::NotAFrame => return Ok(HookReply::default()),
        FrameStartDecision::Refuse(refusal) => {
            return Ok(HookReply::default().deny_tool_call(refusal.to_string()));
        }
        FrameStartDecision::Start => {}
    }
    // Written before the client starts the subagent. If this hook is killed in between, a started frame
    // without a subagent remains; it is abandoned when its call, session or client has ended.
    let op = MemoryOp::StartFrame {
        start_call_id: pending_call.tool_use_id.clone(),
        owner: frame_owner(invocation),
    };
    if let Err(refusal) =
        locked_memory.apply_and_queue_record(hook_author_for_call(&pending_call.tool_use_id), &op)
    {
        return Ok(HookReply::default().deny_tool_call(refusal.to_string()));
    }
    let memory = locked_memory.save_changes_and_unlock()?;
    // The client runs an Agent call in the background, without a report, unless its input requests otherwise
    // (2.1.329).
    let input = agent_call.foreground_input_without_isolation(
        frame_agent.subagent_type_to_start(&agent_call.subagent_type),
        &render::render_frame_brief(&memory),
    );
    Ok(HookReply::default().allow_tool_call(Some(input)))
}

fn hook_author_for_call(call_id: &str) -> ChangeAuthor<'_> {
    ChangeAuthor { name: HOOK_AUTHOR, call_id: Some(call_id) }
}

/// Records that a new subagent works in the frame that this session started. SubagentStart does not name the
/// Agent call, so the subagent is assumed to be the one started last. The reply is always empty.
fn assign_subagent_to_started_frame(invocation: &HookInvocation) -> Result<HookReply, StoreError> {
    let Some(agent_id) = agent_id(invocation) else { return Ok(HookReply::default()) };
    if !frames::is_frame_agent(invocation.payload.agent_type.as_deref().unwrap_or_default()) {
        return Ok(HookReply::default());
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let subagent_launch = locked_memory
        .memory()
        .current_frame()
        .subagent_launch
        .clone()
        .filter(|launch| launch.owner.session_id == invocation.session_id);
    // A message may wake a subagent that has already returned; it then works in no frame. If an earlier run
    // of this hook was killed halfway, the subagent is recorded but in no frame, so it enters the frame now.
    let shown_memory = memory::load_shown_memory_state(&invocation.project, &invocation.session_id);
    let recorded_rev = shown_memory.revision_shown_to(agent_id).map(|revision| revision.rev);
    let is_in_frame = locked_memory.memory().frame_depth_of_agent(Some(agent_id)).is_some();
    let is_restarting = !is_in_frame
        && recorded_rev.is_some()
        && recorded_rev == subagent_launch.as_ref().map(|launch| launch.brief_revision);
    let has_worked_before = shown_memory.has_worked_in_frame(agent_id) && !is_restarting;
    if has_worked_before {
        return Ok(HookReply::default());
    }
    let Some(subagent_launch) = subagent_launch else { return Ok(HookReply::default()) };
    if locked_memory
        .apply_and_queue_record(HOOK_AUTHOR, &MemoryOp::EnterFrame { agent: agent_id.to_owned() })
        .is_ok()
    {
        let revision = ShownRevision { rev: subagent_launch.brief_revision, ..ShownRevision::default() };
        locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
            shown_memory.set_shown_revision(agent_id, revision);
        })?;
    }
    locked_memory.save_changes_and_unlock()?;
    Ok(HookReply::default())
}

/// Handles the end of a subagent's turn. While its frame is open, the first stop returns a reminder to pop
/// (with the changes by others), and the second stop closes the frame.
pub(super) fn remind_to_pop_once_then_close_frame(
    invocation: &HookInvocation,
    stop: &Stop,
) -> Result<Option<String>, StoreError> {
    let Some(agent_id) = agent_id(invocation) else { return Ok(None) };
    let was_shown_memory = memory::load_shown_memory_state(&invocation.project, &invocation.session_id)
        .revision_shown_to(agent_id)
        .is_some();
    // SubagentStop also fires for the client's own summarizer at a compaction (2.1.329), which works in no
    // frame.
    if !was_shown_memory
        && memory::load_memory(&invocation.project)?.frame_depth_of_agent(Some(agent_id)).is_none()
    {
        return Ok(None);
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    if let Some(depth) = locked_memory.memory().frame_depth_of_agent(Some(agent_id)) {
        let caller = Caller { agent: Some(agent_id), last_push_call: None };
        let unreturned_count = frames::count_frames_left_open_by_conversation(
            locked_memory.memory(),
            caller,
            &invocation.session_id,
        );
        abandon_top_frames(&mut locked_memory, unreturned_count);
        locked_memory.count_response_on_release(&invocation.session_id);
        if !stop.stop_hook_active {
            // The subagent continues without a tool batch, so changes by others can be reported only here.
            let reminder = frames::render_reminder_to_pop_frame(locked_memory.memory());
            let max_units = MAX_ENTRY_UTF16_UNITS.saturating_sub(reminder.encode_utf16().count() + 1);
            let changes_text =
                render_and_record_changes_by_others(&locked_memory, invocation, depth, max_units)?;
            let message_parts: Vec<String> = [Some(reminder), changes_text].into_iter().flatten().collect();
            locked_memory.save_changes_and_unlock()?;
            return Ok(Some(message_parts.join("\n")));
        }
        let last_message = stop.last_assistant_message.clone().unwrap_or_default();
        // This is the current frame, so closing it cannot be refused.
        let _ = locked_memory.apply_and_queue_record(
            HOOK_AUTHOR,
            &MemoryOp::CloseFrame { abnormal_end: AbnormalEnd::TurnEndedWithoutPop, last_message },
        );
    }
    locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
        shown_memory.move_subagent_to_ended_list(agent_id);
    })?;
    locked_memory.save_changes_and_unlock()?;
    Ok(None)
}

/// Replaces the Agent call's result with the frame's report, and adds the changes that are too long for the
/// batch. First abandons the frames that the call has ended without returning.
fn replace_agent_result_with_frame_report(
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
        memory = locked_memory.save_changes_and_unlock()?;
    }
    let reply = HookReply::default().with_model_context(
        "PostToolUse",
        render_and_record_changes_too_long_for_batch(invocation)?.unwrap_or_default(),
    );
    let returned_frame = memory.last_returned_frame.filter(|frame| frame.call_id.as_ref() == Some(call_id));
    // The output keeps the JSON shape of the tool's response. For any other shape, the client keeps the
    // original result and adds an error (2.1.329).
    let tool_output = returned_frame.and_then(|frame| {
        replace_response_content_with_text(response, &frames::render_returned_frame_report(&frame))
    });
    Ok(match tool_output {
        Some(output) => reply.replace_tool_output(output),
        None => reply,
    })
}

/// Renders the first part of the changes, and records it as shown, if a frame has written more than one hook
/// can report. PostToolBatch shows the remaining changes. Returns `None` if all of them fit there.
fn render_and_record_changes_too_long_for_batch(
    invocation: &HookInvocation,
) -> Result<Option<String>, StoreError> {
    let locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let Some(depth) = locked_memory.memory().frame_depth_of_agent(agent_id(invocation)) else {
        return Ok(None);
    };
    let shown_revision = memory::load_shown_memory_state(&invocation.project, &invocation.session_id)
        .revision_shown_to(conversation_key(invocation))
        .unwrap_or_default();
    let fits_in_batch =
        render::render_changes_since(locked_memory.memory(), depth, shown_revision.fully_shown_rev(), &[])
            .shown_up_to_rev
            == locked_memory.memory().revision;
    if fits_in_batch {
        Ok(None)
    } else {
        render_and_record_changes_by_others(&locked_memory, invocation, depth, MAX_ENTRY_UTF16_UNITS)
    }
}

/// Abandons the session's unreturned frames at the end of its turn, because no agent works in them any more,
/// and counts the model response. Does nothing in a subagent.
pub(super) fn abandon_unreturned_frames_after_main_turn(
    invocation: &HookInvocation,
) -> Result<(), StoreError> {
    if invocation.payload.is_in_subagent() {
        return Ok(());
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    abandon_unreturned_frames(&mut locked_memory, &invocation.project, &invocation.session_id);
    locked_memory.count_response_on_release(&invocation.session_id);
    locked_memory.save_changes_and_unlock().map(drop)
}
