//! What a session's end, a crash or a locked log has left out of the turn logs: found and recorded by the next session that
//! begins, and by commands that show turns.

use crate::turns::capture::{CaptureLimits, Setting, Source, capture};
use plimsoll_domain::SessionId;
use plimsoll_domain::record::{ClientProcess, SessionRecord};
use plimsoll_launcher::process::{Identity, life};
use plimsoll_policy::turns::EndOfInput;
use plimsoll_store::memory::Standing;
use plimsoll_store::{Project, StoreError, TurnLog, clock, config, disk, sessions, tail, unsettled};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records what is missing of every session of the project whose transcript is still there, as far as there are not too many
/// bytes of it. Returns the number of turns. A log in trouble does not keep the others from theirs.
pub fn sync(project: &Project, limits: CaptureLimits) -> Result<u64, StoreError> {
    let mut reader = CatchUp { project, limits, left: limits.bytes, turns: 0, trouble: None };
    for session_id in sessions::ids(project) {
        reader.read(&session_id);
    }
    reader.trouble.map_or(Ok(reader.turns), Err)
}

/// The same of the sessions that are not settled: of which something may be unread, or be written yet.
pub fn catch_up(project: &Project, limits: CaptureLimits) -> Result<u64, StoreError> {
    let mut reader = CatchUp { project, limits, left: limits.bytes, turns: 0, trouble: None };
    let found = unsettled::unsettled(project);
    for session_id in &found.sessions {
        match (reader.read(session_id), found.is_index) {
            (true, true) => settle(project, session_id),
            (false, false) => unsettled::add(project, session_id)?,
            (true, false) | (false, true) => {}
        }
    }
    if !found.is_index {
        unsettled::complete(project)?;
    }
    reader.trouble.map_or(Ok(reader.turns), Err)
}

/// Takes a session off the list. It may have been resumed since its record was read: then it stays.
fn settle(project: &Project, session_id: &SessionId) {
    unsettled::settle(project, session_id);
    // A session that is resumed adds itself before and after it writes its record: either that was before this look, or it
    // adds itself again.
    let record = sessions::load(project, session_id);
    let path = record.start.transcript_path.as_ref().map(Path::new);
    if path.is_some_and(|path| !is_closed(&record) && !is_forgotten(&record, path)) {
        // What cannot be noted is found by `sync`.
        let _ = unsettled::add(project, session_id);
    }
}

/// Returns the transcript that a session's record names, if it is one of this project. An agent in Claude Code's sandbox can write the
/// records that lie in a project, and name a file there that the sandbox hides from it; our programs work outside of the sandbox,
/// and what they read comes into a log that the agent can read. So the file must be where Claude Code keeps transcripts, and of a
/// session that was started in the project. Records among the user's state are believed.
pub(crate) fn own_transcript(project: &Project, named: &Path) -> Option<PathBuf> {
    if !project.is_inside() {
        return Some(named.to_owned());
    }
    let path = config::kept_transcript(named)?;
    let began_in = disk::canonical(&tail::first_directory(&path)?);
    began_in.starts_with(disk::canonical(project.root())).then_some(path)
}

struct CatchUp<'a> {
    project: &'a Project,
    limits: CaptureLimits,
    /// Bytes that may still be read.
    left: u64,
    turns: u64,
    trouble: Option<StoreError>,
}

impl CatchUp<'_> {
    /// Reads one session on; true if it is settled: nothing of it is left, and nobody adds to it.
    fn read(&mut self, session_id: &SessionId) -> bool {
        let record = sessions::load(self.project, session_id);
        let Some(named) = record.start.transcript_path.as_ref().map(Path::new) else { return true };
        let Some(log) = TurnLog::of(self.project, session_id) else { return true };
        let mut is_settled = is_closed(&record) || is_forgotten(&record, named);
        let Some(path) = own_transcript(self.project, named) else { return is_settled };
        let is_over = is_closed(&record) || is_quiet(&path);
        let closing = if is_over { EndOfInput::Over } else { EndOfInput::Open };
        for source in Source::all(&path) {
            let new = disk::size(&source.path).unwrap_or(0).saturating_sub(log.read_of(&source.stream));
            is_settled &= new <= self.left
                && (disk::size(&source.path).is_none() || is_older(&source.path, LAST_WORDS));
            if new > self.left {
                continue;
            }
            self.left -= new;
            match capture(
                &log,
                &source,
                || Setting::of(Standing::of(self.project), &record),
                closing,
                self.limits,
            ) {
                Ok(new) => self.turns += new,
                Err(error) => {
                    is_settled = false;
                    // It has waited once for another process.
                    self.limits.lock = Duration::ZERO;
                    self.trouble.get_or_insert(error);
                }
            }
        }
        is_settled
    }
}

/// The client writes its last lines after SessionEnd (2.1.329).
const LAST_WORDS: Duration = Duration::from_secs(60);
/// The client keeps its transcripts for thirty days.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3_600);

/// True if the session has ended, or its client is known and gone: it was killed, and no SessionEnd will come.
fn is_closed(record: &SessionRecord) -> bool {
    let is_gone = |ClientProcess { pid, started }| life(Identity { pid, started }).is_gone();
    record.end.ended_at.is_some() || record.start.client.is_some_and(is_gone)
}

/// True if nobody will read on in a transcript: it is too old, or the client has removed it.
fn is_forgotten(record: &SessionRecord, transcript: &Path) -> bool {
    let began = record.start.started_at.as_ref().and_then(clock::moment);
    let since = began.and_then(|began| (clock::now() - began).to_std().ok());
    disk::age(transcript).or(since).is_some_and(|age| age > FORGOTTEN)
}

/// A session that has written nothing for an hour waits for the user, or is dead: its last turn is closed.
pub(crate) fn is_quiet(transcript: &Path) -> bool {
    const QUIET: Duration = Duration::from_secs(3_600);
    is_older(transcript, QUIET)
}

fn is_older(path: &Path, age: Duration) -> bool {
    disk::age(path).is_some_and(|since| since > age)
}
