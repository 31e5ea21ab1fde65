//! Records turns that are missing in the turn logs: those of a session's last lines, and those that a crash or a
//! locked log prevented. This runs when the next session begins and in the commands that show turns.

use crate::turns::capture::{
    CaptureLimits, TranscriptSource, TurnMetadata, capture_new_turns_syncing_if_durable,
};
use plimsoll_domain::SessionId;
use plimsoll_domain::record::{ClientProcess, SessionRecord};
use plimsoll_launcher::process::{ProcessIdentity, liveness_of_process};
use plimsoll_policy::turns::EndOfInput;
use plimsoll_store::memory::MemoryHead;
use plimsoll_store::{Project, StoreError, TurnLog, clock, config, disk, sessions, tail, unread_sessions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records the missing turns of every session of the project whose transcript still exists, up to the byte
/// limit. Returns the number of turns. An error in one log does not prevent the recording of the others; the
/// first error is returned at the end.
pub fn record_missing_turns_of_all_sessions(
    project: &Project,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    let mut catch_up =
        CatchUp { project, limits, remaining_bytes: limits.max_bytes, turn_count: 0, first_error: None };
    for session_id in sessions::sessions_with_record(project) {
        catch_up.record_turns_and_return_is_fully_recorded(&session_id);
    }
    catch_up.first_error.map_or(Ok(catch_up.turn_count), Err)
}

/// Records the missing turns of the sessions in the index of unread sessions: those with unread lines, and those
/// whose transcript may still grow. Returns the number of turns.
pub fn record_turns_of_unread_sessions_and_reindex(
    project: &Project,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    let mut catch_up =
        CatchUp { project, limits, remaining_bytes: limits.max_bytes, turn_count: 0, first_error: None };
    let unread_index = unread_sessions::load_unread_sessions_from_index_or_all(project);
    for session_id in &unread_index.sessions {
        match (catch_up.record_turns_and_return_is_fully_recorded(session_id), unread_index.is_from_index) {
            (true, true) => remove_from_unread_index_unless_resumed(project, session_id),
            (false, false) => unread_sessions::add_unread_session(project, session_id)?,
            (true, false) | (false, true) => {}
        }
    }
    if !unread_index.is_from_index {
        unread_sessions::mark_index_complete(project)?;
    }
    catch_up.first_error.map_or(Ok(catch_up.turn_count), Err)
}

/// Removes a session from the index of unread sessions. If the session was resumed since its record was read, it
/// is added again.
fn remove_from_unread_index_unless_resumed(project: &Project, session_id: &SessionId) {
    unread_sessions::remove_read_session(project, session_id);
    // A resumed session adds itself to the index before and after it writes its record. If the removal above
    // undid the first addition, either this check sees the record, or the second addition follows.
    let record = sessions::load_session_record(project, session_id);
    let path = record.start.transcript_path.as_ref().map(Path::new);
    if path.is_some_and(|path| !has_session_ended(&record) && !is_transcript_expired(&record, path)) {
        // If this fails, `record_missing_turns_of_all_sessions` finds the session.
        let _ = unread_sessions::add_unread_session(project, session_id);
    }
}

/// Returns the transcript path of a session's record if the session was started in this project. An agent in
/// Claude Code's sandbox can write records inside the project, and could enter a file that the sandbox hides
/// from it. Plimsoll runs outside the sandbox and copies what it reads into a log that the agent can read.
/// The file must therefore be in Claude Code's transcript folder and belong to a session that was started in the
/// project. Records in the user's state folder are trusted.
pub(crate) fn transcript_path_if_started_in_project(
    project: &Project,
    recorded_path: &Path,
) -> Option<PathBuf> {
    if !project.has_local_files() {
        return Some(recorded_path.to_owned());
    }
    let path = config::resolve_client_transcript(recorded_path)?;
    let start_directory = disk::canonicalize_or_keep(&tail::read_transcript_cwd(&path)?);
    start_directory.starts_with(disk::canonicalize_or_keep(project.root())).then_some(path)
}

struct CatchUp<'a> {
    project: &'a Project,
    limits: CaptureLimits,
    /// The number of bytes that may still be read.
    remaining_bytes: u64,
    turn_count: u64,
    first_error: Option<StoreError>,
}

impl CatchUp<'_> {
    /// Records the new turns of one session. Returns true if everything is recorded and the transcript will
    /// not grow.
    fn record_turns_and_return_is_fully_recorded(&mut self, session_id: &SessionId) -> bool {
        let record = sessions::load_session_record(self.project, session_id);
        let Some(recorded_path) = record.start.transcript_path.as_ref().map(Path::new) else { return true };
        let Some(turn_log) = TurnLog::for_session_where_started_or_current(self.project, session_id) else {
            return true;
        };
        let mut is_fully_recorded =
            has_session_ended(&record) || is_transcript_expired(&record, recorded_path);
        let Some(path) = transcript_path_if_started_in_project(self.project, recorded_path) else {
            return is_fully_recorded;
        };
        let is_complete = has_session_ended(&record) || is_transcript_idle(&path);
        let end_of_input = if is_complete { EndOfInput::Complete } else { EndOfInput::MoreMayFollow };
        for source in TranscriptSource::all_of_session(&path) {
            let unread_bytes = disk::file_size(&source.path)
                .unwrap_or(0)
                .saturating_sub(turn_log.transcript_offset_of(&source.stream_name));
            is_fully_recorded &= unread_bytes <= self.remaining_bytes
                && (disk::file_size(&source.path).is_none()
                    || is_older_than(&source.path, MIN_TIME_SINCE_LAST_WRITE));
            if unread_bytes > self.remaining_bytes {
                continue;
            }
            self.remaining_bytes -= unread_bytes;
            match capture_new_turns_syncing_if_durable(
                &turn_log,
                &source,
                || TurnMetadata::for_session(MemoryHead::load(self.project), &record),
                end_of_input,
                self.limits,
            ) {
                Ok(turn_count) => self.turn_count += turn_count,
                Err(error) => {
                    is_fully_recorded = false;
                    // Wait for a lock only once, not again for every session.
                    self.limits.lock_timeout = Duration::ZERO;
                    self.first_error.get_or_insert(error);
                }
            }
        }
        is_fully_recorded
    }
}

/// How long a transcript must be unchanged before it counts as complete, because the client writes its last lines
/// after SessionEnd (2.1.329).
const MIN_TIME_SINCE_LAST_WRITE: Duration = Duration::from_secs(60);
/// The client removes its transcripts after thirty days.
const CLIENT_TRANSCRIPT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Returns true if the session has ended, or if its recorded client process no longer exists. A killed client
/// sends no SessionEnd.
fn has_session_ended(record: &SessionRecord) -> bool {
    let has_exited = |ClientProcess { pid, started_at_ticks: start_ticks }| {
        liveness_of_process(ProcessIdentity { pid, start_time: start_ticks }).has_ended()
    };
    record.end.ended_at.is_some() || record.start.client.is_some_and(has_exited)
}

/// Returns true if a transcript is older than the retention time, so that the client removes it.
fn is_transcript_expired(record: &SessionRecord, transcript: &Path) -> bool {
    let started_at = record.start.started_at.as_ref().and_then(clock::parse_timestamp);
    let time_since_start = started_at.and_then(|started_at| (clock::now() - started_at).to_std().ok());
    disk::time_since_modified(transcript)
        .or(time_since_start)
        .is_some_and(|age| age > CLIENT_TRANSCRIPT_RETENTION)
}

/// Returns true if the transcript has not changed for an hour: the session waits for the user or has died, so
/// its last turn counts as complete.
pub(crate) fn is_transcript_idle(transcript: &Path) -> bool {
    const IDLE_TIME: Duration = Duration::from_secs(3_600);
    is_older_than(transcript, IDLE_TIME)
}

fn is_older_than(path: &Path, age: Duration) -> bool {
    disk::time_since_modified(path).is_some_and(|file_age| file_age > age)
}
