//! Planning the next iteration of a run.

use super::StartError;
use crate::install::git_exclude::exclude_run_files;
use crate::memory;
use crate::run::footing::footing;
use crate::run::{backup, prompt, questions};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, Planned};
use plimsoll_domain::state::{ItemStart, IterationRecord, Phase, WorktreeFingerprint};
use plimsoll_domain::{RunId, RunState, SessionId, TodoList, Verdict};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_policy::{resume, review};
use plimsoll_store::state_file::{self, Seen};
use plimsoll_store::{Durability, Project, journal};

/// Plans the next iteration: its number, its session, its prompt. One that was planned and never ran, and one
/// that only met a limit, is planned again under its own number. If everything open waits for an answer, nothing is planned
/// and the run ends.
pub fn plan(
    project: &Project,
    run_id: &RunId,
    session_id: Option<SessionId>,
) -> Result<RunState, StartError> {
    let no_run = || StartError::NoRun(project.root().display().to_string());
    let seen = Seen::of(project, run_id)?.ok_or_else(no_run)?;
    let before = seen.state();
    // Cancelled since it was looked at: its files are as the user left them.
    if before.lifecycle.is_over() {
        return Ok(before.clone());
    }
    let todo = backup::mend_todo(project, before)?;
    if let Some(over) = questions::end_if_nothing_is_free(project, before, todo.as_ref())? {
        return Ok(over);
    }
    memory::open_for(project, before)?;
    // Before the lock is taken: no process waits for git while it holds the lock.
    let footing = footing(project);
    // The state before the prompt: a kill after it leaves an iteration that is planned and has no client, and that is
    // planned again under its own number with its checkpoint still active.
    let begin = |state: &mut RunState| {
        begin_iteration(state, todo.as_ref(), session_id, footing);
        state.clone()
    };
    let state = seen.update(project, Durability::Durable, begin)?.ok_or_else(no_run)?;
    // An agent may have made the repository only now.
    exclude_run_files(project.root(), if state.options.prompt_made { &["/PROMPT.md"] } else { &[] })?;
    prompt::write_with(project, &state, todo.as_ref())?;
    // Consumed only once a prompt has carried it on.
    if state.context_checkpoint.active {
        state_file::update(project, Some(run_id), Durability::Lazy, |state| {
            state.context_checkpoint.active = false;
        })?;
    }
    let planned = Planned {
        resuming: state.iteration_record.resuming,
        item: state.iteration_record.item.clone(),
        ..Planned::default()
    };
    journal::note(project, JournalEntry::of_run(&state, JournalEvent::Planned(planned)))?;
    backup::journal(project)?;
    Ok(state)
}

/// The state's next iteration, or its present one again: with its item, its checkpoint, its session.
fn begin_iteration(
    state: &mut RunState,
    todo: Option<&TodoList>,
    session_id: Option<SessionId>,
    footing: WorktreeFingerprint,
) {
    let again = is_planned_again(state);
    if !again {
        state.iteration += 1;
    }
    if let Some(todo) = todo {
        state.take_items(todo);
    }
    let resuming = take_checkpoint(state, todo, again);
    state.lifecycle.go_on();
    state.session_id = session_id;
    // What an iteration did before it met a limit is its own work when it is planned again.
    let before = std::mem::take(&mut state.iteration_record);
    let item_start = start_of_item(state, &before, resuming, again);
    let (done_before, reckoned, footing) = match before.footing {
        Some(footing) if again => (before.done_before, before.reckoned, footing),
        _ => (state.items.completed_items.clone(), Vec::new(), footing),
    };
    state.iteration_record = IterationRecord {
        iteration: state.iteration,
        phase: Phase::Planned,
        item_start,
        resuming,
        item: item_in_hand(state).cloned(),
        done_before,
        done_at_start: state.items.completed_items.clone(),
        reckoned,
        footing: Some(footing),
        ..IterationRecord::default()
    };
    let head = state.iteration_record.footing.as_ref().and_then(|footing| footing.head.clone());
    review::begin(state, head.as_deref());
}

/// Returns where the work on the next session's item began, if an earlier session worked on it: the checkpoint that is resumed says
/// so. A session whose tick was taken back has mostly left none, and its work counts all the same.
fn start_of_item(
    state: &RunState,
    before: &IterationRecord,
    resuming: bool,
    again: bool,
) -> Option<ItemStart> {
    let item = item_in_hand(state)?;
    let checkpoint = Some(&state.context_checkpoint).filter(|known| resuming && known.is_half_done(item));
    let work = checkpoint.map(|known| &known.item_work).filter(|work| work.began_at.is_some());
    let resumed = work.map(|work| ItemStart { base: work.base.clone(), at: work.began_at.clone() });
    let is_reopened = state
        .outcomes
        .taken_back
        .as_ref()
        .is_some_and(|taken| taken.iteration == before.iteration && taken.items.contains(item));
    let is_same = before.item.as_ref() == Some(item) && (again || is_reopened);
    let known_before = || before.item_start.clone().filter(|_| is_same);
    let by_reopened = || {
        let base = before.footing.as_ref().and_then(|footing| footing.head.clone());
        (is_same && is_reopened).then(|| ItemStart { base, at: before.started_at.clone() })
    };
    resumed.or_else(known_before).or_else(by_reopened)
}

/// True for an iteration that was planned and never ran, and for one that only met a limit.
fn is_planned_again(state: &RunState) -> bool {
    let repeats =
        matches!(state.lifecycle.last_verdict(), Some(Verdict::Pause { kind, .. }) if kind.repeats());
    state.iteration > 0 && (state.iteration_record.phase == Phase::Planned || repeats)
}

/// Takes up the checkpoint that is due; true where the iteration resumes one.
fn take_checkpoint(state: &mut RunState, todo: Option<&TodoList>, again: bool) -> bool {
    let due = resume::for_next(state, todo);
    let resumed_before =
        again && state.iteration_record.resuming && !resume::item_is_ticked(&state.context_checkpoint, todo);
    let resuming = due.is_some() || resumed_before;
    match due {
        Some(due) => state.context_checkpoint = due,
        // One of another item waits among the half done ones.
        None => state.context_checkpoint.active = false,
    }
    resuming
}
