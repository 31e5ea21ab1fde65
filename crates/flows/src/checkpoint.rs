//! The checkpoint: facts gathered without a lock (git takes time), the handoff written, the state committed
//! under its lock.

pub mod facts;
pub(crate) mod handoff;
pub(crate) mod work;

use crate::linear::notes;
use crate::run_context::RunContext;
use facts::Asked;
use plimsoll_domain::handoff::{Handoff, HandoffSummary, Notes, RunFacts, VerifyFact};
use plimsoll_domain::journal::{CheckpointWritten, JournalEntry, JournalEvent};
use plimsoll_domain::level::Level;
use plimsoll_domain::memory::render::summary;
use plimsoll_domain::state::checkpoint::{NOT_BEGUN, UNKNOWN};
use plimsoll_domain::state::{Cause, Checkpoint, EarlierNotes};
use plimsoll_domain::text::clip;
use plimsoll_domain::{Reading, RunState, SessionId, SessionRecord, Settings, Thresholds};
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{
    Durability, HandoffIndex, Project, StoreError, TurnLog, clock, disk, journal, records, sessions,
    state_file,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to checkpoint, and why.
#[derive(Debug)]
pub struct Request<'a> {
    /// The project.
    pub project: &'a Project,
    /// The settings in force.
    pub settings: &'a Settings,
    /// The session.
    pub session_id: &'a SessionId,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// The run that owns it.
    pub run: Option<&'a RunState>,
    /// Why.
    pub cause: Cause,
    /// The level at this moment.
    pub level: Level,
    /// The reading at this moment.
    pub reading: Option<&'a Reading>,
    /// Where the levels begin, where that is known.
    pub thresholds: Option<&'a Thresholds>,
    /// How long the client's transcript writer was waited for.
    pub waited: Option<Duration>,
    /// The tool calls of the message at hand: not yet in the transcript.
    pub calls: &'a [ToolCall],
    /// What the session says about it, if it was asked.
    pub notes: Notes,
}

/// A lock that a writer of ours holds for a millisecond; after this long something is wrong, and at a
/// checkpoint we act all the same.
const TIMEOUT: Duration = Duration::from_secs(2);
/// For the turn log's, which another hook may hold while it reads.
const TURNS_TIMEOUT: Duration = Duration::from_millis(50);

/// Writes handoff and state; answers with the handoff's path relative to the project.
pub fn write(request: &Request<'_>) -> Result<String, StoreError> {
    let record = sessions::load(request.project, request.session_id);
    // Before git is asked, which may take long.
    make_turns_durable(request);
    write_gathered(request, &record, gather_facts(request, &record))
}

/// Writes handoff and state like [`write`], for a caller that has gathered the facts.
pub(crate) fn write_facts(
    request: &Request<'_>,
    record: &SessionRecord,
    facts: Handoff,
) -> Result<String, StoreError> {
    make_turns_durable(request);
    write_gathered(request, record, facts)
}

/// The turns that the checkpoint is about. If they cannot be, the transcript has them, and the handoff is what matters.
fn make_turns_durable(request: &Request<'_>) {
    if let Some(log) = TurnLog::of(request.project, request.session_id) {
        let _ = log.make_durable(TURNS_TIMEOUT);
    }
}

fn write_gathered(
    request: &Request<'_>,
    record: &SessionRecord,
    facts: Handoff,
) -> Result<String, StoreError> {
    let handoff = complete(request, facts);
    // The handoff first: the state names it, and must not name a file that a kill has left out.
    let (file, text) = write_handoff(request, record, &handoff)?;
    let committed = commit(request, &handoff, &file, &Notes::parse(&text));
    if request.run.is_none() {
        // What is announced is on the disk, its name too. In a run the state's folder is put there after it, and with it what was
        // named before.
        disk::sync_folder(&request.project.handoffs());
        offer_later(request, &file);
    }
    // The claim goes last: a kill before that brings a second line into the journal, never none.
    note(request, &handoff, &file, committed.as_ref().err());
    // If this fails the claim stays, and a later event writes the checkpoint once more.
    let _ = sessions::update(request.project, request.session_id, TIMEOUT, |record| {
        record.checkpoint.handoff = Some(file.clone());
        if committed.is_ok() {
            record.checkpoint.claim = None;
        }
    });
    // An agent may have removed our folder since: what is named by now must be there.
    let path = request.project.root().join(&file);
    if !disk::is_file(&path) {
        disk::replace(&path, text.as_bytes(), Durability::Durable)?;
    }
    committed.map(|()| file)
}

/// Writes the handoff of an ordinary session again at its end, so that it holds the last requests and words. A session that
/// has none gets none.
pub fn renew_at_end(
    project: &Project,
    settings: &Settings,
    record: &SessionRecord,
    transcript: Option<PathBuf>,
) -> Result<(), StoreError> {
    if recorded_handoff(project, &record.session_id, record).is_none() {
        return Ok(());
    }
    let request = Request {
        project,
        settings,
        session_id: &record.session_id,
        transcript,
        run: None,
        cause: Cause::Manual,
        level: record.announced.level,
        reading: record.usage.reading.as_ref(),
        thresholds: None,
        waited: None,
        calls: &[],
        notes: Notes::default(),
    };
    let handoff = complete(&request, gather_facts(&request, record));
    let (file, _) = write_handoff(&request, record, &handoff)?;
    offer_later(&request, &file);
    Ok(())
}

/// The next session is offered it. After the handoff: a kill in between leaves one that is offered to nobody, and
/// `plimsoll handoffs` lists it all the same. So does a state folder that cannot be written.
fn offer_later(request: &Request<'_>, file: &str) {
    let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    let _ = HandoffIndex::of(request.project).add(&name, request.session_id);
}

/// Gathers the facts of the session that a checkpoint is about.
pub(crate) fn gather_facts(request: &Request<'_>, record: &SessionRecord) -> Handoff {
    facts::of_session(&Asked {
        project: request.project,
        transcript: request.transcript.as_deref(),
        record,
        run: request.run,
        cause: request.cause,
        calls: request.calls,
    })
}

/// Adds the measurement, the run and the working memory to the facts.
fn complete(request: &Request<'_>, facts: Handoff) -> Handoff {
    let found = Handoff {
        level: request.level,
        percent: request.reading.and_then(Reading::percent),
        percent_used: request.reading.and_then(Reading::percent_used),
        transcript: request.transcript.as_ref().map(|path| path.to_string_lossy().into_owned()),
        ..facts
    };
    with_run(request.project, request.run, request.session_id, found)
}

/// What was found in a session, with its run and the working memory.
pub(crate) fn with_run(
    project: &Project,
    run: Option<&RunState>,
    session_id: &SessionId,
    found: Handoff,
) -> Handoff {
    Handoff {
        run: run.map(|run| RunFacts {
            run_id: run.run_id.clone(),
            task_name: run.options.task_name.clone(),
            iteration: run.iteration,
        }),
        verify: run.map(verify_facts).unwrap_or_default(),
        earlier_notes: run.and_then(|run| earlier_notes(run, &found)),
        session_id: session_id.to_owned(),
        written_at: clock::stamp(clock::now()),
        memory: plimsoll_store::memory::load(project).map(|memory| summary(&memory)).unwrap_or_default(),
        ..found
    }
}

/// Returns what an earlier session said of the item that a handoff is about.
fn earlier_notes(run: &RunState, found: &Handoff) -> Option<EarlierNotes> {
    let before = &run.context_checkpoint;
    let item = found.current_item.as_deref().filter(|_| found.work.is_begun)?;
    before.is_half_done(item).then(|| before.notes_before(run.iteration)).flatten()
}

/// Returns what the run knows of each of its verify commands.
fn verify_facts(run: &RunState) -> Vec<VerifyFact> {
    let last = |command: &String| run.outcomes.verify_runs.iter().find(|known| known.command == *command);
    let fact = |command: String| VerifyFact { last: last(&command).cloned(), command };
    run.options.commands().into_iter().map(fact).collect()
}

/// Writes the handoff and returns its path relative to the project, and its text. A session has one handoff: later checkpoints
/// renew its generated part and leave the session's notes.
fn write_handoff(
    request: &Request<'_>,
    record: &SessionRecord,
    handoff: &Handoff,
) -> Result<(String, String), StoreError> {
    if let Some(file) = recorded_handoff(request.project, request.session_id, record) {
        return renew_handoff(request, handoff, file);
    }
    // Several events may come at once, and each has read the record before the first handoff was there: who finds or creates it
    // holds the record's lock, and the name is in the record before the lock is released.
    let mut placed = None;
    let recorded = sessions::update(request.project, request.session_id, TIMEOUT, |record| {
        let handoff = find_or_create_handoff(request, record, handoff);
        record.checkpoint.handoff = handoff.as_ref().ok().map(|handoff| handoff.file.clone());
        placed = Some(handoff);
    });
    let placed = match (placed, recorded) {
        // A record that could not be written does not matter: the next event finds the handoff by what it says.
        (Some(placed), _) => placed,
        // A checkpoint is written even if the lock is not available.
        (None, _) => {
            let record = sessions::load(request.project, request.session_id);
            find_or_create_handoff(request, &record, handoff)
        }
    };
    match placed? {
        PlacedHandoff { file, text: Some(text) } => Ok((file, text)),
        PlacedHandoff { file, text: None } => renew_handoff(request, handoff, file),
    }
}

/// The handoff of a session, relative to the project.
struct PlacedHandoff {
    file: String,
    /// What was just written; `None` if the file was there already.
    text: Option<String>,
}

fn find_or_create_handoff(
    request: &Request<'_>,
    record: &SessionRecord,
    handoff: &Handoff,
) -> Result<PlacedHandoff, StoreError> {
    let known = recorded_handoff(request.project, request.session_id, record)
        .or_else(|| unrecorded_handoff(request.project, request.session_id));
    if let Some(file) = known {
        return Ok(PlacedHandoff { file, text: None });
    }
    let text = handoff::document(handoff, &request.notes, request.settings.handoff_bytes);
    let file = create_handoff(request.project, &text)?;
    Ok(PlacedHandoff { file, text: Some(text) })
}

/// Creates a handoff with this text, and returns its path relative to the project.
fn create_handoff(project: &Project, text: &str) -> Result<String, StoreError> {
    let stem = clock::wall_clock(clock::now());
    let mut number = 1;
    loop {
        let name = if number == 1 { format!("{stem}.md") } else { format!("{stem}-{number}.md") };
        let path = project.handoffs().join(name);
        // Never over another session's handoff: two may checkpoint in the same second.
        if disk::create_new(&path, text.as_bytes())? {
            return Ok(project.relative(&path));
        }
        number += 1;
    }
}

/// The handoff that a record names, if it is there and says that it is this session's. An agent in Claude Code's sandbox can write the
/// record, but not the handoffs of other sessions among the user's state; and the author of a clone can write both, but knows no
/// session's id. Whatever else stands there comes into no sentence of ours.
pub(crate) fn recorded_handoff(
    project: &Project,
    session_id: &SessionId,
    record: &SessionRecord,
) -> Option<String> {
    let is_own =
        |file: &String| project.handoff_path(file).is_some_and(|path| is_of_session(&path, session_id));
    record.checkpoint.handoff.clone().filter(is_own)
}

fn is_of_session(handoff: &Path, session_id: &SessionId) -> bool {
    let text = if disk::is_link(handoff) { None } else { disk::read_text(handoff).ok().flatten() };
    text.is_some_and(|text| HandoffSummary::parse(&text).session_id == *session_id)
}

/// So many of the newest handoffs are looked into for one that no record names.
const MAX_HANDOFFS_SEARCHED: usize = 64;

/// The handoff that says it is this session's: an event that was killed, or that the disk refused something, has written it and
/// not its name into the record.
fn unrecorded_handoff(project: &Project, session_id: &SessionId) -> Option<String> {
    let mut names = records::handoffs(project);
    names.sort_unstable_by(|one, other| other.cmp(one));
    let paths = names.into_iter().take(MAX_HANDOFFS_SEARCHED).map(|name| project.handoffs().join(name));
    let mut paths = paths.filter(|path| is_of_session(path, session_id));
    paths.next().map(|path| project.relative(&path))
}

fn renew_handoff(
    request: &Request<'_>,
    handoff: &Handoff,
    file: String,
) -> Result<(String, String), StoreError> {
    let path = request.project.root().join(&file);
    let limit = request.settings.handoff_bytes;
    let text = match disk::read_text(&path).ok().flatten() {
        Some(old) => handoff::renewed(handoff, &request.notes, &old, limit),
        None => handoff::document(handoff, &request.notes, limit),
    };
    match disk::replace(&path, text.as_bytes(), Durability::Durable) {
        Ok(()) => Ok((file, text)),
        // The session's files have moved into the project since, because Claude Code's sandbox lets a command write nothing else.
        Err(_) if !path.starts_with(request.project.handoffs()) => {
            create_handoff(request.project, &text).map(|file| (file, text))
        }
        Err(error) => Err(error),
    }
}

fn commit(request: &Request<'_>, handoff: &Handoff, file: &str, notes: &Notes) -> Result<(), StoreError> {
    let Some(run) = request.run else { return Ok(()) };
    if let Some(state) = commit_state(request, run, handoff, file, notes)? {
        let Request { project, settings, .. } = *request;
        notes::note_checkpoint(&RunContext { project, settings, run_id: &run.run_id }, &state);
    }
    Ok(())
}

/// Returns the state if others must be notified.
fn commit_state(
    request: &Request<'_>,
    run: &RunState,
    handoff: &Handoff,
    file: &str,
    notes: &Notes,
) -> Result<Option<RunState>, StoreError> {
    let lock = state_file::lock(request.project, TIMEOUT);
    // At L3 it acts even if the lock is not available.
    let _lock = if request.level == Level::L3 { lock.ok() } else { Some(lock?) };
    let change = |state: &mut RunState| {
        // A hook that outlived its iteration has nothing to say about the next one.
        if state.run_id != run.run_id || state.iteration != run.iteration {
            return None;
        }
        let mut checkpoint = checkpoint(request, handoff, file, notes, run);
        checkpoint.keep_earlier(&state.context_checkpoint);
        state.context_checkpoint = checkpoint;
        state.items.todo_items.clone_from(&handoff.open);
        state.items.completed_items.clone_from(&handoff.done);
        let entry = state.history_of(run.iteration);
        entry.peak_percent = entry.peak_percent.max(handoff.percent.unwrap_or(0));
        entry.checkpoint |= matches!(request.cause, Cause::Level | Cause::Step | Cause::Budget);
        request.settings.linear.issue.is_some().then(|| state.clone())
    };
    let changed = state_file::update_locked(request.project, Some(&run.run_id), Durability::Durable, change)?;
    Ok(changed.flatten())
}

fn checkpoint(
    request: &Request<'_>,
    handoff: &Handoff,
    file: &str,
    notes: &Notes,
    run: &RunState,
) -> Checkpoint {
    let claimed = |claim: &str| if claim.is_empty() { UNKNOWN.to_owned() } else { claim.to_owned() };
    let last_words =
        handoff.last_words.as_deref().map(|words| clip(&plimsoll_domain::text::one_line(words), 600));
    let summary = match notes.summary.as_str() {
        "" => last_words.unwrap_or_default(),
        summary => summary.to_owned(),
    };
    let is_begun = handoff.work.is_begun;
    Checkpoint {
        active: true,
        cause: request.cause,
        level: request.level,
        percent_at_checkpoint: handoff.percent,
        percent_used: handoff.percent_used,
        timestamp: handoff.written_at.clone(),
        handoff_file: file.to_owned(),
        resume_summary: claimed(&summary),
        files_in_progress: handoff.files.clone(),
        current_todo_item: handoff.current_item.clone().unwrap_or_default(),
        progress_on_item: if is_begun { claimed(&notes.progress) } else { NOT_BEGUN.to_owned() },
        next_step: if is_begun { notes.next.clone() } else { String::new() },
        item_work: handoff.work.clone(),
        iteration: run.iteration,
        head: handoff.git.as_ref().and_then(|git| git.head.clone()),
        ..Checkpoint::default()
    }
}

/// The item that a checkpoint is credited to: the session's own.
fn item_of(handoff: &Handoff) -> Option<String> {
    let own = Some(&handoff.work.own_item).filter(|own| !own.is_empty());
    own.or(handoff.current_item.as_ref()).cloned()
}

fn note(request: &Request<'_>, handoff: &Handoff, file: &str, trouble: Option<&StoreError>) {
    let run = request.run.map(|run| (&run.run_id, run.iteration));
    let reading = request.reading;
    let written = CheckpointWritten {
        cause: Some(request.cause),
        level: request.level,
        percent: reading.and_then(Reading::percent),
        percent_used: reading.and_then(Reading::percent_used),
        handoff: file.to_owned(),
        files: Some(handoff.files.iter().map(|file| file.path.clone()).collect()),
        item: item_of(handoff),
        finished: Some(handoff.work.finished.clone()),
        reading: reading.cloned(),
        thresholds: request.thresholds.copied(),
        waited_ms: request.waited.map(|waited| waited.as_millis() as u64),
        trouble: trouble.map(ToString::to_string),
    };
    let entry =
        JournalEntry::new(JournalEvent::Checkpoint(written)).run(run).session(Some(request.session_id));
    let _ = journal::note(request.project, entry);
}
