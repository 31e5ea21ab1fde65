//! Saves what a session leaves unfinished: writes a handoff if there is none, and commits its work.

use crate::checkpoint::facts;
use crate::checkpoint::{self, CheckpointRequest};
use crate::plimsoll_files;
use crate::run::ended_session::EndedSession;
use crate::run::{branch, close};
use crate::run_context::RunContext;
use plimsoll_domain::handoff::HandoffNotes;
use plimsoll_domain::journal::{JournalEvent, WipCommit};
use plimsoll_domain::level::Level;
use plimsoll_domain::receipt::{append_missing_trailers, render_commit_trailers};
use plimsoll_domain::state::{Checkpoint, CheckpointCause, CheckpointCommitMode};
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::{RunState, SessionEnding, SessionRecord};
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_launcher::wip::{WipCommitOutcome, commit_wip};
use plimsoll_launcher::worktree;
use plimsoll_store::{Project, StoreError, clock};
use std::path::PathBuf;

/// Saves unfinished work: its handoff first, then the commit. After a crash between them the work is
/// uncommitted, and the handoff lists it; the next process updates the handoff and commits what is there.
/// Returns `None` if the run no longer exists.
pub(super) fn hand_off_and_commit_if_run_open_then_reload(
    context: &RunContext<'_>,
    session: EndedSession,
) -> Result<Option<EndedSession>, StoreError> {
    let EndedSession { state, record, fingerprint, .. } = &session;
    // If the user stopped the run, or its session could not begin, the files are not changed.
    if state.lifecycle.has_ended() {
        // SessionEnd may have closed the iteration since.
        return Ok(context.load_newest_state()?.map(|state| EndedSession { state, ..session }));
    }
    remove_unused_git_locks_created_in_session(context, state)?;
    let fingerprint_before = state.iteration_record.fingerprint_before.as_ref();
    let is_worktree_unchanged = fingerprint_before == Some(fingerprint);
    let has_changed_files = fingerprint_before
        .is_some_and(|fingerprint_before| fingerprint.files_changed_since(fingerprint_before) == Some(true));
    if !is_worktree_unchanged || record.checkpoint_progress.open_claim.is_some() {
        write_missing_handoff_for_unfinished_work(context, &session, has_changed_files)?;
    }
    let is_at_checkpoint_head =
        fingerprint.head.is_some() && fingerprint.head == state.context_checkpoint.head;
    // A resumed checkpoint on which no work was done would be lost here, because planning has marked it as
    // consumed.
    if is_worktree_unchanged || is_at_checkpoint_head || !has_changed_files {
        reactivate_checkpoint_if_item_open(context, state, record)?;
    }
    let Some(state) = context.load_newest_state()? else { return Ok(None) };
    let state = match commit_checkpoint_work_and_record_outcome(context, &state)? {
        // SessionEnd may already have closed the iteration, and the handoff must name the new HEAD.
        Some(committed_state) => close::refresh_handoff_and_state_after_commit(context, committed_state)?,
        None => state,
    };
    Ok(Some(EndedSession { state, ..session }))
}

/// Removes git locks that were created during the session: a git that was ended with its session leaves the
/// repository locked, and no later session could commit.
fn remove_unused_git_locks_created_in_session(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    let session_start = state.iteration_record.started_at.as_ref().and_then(clock::parse_timestamp);
    let Some(session_start) = session_start else { return Ok(()) };
    for lock in
        worktree::remove_and_return_unused_git_locks_since(context.project.root(), session_start.into())
    {
        let message = format!("removed {}, which a git process of the session had left", lock.display());
        context.journal_session_event(state, JournalEvent::Note { text: message })?;
    }
    Ok(())
}

/// Writes a checkpoint for a session that ended in the middle of its work without one, so that the files it
/// was changing are not forgotten.
fn write_missing_handoff_for_unfinished_work(
    context: &RunContext<'_>,
    session: &EndedSession,
    has_changed_files: bool,
) -> Result<(), StoreError> {
    let (project, settings) = (context.project, context.settings);
    let EndedSession { state, record, ending, .. } = session;
    let ended_normally = matches!(ending, SessionEnding::Completed | SessionEnding::HookStopped);
    // A session that stopped at a commit as instructed is not unfinished, even if it left uncommitted
    // changes.
    if has_checkpoint_of_iteration(state, |cause| {
        cause == CheckpointCause::Level || cause == CheckpointCause::Step && ended_normally
    }) {
        return Ok(());
    }
    // A remaining claim means that the hook which made it was killed, and no later hook ran.
    let claim = record.checkpoint_progress.open_claim.as_ref();
    let cause = match claim {
        // In a run L1 claims only a step checkpoint.
        Some(claim) if claim.level == Level::L1 => CheckpointCause::Step,
        Some(_) => CheckpointCause::Level,
        None if !ended_normally => CheckpointCause::Crash,
        // Changes from before the session are not its own, unless it resumed them.
        None if (has_changed_files || state.iteration_record.resumes_checkpoint)
            && has_any_open_item(context, state) =>
        {
            CheckpointCause::Unfinished
        }
        None => return Ok(()),
    };
    let request = CheckpointRequest {
        project,
        settings,
        session_id: &record.session_id,
        transcript_path: record.start.transcript_path.as_ref().map(PathBuf::from),
        run: Some(state),
        cause,
        level: claim.map_or(Level::L0, |claim| claim.level).max(record.highest_announcement.level),
        reading: record.usage.last_reading.as_ref(),
        thresholds: None,
        transcript_wait: None,
        pending_calls: &[],
        notes: notes_in_last_message(record),
    };
    let facts = checkpoint::collect_session_facts(&request, record);
    // No work was begun, or it left no changes.
    if facts.changed_files.is_empty() || !facts.item_work.is_begun {
        return Ok(());
    }
    checkpoint::write_checkpoint_and_return_handoff_file(&request, record, facts).map(|_| ())
}

/// Makes a checkpoint that the session resumed active again if the session's item is still open, so that the
/// next session resumes it, with the notes of this one.
fn reactivate_checkpoint_if_item_open(
    context: &RunContext<'_>,
    state: &RunState,
    record: &SessionRecord,
) -> Result<(), StoreError> {
    if !state.iteration_record.resumes_checkpoint || !is_session_item_open(context, state) {
        return Ok(());
    }
    // Repeating this after a kill changes nothing, because the checkpoint is then active.
    let session_notes = notes_in_last_message(record);
    context.update_state_without_sync(|state| {
        let checkpoint = &mut state.context_checkpoint;
        // If the session has left its own checkpoint, that one is already active.
        if !checkpoint.active {
            checkpoint.active = true;
            let updates = [
                (session_notes.summary, &mut checkpoint.resume_summary),
                (session_notes.progress, &mut checkpoint.progress_on_item),
                (session_notes.next_step, &mut checkpoint.next_step),
            ];
            for (new, old) in updates.into_iter().filter(|(new, _)| !new.is_empty()) {
                *old = new;
            }
        }
    })?;
    Ok(())
}

/// Returns the handoff notes in the session's last message, even if they were not requested.
fn notes_in_last_message(record: &SessionRecord) -> HandoffNotes {
    HandoffNotes::from_message(&close::redact_last_message_and_replace_promises(record))
}

/// Returns true if the session had an item and the plan has open items: its item, or the next one, which it may
/// have begun.
fn has_any_open_item(context: &RunContext<'_>, state: &RunState) -> bool {
    let had_item = state.iteration_record.item.is_some();
    had_item && facts::load_plan(context.project, state).is_some_and(|todo| !todo.open_items().is_empty())
}

/// Returns true if the session's item is still open. In a run without a plan this is unknown, and an orderly
/// end counts as finished.
fn is_session_item_open(context: &RunContext<'_>, state: &RunState) -> bool {
    let item = state.iteration_record.item.as_ref();
    item.zip(facts::load_plan(context.project, state))
        .is_some_and(|(item, todo)| todo.open_items().contains(item))
}

fn has_checkpoint_of_iteration(state: &RunState, matches_cause: impl Fn(CheckpointCause) -> bool) -> bool {
    let checkpoint = &state.context_checkpoint;
    checkpoint.active && checkpoint.iteration == state.iteration && matches_cause(checkpoint.cause)
}

/// Commits changes that the session left uncommitted at a checkpoint, so that the next session's
/// `git reset` or `git clean` cannot remove them. A failed commit is reported in the handoff, and the run
/// continues. Returns the new state if a commit was made or refused.
fn commit_checkpoint_work_and_record_outcome(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<Option<RunState>, StoreError> {
    let project = context.project;
    if state.options.commit_mode == CheckpointCommitMode::Off || !has_checkpoint_of_iteration(state, |_| true)
    {
        return Ok(None);
    }
    let message = render_checkpoint_commit_message(state.iteration, &state.context_checkpoint);
    // Work in progress of a run with a branch is never committed to another one, whatever a session has
    // checked out.
    let commit_result = match branch::reason_not_to_commit_on_current_branch(project, state) {
        Some(reason) => WipCommitOutcome::Refused { reason },
        None => {
            let item = state.iteration_record.item.as_deref();
            let items: Vec<&str> = item.into_iter().collect();
            let message =
                append_missing_trailers(&message, &render_commit_trailers(&state.run_id, &items, None));
            commit_wip(
                project.root(),
                &message,
                &plimsoll_files::is_plimsoll_file,
                commit_programs_unless_repository_replaced(project, state),
            )
        }
    };
    let (report, wip_commit) = match commit_result {
        WipCommitOutcome::NothingToCommit => return Ok(None),
        WipCommitOutcome::Committed { id, file_count, excluded_files, forbidden_filters } => {
            let report = format!(
                "{} committed as `{message}`{}{}",
                count_with_noun(file_count, "file"),
                describe_excluded_files(&excluded_files),
                describe_forbidden_filters(&forbidden_filters)
            );
            let wip_commit = WipCommit {
                commit: Some(id.into()),
                file_count: Some(file_count),
                omitted_files: Some(excluded_files),
                ..WipCommit::default()
            };
            (report, wip_commit)
        }
        WipCommitOutcome::Refused { reason } => {
            let report = format!("the uncommitted work could not be committed: {reason}");
            (report, WipCommit { error: Some(reason), ..WipCommit::default() })
        }
    };
    // A kill after the commit loses this line and the handoff's report about it. The work is safe, and a
    // repeat finds nothing left to commit.
    let event = JournalEvent::WipCommit(WipCommit { message: Some(message), ..wip_commit });
    context.journal_session_event(state, event)?;
    context.update_state_without_sync(|state| {
        state.context_checkpoint.work_outcome = report;
        state.clone()
    })
}

/// Returns which hooks and filters a commit may run. In a repository that was created during the run these are
/// none, because a session may have written its settings.
pub(super) fn commit_programs_unless_repository_replaced(
    project: &Project,
    state: &RunState,
) -> AllowedPrograms {
    let current_identity = || plimsoll_store::layout::repository_identity(project.root());
    match &state.project_at_start.git_folder_id_at_start {
        Some(identity_at_start) if *identity_at_start != current_identity() => AllowedPrograms::NoPrograms,
        _ => branch::allowed_programs(state.options.runs_commit_hooks),
    }
}

/// Renders the commit message: `ralph: checkpoint iter 5 (L2 at 85%)`.
fn render_checkpoint_commit_message(iteration: u32, checkpoint: &Checkpoint) -> String {
    let percent =
        checkpoint.percent_at_checkpoint.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    let cause_text = match checkpoint.cause {
        CheckpointCause::Level => checkpoint.level.to_string(),
        // A crash, an error of the API, or a limit of the client.
        CheckpointCause::Crash => CheckpointCause::Unfinished.as_str().to_owned(),
        cause => cause.as_str().to_owned(),
    };
    format!("ralph: checkpoint iter {iteration} ({cause_text}{percent})")
}

/// Renders the end of the commit report, which names the filters that did not run; empty if there are none.
fn describe_forbidden_filters(filters: &[String]) -> String {
    if filters.is_empty() {
        return String::new();
    }
    let names: Vec<String> = filters.iter().map(|name| format!("`{name}`")).collect();
    format!(
        " (not run, as it may start a program of the project: filter {}; --commit-hooks allows it)",
        names.join(", ")
    )
}

fn describe_excluded_files(files: &[String]) -> String {
    if files.is_empty() { String::new() } else { format!("; left uncommitted: {}", files.join(", ")) }
}
