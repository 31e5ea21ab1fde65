//! Records turns that are missing in the turn logs because of a session's last lines, a crash or a locked
//! log. The next session that begins does this, and so do the commands that show turns.

use crate::turns::capture::{CaptureLimits, TranscriptSource, TurnSetting, capture_new_turns};
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
        catch_up.record_turns_and_return_is_settled(&session_id);
    }
    catch_up.first_error.map_or(Ok(catch_up.turn_count), Err)
}

/// Records the missing turns of the sessions that are not settled: those with unread lines, and those whose
/// transcript may still grow. Returns the number of turns.
pub fn record_missing_turns_of_unsettled_sessions(
    project: &Project,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    let mut catch_up =
        CatchUp { project, limits, remaining_bytes: limits.max_bytes, turn_count: 0, first_error: None };
    let unread_sessions = unread_sessions::load_unread_sessions(project);
    for session_id in &unread_sessions.sessions {
        match (catch_up.record_turns_and_return_is_settled(session_id), unread_sessions.is_from_index) {
            (true, true) => mark_settled_unless_resumed(project, session_id),
            (false, false) => unread_sessions::add_unread_session(project, session_id)?,
            (true, false) | (false, true) => {}
        }
    }
    if !unread_sessions.is_from_index {
        unread_sessions::mark_index_complete(project)?;
    }
    catch_up.first_error.map_or(Ok(catch_up.turn_count), Err)
}

/// Removes a session from the list of unsettled sessions. It may have been resumed since its record was read;
/// then it is added again.
fn mark_settled_unless_resumed(project: &Project, session_id: &SessionId) {
    unread_sessions::remove_read_session(project, session_id);
    // A session that is resumed adds itself to the list before and after it writes its record. Either the
    // first was before this check, or the second comes after it.
    let record = sessions::load_session_record(project, session_id);
    let path = record.start.transcript_path.as_ref().map(Path::new);
    if path.is_some_and(|path| !has_session_ended(&record) && !is_transcript_expired(&record, path)) {
        // If this fails, `record_missing_turns_of_all_sessions` finds the session.
        let _ = unread_sessions::add_unread_session(project, session_id);
    }
}

/// Returns the transcript that a session's record names, if it is one of this project. An agent in Claude
/// Code's sandbox can write the records that are in a project, and name a file there that the sandbox hides
/// from it. Our programs run outside the sandbox, and what they read goes into a log that the agent can read.
/// That is why the file must be where Claude Code keeps transcripts, and belong to a session that was started
/// in the project. Records in the user's state folder are trusted.
pub(crate) fn transcript_path_if_from_project(project: &Project, named_path: &Path) -> Option<PathBuf> {
    if !project.has_local_files() {
        return Some(named_path.to_owned());
    }
    let path = config::resolve_client_transcript(named_path)?;
    let first_directory = disk::canonicalize_or_keep(&tail::find_start_directory(&path)?);
    first_directory.starts_with(disk::canonicalize_or_keep(project.root())).then_some(path)
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
    /// Records the new turns of one session. Returns true if the session is settled: everything is recorded,
    /// and nothing will be added.
    fn record_turns_and_return_is_settled(&mut self, session_id: &SessionId) -> bool {
        let record = sessions::load_session_record(self.project, session_id);
        let Some(named_path) = record.start.transcript_path.as_ref().map(Path::new) else { return true };
        let Some(turn_log) = TurnLog::for_session(self.project, session_id) else { return true };
        let mut is_settled = has_session_ended(&record) || is_transcript_expired(&record, named_path);
        let Some(path) = transcript_path_if_from_project(self.project, named_path) else { return is_settled };
        let is_complete = has_session_ended(&record) || is_transcript_idle(&path);
        let end_of_input = if is_complete { EndOfInput::Complete } else { EndOfInput::MoreMayFollow };
        for source in TranscriptSource::all_of_session(&path) {
            let unread_bytes = disk::file_size(&source.path)
                .unwrap_or(0)
                .saturating_sub(turn_log.transcript_offset_of(&source.stream_name));
            is_settled &= unread_bytes <= self.remaining_bytes
                && (disk::file_size(&source.path).is_none() || is_older_than(&source.path, SETTLE_DELAY));
            if unread_bytes > self.remaining_bytes {
                continue;
            }
            self.remaining_bytes -= unread_bytes;
            match capture_new_turns(
                &turn_log,
                &source,
                || TurnSetting::for_session(MemoryHead::load(self.project), &record),
                end_of_input,
                self.limits,
            ) {
                Ok(turn_count) => self.turn_count += turn_count,
                Err(error) => {
                    is_settled = false;
                    // The lock timeout is spent only once for all sessions.
                    self.limits.lock_timeout = Duration::ZERO;
                    self.first_error.get_or_insert(error);
                }
            }
        }
        is_settled
    }
}

/// The client writes its last lines after SessionEnd (2.1.329), so a transcript must have been unchanged for
/// this long.
const SETTLE_DELAY: Duration = Duration::from_secs(60);
/// The client removes its transcripts after thirty days.
const CLIENT_TRANSCRIPT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Returns true if the session has ended, or if its client process is known and gone. A client that was
/// killed sends no SessionEnd.
fn has_session_ended(record: &SessionRecord) -> bool {
    let has_exited = |ClientProcess { pid, started_at_ticks: started }| {
        liveness_of_process(ProcessIdentity { pid, start_time: started }).is_gone()
    };
    record.end.ended_at.is_some() || record.start.client.is_some_and(has_exited)
}

/// Returns true if a transcript is so old that the client has removed it, or will remove it.
fn is_transcript_expired(record: &SessionRecord, transcript: &Path) -> bool {
    let started_at = record.start.started_at.as_ref().and_then(clock::parse_timestamp);
    let time_since_start = started_at.and_then(|started_at| (clock::now() - started_at).to_std().ok());
    disk::time_since_modified(transcript)
        .or(time_since_start)
        .is_some_and(|age| age > CLIENT_TRANSCRIPT_RETENTION)
}

/// Returns true if nothing was written for an hour: the session waits for the user or is dead, so its last
/// turn counts as complete.
pub(crate) fn is_transcript_idle(transcript: &Path) -> bool {
    const IDLE_TIME: Duration = Duration::from_secs(3_600);
    is_older_than(transcript, IDLE_TIME)
}

fn is_older_than(path: &Path, age: Duration) -> bool {
    disk::time_since_modified(path).is_some_and(|file_age| file_age > age)
}
