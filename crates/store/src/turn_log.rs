//! The turn log of one session: an append-only file of chained lines, a head that says how far it goes, large
//! pieces beside it, and what waits to be merged.
//!
//! The log is the authority; the head only saves reading it, and shows when its end has been cut off. One writer at
//! a time, under a lock on a file of its own. A torn end is moved aside before anything is added.

mod blobs;
mod draft;
mod entry;
mod erase;
mod head;
mod interrupted;
mod loose;
mod packed;
mod pending;
mod reader;
mod repair;
mod verify;
mod writer;

pub use entry::NewRecord;
pub use head::{Head, NotedMemory, Stream, Unsynced};
pub use interrupted::ErasureRequest;
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::LogLine;
pub use reader::{Backwards, Forwards, LineStart, RawLine};
pub use verify::{Finding, Report};
pub use writer::Writer;

use crate::layout::{below, is_plain};
use crate::{Durability, Project, StoreError, disk, door, lock};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The turn log of one session.
#[derive(Debug, Clone)]
pub struct TurnLog {
    folder: PathBuf,
    session_id: SessionId,
    /// False for the memory's, which is written for as long as there is a project.
    may_be_packed: bool,
}

impl TurnLog {
    /// The log of a session; none for an id that is no plain name.
    ///
    /// A log stays in the folder in which it was begun, also after the project's other files have moved. A second log would be
    /// read from the transcript's beginning, and would have again what was erased from the first one.
    pub fn of(project: &Project, session_id: &SessionId) -> Option<TurnLog> {
        let log = TurnLog::in_folder_of(project, session_id)?;
        if !project.is_inside() || log.is_begun() {
            return Some(log);
        }
        let earlier = project.earlier().and_then(|earlier| TurnLog::in_folder_of(&earlier, session_id));
        Some(earlier.filter(TurnLog::is_begun).unwrap_or(log))
    }

    /// The logs of a session that have been begun. There are two if an earlier version began another one after the project's files
    /// had moved.
    pub fn all_of(project: &Project, session_id: &SessionId) -> Vec<TurnLog> {
        let places = project.with_earlier();
        let logs = places.iter().filter_map(|place| TurnLog::in_folder_of(place, session_id));
        logs.filter(TurnLog::is_begun).collect()
    }

    /// The log in the turn folder of a project, whether or not it has been begun there.
    pub(crate) fn in_folder_of(project: &Project, session_id: &SessionId) -> Option<TurnLog> {
        let log =
            || TurnLog { folder: project.turns(), session_id: session_id.to_owned(), may_be_packed: true };
        is_plain(session_id).then(log)
    }

    /// True if somebody has written here. The lock comes before all else, and is never removed; a copied log has none.
    fn is_begun(&self) -> bool {
        disk::exists(&self.lock_path()) || self.exists()
    }

    /// A log of another kind, such as the working memory's, under a name of ours.
    pub(crate) fn at(folder: PathBuf, name: &str) -> TurnLog {
        TurnLog { folder, session_id: SessionId::from(name), may_be_packed: false }
    }

    /// The logs of all sessions, the one that was written last at the end. Also those from before the project had
    /// files of ours in it; of a session that has a log in both folders, the one in the project has everything.
    pub fn all(project: &Project) -> Vec<TurnLog> {
        let mut logs = TurnLog::all_copies(project);
        let folder = project.turns();
        let in_project: BTreeSet<SessionId> =
            logs.iter().filter(|log| log.folder == folder).map(|log| log.session_id.clone()).collect();
        logs.retain(|log| log.folder == folder || !in_project.contains(&log.session_id));
        logs
    }

    /// The logs of all sessions in both folders, the one that was written last at the end: also the log outside of the project of a
    /// session that has another one in it. For those who look for what a log still holds.
    pub fn all_copies(project: &Project) -> Vec<TurnLog> {
        let all = project.with_earlier().iter().flat_map(TurnLog::all_in_folder_of).collect::<Vec<_>>();
        let mut logs: Vec<(Option<SystemTime>, TurnLog)> =
            all.into_iter().map(|log| (log.modified(), log)).collect();
        logs.sort_by_key(|(modified, _)| *modified);
        logs.into_iter().map(|(_, log)| log).collect()
    }

    fn all_in_folder_of(project: &Project) -> Vec<TurnLog> {
        let log = |name: &String| {
            let session_id = packed::plain_name(name).strip_suffix(".jsonl")?;
            TurnLog::in_folder_of(project, &SessionId::from(session_id))
        };
        let mut logs: Vec<TurnLog> = disk::names(&project.turns()).iter().filter_map(log).collect();
        // A kill while a log was compressed leaves it in both forms.
        logs.dedup_by(|one, other| one.session_id == other.session_id);
        logs
    }

    /// The session.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The log.
    pub fn path(&self) -> PathBuf {
        self.file("jsonl")
    }

    /// What was torn off.
    pub fn torn(&self) -> PathBuf {
        self.file("torn")
    }

    fn head_path(&self) -> PathBuf {
        self.file("head")
    }

    fn blob_folder(&self) -> PathBuf {
        self.file("blobs")
    }

    fn pending_folder(&self) -> PathBuf {
        below(&self.folder, &["/pending"])
    }

    fn file(&self, extension: &str) -> PathBuf {
        below(&self.folder, &["/", &self.session_id, ".", extension])
    }

    /// True if there is a log.
    pub fn exists(&self) -> bool {
        self.is_plain() || self.has_packed()
    }

    /// True if there is a log that is not compressed.
    pub fn is_plain(&self) -> bool {
        disk::size(&self.path()).is_some()
    }

    /// When it was written last.
    pub fn modified(&self) -> Option<SystemTime> {
        disk::modified(&self.path()).or_else(|| disk::modified(&packed::packed(&self.path())))
    }

    /// How far the log goes, as its last writer left it; none if there is no log or the head is behind.
    pub fn head(&self) -> Option<Head> {
        let head = Head::load(&self.head_path())?;
        let size = disk::size(&self.path());
        (size == Some(head.bytes) || size.is_none() && self.has_packed()).then_some(head)
    }

    /// True if the next writer must read more than so many bytes of the log, because its head does not cover them.
    pub(crate) fn has_more_beyond_head(&self, most: u64) -> bool {
        let size = disk::size(&self.path()).unwrap_or(0);
        // A head beyond the end is another log's.
        let known = || Head::load(&self.head_path()).map(|head| head.bytes).filter(|known| *known <= size);
        size > most && size - known().unwrap_or(0) > most
    }

    /// How far a stream's transcript has been read, as far as known without the lock.
    pub fn read_of(&self, stream: &str) -> u64 {
        self.head().and_then(|head| head.streams.get(stream).map(|stream| stream.read)).unwrap_or(0)
    }

    /// Takes the lock, repairs the end, merges what waits. Everything that is added comes after it.
    pub fn write(&self, timeout: Duration) -> Result<Writer, StoreError> {
        self.write_under(self.hold(timeout)?)
    }

    /// The same under the log's lock, which somebody has taken already.
    pub(crate) fn write_under(&self, lock: lock::Lock) -> Result<Writer, StoreError> {
        Writer::open(self.clone(), lock, None, Durability::Durable)
    }

    /// The file of the lock.
    pub(crate) fn lock_path(&self) -> PathBuf {
        self.file("lock")
    }

    /// The same for one who does not wait for the disk: until [`TurnLog::make_durable`] or a durable writer a power cut may take
    /// what is added, so something else must hold it till then. The head is not read again if nothing was added since `known`.
    pub fn write_lazily(&self, known: Option<&Head>, timeout: Duration) -> Result<Writer, StoreError> {
        Writer::open(self.clone(), self.hold(timeout)?, known, Durability::Lazy)
    }

    /// Puts on the disk what was added lazily.
    pub fn make_durable(&self, timeout: Duration) -> Result<(), StoreError> {
        let head = Head::load(&self.head_path());
        if head.is_some_and(|head| head.unsynced.is_some()) { self.settle(timeout) } else { Ok(()) }
    }

    /// Checks what was added lazily if the system has been started anew since: what a power cut has spoilt is moved aside.
    pub fn check_after_restart(&self, timeout: Duration) -> Result<(), StoreError> {
        let head = Head::load(&self.head_path());
        if head.is_some_and(|head| head.is_in_doubt()) { self.settle(timeout) } else { Ok(()) }
    }

    /// Takes the lock and nothing else: nobody writes while it is held.
    pub fn hold(&self, timeout: Duration) -> Result<lock::Lock, StoreError> {
        self.refuse_links()?;
        lock::acquire(&self.lock_path(), timeout)
    }

    /// Nothing is written through a link to a file that is not ours. A repository may hold some: in a project each file is opened
    /// by a walk that follows none here.
    fn refuse_links(&self) -> Result<(), StoreError> {
        if door::is_below_a_root(&self.folder) {
            return Ok(());
        }
        let files = ["jsonl", "head", "torn", "lock"].map(|extension| self.file(extension));
        match files.into_iter().find(|path| disk::is_link(path)) {
            Some(path) => Err(StoreError::NotAFile { path }),
            None => Ok(()),
        }
    }

    /// Refuses a line of a newer version: neither what it says nor what follows from it is known here.
    pub(crate) fn refuse_newer(&self, line: &[u8], parsed: Option<&LogLine<'_>>) -> Result<(), StoreError> {
        match LogLine::newer(line, parsed) {
            Some(format) => Err(StoreError::Newer { path: self.path(), format }),
            None => Ok(()),
        }
    }

    /// Adds one record that no transcript holds. Where the lock or the log is in trouble, it waits in a file of its
    /// own, and the one that writes next adds it.
    pub fn note(&self, entry: &NewRecord, timeout: Duration) -> Result<(), StoreError> {
        let added = self.write(timeout).and_then(|mut writer| {
            writer.append(std::slice::from_ref(entry))?;
            Ok(writer)
        });
        match added {
            // From here on it is in the log: put aside as well, it would come twice.
            Ok(writer) => writer.close(),
            Err(_) => pending::put(self, entry),
        }
    }

    /// The working memory that the last turn had, as a head has it, if all large pieces that it names are still there.
    pub fn noted_memory<'h>(&self, head: &'h Head) -> Option<&'h NotedMemory> {
        head.memory.as_ref().filter(|noted| noted.pieces == blobs::folder_version(&self.blob_folder()))
    }

    /// A large piece; none if it is not there.
    pub fn blob(&self, hash: &str) -> Option<Vec<u8>> {
        blobs::get(&self.blob_folder(), hash)
    }

    /// The lines from the beginning.
    pub fn forwards(&self) -> Result<Forwards, StoreError> {
        Ok(Forwards::of(&self.path(), self.opened()?))
    }

    /// The lines from the end.
    pub fn backwards(&self) -> Result<Backwards, StoreError> {
        Ok(Backwards::of(&self.path(), self.opened()?))
    }
}
