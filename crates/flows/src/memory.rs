//! Shows the working memory to conversations: all of it at session start and after a compaction, later only
//! what others have changed. A model's own changes are already in its conversation.

use crate::hook_invocation::HookInvocation;
use crate::turns::catch_up;
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_domain::memory::{FrameOwner, Memory, MemoryOp, render};
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{RunState, SessionId};
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::frames::{self, Caller};
use plimsoll_protocol::event::SessionSource;
use plimsoll_store::memory::{self, LockedMemory, ShownMemoryState, ShownRevision};
use plimsoll_store::{Project, StoreError, environment, ledger, lock, sessions, state_file};
use std::path::Path;
use std::time::Duration;

/// How long to wait for the memory's lock, which is normally held for a few milliseconds.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The author of changes that the hooks make themselves.
pub(crate) const HOOK_AUTHOR: &str = "hook";
/// Maximum length of the root frame's objective, which is the start of the task's text. All frames have this
/// limit.
const MAX_OBJECTIVE_CHARS: usize = 4_000;
/// All registers are shown again after this many model calls without an update.
const REGISTER_REFRESH_CALLS: u32 = 25;

/// The number of a SessionStart hook entry. Several entries together show the memory, because the client
/// truncates text that is too long for one hook. The first entry also shows the briefing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartEntryNumber(usize);

impl StartEntryNumber {
    /// The entry that shows the registers.
    pub const FIRST: StartEntryNumber = StartEntryNumber(1);

    /// Parses the argument of a hook entry after the first: `part-2` to `part-5`.
    pub fn from_argument(argument: &str) -> Option<StartEntryNumber> {
        let number = argument.strip_prefix("part-")?.parse::<usize>().ok()?;
        (2..=render::MAX_OUTPUTS).contains(&number).then_some(StartEntryNumber(number))
    }
}

/// Restores the memory from its copy if this session belongs to a run: an agent may have deleted it during the
/// session.
pub(crate) fn restore_run_memory_from_copy(invocation: &HookInvocation) {
    if ledger::run_id_from_environment().is_some() {
        // An error is ignored: the memory is not shown now, and the next iteration tries again.
        let _ = memory::restore_missing_memory_from_copy(&invocation.project);
    }
}

/// Returns the key of the conversation in the shown record: the subagent's id, or that of the main
/// conversation.
pub(crate) fn conversation_key(invocation: &HookInvocation) -> &str {
    invocation.payload.agent_id.as_deref().unwrap_or(MAIN_STREAM)
}

/// Renders this entry's part of the memory for a conversation that begins, resumes or has been compacted, and
/// records it as shown. Returns `None` if there is nothing to show or a resumed conversation is up to date.
pub(crate) fn render_and_record_memory_part_at_start(
    invocation: &HookInvocation,
    session_source: SessionSource,
    entry_number: StartEntryNumber,
    max_utf16_units: usize,
) -> Result<Option<String>, StoreError> {
    let agent_id = invocation.payload.agent_id.as_deref();
    if entry_number == StartEntryNumber::FIRST
        && agent_id.is_none()
        && session_source != SessionSource::Compact
    {
        memory::remove_expired_shown_records_once_a_day(&invocation.project);
        abandon_all_frames_if_their_session_ended(invocation, true)?;
    }
    let memory = memory::load_memory(&invocation.project)?;
    let Some(depth) = memory.frame_depth_of_agent(agent_id) else { return Ok(None) };
    let shown_revision = memory::load_shown_memory_state(&invocation.project, &invocation.session_id)
        .revision_shown_to(conversation_key(invocation));
    let is_up_to_date = |revision: ShownRevision| {
        revision.fully_shown_rev_after_resume() >= memory.revision && revision.rev <= memory.revision
    };
    // A resumed conversation still contains everything that it was shown.
    if memory.is_empty()
        || (session_source == SessionSource::Resume && shown_revision.is_some_and(is_up_to_date))
    {
        return Ok(None);
    }
    // The client limits the text of each hook separately (2.1.329), so the memory is split across several
    // entries.
    let initial_view = render::render_initial_memory_view(&memory, depth, max_utf16_units);
    let text = initial_view.outputs.into_iter().nth(entry_number.0 - 1);
    if text.is_some() {
        record_revision_shown_at_start(
            invocation,
            entry_number,
            (memory.revision, initial_view.shown_up_to_rev),
        )?;
    }
    Ok(text)
}

/// Records the revision that an entry of SessionStart has shown. All entries run concurrently, in any order, so
/// each needs the revision from before the start, and the oldest revision that any entry has shown counts.
fn record_revision_shown_at_start(
    invocation: &HookInvocation,
    entry_number: StartEntryNumber,
    (memory_revision, shown_up_to_rev): (u64, u64),
) -> Result<(), StoreError> {
    let locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
        let previous_revision =
            shown_memory.revision_shown_to(conversation_key(invocation)).unwrap_or_default();
        let oldest_start_rev =
            Some(previous_revision.oldest_start_rev.unwrap_or(shown_up_to_rev).min(shown_up_to_rev));
        let mut updated_revision = ShownRevision {
            rev_before_start: Some(previous_revision.fully_shown_rev_after_resume()),
            oldest_start_rev,
            ..previous_revision
        };
        if entry_number == StartEntryNumber::FIRST {
            (updated_revision.rev, updated_revision.calls_since_registers_shown) = (memory_revision, 0);
        }
        // The entries run concurrently, so only the first batch can determine what they have shown together.
        shown_memory.shown_position = None;
        shown_memory.set_shown_revision(conversation_key(invocation), updated_revision);
    })
}

/// Returns this session and its client as the owner of a frame.
pub(crate) fn frame_owner(invocation: &HookInvocation) -> FrameOwner {
    // The client passes its pid to hooks; without a pid, the owner is identified by the session alone.
    let pid = environment::numeric_variable("CLAUDE_PID").map(|pid| pid as u32);
    let process_start_time = pid.and_then(process::process_identity).map(|identity| identity.start_time);
    FrameOwner { session_id: invocation.session_id.clone(), pid, process_started_at: process_start_time }
}

/// Abandons all frames if their session has ended, or if it is this session and it starts again, because no
/// agent will return from them. Returns the resulting memory.
pub(crate) fn abandon_all_frames_if_their_session_ended(
    invocation: &HookInvocation,
    is_session_start: bool,
) -> Result<Memory, StoreError> {
    let memory = memory::load_memory(&invocation.project)?;
    let Some(first_frame) = memory.frames.get(1) else { return Ok(memory) };
    let owner = match &first_frame.subagent_launch {
        Some(launch) => Some(launch.owner.clone()),
        None => first_frame
            .push_call_id
            .as_ref()
            .and_then(|call_id| memory::find_owner_of_last_push_by_call_id(&invocation.project, call_id)),
    };
    let is_abandoned = owner.is_none_or(|owner| {
        let is_current_session = owner.session_id == invocation.session_id;
        if is_current_session {
            is_session_start
        } else {
            has_other_session_or_client_ended(invocation, &owner)
        }
    });
    // A frame without a launch and without a call id has no known owner; only the user can end it.
    if !is_abandoned || (first_frame.subagent_launch.is_none() && first_frame.push_call_id.is_none()) {
        return Ok(memory);
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let frame_count = locked_memory.memory().depth();
    abandon_top_frames(&mut locked_memory, frame_count);
    locked_memory.save_changes_and_unlock()
}

/// Returns true if another session or its client process has ended. A session with the same client as this one
/// has ended, because a client runs one session at a time.
fn has_other_session_or_client_ended(invocation: &HookInvocation, owner: &FrameOwner) -> bool {
    let record = sessions::load_session_record(&invocation.project, &owner.session_id);
    let has_session_ended =
        record.end.ended_at.is_some() || (owner.pid.is_some() && owner.pid == frame_owner(invocation).pid);
    has_session_ended
        || match (owner.pid, owner.process_started_at) {
            (Some(pid), Some(start_time)) => {
                process::liveness_of_process(ProcessIdentity { pid, start_time }).has_ended()
            }
            (Some(pid), None) => process::liveness_of_pid(pid).has_ended(),
            (None, _) => {
                record.start.transcript_path.is_none_or(|path| catch_up::is_transcript_idle(Path::new(&path)))
            }
        }
}

/// Starts the working memory of a new run, with the run's objective as the root frame. Abandons open frames.
/// Does nothing if the run does not use the working memory.
pub(crate) fn begin_run_memory_if_enabled(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.options.uses_working_memory {
        return Ok(());
    }
    // The copy of an earlier run's memory must not overwrite this one. If a kill prevents the new copy,
    // `abandon_frames_and_reopen_root_for_iteration` creates it.
    memory::remove_copy(project)?;
    let mut locked_memory = memory::lock_memory(project, LOCK_TIMEOUT)?;
    // An agent that still works in a frame will be notified that its frame has ended.
    let frame_count = locked_memory.memory().depth();
    abandon_top_frames(&mut locked_memory, frame_count);
    // BeginRun is never refused.
    let _ =
        locked_memory.apply_and_queue_record("run", &MemoryOp::BeginRun { objective: root_objective(run) });
    locked_memory.save_changes_and_unlock()?;
    memory::restore_damaged_memory_and_create_copy(project)
}

fn root_objective(run: &RunState) -> String {
    truncate_end(run.options.objective.trim(), MAX_OBJECTIVE_CHARS)
}

/// Returns the active run of this project, or `None` if there is none or it does not use the working memory.
pub fn active_run_with_working_memory(project: &Project) -> Result<Option<RunState>, StoreError> {
    let run = state_file::load_state(project, None)?
        .filter(|run| run.options.uses_working_memory && !run.lifecycle.has_ended());
    // A shell loop holds no lock, and its client's pid is unknown.
    let may_run_in_shell_loop = |run: &RunState| {
        run.iteration_record.phase == IterationPhase::Spawned && run.iteration_record.pid.is_none()
    };
    Ok(run.filter(|run| may_run_in_shell_loop(run) || lock::is_run_locked(project)))
}

/// Returns true if a run with the working memory is active and this session does not belong to it. The root
/// frame then belongs to the run, and an ordinary session must neither end nor reopen it.
pub(crate) fn is_outside_active_run(invocation: &HookInvocation) -> Result<bool, StoreError> {
    let Some(run) = active_run_with_working_memory(&invocation.project)? else { return Ok(false) };
    Ok(run.session_id.as_ref() != Some(&invocation.session_id))
}

/// Prepares the memory for an iteration: creates the copy, abandons the frames of the previous iteration, and
/// reopens the root frame if it was popped. Does nothing if the run does not use the working memory.
pub(crate) fn abandon_frames_and_reopen_root_for_iteration(
    project: &Project,
    run: &RunState,
) -> Result<(), StoreError> {
    if !run.options.uses_working_memory {
        return Ok(());
    }
    memory::restore_damaged_memory_and_create_copy(project)?;
    let mut locked_memory = memory::lock_memory(project, LOCK_TIMEOUT)?;
    let frame_count = locked_memory.memory().depth();
    abandon_top_frames(&mut locked_memory, frame_count);
    if locked_memory.memory().root_result.is_some() {
        // Reopening is never refused.
        let _ = locked_memory.apply_and_queue_record("run", &MemoryOp::Reopen);
    }
    // A different objective means that the memory was lost, or was enabled after the run had started.
    if locked_memory.memory().frames[0].objective != root_objective(run) {
        let _ = locked_memory
            .apply_and_queue_record("run", &MemoryOp::BeginRun { objective: root_objective(run) });
    }
    locked_memory.save_changes_and_unlock().map(drop)
}

/// Records at the end of a session that the client has stored all that was shown, and abandons the session's
/// frames, because no agent will return from them.
pub fn mark_shown_memory_stored_and_abandon_frames(
    project: &Project,
    session_id: &SessionId,
) -> Result<(), StoreError> {
    if !memory::memory_exists(project) {
        return Ok(());
    }
    let mut locked_memory = memory::lock_memory(project, LOCK_TIMEOUT)?;
    locked_memory
        .update_shown_memory_state(session_id, ShownMemoryState::mark_all_shown_revisions_stored_by_client)?;
    abandon_unreturned_frames(&mut locked_memory, project, session_id);
    locked_memory.save_changes_and_unlock().map(drop)
}

/// Abandons the frames that a session has pushed and that no agent will return from, because the session's turn
/// has ended.
pub(crate) fn abandon_unreturned_frames(
    locked_memory: &mut LockedMemory<'_>,
    project: &Project,
    session_id: &SessionId,
) {
    let shown_memory = memory::load_shown_memory_state(project, session_id);
    let caller = Caller { agent: None, last_push_call: shown_memory.last_push_call_id() };
    let frame_count =
        frames::count_frames_left_open_by_conversation(locked_memory.memory(), caller, session_id);
    abandon_top_frames(locked_memory, frame_count);
}

/// Abandons this many frames, starting with the current one, because no subagent works in them any more.
pub(crate) fn abandon_top_frames(locked_memory: &mut LockedMemory<'_>, count: usize) {
    for _ in 0..count {
        let abandon_op = frames::op_to_close_top_frame_as_abandoned(locked_memory.memory());
        // The frame exists, so this cannot be refused.
        let _ = locked_memory.apply_and_queue_record(HOOK_AUTHOR, &abandon_op);
    }
}

/// Renders the changes by others when the main conversation receives a prompt, and records them as shown. A
/// prompt of the user also abandons unreturned frames and reopens the root frame; the client's own prompts about
/// background tasks do not.
pub(crate) fn abandon_frames_at_prompt_and_render_changes(
    invocation: &HookInvocation,
    prompt: &str,
) -> Result<Option<String>, StoreError> {
    if invocation.payload.is_in_subagent() {
        return Ok(None);
    }
    // UserPromptSubmit also fires when a background task is done (2.1.329), although the user typed nothing.
    let is_from_user = !prompt.starts_with("<task-notification>");
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    if is_from_user {
        abandon_unreturned_frames(&mut locked_memory, &invocation.project, &invocation.session_id);
        locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
            shown_memory.is_root_popped = false;
        })?;
        if locked_memory.memory().root_result.is_some() && !is_outside_active_run(invocation)? {
            // Reopening is never refused.
            let _ = locked_memory.apply_and_queue_record(HOOK_AUTHOR, &MemoryOp::Reopen);
        }
    }
    let text =
        render_and_record_changes_by_others(&locked_memory, invocation, 0, render::MAX_ENTRY_UTF16_UNITS)?;
    locked_memory.save_changes_and_unlock()?;
    Ok(text)
}

/// Renders the changes by others that this conversation has not been shown yet, and records them as shown.
pub(crate) fn render_and_record_changes_by_others(
    locked_memory: &LockedMemory<'_>,
    invocation: &HookInvocation,
    depth: usize,
    max_utf16_units: usize,
) -> Result<Option<String>, StoreError> {
    let (text, shown_revision) =
        render_changes_by_others(locked_memory, invocation, (depth, max_utf16_units), &[])?;
    locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
        shown_memory.set_shown_revision(conversation_key(invocation), shown_revision);
    })?;
    Ok(text)
}

/// Renders the changes by others, and returns the shown revision to record. Changes made by
/// `conversation_call_ids`, the conversation's own calls, are left out.
fn render_changes_by_others(
    locked_memory: &LockedMemory<'_>,
    invocation: &HookInvocation,
    (depth, max_utf16_units): (usize, usize),
    conversation_call_ids: &[&str],
) -> Result<(Option<String>, ShownRevision), StoreError> {
    let previous_revision = memory::load_shown_memory_state(&invocation.project, &invocation.session_id)
        .revision_shown_to(conversation_key(invocation))
        .unwrap_or_default();
    // If the memory's revision is lower than the one shown, the memory was replaced, so all of it is new.
    let last_shown_rev = Some(previous_revision.fully_shown_rev())
        .filter(|rev| *rev <= locked_memory.memory().revision)
        .unwrap_or(0);
    let conversation_revs =
        if locked_memory.memory().revision > last_shown_rev && !conversation_call_ids.is_empty() {
            memory::register_or_heap_write_revisions_of_calls(
                &invocation.project,
                last_shown_rev,
                conversation_call_ids,
            )?
        } else {
            Vec::new()
        };
    let rendered_changes = render::render_changes_since_within(
        locked_memory.memory(),
        depth,
        last_shown_rev,
        &conversation_revs,
        max_utf16_units,
    );
    Ok((
        rendered_changes.text,
        ShownRevision {
            rev: rendered_changes.shown_up_to_rev,
            calls_since_registers_shown: previous_revision.calls_since_registers_shown,
            ..ShownRevision::default()
        },
    ))
}

/// Renders the changes by others after a tool batch, and records them as shown. Without changes, all registers
/// are shown again every [`REGISTER_REFRESH_CALLS`] calls. Abandons frames that the batch's calls have ended.
pub(crate) fn render_and_record_changes_or_due_overview(
    invocation: &HookInvocation,
    max_utf16_units: usize,
    lock_timeout: Duration,
) -> Result<Option<String>, StoreError> {
    let is_main_conversation = conversation_key(invocation) == MAIN_STREAM;
    let call_ids: Vec<&str> =
        invocation.event().tool_calls().iter().filter_map(|call| call.tool_use_id.as_deref()).collect();
    let mut locked_memory = memory::lock_memory(&invocation.project, lock_timeout)?;
    let Some(depth) = locked_memory.memory().frame_depth_of_agent(invocation.payload.agent_id.as_deref())
    else {
        return Ok(None);
    };
    let frame_count = frames::count_frames_ended_by_calls(locked_memory.memory(), &call_ids);
    abandon_top_frames(&mut locked_memory, frame_count);
    let (mut text, mut shown_revision) =
        render_changes_by_others(&locked_memory, invocation, (depth, max_utf16_units), &call_ids)?;
    shown_revision.calls_since_registers_shown += 1;
    if is_main_conversation {
        shown_revision.calls_since_registers_shown +=
            memory::load_shown_memory_state(&invocation.project, &invocation.session_id)
                .calls_since_shown_position(&invocation.project, &invocation.session_id);
    }
    locked_memory.count_response_on_release(&invocation.session_id);
    if text.is_none() && shown_revision.calls_since_registers_shown >= REGISTER_REFRESH_CALLS {
        text = render::render_overview_within(locked_memory.memory(), depth, max_utf16_units);
        // If there is no space for the registers now, they are shown with the next call.
        shown_revision.calls_since_registers_shown =
            if text.is_some() { 0 } else { shown_revision.calls_since_registers_shown };
    }
    // Inside a frame no position is recorded, because the next batch may end the frame.
    let is_whole_memory_shown = is_main_conversation
        && locked_memory.memory().depth() == 0
        && shown_revision.rev == locked_memory.memory().revision;
    let shown_position = if is_whole_memory_shown { locked_memory.shown_position() } else { None };
    locked_memory.update_shown_memory_state(&invocation.session_id, |shown_memory| {
        if is_main_conversation {
            shown_memory.shown_position = shown_position;
        }
        shown_memory.set_shown_revision(conversation_key(invocation), shown_revision);
    })?;
    locked_memory.save_changes_and_unlock()?;
    Ok(text)
}

/// Returns true, without reading the memory, if it has not changed since the main conversation was shown all of
/// it; the model response is then counted. Always returns false in a subagent.
pub(crate) fn count_main_response_if_memory_unchanged(invocation: &HookInvocation) -> bool {
    conversation_key(invocation) == MAIN_STREAM
        && memory::count_response_if_memory_unchanged(
            &invocation.project,
            || invocation.memory_head(),
            (&invocation.session_id, MAIN_STREAM),
            REGISTER_REFRESH_CALLS,
        )
}
