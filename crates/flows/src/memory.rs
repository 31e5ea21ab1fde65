//! Shows the working memory to conversations: all of it at session start and after a compaction, later only
//! what others have changed. What the model writes itself is already in its own calls.

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
use plimsoll_store::memory::{self, LockedMemory, ShownRecord, ShownRevision};
use plimsoll_store::{Project, StoreError, environment, ledger, lock, sessions, state_file};
use std::path::Path;
use std::time::Duration;

/// How long to wait for the memory's lock, which is normally held for a few milliseconds.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The author of changes that the hooks make themselves.
pub(crate) const HOOK_AUTHOR: &str = "hook";
/// How many characters of the task's text become the objective of the root frame; the limit is that of any
/// frame.
const MAX_OBJECTIVE_CHARS: usize = 4_000;
/// All registers are shown again after this many calls of the model.
const REGISTER_REFRESH_CALLS: u32 = 25;

/// The number of a SessionStart entry. Several entries together show the memory, because the client cuts text
/// that is too long for one hook. The first entry also carries the briefing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartEntryNumber(usize);

impl StartEntryNumber {
    /// The entry that shows the registers.
    pub const FIRST: StartEntryNumber = StartEntryNumber(1);

    /// Parses the argument of a hook entry: `part-2` … `part-5`.
    pub fn from_argument(argument: &str) -> Option<StartEntryNumber> {
        let number = argument.strip_prefix("part-")?.parse::<usize>().ok()?;
        (2..=render::MAX_OUTPUTS).contains(&number).then_some(StartEntryNumber(number))
    }
}

/// Restores the memory of a run from its copy: an agent may have deleted it in the middle of its session.
pub(crate) fn restore_memory_of_run(invocation: &HookInvocation) {
    if ledger::run_id_from_environment().is_some() {
        // If this fails, nothing is shown now; the next iteration tries again.
        let _ = memory::restore_from_copy(&invocation.project);
    }
}

/// Returns the key of a conversation in the record of what has been shown.
pub(crate) fn conversation_key(invocation: &HookInvocation) -> &str {
    invocation.payload.agent_id.as_deref().unwrap_or(MAIN_STREAM)
}

/// Renders the memory for a conversation that begins, resumes or has been compacted, and records what was
/// shown.
pub(crate) fn render_memory_at_start(
    invocation: &HookInvocation,
    session_source: SessionSource,
    output_number: StartEntryNumber,
    max_units: usize,
) -> Result<Option<String>, StoreError> {
    let agent = invocation.payload.agent_id.as_deref();
    if output_number == StartEntryNumber::FIRST && agent.is_none() && session_source != SessionSource::Compact
    {
        memory::remove_expired_shown_records(&invocation.project);
        abandon_frames_of_ended_sessions(invocation, true)?;
    }
    let memory = memory::load_memory(&invocation.project)?;
    let Some(depth) = memory.frame_depth_of_agent(agent) else { return Ok(None) };
    let shown_revision = memory::load_shown_record(&invocation.project, &invocation.session_id)
        .shown_to(conversation_key(invocation));
    let is_up_to_date = |revision: ShownRevision| {
        revision.shown_up_to_after_resume() >= memory.revision && revision.rev <= memory.revision
    };
    // A resumed conversation still contains what it was shown.
    if memory.is_empty()
        || (session_source == SessionSource::Resume && shown_revision.is_some_and(is_up_to_date))
    {
        return Ok(None);
    }
    // The client limits the context of each hook on its own (2.1.329), so several entries share the memory's
    // text.
    let initial_view = render::render_initial_memory_view(&memory, depth, max_units);
    let text = initial_view.outputs.into_iter().nth(output_number.0 - 1);
    if text.is_some() {
        record_shown_at_start(invocation, output_number, (memory.revision, initial_view.shown_up_to_rev))?;
    }
    Ok(text)
}

/// Records what an entry of SessionStart has shown. All entries run at once, in any order: each must see the
/// revision from before the start, and a change that the slowest entry has not shown counts as new.
fn record_shown_at_start(
    invocation: &HookInvocation,
    output_number: StartEntryNumber,
    (rev, shown_up_to_rev): (u64, u64),
) -> Result<(), StoreError> {
    let locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
        let revision_before = shown_record.shown_to(conversation_key(invocation)).unwrap_or_default();
        let oldest_start_rev =
            Some(revision_before.oldest_start_rev.unwrap_or(shown_up_to_rev).min(shown_up_to_rev));
        let mut revision_after = ShownRevision {
            rev_before_start: Some(revision_before.shown_up_to_after_resume()),
            oldest_start_rev,
            ..revision_before
        };
        if output_number == StartEntryNumber::FIRST {
            (revision_after.rev, revision_after.calls_since_registers) = (rev, 0);
        }
        // The entries run at once, so the first batch determines what they have shown together.
        shown_record.shown_position = None;
        shown_record.record_shown(conversation_key(invocation), revision_after);
    })
}

/// Returns this session and its client as the owner of a frame.
pub(crate) fn frame_owner(invocation: &HookInvocation) -> FrameOwner {
    // The client passes its pid to hooks; without it the owner is identified by the session alone.
    let pid = environment::numeric_variable("CLAUDE_PID").map(|pid| pid as u32);
    let process_started = pid.and_then(process::process_identity).map(|identity| identity.start_time);
    FrameOwner { session_id: invocation.session_id.clone(), pid, process_started_at: process_started }
}

/// Abandons the frames of sessions that no longer run, and of this session if it starts again: no agent will
/// return from them. Returns the resulting memory.
pub(crate) fn abandon_frames_of_ended_sessions(
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
            .and_then(|call_id| memory::find_frame_pusher(&invocation.project, call_id)),
    };
    let is_owner_gone = owner.is_none_or(|owner| {
        let is_own_session = owner.session_id == invocation.session_id;
        if is_own_session { is_session_start } else { has_owner_ended(invocation, &owner) }
    });
    // The owner of such a frame cannot be determined if the client names no calls; the user can end the
    // frame.
    if !is_owner_gone || (first_frame.subagent_launch.is_none() && first_frame.push_call_id.is_none()) {
        return Ok(memory);
    }
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    let frame_count = locked_memory.memory().depth();
    abandon_top_frames(&mut locked_memory, frame_count);
    locked_memory.write_and_release()
}

/// Returns true for another session that has ended, or whose client has: a client runs one session at a time.
fn has_owner_ended(invocation: &HookInvocation, owner: &FrameOwner) -> bool {
    let record = sessions::load_session_record(&invocation.project, &owner.session_id);
    let has_session_ended =
        record.end.ended_at.is_some() || (owner.pid.is_some() && owner.pid == frame_owner(invocation).pid);
    has_session_ended
        || match (owner.pid, owner.process_started_at) {
            (Some(pid), Some(start_time)) => {
                process::liveness_of_process(ProcessIdentity { pid, start_time }).is_gone()
            }
            (Some(pid), None) => process::liveness_of_pid(pid).is_gone(),
            (None, _) => {
                record.start.transcript_path.is_none_or(|path| catch_up::is_transcript_idle(Path::new(&path)))
            }
        }
}

/// Starts the working memory of a new run, whose root frame is the run.
pub(crate) fn begin_run_memory(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.options.uses_working_memory {
        return Ok(());
    }
    // The copy of an earlier run's memory must not overwrite this one. A kill before the new copy is written
    // leaves none; `prepare_memory_for_iteration` creates it.
    memory::remove_copy(project)?;
    let mut locked_memory = memory::lock_memory(project, LOCK_TIMEOUT)?;
    // An agent that works in a frame of the project is told that its frame has ended.
    let frame_count = locked_memory.memory().depth();
    abandon_top_frames(&mut locked_memory, frame_count);
    // BeginRun is never refused.
    let _ = locked_memory.apply("run", &MemoryOp::BeginRun { objective: root_objective(run) });
    locked_memory.write_and_release()?;
    memory::create_copy(project)
}

fn root_objective(run: &RunState) -> String {
    truncate_end(run.options.objective.trim(), MAX_OBJECTIVE_CHARS)
}

/// Returns the active run of this project if it uses the working memory.
pub fn active_memory_run(project: &Project) -> Result<Option<RunState>, StoreError> {
    let run = state_file::load_state(project, None)?
        .filter(|run| run.options.uses_working_memory && !run.lifecycle.is_over());
    // A shell loop holds no lock, and its client's pid is unknown.
    let may_run_in_shell_loop = |run: &RunState| {
        run.iteration_record.phase == IterationPhase::Spawned && run.iteration_record.pid.is_none()
    };
    Ok(run.filter(|run| may_run_in_shell_loop(run) || lock::is_run_locked(project)))
}

/// Returns true if a run with the working memory is active and this session does not belong to it. The root
/// frame is then the run, and an ordinary session neither ends nor reopens it.
pub(crate) fn is_outside_active_run(invocation: &HookInvocation) -> Result<bool, StoreError> {
    let Some(run) = active_memory_run(&invocation.project)? else { return Ok(false) };
    Ok(run.session_id.as_ref() != Some(&invocation.session_id))
}

/// Prepares the memory for an iteration: abandons the frames of the previous one, and reopens a root that has
/// popped.
pub(crate) fn prepare_memory_for_iteration(project: &Project, run: &RunState) -> Result<(), StoreError> {
    if !run.options.uses_working_memory {
        return Ok(());
    }
    memory::create_copy(project)?;
    let mut locked_memory = memory::lock_memory(project, LOCK_TIMEOUT)?;
    let frame_count = locked_memory.memory().depth();
    abandon_top_frames(&mut locked_memory, frame_count);
    if locked_memory.memory().root_result.is_some() {
        // Reopening is never refused.
        let _ = locked_memory.apply("run", &MemoryOp::Reopen);
    }
    // The memory was enabled after the run had begun, or was lost.
    if locked_memory.memory().frames[0].objective != root_objective(run) {
        let _ = locked_memory.apply("run", &MemoryOp::BeginRun { objective: root_objective(run) });
    }
    locked_memory.write_and_release().map(drop)
}

/// Records the end of a session and abandons its frames: no agent returns from them.
pub fn close_session_memory(project: &Project, session_id: &SessionId) -> Result<(), StoreError> {
    if !memory::exists(project) {
        return Ok(());
    }
    let mut locked_memory = memory::lock_memory(project, LOCK_TIMEOUT)?;
    locked_memory.update_shown_record(session_id, ShownRecord::record_session_end)?;
    abandon_unreturned_frames(&mut locked_memory, project, session_id);
    locked_memory.write_and_release().map(drop)
}

/// Abandons the frames that a session has pushed once its turn has ended: no agent returns from them.
pub(crate) fn abandon_unreturned_frames(
    locked_memory: &mut LockedMemory<'_>,
    project: &Project,
    session_id: &SessionId,
) {
    let shown_record = memory::load_shown_record(project, session_id);
    let caller = Caller { agent: None, last_push_call: shown_record.last_push_call_id() };
    let frame_count = frames::count_unreturned_frames(locked_memory.memory(), caller, session_id);
    abandon_top_frames(locked_memory, frame_count);
}

/// Abandons this many frames, from the current one down, because their subagents have left them.
pub(crate) fn abandon_top_frames(locked_memory: &mut LockedMemory<'_>, count: usize) {
    for _ in 0..count {
        let abandon_op = frames::abandon_top_frame_op(locked_memory.memory());
        // The frame exists, so this cannot be refused.
        let _ = locked_memory.apply(HOOK_AUTHOR, &abandon_op);
    }
}

/// Renders the changes by others for a conversation that receives a prompt. A prompt of the user reopens a
/// memory whose root is done; the client's own prompts, about background tasks, do not.
pub(crate) fn abandon_frames_and_render_changes(
    invocation: &HookInvocation,
    prompt: &str,
) -> Result<Option<String>, StoreError> {
    if invocation.payload.is_in_subagent() {
        return Ok(None);
    }
    // UserPromptSubmit also comes for a background task that is done (2.1.329), which the user has not typed.
    let is_from_user = !prompt.starts_with("<task-notification>");
    let mut locked_memory = memory::lock_memory(&invocation.project, LOCK_TIMEOUT)?;
    if is_from_user {
        abandon_unreturned_frames(&mut locked_memory, &invocation.project, &invocation.session_id);
        locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
            shown_record.is_root_popped = false;
        })?;
        if locked_memory.memory().root_result.is_some() && !is_outside_active_run(invocation)? {
            // Reopening is never refused.
            let _ = locked_memory.apply(HOOK_AUTHOR, &MemoryOp::Reopen);
        }
    }
    let text = render_and_record_changes(&locked_memory, invocation, 0, render::MAX_ENTRY_UTF16_UNITS)?;
    locked_memory.write_and_release()?;
    Ok(text)
}

/// Renders the changes by others since this conversation was last shown any, and records them as shown.
pub(crate) fn render_and_record_changes(
    locked_memory: &LockedMemory<'_>,
    invocation: &HookInvocation,
    depth: usize,
    max_units: usize,
) -> Result<Option<String>, StoreError> {
    let (text, shown_revision) =
        render_changes_by_others(locked_memory, invocation, (depth, max_units), &[])?;
    locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
        shown_record.record_shown(conversation_key(invocation), shown_revision);
    })?;
    Ok(text)
}

/// Renders the changes by others, and returns the record to write. `own_call_ids` are the conversation's own
/// calls.
fn render_changes_by_others(
    locked_memory: &LockedMemory<'_>,
    invocation: &HookInvocation,
    (depth, max_units): (usize, usize),
    own_call_ids: &[&str],
) -> Result<(Option<String>, ShownRevision), StoreError> {
    let revision_before = memory::load_shown_record(&invocation.project, &invocation.session_id)
        .shown_to(conversation_key(invocation))
        .unwrap_or_default();
    // A memory with a lower revision than the conversation was shown is another memory.
    let since_rev = Some(revision_before.shown_up_to())
        .filter(|rev| *rev <= locked_memory.memory().revision)
        .unwrap_or(0);
    let own_revs = if locked_memory.memory().revision > since_rev && !own_call_ids.is_empty() {
        memory::revisions_made_by_calls(&invocation.project, since_rev, own_call_ids)?
    } else {
        Vec::new()
    };
    let delta =
        render::render_changes_since_within(locked_memory.memory(), depth, since_rev, &own_revs, max_units);
    Ok((
        delta.text,
        ShownRevision {
            rev: delta.shown_up_to_rev,
            calls_since_registers: revision_before.calls_since_registers,
            ..ShownRevision::default()
        },
    ))
}

/// Renders the changes by others after a batch of tools, in at most `max_units` UTF-16 units and waiting at
/// most `lock_timeout` for the lock.
pub(crate) fn render_changes_after_batch(
    invocation: &HookInvocation,
    max_units: usize,
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
        render_changes_by_others(&locked_memory, invocation, (depth, max_units), &call_ids)?;
    shown_revision.calls_since_registers += 1;
    if is_main_conversation {
        shown_revision.calls_since_registers +=
            memory::load_shown_record(&invocation.project, &invocation.session_id)
                .calls_since_shown_position(&invocation.project, &invocation.session_id);
    }
    locked_memory.count_answer(&invocation.session_id);
    if text.is_none() && shown_revision.calls_since_registers >= REGISTER_REFRESH_CALLS {
        text = render::render_overview_within(locked_memory.memory(), depth, max_units);
        // If there is no room for them now, they are shown with the next call.
        shown_revision.calls_since_registers =
            if text.is_some() { 0 } else { shown_revision.calls_since_registers };
    }
    // Inside a frame the next batch may end it, so the memory is read each time.
    let is_everything_shown = is_main_conversation
        && locked_memory.memory().depth() == 0
        && shown_revision.rev == locked_memory.memory().revision;
    let shown_position = if is_everything_shown { locked_memory.shown_position() } else { None };
    locked_memory.update_shown_record(&invocation.session_id, |shown_record| {
        if is_main_conversation {
            shown_record.shown_position = shown_position;
        }
        shown_record.record_shown(conversation_key(invocation), shown_revision);
    })?;
    locked_memory.write_and_release()?;
    Ok(text)
}

/// Returns true, without reading the memory, if a batch has nothing to show its conversation; its answer is
/// then counted.
pub(crate) fn count_answer_if_nothing_new(invocation: &HookInvocation) -> bool {
    conversation_key(invocation) == MAIN_STREAM
        && memory::count_answer_if_memory_unchanged(
            &invocation.project,
            || invocation.memory_head(),
            (&invocation.session_id, MAIN_STREAM),
            REGISTER_REFRESH_CALLS,
        )
}
