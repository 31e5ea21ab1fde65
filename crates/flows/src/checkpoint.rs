//! Writes checkpoints: collects the session's facts without a lock (git takes time), writes the handoff, and
//! stores the checkpoint in the run's state under its lock.

pub mod facts;
pub(crate) mod handoff;
pub(crate) mod item_work;

use crate::linear::notes;
use crate::run_context::RunContext;
use facts::HandoffInput;
use plimsoll_domain::handoff::{Handoff, HandoffMetadata, HandoffNotes, RunFacts, VerifyCommandFact};
use plimsoll_domain::journal::{CheckpointWritten, JournalEntry, JournalEvent};
use plimsoll_domain::level::Level;
use plimsoll_domain::memory::render::render_summary_lines;
use plimsoll_domain::state::checkpoint::{NOT_STARTED, UNKNOWN};
use plimsoll_domain::state::{Checkpoint, CheckpointCause, EarlierNotes};
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{RunState, SessionId, SessionRecord, Settings, Thresholds, UsageReading};
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{
    Durability, HandoffIndex, Project, StoreError, TurnLog, clock, disk, journal, records, sessions,
    state_file,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Input of a checkpoint.
#[derive(Debug)]
pub struct CheckpointRequest<'a> {
    pub project: &'a Project,
    pub settings: &'a Settings,
    pub session_id: &'a SessionId,
    /// Path of the session's transcript.
    pub transcript_path: Option<PathBuf>,
    /// The run that owns the session.
    pub run: Option<&'a RunState>,
    pub cause: CheckpointCause,
    /// The level when the checkpoint was triggered.
    pub level: Level,
    /// The usage reading when the checkpoint was triggered.
    pub reading: Option<&'a UsageReading>,
    /// The thresholds, if the size of the context window is known.
    pub thresholds: Option<&'a Thresholds>,
    /// How long the hook waited for the client to write the transcript.
    pub transcript_wait: Option<Duration>,
    /// Tool calls of the current message, which are not in the transcript yet.
    pub pending_calls: &'a [ToolCall],
    /// Notes that the session wrote for the handoff; empty if it was not asked for any.
    pub notes: HandoffNotes,
}

impl<'a> CheckpointRequest<'a> {
    /// Returns the request for a session outside a run that does not work at the moment: its transcript is complete, and no
    /// call is pending.
    pub(crate) fn for_idle_session_outside_run(
        project: &'a Project,
        settings: &'a Settings,
        session_id: &'a SessionId,
        record: &'a SessionRecord,
        transcript_path: Option<PathBuf>,
    ) -> CheckpointRequest<'a> {
        CheckpointRequest {
            project,
            settings,
            session_id,
            transcript_path,
            run: None,
            cause: CheckpointCause::Manual,
            level: record.highest_announcement.level,
            reading: record.usage.last_reading.as_ref(),
            thresholds: None,
            transcript_wait: None,
            pending_calls: &[],
            notes: HandoffNotes::default(),
        }
    }
}

/// Plimsoll holds a lock for about a millisecond. After this timeout something is wrong, and the checkpoint
/// proceeds without the lock where that is safe.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Short because another hook may hold the turn log's lock while it reads the transcript, and the transcript
/// has the turns anyway.
const TURN_LOG_LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// A handoff that was just written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenHandoff {
    /// Its path, relative to the project.
    pub file: String,
    pub document: String,
    /// The open items of the plan or of the client's task list.
    pub open_items: Vec<String>,
}

/// Writes the handoff and the run's state.
pub fn write_checkpoint(request: &CheckpointRequest<'_>) -> Result<WrittenHandoff, StoreError> {
    let record = sessions::load_session_record(request.project, request.session_id);
    // The log is synced before git runs, because git may take long.
    sync_turn_log(request);
    write_handoff_and_record_checkpoint(request, &record, collect_session_facts(request, &record))
}

/// Writes the handoff and the run's state like [`write_checkpoint`], from facts that the caller has collected.
pub(crate) fn write_checkpoint_and_return_handoff_file(
    request: &CheckpointRequest<'_>,
    record: &SessionRecord,
    session_facts: Handoff,
) -> Result<String, StoreError> {
    sync_turn_log(request);
    write_handoff_and_record_checkpoint(request, record, session_facts).map(|written| written.file)
}

/// Syncs the session's turn log to disk. Errors are ignored: the transcript also has the turns, and the
/// handoff matters more.
fn sync_turn_log(request: &CheckpointRequest<'_>) {
    if let Some(log) = TurnLog::for_session_where_started_or_current(request.project, request.session_id) {
        let _ = log.sync_and_merge_pending_if_unsynced(TURN_LOG_LOCK_TIMEOUT);
    }
}

fn write_handoff_and_record_checkpoint(
    request: &CheckpointRequest<'_>,
    record: &SessionRecord,
    session_facts: Handoff,
) -> Result<WrittenHandoff, StoreError> {
    let handoff = add_measurement_run_and_memory(request, session_facts);
    // The handoff is written first, so that the state never names a missing file if the process is killed
    // in between.
    let (handoff_file, document) = create_or_refresh_handoff(request, record, &handoff)?;
    let state_write_result = save_checkpoint_and_queue_linear_note(
        request,
        &handoff,
        &handoff_file,
        &HandoffNotes::parse(&document),
    );
    if request.run.is_none() {
        // The handoff is about to be announced, so its folder entry must be on disk, too. In a run, the
        // durable write of the state covers it.
        disk::sync_folder(&request.project.handoffs_folder());
        add_to_handoff_index(request, &handoff_file);
    }
    // The claim is cleared last: if the process is killed before that, a journal line may be repeated, but
    // none is lost.
    record_checkpoint_in_journal(request, &handoff, &handoff_file, state_write_result.as_ref().err());
    // If this fails, the claim stays and a later event writes the checkpoint once more.
    let _ = sessions::update_session_record(request.project, request.session_id, LOCK_TIMEOUT, |record| {
        record.checkpoint_progress.last_handoff = Some(handoff_file.clone());
        record.checkpoint_progress.is_handoff_continued = request.cause == CheckpointCause::Clear;
        if state_write_result.is_ok() {
            record.checkpoint_progress.open_claim = None;
        }
    });
    // An agent may have removed our folder in the meantime, but the handoff has been announced and must
    // exist.
    let path = request.project.root().join(&handoff_file);
    if !disk::is_file(&path) {
        disk::replace(&path, document.as_bytes(), Durability::Durable)?;
    }
    state_write_result.map(|()| WrittenHandoff {
        file: handoff_file,
        document,
        open_items: handoff.open_items,
    })
}

/// Rewrites the handoff of a session outside a run when it ends, so that it contains the last requests and
/// messages. Does nothing if the session has no handoff.
pub fn refresh_existing_handoff_at_session_end(
    project: &Project,
    settings: &Settings,
    record: &SessionRecord,
    transcript_path: Option<PathBuf>,
) -> Result<(), StoreError> {
    if recorded_handoff_if_owned_by_session(project, &record.session_id, record).is_none() {
        return Ok(());
    }
    let request = CheckpointRequest::for_idle_session_outside_run(
        project,
        settings,
        &record.session_id,
        record,
        transcript_path,
    );
    let handoff = add_measurement_run_and_memory(&request, collect_session_facts(&request, record));
    let (handoff_file, _) = create_or_refresh_handoff(&request, record, &handoff)?;
    if !record.checkpoint_progress.is_handoff_continued {
        add_to_handoff_index(&request, &handoff_file);
    }
    Ok(())
}

/// Adds the handoff to the index as unread, so that it is announced to the next session; as read if a fresh conversation
/// begins with it. Runs after the handoff is written: if a kill or an unwritable state folder prevents it,
/// `plimsoll handoffs` still lists the file.
fn add_to_handoff_index(request: &CheckpointRequest<'_>, handoff_file: &str) {
    let file_name = Path::new(handoff_file).file_name().unwrap_or_default().to_string_lossy();
    let index = HandoffIndex::for_project(request.project);
    let _ = index.mark_unread(&file_name, request.session_id);
    if request.cause == CheckpointCause::Clear {
        index.mark_read(&file_name);
    }
}

pub(crate) fn collect_session_facts(request: &CheckpointRequest<'_>, record: &SessionRecord) -> Handoff {
    facts::build_handoff_from_git_plan_and_transcript(&HandoffInput {
        project: request.project,
        transcript_path: request.transcript_path.as_deref(),
        record,
        run: request.run,
        cause: request.cause,
        pending_calls: request.pending_calls,
    })
}

/// Adds the measurement, the run and the working memory to the facts.
fn add_measurement_run_and_memory(request: &CheckpointRequest<'_>, session_facts: Handoff) -> Handoff {
    let facts_with_measurement = Handoff {
        level: request.level,
        usage_percent: request.reading.and_then(UsageReading::projected_percent),
        client_usage_percent: request.reading.and_then(UsageReading::percent_shown_by_client),
        transcript_path: request.transcript_path.as_ref().map(|path| path.to_string_lossy().into_owned()),
        ..session_facts
    };
    add_run_session_and_memory(request.project, request.run, request.session_id, facts_with_measurement)
}

/// Adds the run, its verify results, earlier notes and the working memory to a session's facts.
pub(crate) fn add_run_session_and_memory(
    project: &Project,
    run: Option<&RunState>,
    session_id: &SessionId,
    session_facts: Handoff,
) -> Handoff {
    Handoff {
        run_facts: run.map(|run| RunFacts {
            run_id: run.run_id.clone(),
            task_name: run.options.task_name.clone(),
            iteration: run.iteration,
        }),
        verify_facts: run.map(verify_command_facts).unwrap_or_default(),
        earlier_notes: run.and_then(|run| earlier_session_notes_on_started_item(run, &session_facts)),
        session_id: session_id.to_owned(),
        written_at: clock::to_timestamp(clock::now()),
        memory_lines: plimsoll_store::memory::load_memory(project)
            .map(|memory| render_summary_lines(&memory))
            .unwrap_or_default(),
        ..session_facts
    }
}

/// Returns an earlier session's notes on the handoff's current item, if the work on the item has started.
fn earlier_session_notes_on_started_item(run: &RunState, session_facts: &Handoff) -> Option<EarlierNotes> {
    let previous_checkpoint = &run.context_checkpoint;
    let item = session_facts.current_item.as_deref().filter(|_| session_facts.item_work.is_begun)?;
    previous_checkpoint
        .has_work_on_item(item)
        .then(|| previous_checkpoint.latest_notes_before(run.iteration))
        .flatten()
}

/// Returns the last result of each of the run's verify commands.
fn verify_command_facts(run: &RunState) -> Vec<VerifyCommandFact> {
    let last_run =
        |command: &String| run.outcomes.verify_runs.iter().find(|verify_run| verify_run.command == *command);
    let to_fact = |command: String| VerifyCommandFact { last_run: last_run(&command).cloned(), command };
    run.options.unique_verify_and_check_commands().into_iter().map(to_fact).collect()
}

/// Writes the handoff. Returns its path relative to the project, and its text. A session has one handoff:
/// later checkpoints replace its generated part and keep the session's notes.
fn create_or_refresh_handoff(
    request: &CheckpointRequest<'_>,
    record: &SessionRecord,
    handoff: &Handoff,
) -> Result<(String, String), StoreError> {
    if let Some(handoff_file) =
        recorded_handoff_if_owned_by_session(request.project, request.session_id, record)
    {
        return refresh_or_recreate_handoff_file(request, handoff, handoff_file);
    }
    // Several events may arrive at once, each with a record from before the first handoff was written. The
    // lock on the record is held while the handoff is found or created, and its name is recorded before the
    // lock is released.
    let mut result_under_lock = None;
    let update_result =
        sessions::update_session_record(request.project, request.session_id, LOCK_TIMEOUT, |record| {
            let lookup_result = find_or_create_handoff(request, record, handoff);
            record.checkpoint_progress.last_handoff =
                lookup_result.as_ref().ok().map(|existing_or_new| existing_or_new.handoff_file.clone());
            result_under_lock = Some(lookup_result);
        });
    let handoff_result = match (result_under_lock, update_result) {
        // A failed write of the record does no harm: the next event finds the handoff by the session id in
        // its text.
        (Some(result), _) => result,
        // The checkpoint is written even if the lock is not available.
        (None, _) => {
            let record = sessions::load_session_record(request.project, request.session_id);
            find_or_create_handoff(request, &record, handoff)
        }
    };
    match handoff_result? {
        FoundOrCreatedHandoff { handoff_file, new_document: Some(document) } => Ok((handoff_file, document)),
        FoundOrCreatedHandoff { handoff_file, new_document: None } => {
            refresh_or_recreate_handoff_file(request, handoff, handoff_file)
        }
    }
}

struct FoundOrCreatedHandoff {
    handoff_file: String,
    /// The text if the file was just created; `None` if it already existed.
    new_document: Option<String>,
}

fn find_or_create_handoff(
    request: &CheckpointRequest<'_>,
    record: &SessionRecord,
    handoff: &Handoff,
) -> Result<FoundOrCreatedHandoff, StoreError> {
    let existing_file = recorded_handoff_if_owned_by_session(request.project, request.session_id, record)
        .or_else(|| find_newest_handoff_naming_session(request.project, request.session_id));
    if let Some(handoff_file) = existing_file {
        return Ok(FoundOrCreatedHandoff { handoff_file, new_document: None });
    }
    let document = handoff::render_without_secrets(handoff, &request.notes, request.settings.handoff_bytes);
    let handoff_file = create_uniquely_named_handoff_file(request.project, &document)?;
    Ok(FoundOrCreatedHandoff { handoff_file, new_document: Some(document) })
}

/// Creates a handoff file with this text. Returns its path relative to the project.
fn create_uniquely_named_handoff_file(project: &Project, text: &str) -> Result<String, StoreError> {
    let file_stem = clock::format_local_date_and_minute(clock::now());
    let mut number = 1;
    loop {
        let file_name =
            if number == 1 { format!("{file_stem}.md") } else { format!("{file_stem}-{number}.md") };
        let path = project.handoffs_folder().join(file_name);
        // Never overwrites the handoff of another session: two sessions may checkpoint in the same minute.
        if disk::create_new(&path, text.as_bytes())? {
            return Ok(project.relative_to_root(&path));
        }
        number += 1;
    }
}

/// Returns the handoff that a record names, if the file exists and its text names this session. The check is
/// for safety: an agent in Claude Code's sandbox can write the record, but not the handoffs of other sessions
/// in the user's state folder; the author of a cloned repository can write both, but does not know any session
/// id. A name that fails the check never appears in our messages.
pub(crate) fn recorded_handoff_if_owned_by_session(
    project: &Project,
    session_id: &SessionId,
    record: &SessionRecord,
) -> Option<String> {
    let belongs_to_session = |handoff_file: &String| {
        project
            .resolve_handoff(handoff_file)
            .is_some_and(|path| handoff_belongs_to_session(&path, session_id))
    };
    record.checkpoint_progress.last_handoff.clone().filter(belongs_to_session)
}

fn handoff_belongs_to_session(path: &Path, session_id: &SessionId) -> bool {
    let text = if disk::is_link(path) { None } else { disk::read_text(path).ok().flatten() };
    text.is_some_and(|text| HandoffMetadata::parse(&text).session_id == *session_id)
}

/// How many of the newest handoffs are searched for one that is missing from the record.
const MAX_HANDOFFS_SEARCHED: usize = 64;

/// Finds the newest handoff that names this session in its text. It may be missing from the record, because the
/// event that wrote it was killed or could not write the record.
fn find_newest_handoff_naming_session(project: &Project, session_id: &SessionId) -> Option<String> {
    let mut file_names = records::handoff_names(project);
    file_names.sort_unstable_by(|left, right| right.cmp(left));
    let paths =
        file_names.into_iter().take(MAX_HANDOFFS_SEARCHED).map(|name| project.handoffs_folder().join(name));
    let mut paths = paths.filter(|path| handoff_belongs_to_session(path, session_id));
    paths.next().map(|path| project.relative_to_root(&path))
}

fn refresh_or_recreate_handoff_file(
    request: &CheckpointRequest<'_>,
    handoff: &Handoff,
    handoff_file: String,
) -> Result<(String, String), StoreError> {
    let path = request.project.root().join(&handoff_file);
    let max_bytes = request.settings.handoff_bytes;
    let document = match disk::read_text(&path).ok().flatten() {
        Some(old_document) => {
            handoff::refresh_document_without_secrets(handoff, &request.notes, &old_document, max_bytes)
        }
        None => handoff::render_without_secrets(handoff, &request.notes, max_bytes),
    };
    match disk::replace(&path, document.as_bytes(), Durability::Durable) {
        Ok(()) => Ok((handoff_file, document)),
        // The session's files have moved into the project after that handoff was written, because Claude Code's
        // sandbox allows writes only there.
        Err(_) if !path.starts_with(request.project.handoffs_folder()) => {
            create_uniquely_named_handoff_file(request.project, &document).map(|file| (file, document))
        }
        Err(error) => Err(error),
    }
}

fn save_checkpoint_and_queue_linear_note(
    request: &CheckpointRequest<'_>,
    handoff: &Handoff,
    handoff_file: &str,
    notes: &HandoffNotes,
) -> Result<(), StoreError> {
    let Some(run) = request.run else { return Ok(()) };
    if let Some(state) =
        save_checkpoint_and_return_state_if_linear(request, run, handoff, handoff_file, notes)?
    {
        let CheckpointRequest { project, settings, .. } = *request;
        notes::queue_checkpoint_note(&RunContext { project, settings, run_id: &run.run_id }, &state);
    }
    Ok(())
}

/// Stores the checkpoint in the run's state. Returns the new state if a Linear issue is set, because a
/// note must then be queued.
fn save_checkpoint_and_return_state_if_linear(
    request: &CheckpointRequest<'_>,
    run: &RunState,
    handoff: &Handoff,
    handoff_file: &str,
    notes: &HandoffNotes,
) -> Result<Option<RunState>, StoreError> {
    let lock_result = state_file::lock_state(request.project, LOCK_TIMEOUT);
    // At L3 the checkpoint proceeds even if the lock is not available.
    let _lock = if request.level == Level::L3 { lock_result.ok() } else { Some(lock_result?) };
    let apply_checkpoint = |state: &mut RunState| {
        // A hook that outlived its iteration must not change the state of the next one.
        if state.run_id != run.run_id || state.iteration != run.iteration {
            return None;
        }
        let mut checkpoint = build_checkpoint(request, handoff, handoff_file, notes, run);
        checkpoint.inherit_notes_and_handoff_if_same_item(&state.context_checkpoint);
        state.context_checkpoint = checkpoint;
        state.plan_items.todo_items.clone_from(&handoff.open_items);
        state.plan_items.completed_items.clone_from(&handoff.done_items);
        let history_entry = state.history_entry_or_insert(run.iteration);
        history_entry.peak_percent = history_entry.peak_percent.max(handoff.usage_percent.unwrap_or(0));
        history_entry.ended_at_checkpoint |=
            matches!(request.cause, CheckpointCause::Level | CheckpointCause::Step | CheckpointCause::Budget);
        request.settings.linear.issue.is_some().then(|| state.clone())
    };
    let state_for_linear_note = state_file::update_state_without_locking(
        request.project,
        Some(&run.run_id),
        Durability::Durable,
        apply_checkpoint,
    )?;
    Ok(state_for_linear_note.flatten())
}

fn build_checkpoint(
    request: &CheckpointRequest<'_>,
    handoff: &Handoff,
    handoff_file: &str,
    notes: &HandoffNotes,
    run: &RunState,
) -> Checkpoint {
    let text_or_unknown = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() };
    let last_message = handoff
        .last_message
        .as_deref()
        .map(|text| truncate_end(&plimsoll_domain::text::to_safe_single_line(text), 600));
    let summary = match notes.summary.as_str() {
        "" => last_message.unwrap_or_default(),
        summary => summary.to_owned(),
    };
    let is_started = handoff.item_work.is_begun;
    Checkpoint {
        active: true,
        cause: request.cause,
        level: request.level,
        percent_at_checkpoint: handoff.usage_percent,
        percent_used: handoff.client_usage_percent,
        timestamp: handoff.written_at.clone(),
        handoff_file: handoff_file.to_owned(),
        resume_summary: text_or_unknown(&summary),
        files_in_progress: handoff.changed_files.clone(),
        current_todo_item: handoff.current_item.clone().unwrap_or_default(),
        progress_on_item: if is_started { text_or_unknown(&notes.progress) } else { NOT_STARTED.to_owned() },
        next_step: if is_started { notes.next_step.clone() } else { String::new() },
        item_work: handoff.item_work.clone(),
        iteration: run.iteration,
        head: handoff.git.as_ref().and_then(|git| git.head_commit.clone()),
        ..Checkpoint::default()
    }
}

/// Returns the item that the session was assigned; if there is none, the current one.
fn assigned_or_current_item(handoff: &Handoff) -> Option<String> {
    let session_item = Some(&handoff.item_work.session_item).filter(|item| !item.is_empty());
    session_item.or(handoff.current_item.as_ref()).cloned()
}

fn record_checkpoint_in_journal(
    request: &CheckpointRequest<'_>,
    handoff: &Handoff,
    handoff_file: &str,
    state_write_error: Option<&StoreError>,
) {
    let run_id_and_iteration = request.run.map(|run| (&run.run_id, run.iteration));
    let reading = request.reading;
    let event = CheckpointWritten {
        cause: Some(request.cause),
        level: request.level,
        percent: reading.and_then(UsageReading::projected_percent),
        percent_used: reading.and_then(UsageReading::percent_shown_by_client),
        handoff_path: handoff_file.to_owned(),
        files: Some(handoff.changed_files.iter().map(|file| file.path.clone()).collect()),
        item: assigned_or_current_item(handoff),
        finished_items: Some(handoff.item_work.ticked_items.clone()),
        reading: reading.cloned(),
        thresholds: request.thresholds.copied(),
        waited_ms: request.transcript_wait.map(|duration| duration.as_millis() as u64),
        state_write_error: state_write_error.map(ToString::to_string),
    };
    let entry = JournalEntry::new(JournalEvent::Checkpoint(event))
        .with_run(run_id_and_iteration)
        .with_session(Some(request.session_id));
    let _ = journal::append_entry(request.project, entry);
}
