//! Plans the next iteration of a run.

use super::StartError;
use crate::install::git_exclude::add_run_files_to_git_exclude;
use crate::memory;
use crate::run::fingerprint::read_fingerprint;
use crate::run::{backup, prompt, questions};
use plimsoll_domain::journal::{IterationPlanned, JournalEntry, JournalEvent};
use plimsoll_domain::state::{ItemStart, IterationPhase, IterationRecord, WorktreeFingerprint};
use plimsoll_domain::{RunId, RunState, SessionId, TodoList, Verdict};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::{resume, review};
use plimsoll_store::state_file::{self, StateSnapshot};
use plimsoll_store::{Durability, Project, journal};

/// Plans the next iteration: records its number and its session in the state, and writes its prompt. An
/// iteration that was planned and never ran, or that only hit a limit, is planned again under the same
/// number. If every open item waits for an answer, nothing is planned and the run ends.
pub fn plan_iteration_or_end_if_all_parked(
    project: &Project,
    run_id: &RunId,
    session_id: Option<SessionId>,
) -> Result<RunState, StartError> {
    let no_run_error = || StartError::NoRun(project.root().display().to_string());
    let snapshot = StateSnapshot::load_for_run(project, run_id)?.ok_or_else(no_run_error)?;
    let state_before = snapshot.state();
    // The run may have been canceled since the caller checked; its files are then left unchanged.
    if state_before.lifecycle.has_ended() {
        return Ok(state_before.clone());
    }
    let todo = backup::load_or_restore_plan(project, state_before)?;
    if let Some(ended_state) =
        questions::end_run_as_blocked_if_nothing_to_work_on(project, state_before, todo.as_ref())?
    {
        return Ok(ended_state);
    }
    memory::abandon_frames_and_reopen_root_for_iteration(project, state_before)?;
    // Before the lock is taken, because no lock is held while git runs.
    let fingerprint = read_fingerprint(project);
    // The state is written before the prompt: a kill in between leaves a planned iteration without a client,
    // which is planned again under the same number with its checkpoint still active.
    let update_state = |state: &mut RunState| {
        begin_or_repeat_iteration_in_state(state, todo.as_ref(), session_id, fingerprint);
        state.clone()
    };
    let state = snapshot
        .update_rereading_if_changed(project, Durability::Durable, update_state)?
        .ok_or_else(no_run_error)?;
    // In each iteration, because an agent may have created the repository in the meantime.
    add_run_files_to_git_exclude(
        project.root(),
        if state.options.is_prompt_generated { &["/PROMPT.md"] } else { &[] },
    )?;
    prompt::write_prompt_with_block_and_save_task_copy(project, &state, todo.as_ref())?;
    // The checkpoint is deactivated only after it was written to the prompt.
    if state.context_checkpoint.active {
        state_file::update_state(project, Some(run_id), Durability::Lazy, |state| {
            state.context_checkpoint.active = false;
        })?;
    }
    let plan_details = IterationPlanned {
        resumes_checkpoint: state.iteration_record.resumes_checkpoint,
        item: state.iteration_record.item.clone(),
        ..IterationPlanned::default()
    };
    journal::append_entry(project, JournalEntry::for_run(&state, JournalEvent::Planned(plan_details)))?;
    backup::sync_journal(project)?;
    Ok(state)
}

/// Writes the next iteration into the state, or the current one again: its item, its checkpoint and its
/// session.
fn begin_or_repeat_iteration_in_state(
    state: &mut RunState,
    todo: Option<&TodoList>,
    session_id: Option<SessionId>,
    fingerprint: WorktreeFingerprint,
) {
    let is_replanned = should_replan(state);
    if !is_replanned {
        state.iteration += 1;
    }
    if let Some(todo) = todo {
        state.update_items_and_questions_from_plan(todo);
    }
    let resumes_checkpoint = activate_due_or_deactivate_checkpoint(state, todo, is_replanned);
    state.lifecycle.mark_running_if_open();
    state.session_id = session_id;
    // If an iteration is planned again, the work that it did before it hit a limit still counts.
    let previous_record = std::mem::take(&mut state.iteration_record);
    let item_start = earlier_item_start(state, &previous_record, resumes_checkpoint, is_replanned);
    let (ticked_before, measured_items, fingerprint) = match previous_record.fingerprint_before {
        Some(fingerprint) if is_replanned => {
            (previous_record.ticked_before_iteration, previous_record.measured_items, fingerprint)
        }
        _ => (state.plan_items.completed_items.clone(), Vec::new(), fingerprint),
    };
    state.iteration_record = IterationRecord {
        iteration: state.iteration,
        phase: IterationPhase::Planned,
        item_start,
        resumes_checkpoint,
        item: current_unparked_item(state).cloned(),
        ticked_before_iteration: ticked_before,
        ticked_before_session: state.plan_items.completed_items.clone(),
        measured_items,
        fingerprint_before: Some(fingerprint),
        ..IterationRecord::default()
    };
    let head =
        state.iteration_record.fingerprint_before.as_ref().and_then(|fingerprint| fingerprint.head.clone());
    review::record_work_start_on_current_item(state, head.as_deref());
}

/// Returns the commit and the time at which work on the next session's item began, if an earlier session
/// worked on it. They come from the resumed checkpoint, or else from the previous iteration if it is planned
/// again or its tick was reverted.
fn earlier_item_start(
    state: &RunState,
    previous_record: &IterationRecord,
    resumes_checkpoint: bool,
    is_replanned: bool,
) -> Option<ItemStart> {
    let item = current_unparked_item(state)?;
    let checkpoint = Some(&state.context_checkpoint)
        .filter(|checkpoint| resumes_checkpoint && checkpoint.has_work_on_item(item));
    let checkpoint_work =
        checkpoint.map(|checkpoint| &checkpoint.item_work).filter(|work| work.began_at.is_some());
    let from_checkpoint = checkpoint_work
        .map(|work| ItemStart { base_commit: work.base_commit.clone(), started_at: work.began_at.clone() });
    let is_reopened = state.outcomes.reverted_ticks.as_ref().is_some_and(|reverted| {
        reverted.iteration == previous_record.iteration && reverted.items.contains(item)
    });
    let is_same_item = previous_record.item.as_ref() == Some(item) && (is_replanned || is_reopened);
    let from_previous_record = || previous_record.item_start.clone().filter(|_| is_same_item);
    let from_reverted_tick = || {
        let base_commit =
            previous_record.fingerprint_before.as_ref().and_then(|fingerprint| fingerprint.head.clone());
        (is_same_item && is_reopened)
            .then(|| ItemStart { base_commit, started_at: previous_record.started_at.clone() })
    };
    from_checkpoint.or_else(from_previous_record).or_else(from_reverted_tick)
}

/// Returns true if the iteration was planned and never ran, or if it only hit a limit.
fn should_replan(state: &RunState) -> bool {
    let repeats_iteration = matches!(state.lifecycle.last_verdict(), Some(Verdict::Pause { kind, .. }) if kind.repeats_iteration());
    state.iteration > 0 && (state.iteration_record.phase == IterationPhase::Planned || repeats_iteration)
}

/// Makes the checkpoint that is due the active one, or deactivates the current one if none is due. Returns
/// true if the iteration resumes a checkpoint.
fn activate_due_or_deactivate_checkpoint(
    state: &mut RunState,
    todo: Option<&TodoList>,
    is_replanned: bool,
) -> bool {
    let due_checkpoint = resume::store_half_done_and_take_next_checkpoint(state, todo);
    let still_resumes = is_replanned
        && state.iteration_record.resumes_checkpoint
        && !resume::is_checkpoint_item_ticked(&state.context_checkpoint, todo);
    let resumes_checkpoint = due_checkpoint.is_some() || still_resumes;
    match due_checkpoint {
        Some(due_checkpoint) => state.context_checkpoint = due_checkpoint,
        // The checkpoint of another unfinished item stays in the list of waiting checkpoints.
        None => state.context_checkpoint.active = false,
    }
    resumes_checkpoint
}
