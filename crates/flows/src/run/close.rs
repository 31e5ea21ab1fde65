//! Closing an iteration: its peak into the history, the session's notes into the state, the handoff brought up
//! to date, one paragraph into the progress file. SessionEnd does it; the process that judges does it again if a kill
//! came first, and doing it twice changes nothing.
//!
//! The notes are three labelled lines of the session's last message, and we copy them into the handoff: the client
//! refuses edits below `.claude/` in most permission modes.

use crate::checkpoint::facts;
use crate::checkpoint::facts::Asked;
use crate::checkpoint::handoff;
use crate::checkpoint::with_run;
use crate::context::item_cost;
use crate::context::item_cost::MeasuredSession;
use crate::context::measure::{Measurement, Question, measure};
use crate::linear::notes;
use crate::run::backup;
use crate::run::ended_session::EndedSession;
use crate::run_context::RunContext;
use crate::session_result::WORDS_KEPT;
use plimsoll_domain::handoff::{Handoff, Notes};
use plimsoll_domain::journal::{IterationClosed, JournalEntry, JournalEvent};
use plimsoll_domain::promise;
use plimsoll_domain::state::Phase;
use plimsoll_domain::state::checkpoint::NOT_BEGUN;
use plimsoll_domain::text::{clip, clip_start, one_line};
use plimsoll_domain::verdict::Ending;
use plimsoll_domain::{RunState, SessionId, SessionRecord};
use plimsoll_store::{Durability, StoreError, clock, disk, journal, sessions, state_file};
use std::path::Path;

/// Closes the iteration of a session, once. After a crash the state says that it is closed, and the next process adds what the
/// journal and the progress file lack. Returns none if the run is gone.
pub(super) fn close(
    context: &RunContext<'_>,
    session: EndedSession,
) -> Result<Option<EndedSession>, StoreError> {
    let EndedSession { iteration, state, measurement, .. } = &session;
    if state.iteration == *iteration && !is_closed(context, state) {
        // A hook that outlives its client writes the record, too: it may have kept the last words since.
        close_open(context, state, context.session_record(state), measurement)?;
    }
    // Hooks and commands have written it meanwhile, too: `plimsoll stop` ends a run at any time.
    Ok(context.load_state()?.map(|state| EndedSession { state, ..session }))
}

/// Closes the iteration of a session that a hook has just read; the history may be missing from the state.
pub(crate) fn close_as_read(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    if is_closed(context, state) {
        return Ok(());
    }
    let record = context.session_record(state);
    let measurement = last_measurement(context, &record);
    close_open(context, state, record, &measurement)
}

/// True if nothing is left to write. What comes after the state is made up for where a kill came between them.
fn is_closed(context: &RunContext<'_>, state: &RunState) -> bool {
    let record = &state.iteration_record;
    record.phase == Phase::Judged || record.closed && journal::tells(context.project, &closing_line(state))
}

/// The line of the journal by which a later process knows that the iteration is closed.
fn closing_line(state: &RunState) -> JournalEntry {
    JournalEntry::of_run_session(state, JournalEvent::IterationClosed(IterationClosed::default()))
}

fn close_open(
    context: &RunContext<'_>,
    state: &RunState,
    mut record: SessionRecord,
    measurement: &Measurement,
) -> Result<(), StoreError> {
    let (project, iteration) = (context.project, state.iteration);
    let line = closing_line(state);
    if !state.iteration_record.closed {
        note_override(context, state, &record)?;
    }
    take_last_words(&mut record);
    let percent = measurement.reading.as_ref().and_then(plimsoll_domain::Reading::percent).unwrap_or(0);
    record.usage.peak_percent = record.usage.peak_percent.max(percent);
    let renewed = refresh_handoff(context, state, &record)?;
    let notes = renewed.as_ref().map(|renewed| &renewed.notes);
    let todo = backup::todo(project, state)?;
    let paragraph = context.update(|state| {
        if state.iteration != iteration {
            return None;
        }
        if let Some(renewed) = &renewed {
            renewed.note(state);
        }
        if state.iteration_record.closed {
            return Some(paragraph(state, &record));
        }
        state.iteration_record.closed = true;
        let checkpointed = state.context_checkpoint.active && state.context_checkpoint.iteration == iteration;
        if checkpointed && let Some(notes) = notes {
            take_notes(state, notes, &record);
        }
        if let Some(todo) = &todo {
            let transcript = record.start.transcript_path.as_ref().map(Path::new);
            let session = MeasuredSession { project, record: &record, transcript };
            state.take_items(todo);
            item_cost::record_costs(state, &session, todo, true);
        }
        let entry = state.history_of(iteration);
        entry.peak_percent = entry.peak_percent.max(record.usage.peak_percent);
        Some(paragraph(state, &record))
    })?;
    let Some(paragraph) = paragraph.flatten() else { return Ok(()) };
    if context.settings.linear.issue.is_some() && notes.is_some() {
        tell_linear(context, iteration)?;
    }
    let closed = IterationClosed {
        peak_percent: record.usage.peak_percent,
        notes: Some(notes.is_some_and(|notes| !notes.is_empty())),
        ..IterationClosed::default()
    };
    let line = JournalEntry { event: JournalEvent::IterationClosed(closed), ..line };
    tell_once(context, &record.session_id, &paragraph, line)
}

/// Updates the checkpoint's note for Linear with what the session said about it afterwards.
fn tell_linear(context: &RunContext<'_>, iteration: u32) -> Result<(), StoreError> {
    // Read again: the notes of the last message are in the state only since the write that closed the iteration.
    let state = context.load_state()?.filter(|state| state.iteration == iteration);
    if let Some(state) = state.filter(|state| state.context_checkpoint.iteration == iteration) {
        notes::note_checkpoint(context, &state);
    }
    Ok(())
}

/// The session's own hook and the process that judges may do so at the same time: under the session's lock one of them does.
fn tell_once(
    context: &RunContext<'_>,
    session_id: &SessionId,
    paragraph: &str,
    line: JournalEntry,
) -> Result<(), StoreError> {
    let project = context.project;
    let _lock = sessions::lock(project, session_id, state_file::TIMEOUT)?;
    if journal::tells(project, &line) {
        return Ok(());
    }
    // The line says that the paragraph is there, so it comes second. A kill between them repeats the paragraph,
    // which `append_progress` recognizes.
    backup::append_progress(project, paragraph)?;
    journal::note(project, line)
}

/// The client ends a turn after this many blocks of a Stop hook, without notifying it. Then our last word was "go
/// on", and the session ended with the very message it had stopped with.
fn note_override(
    context: &RunContext<'_>,
    state: &RunState,
    record: &SessionRecord,
) -> Result<(), StoreError> {
    let Some(offer) = record.continuation.as_ref().filter(|offer| offer.open) else { return Ok(()) };
    let last = record.start.transcript_path.as_ref().and_then(|path| facts::last_message(Path::new(path)));
    // The record keeps the end of long words.
    let last = last.map(|words| clip_start(&words, WORDS_KEPT));
    let stopped_with = record.end.stop.as_ref().map(|stop| stop.last_words.as_str());
    if last.is_none() || last.as_deref() != stopped_with || record.end.ended_by_us.is_some() {
        return Ok(());
    }
    let event = JournalEvent::CutOffByClient { item: offer.item.clone(), continuations: offer.count };
    journal::note(context.project, JournalEntry::of_run(state, event).session(Some(&record.session_id)))
}

/// Brings the handoff up to date once more: a commit has come after its session. Returns the state with what it says.
pub(super) fn renew_handoff(context: &RunContext<'_>, state: RunState) -> Result<RunState, StoreError> {
    let mut record = context.session_record(&state);
    take_last_words(&mut record);
    let Some(renewed) = refresh_handoff(context, &state, &record)? else { return Ok(state) };
    let noted = context.update_lazily(|state| {
        renewed.note(state);
        state.clone()
    })?;
    Ok(noted.unwrap_or(state))
}

/// A client before 2.1 does not pass the last message to its Stop hook; by now it is in the transcript.
fn take_last_words(record: &mut SessionRecord) {
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    if let Some(stop) = record.end.stop.as_mut().filter(|stop| stop.last_words.is_empty())
        && let Some(words) = transcript.and_then(facts::last_message)
    {
        stop.last_words = clip_start(&words, WORDS_KEPT);
    }
}

/// The last answer comes after the last batch of tools: only now is it measured.
fn last_measurement(context: &RunContext<'_>, record: &SessionRecord) -> Measurement {
    let (project, settings) = (context.project, context.settings);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    measure(&Question { project, settings, record, transcript, calls: &[] })
}

/// What the session said last, without secrets and without a promise, which a later session might repeat. The record keeps the
/// end of long words: where they were cut in the middle of a long one, that may be the second half of a secret, and it is left
/// out.
pub(crate) fn last_words(record: &SessionRecord) -> String {
    const HALF: usize = 12;
    let words = record.end.stop.as_ref().map_or("", |stop| stop.last_words.as_str());
    let first = words.strip_prefix('…').and_then(|rest| rest.split(char::is_whitespace).next());
    let skipped = first.filter(|first| first.len() > HALF).map_or(0, |first| '…'.len_utf8() + first.len());
    promise::without_lines(&plimsoll_secrets::without(&words[skipped..]))
}

fn take_notes(state: &mut RunState, notes: &Notes, record: &SessionRecord) {
    let checkpoint = &mut state.context_checkpoint;
    // Of a finished item only what was meant for later sessions is handed on.
    let words = last_words(record);
    if notes.summary.is_empty() && checkpoint.item_work.is_begun && !words.is_empty() {
        checkpoint.resume_summary = clip(&one_line(&words), 600);
    }
    if !notes.summary.is_empty() {
        checkpoint.resume_summary.clone_from(&notes.summary);
    }
    // What is said of an item that is done is no word on the next one.
    if checkpoint.item_work.is_begun {
        if !notes.progress.is_empty() {
            checkpoint.progress_on_item.clone_from(&notes.progress);
        }
        checkpoint.next_step.clone_from(&notes.next);
        if checkpoint.has_notes() {
            checkpoint.earlier_notes = None;
        }
    }
}

/// What a handoff says since it was renewed.
struct Renewed {
    notes: Notes,
    handoff: Handoff,
}

impl Renewed {
    /// Notes it in the state. The handoff comes before the state, as at a checkpoint: the state never names facts that the file
    /// does not have.
    fn note(&self, state: &mut RunState) {
        let (checkpoint, handoff) = (&mut state.context_checkpoint, &self.handoff);
        checkpoint.files_in_progress.clone_from(&handoff.files);
        checkpoint.current_todo_item = handoff.current_item.clone().unwrap_or_default();
        checkpoint.item_work.clone_from(&handoff.work);
        checkpoint.head = handoff.git.as_ref().and_then(|git| git.head.clone());
        if !checkpoint.item_work.is_begun {
            checkpoint.progress_on_item = NOT_BEGUN.to_owned();
            checkpoint.next_step.clear();
        }
    }
}

/// The generated part is renewed (a commit may have come since), the session's notes are read back. The caller notes both in the
/// state.
fn refresh_handoff(
    context: &RunContext<'_>,
    state: &RunState,
    record: &SessionRecord,
) -> Result<Option<Renewed>, StoreError> {
    let (project, checkpoint) = (context.project, &state.context_checkpoint);
    if checkpoint.iteration != state.iteration || checkpoint.handoff_file.is_empty() || !checkpoint.active {
        return Ok(None);
    }
    let Some(path) = project.handoff_path(&checkpoint.handoff_file) else { return Ok(None) };
    let old = disk::read_text(&path)?.unwrap_or_default();
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    let asked = Asked { project, transcript, record, run: Some(state), cause: checkpoint.cause, calls: &[] };
    let found = Handoff {
        level: checkpoint.level,
        percent: checkpoint.percent_at_checkpoint,
        percent_used: checkpoint.percent_used,
        transcript: record.start.transcript_path.clone(),
        ..facts::of_session(&asked)
    };
    let mut fresh = with_run(project, Some(state), &record.session_id, found);
    if let Some(git) = &mut fresh.git {
        git.work.clone_from(&checkpoint.work);
    }
    let notes = Notes::in_message(&last_words(record));
    // The last message is the session's last word: it comes after whatever was noted before.
    let text = handoff::renewed(&fresh, &notes, &old, context.settings.handoff_bytes);
    disk::replace(&path, text.as_bytes(), Durability::Durable)?;
    Ok(Some(Renewed { notes: Notes::parse(&text), handoff: fresh }))
}

/// What the user reads in the morning, and the next session in its prompt if this one ticked nothing.
fn paragraph(state: &RunState, record: &SessionRecord) -> String {
    let ticked: Vec<String> =
        state.ticked_now().iter().map(|item| format!("\"{}\"", clip(item, 80))).collect();
    let ticked =
        if ticked.is_empty() { "no item ticked".to_owned() } else { format!("ticked {}", ticked.join(", ")) };
    let checkpoint = &state.context_checkpoint;
    let checkpoint = if checkpoint.active && checkpoint.iteration == state.iteration {
        format!(
            " Checkpoint ({}, {}): {}.",
            checkpoint.cause.shown_word(),
            checkpoint.level,
            checkpoint.handoff_file
        )
    } else {
        String::new()
    };
    let words = one_line(&last_words(record));
    let words = if words.is_empty() { String::new() } else { format!(" Last words: {}", clip(&words, 300)) };
    let ended = match (&record.end.ended_by_us, &state.iteration_record.ending) {
        (Some(why), _) => format!(" Ended by Plimsoll: {why}."),
        (None, Some(Ending::Crashed(why))) => format!(" The client {why}."),
        _ => String::new(),
    };
    format!(
        "[{}] Iteration {}: {ticked}; peak {}%; {} open.{checkpoint}{ended}{words}\n\n",
        clock::stamp(clock::now()),
        state.iteration,
        record.usage.peak_percent,
        state.items.todo_items.len()
    )
}
