//! Closes an iteration: writes its peak usage into the history, the session's notes into the state, an
//! up-to-date handoff, and one paragraph into the progress file. The SessionEnd hook does this. The process
//! that judges the iteration does it again if the hook was killed; closing an iteration is idempotent.
//!
//! The notes are three labeled lines of the session's last message. We copy them into the handoff because the
//! client refuses edits below `.claude/` in most permission modes.

use crate::checkpoint::add_run_session_and_memory;
use crate::checkpoint::facts;
use crate::checkpoint::facts::HandoffInput;
use crate::checkpoint::handoff;
use crate::context::item_cost;
use crate::context::item_cost::MeasuredSession;
use crate::context::measure::{MeasureInput, Measurement, measure_usage_waiting_near_threshold};
use crate::linear::notes;
use crate::run::backup;
use crate::run::ended_session::EndedSession;
use crate::run_context::RunContext;
use crate::session_result::MAX_MESSAGE_CHARS;
use plimsoll_domain::handoff::{Handoff, HandoffNotes};
use plimsoll_domain::journal::{IterationClosed, JournalEntry, JournalEvent};
use plimsoll_domain::promise;
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::state::checkpoint::NOT_STARTED;
use plimsoll_domain::text::{to_safe_single_line, truncate_end, truncate_start};
use plimsoll_domain::verdict::SessionEnding;
use plimsoll_domain::{RunState, SessionId, SessionRecord};
use plimsoll_store::{Durability, StoreError, clock, disk, journal, sessions, state_file};
use std::path::Path;

/// Closes the iteration of a session unless it is closed. After a crash, also adds what is missing from the
/// journal and the progress file. Returns the session with the newest state; `None` if the run no longer
/// exists.
pub(super) fn close_iteration_and_reload_if_run_exists(
    context: &RunContext<'_>,
    session: EndedSession,
) -> Result<Option<EndedSession>, StoreError> {
    let EndedSession { iteration, state, measurement, .. } = &session;
    if state.iteration == *iteration && !is_iteration_closed(context, state) {
        // Loaded again: a hook that outlives its client may have stored the last message in the record.
        write_closing_records(context, state, context.load_session_record_or_default(state), measurement)?;
    }
    // Loaded again, because hooks and commands such as `plimsoll stop` may have written the state.
    Ok(context.load_newest_state()?.map(|state| EndedSession { state, ..session }))
}

/// Closes the iteration from the SessionEnd hook of its session, unless it is closed. `state` is the state
/// that the hook has just read; it may lack the history.
pub(crate) fn close_iteration_at_session_end(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    if is_iteration_closed(context, state) {
        return Ok(());
    }
    let record = context.load_session_record_or_default(state);
    let measurement = measure_usage_after_last_response(context, &record);
    write_closing_records(context, state, record, &measurement)
}

/// Returns true if the state records that the iteration is judged, or that it is closed and the closing
/// journal line was also written.
fn is_iteration_closed(context: &RunContext<'_>, state: &RunState) -> bool {
    let record = &state.iteration_record;
    record.phase == IterationPhase::Judged
        || record.is_closed
            && journal::has_same_event_and_origin_near_end(context.project, &closing_entry(state))
}

/// Returns the journal line by which a later process recognizes that the iteration is closed.
fn closing_entry(state: &RunState) -> JournalEntry {
    JournalEntry::for_run_session(state, JournalEvent::IterationClosed(IterationClosed::default()))
}

fn write_closing_records(
    context: &RunContext<'_>,
    state: &RunState,
    mut record: SessionRecord,
    measurement: &Measurement,
) -> Result<(), StoreError> {
    let (project, iteration) = (context.project, state.iteration);
    let entry = closing_entry(state);
    if !state.iteration_record.is_closed {
        journal_cutoff_if_continuation_unanswered(context, state, &record)?;
    }
    fill_empty_last_message_from_transcript(&mut record);
    let percent =
        measurement.reading.as_ref().and_then(plimsoll_domain::UsageReading::projected_percent).unwrap_or(0);
    record.usage.peak_projected_percent = record.usage.peak_projected_percent.max(percent);
    let refreshed = rewrite_handoff_if_checkpoint_active(context, state, &record)?;
    let notes = refreshed.as_ref().map(|refreshed| &refreshed.notes);
    let todo = backup::load_plan_and_update_copy_and_items(project, state)?;
    let paragraph = context.update_state(|state| {
        if state.iteration != iteration {
            return None;
        }
        if let Some(refreshed) = &refreshed {
            refreshed.write_handoff_to_checkpoint(state);
        }
        if state.iteration_record.is_closed {
            return Some(render_progress_paragraph(state, &record));
        }
        state.iteration_record.is_closed = true;
        let has_checkpoint =
            state.context_checkpoint.active && state.context_checkpoint.iteration == iteration;
        if has_checkpoint && let Some(notes) = notes {
            store_handoff_notes_in_checkpoint(state, notes, &record);
        }
        if let Some(todo) = &todo {
            let transcript = record.start.transcript_path.as_ref().map(Path::new);
            let session = MeasuredSession { project, record: &record, transcript_path: transcript };
            state.update_items_and_questions_from_plan(todo);
            item_cost::charge_growth_to_items_at_tick_or_session_end(state, &session, todo, true);
        }
        let history_entry = state.history_entry_or_insert(iteration);
        history_entry.peak_percent = history_entry.peak_percent.max(record.usage.peak_projected_percent);
        Some(render_progress_paragraph(state, &record))
    })?;
    let Some(paragraph) = paragraph.flatten() else { return Ok(()) };
    if context.settings.linear.issue.is_some() && notes.is_some() {
        queue_linear_checkpoint_note_if_current(context, iteration)?;
    }
    let iteration_closed = IterationClosed {
        peak_percent: record.usage.peak_projected_percent,
        has_notes: Some(notes.is_some_and(|notes| !notes.is_empty())),
        ..IterationClosed::default()
    };
    let entry = JournalEntry { event: JournalEvent::IterationClosed(iteration_closed), ..entry };
    append_progress_and_journal_entry_once(context, &record.session_id, &paragraph, entry)
}

/// Queues the checkpoint's note for Linear again, with the notes of the session's last message. Does nothing
/// if the checkpoint belongs to another iteration.
fn queue_linear_checkpoint_note_if_current(
    context: &RunContext<'_>,
    iteration: u32,
) -> Result<(), StoreError> {
    // Loaded again, because the notes are in the state only after the write that closed the iteration.
    let state = context.load_newest_state()?.filter(|state| state.iteration == iteration);
    if let Some(state) = state.filter(|state| state.context_checkpoint.iteration == iteration) {
        notes::queue_checkpoint_note(context, &state);
    }
    Ok(())
}

/// Writes the paragraph and the journal line unless the line exists. Holds the session's lock, because the
/// session's hook and the process that judges may both write at the same time.
fn append_progress_and_journal_entry_once(
    context: &RunContext<'_>,
    session_id: &SessionId,
    paragraph: &str,
    entry: JournalEntry,
) -> Result<(), StoreError> {
    let project = context.project;
    let _lock = sessions::lock_session_if_id_is_file_name(project, session_id, state_file::LOCK_TIMEOUT)?;
    if journal::has_same_event_and_origin_near_end(project, &entry) {
        return Ok(());
    }
    // The line is written second, because it confirms that the paragraph was written. After a kill between
    // the two writes the same paragraph is passed again, and is not appended twice.
    backup::restore_progress_and_append_paragraph_once(project, paragraph)?;
    journal::append_entry(project, entry)
}

/// Records in the journal that the client ended the turn although the Stop hook had asked it to continue. The
/// client does this after a number of blocks by a Stop hook, without notifying the hook. In that case the
/// transcript still ends with the message at which the session had stopped.
fn journal_cutoff_if_continuation_unanswered(
    context: &RunContext<'_>,
    state: &RunState,
    record: &SessionRecord,
) -> Result<(), StoreError> {
    let Some(continuation) = record.continuation.as_ref().filter(|continuation| continuation.is_open) else {
        return Ok(());
    };
    let last_message = record
        .start
        .transcript_path
        .as_ref()
        .and_then(|path| facts::last_message_text_unless_tool_call(Path::new(path)));
    // Truncated as in the record, which keeps only the end of a long message.
    let last_message = last_message.map(|message| truncate_start(&message, MAX_MESSAGE_CHARS));
    let message_at_stop = record.end.stop.as_ref().map(|stop| stop.end_of_last_message.as_str());
    if last_message.is_none()
        || last_message.as_deref() != message_at_stop
        || record.end.hook_end_reason.is_some()
    {
        return Ok(());
    }
    let event = JournalEvent::CutOffByClient {
        item: continuation.item.clone(),
        continuations: continuation.sent_count,
    };
    journal::append_entry(
        context.project,
        JournalEntry::for_run(state, event).with_session(Some(&record.session_id)),
    )
}

/// Updates the handoff and the state after a commit that was made when the session had ended. Returns the
/// newest state.
pub(super) fn refresh_handoff_and_state_after_commit(
    context: &RunContext<'_>,
    state: RunState,
) -> Result<RunState, StoreError> {
    let mut record = context.load_session_record_or_default(&state);
    fill_empty_last_message_from_transcript(&mut record);
    let Some(refreshed) = rewrite_handoff_if_checkpoint_active(context, &state, &record)? else {
        return Ok(state);
    };
    let updated = context.update_state_without_sync(|state| {
        refreshed.write_handoff_to_checkpoint(state);
        state.clone()
    })?;
    Ok(updated.unwrap_or(state))
}

/// Fills in the last message from the transcript if it is empty: a client before 2.1 does not pass the message
/// to its Stop hook.
fn fill_empty_last_message_from_transcript(record: &mut SessionRecord) {
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    if let Some(stop) = record.end.stop.as_mut().filter(|stop| stop.end_of_last_message.is_empty())
        && let Some(message) = transcript.and_then(facts::last_message_text_unless_tool_call)
    {
        stop.end_of_last_message = truncate_start(&message, MAX_MESSAGE_CHARS);
    }
}

/// Measures the context usage after the last response, which follows the last batch of tools.
fn measure_usage_after_last_response(context: &RunContext<'_>, record: &SessionRecord) -> Measurement {
    let (project, settings) = (context.project, context.settings);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    measure_usage_waiting_near_threshold(&MeasureInput {
        project,
        settings,
        record,
        transcript_path: transcript,
        pending_calls: &[],
    })
}

/// Returns the session's last message without secrets, and without a promise, because a later session might
/// repeat it. The record keeps only the end of a long message. If that end starts with a long partial word,
/// the word is left out, because it may be the second half of a secret.
pub(crate) fn redact_last_message_and_replace_promises(record: &SessionRecord) -> String {
    const MAX_PARTIAL_WORD_BYTES: usize = 12;
    let message = record.end.stop.as_ref().map_or("", |stop| stop.end_of_last_message.as_str());
    let first_word =
        message.strip_prefix('…').and_then(|message_tail| message_tail.split(char::is_whitespace).next());
    let skipped_bytes = first_word
        .filter(|word| word.len() > MAX_PARTIAL_WORD_BYTES)
        .map_or(0, |word| '…'.len_utf8() + word.len());
    promise::replace_promises_with_blocked_reasons(&plimsoll_secrets::redact(&message[skipped_bytes..]))
}

fn store_handoff_notes_in_checkpoint(state: &mut RunState, notes: &HandoffNotes, record: &SessionRecord) {
    let checkpoint = &mut state.context_checkpoint;
    // The last message describes the item's work, so it is a summary only for an unfinished item.
    let message = redact_last_message_and_replace_promises(record);
    if notes.summary.is_empty() && checkpoint.item_work.is_begun && !message.is_empty() {
        checkpoint.resume_summary = truncate_end(&to_safe_single_line(&message), 600);
    }
    if !notes.summary.is_empty() {
        checkpoint.resume_summary.clone_from(&notes.summary);
    }
    // Notes about a finished item do not apply to the next one.
    if checkpoint.item_work.is_begun {
        if !notes.progress.is_empty() {
            checkpoint.progress_on_item.clone_from(&notes.progress);
        }
        checkpoint.next_step.clone_from(&notes.next_step);
        if checkpoint.has_progress_or_next_step() {
            checkpoint.earlier_notes = None;
        }
    }
}

/// The notes and the generated part of an updated handoff.
struct RefreshedHandoff {
    notes: HandoffNotes,
    handoff: Handoff,
}

impl RefreshedHandoff {
    /// Writes the generated part of the handoff into the state's checkpoint. The handoff file is written
    /// before, as at a checkpoint, so that the state never contains anything that the file lacks.
    fn write_handoff_to_checkpoint(&self, state: &mut RunState) {
        let (checkpoint, handoff) = (&mut state.context_checkpoint, &self.handoff);
        checkpoint.files_in_progress.clone_from(&handoff.changed_files);
        checkpoint.current_todo_item = handoff.current_item.clone().unwrap_or_default();
        checkpoint.item_work.clone_from(&handoff.item_work);
        checkpoint.head = handoff.git.as_ref().and_then(|git| git.head_commit.clone());
        if !checkpoint.item_work.is_begun {
            checkpoint.progress_on_item = NOT_STARTED.to_owned();
            checkpoint.next_step.clear();
        }
    }
}

/// Rewrites the handoff file with an up-to-date generated part, because a commit may have been made since, and
/// with the session's notes. Returns both for the state; `None` if the iteration has no active checkpoint.
fn rewrite_handoff_if_checkpoint_active(
    context: &RunContext<'_>,
    state: &RunState,
    record: &SessionRecord,
) -> Result<Option<RefreshedHandoff>, StoreError> {
    let (project, checkpoint) = (context.project, &state.context_checkpoint);
    if checkpoint.iteration != state.iteration || checkpoint.handoff_file.is_empty() || !checkpoint.active {
        return Ok(None);
    }
    let Some(path) = project.resolve_handoff(&checkpoint.handoff_file) else { return Ok(None) };
    let old_text = disk::read_text(&path)?.unwrap_or_default();
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    let facts_input = HandoffInput {
        project,
        transcript_path: transcript,
        record,
        run: Some(state),
        cause: checkpoint.cause,
        pending_calls: &[],
    };
    let handoff = Handoff {
        level: checkpoint.level,
        usage_percent: checkpoint.percent_at_checkpoint,
        client_usage_percent: checkpoint.percent_used,
        transcript_path: record.start.transcript_path.clone(),
        ..facts::build_handoff_from_git_plan_and_transcript(&facts_input)
    };
    let mut new_handoff = add_run_session_and_memory(project, Some(state), &record.session_id, handoff);
    if let Some(git) = &mut new_handoff.git {
        git.uncommitted_work_outcome.clone_from(&checkpoint.work_outcome);
    }
    let notes = HandoffNotes::from_message(&redact_last_message_and_replace_promises(record));
    // The notes of the last message are newer than those in the file.
    let text = handoff::refresh_document_without_secrets(
        &new_handoff,
        &notes,
        &old_text,
        context.settings.handoff_bytes,
    );
    disk::replace(&path, text.as_bytes(), Durability::Durable)?;
    Ok(Some(RefreshedHandoff { notes: HandoffNotes::parse(&text), handoff: new_handoff }))
}

/// Renders the paragraph about the iteration for the progress file. The next session gets it in its prompt if
/// this one ticked no item.
fn render_progress_paragraph(state: &RunState, record: &SessionRecord) -> String {
    let ticked_items: Vec<String> = state
        .items_ticked_in_iteration()
        .iter()
        .map(|item| format!("\"{}\"", truncate_end(item, 80)))
        .collect();
    let ticked_text = if ticked_items.is_empty() {
        "no item ticked".to_owned()
    } else {
        format!("ticked {}", ticked_items.join(", "))
    };
    let checkpoint = &state.context_checkpoint;
    let checkpoint_text = if checkpoint.active && checkpoint.iteration == state.iteration {
        format!(
            " Checkpoint ({}, {}): {}.",
            checkpoint.cause.display_text(),
            checkpoint.level,
            checkpoint.handoff_file
        )
    } else {
        String::new()
    };
    let message = to_safe_single_line(&redact_last_message_and_replace_promises(record));
    let message_text = if message.is_empty() {
        String::new()
    } else {
        format!(" Last words: {}", truncate_end(&message, 300))
    };
    let ending_text = match (&record.end.hook_end_reason, &state.iteration_record.ending) {
        (Some(reason), _) => format!(" Ended by Plimsoll: {reason}."),
        (None, Some(SessionEnding::Crashed(failure_text))) => format!(" Claude Code {failure_text}."),
        _ => String::new(),
    };
    format!(
        "[{}] Iteration {}: {ticked_text}; peak {}%; {} open.{checkpoint_text}{ending_text}{message_text}\n\n",
        clock::to_timestamp(clock::now()),
        state.iteration,
        record.usage.peak_projected_percent,
        state.plan_items.todo_items.len()
    )
}
