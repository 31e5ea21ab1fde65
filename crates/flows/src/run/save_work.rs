//! What a session leaves unfinished is kept: a handoff where it has none, and a commit of its work.

use crate::checkpoint::facts;
use crate::checkpoint::{self, Request};
use crate::our_files;
use crate::run::ended_session::EndedSession;
use crate::run::{branch, close};
use crate::run_context::RunContext;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::journal::{JournalEvent, WipCommit};
use plimsoll_domain::level::Level;
use plimsoll_domain::receipt::{trailers, with_trailers};
use plimsoll_domain::state::{Cause, Checkpoint, Commit};
use plimsoll_domain::text::counted;
use plimsoll_domain::{Ending, RunState, SessionRecord};
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_launcher::wip::{Wip, commit_wip};
use plimsoll_launcher::worktree;
use plimsoll_store::{Project, StoreError, clock};
use std::path::PathBuf;

/// Saves unfinished work: its handoff first, then the commit. After a crash between them the work is uncommitted, and the handoff
/// names it; the next process renews the handoff and commits what is there. Returns none if the run is gone.
pub(super) fn save(
    context: &RunContext<'_>,
    session: EndedSession,
) -> Result<Option<EndedSession>, StoreError> {
    let EndedSession { state, record, fingerprint, .. } = &session;
    // A run that the user has stopped, and a session that could not begin, leave the files as they are.
    if state.lifecycle.is_over() {
        // SessionEnd may have closed the iteration since.
        return Ok(context.load_state()?.map(|state| EndedSession { state, ..session }));
    }
    set_repository_free(context, state)?;
    let before = state.iteration_record.footing.as_ref();
    let is_untouched = before == Some(fingerprint);
    let has_changed_files = before.is_some_and(|before| fingerprint.files_changed(before) == Some(true));
    if !is_untouched || record.checkpoint.claim.is_some() {
        handoff_of_unfinished_work(context, &session, has_changed_files)?;
    }
    let is_where_it_began = fingerprint.head.is_some() && fingerprint.head == state.context_checkpoint.head;
    // A checkpoint that nothing was done about would be lost here: planning has marked it as consumed.
    if is_untouched || is_where_it_began || !has_changed_files {
        keep_what_it_resumed(context, state, record)?;
    }
    let Some(state) = context.load_state()? else { return Ok(None) };
    let state = match commit(context, &state)? {
        // SessionEnd may have closed the iteration already: the handoff must name the new HEAD.
        Some(committed) => close::renew_handoff(context, committed)?,
        None => state,
    };
    Ok(Some(EndedSession { state, ..session }))
}

/// A git that was ended with its session leaves the repository locked: no later session could commit anything.
fn set_repository_free(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let began = state.iteration_record.started_at.as_ref().and_then(clock::moment);
    let Some(began) = began else { return Ok(()) };
    for lock in worktree::clear_locks_since(context.project.root(), began.into()) {
        let words = format!("removed {}, which a git of the session had left", lock.display());
        context.note(state, JournalEvent::Note { words })?;
    }
    Ok(())
}

/// A session that ended in the middle of its work, with no checkpoint, leaves one all the same: the files it
/// was changing must not be forgotten.
fn handoff_of_unfinished_work(
    context: &RunContext<'_>,
    session: &EndedSession,
    has_changed_files: bool,
) -> Result<(), StoreError> {
    let (project, settings) = (context.project, context.settings);
    let EndedSession { state, record, ending, .. } = session;
    let orderly = matches!(ending, Ending::Completed | Ending::HookStopped);
    // A session that stopped at a commit as told is not unfinished, even if it left changes uncommitted.
    if has_checkpoint(state, |cause| cause == Cause::Level || cause == Cause::Step && orderly) {
        return Ok(());
    }
    // A claim that is still there: its hook was killed, and no event came after it.
    let claim = record.checkpoint.claim.as_ref();
    let cause = match claim {
        // In a run L1 claims nothing else.
        Some(claim) if claim.level == Level::L1 => Cause::Step,
        Some(_) => Cause::Level,
        None if !orderly => Cause::Crash,
        // What was dirty before it began is not its own, except for what it took over.
        None if (has_changed_files || state.iteration_record.resuming) && has_more_to_do(context, state) => {
            Cause::Unfinished
        }
        None => return Ok(()),
    };
    let request = Request {
        project,
        settings,
        session_id: &record.session_id,
        transcript: record.start.transcript_path.as_ref().map(PathBuf::from),
        run: Some(state),
        cause,
        level: claim.map_or(Level::L0, |claim| claim.level).max(record.announced.level),
        reading: record.usage.reading.as_ref(),
        thresholds: None,
        waited: None,
        calls: &[],
        notes: notes(record),
    };
    let facts = checkpoint::gather_facts(&request, record);
    // Nothing was begun, or nothing of it is left.
    if facts.files.is_empty() || !facts.work.is_begun {
        return Ok(());
    }
    checkpoint::write_facts(&request, record, facts).map(|_| ())
}

/// Keeps a checkpoint that the session should have resumed, if the session did nothing: the next one resumes it, with this
/// one's notes.
fn keep_what_it_resumed(
    context: &RunContext<'_>,
    state: &RunState,
    record: &SessionRecord,
) -> Result<(), StoreError> {
    if !state.iteration_record.resuming || !has_open_item(context, state) {
        return Ok(());
    }
    // Repeated after a kill this changes nothing: the checkpoint is active by then.
    let said = notes(record);
    context.update_lazily(|state| {
        let kept = &mut state.context_checkpoint;
        // Where it has left one of its own, that is the one, and active already.
        if !kept.active {
            kept.active = true;
            let words = [
                (said.summary, &mut kept.resume_summary),
                (said.progress, &mut kept.progress_on_item),
                (said.next, &mut kept.next_step),
            ];
            for (new, old) in words.into_iter().filter(|(new, _)| !new.is_empty()) {
                *old = new;
            }
        }
    })?;
    Ok(())
}

/// The progress that a session stated in its last message, requested or not.
fn notes(record: &SessionRecord) -> Notes {
    Notes::in_message(&close::last_words(record))
}

/// True if an item is open: the session's own, or the next one, which it may have begun.
fn has_more_to_do(context: &RunContext<'_>, state: &RunState) -> bool {
    let was_given_one = state.iteration_record.item.is_some();
    was_given_one && facts::todo(context.project, state).is_some_and(|todo| !todo.open().is_empty())
}

/// Whether the item that it was given is still open. In a run without a plan that is unknown, and an orderly end
/// is believed.
fn has_open_item(context: &RunContext<'_>, state: &RunState) -> bool {
    let item = state.iteration_record.item.as_ref();
    item.zip(facts::todo(context.project, state)).is_some_and(|(item, todo)| todo.open().contains(item))
}

fn has_checkpoint(state: &RunState, is_meant: impl Fn(Cause) -> bool) -> bool {
    let there = &state.context_checkpoint;
    there.active && there.iteration == state.iteration && is_meant(there.cause)
}

/// At a checkpoint, after the model had its chance, what is dirty is committed, so that the next session's
/// `git reset` or `git clean` cannot take it. A failed commit is reported in the handoff, and the run continues.
/// Returns the state if there is something to report.
fn commit(context: &RunContext<'_>, state: &RunState) -> Result<Option<RunState>, StoreError> {
    let project = context.project;
    if state.options.commit == Commit::Off || !has_checkpoint(state, |_| true) {
        return Ok(None);
    }
    let message = message(state.iteration, &state.context_checkpoint);
    // Work in progress of a run with a branch lands on no other, whatever a session has checked out.
    let made = match branch::refusal(project, state) {
        Some(why) => Wip::Refused { why },
        None => {
            let item = state.iteration_record.item.as_deref();
            let items: Vec<&str> = item.into_iter().collect();
            let message = with_trailers(&message, &trailers(&state.run_id, &items, None));
            commit_wip(project.root(), &message, &our_files::is_ours, allowed_programs(project, state))
        }
    };
    let (words, made) = match made {
        Wip::Nothing => return Ok(None),
        Wip::Committed { id, files, left_out, forbidden_filters } => {
            let words = format!(
                "{} committed as `{message}`{}{}",
                counted(files, "file"),
                named(&left_out),
                forbidden(&forbidden_filters)
            );
            let made = WipCommit {
                commit: Some(id.into()),
                files: Some(files),
                left_out: Some(left_out),
                ..WipCommit::default()
            };
            (words, made)
        }
        Wip::Refused { why } => {
            let words = format!("the uncommitted work could not be committed: {why}");
            (words, WipCommit { trouble: Some(why), ..WipCommit::default() })
        }
    };
    // A kill after the commit costs this line and the handoff's words on it; the work is safe, and a repeat finds
    // nothing left to commit.
    let made = JournalEvent::WipCommit(WipCommit { message: Some(message), ..made });
    context.note(state, made)?;
    context.update_lazily(|state| {
        state.context_checkpoint.work = words;
        state.clone()
    })
}

/// Which hooks and filters a commit may run. None of a repository that was created during the run: a session may have written
/// its settings.
pub(super) fn allowed_programs(project: &Project, state: &RunState) -> AllowedPrograms {
    let now = || plimsoll_store::layout::repository_identity(project.root());
    match &state.at_start.repository_at_start {
        Some(at_start) if *at_start != now() => AllowedPrograms::Nothing,
        _ => branch::allowed_programs(state.options.commit_hooks),
    }
}

/// `ralph: checkpoint iter 5 (L2 at 85%)`
fn message(iteration: u32, checkpoint: &Checkpoint) -> String {
    let percent =
        checkpoint.percent_at_checkpoint.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    let what = match checkpoint.cause {
        Cause::Level => checkpoint.level.to_string(),
        // By a crash, an error of the API, a limit of the client.
        Cause::Crash => Cause::Unfinished.word().to_owned(),
        cause => cause.word().to_owned(),
    };
    format!("ralph: checkpoint iter {iteration} ({what}{percent})")
}

/// Why the files of these filters are not committed.
fn forbidden(filters: &[String]) -> String {
    if filters.is_empty() {
        return String::new();
    }
    let names: Vec<String> = filters.iter().map(|name| format!("`{name}`")).collect();
    format!(
        " (not run, as it may start a program of the project: filter {}; --commit-hooks allows it)",
        names.join(", ")
    )
}

fn named(left_out: &[String]) -> String {
    if left_out.is_empty() { String::new() } else { format!("; left uncommitted: {}", left_out.join(", ")) }
}
