//! The turn log of a session: an append-only file of chained lines, a head file that records how far the log
//! goes, blobs for large contents, and pending records that wait to be merged.
//!
//! The log is authoritative. The head only saves reading the log, and shows when its end has been cut off.
//! There is one writer at a time, under a lock on a separate file. A torn end is moved aside before anything
//! is added.

mod blobs;
mod compression;
mod draft;
mod entry;
mod erasure;
mod erasure_requests;
mod head;
mod pending_records;
mod reader;
mod repair;
mod unreferenced_files;
mod verify;
mod writer;

pub use entry::NewRecord;
pub use erasure_requests::ErasureRequest;
pub use head::{LogHead, RecordedMemory, StreamPosition, UnsyncedEnd};
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::LogLine;
pub use reader::{BackwardLines, ForwardLines, LineStart, RawLine};
pub use verify::{LogFinding, VerificationReport};
pub use writer::LogWriter;

use crate::layout::{append_to_path, is_plain_file_name};
use crate::{Durability, Project, StoreError, disk, lock, safe_open};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The turn log of one session, or the log of the working memory.
#[derive(Debug, Clone)]
pub struct TurnLog {
    folder: PathBuf,
    session_id: SessionId,
    /// False for the log of the working memory, which is written for as long as the project exists.
    may_be_compressed: bool,
}

impl TurnLog {
    /// Returns the log of a session, or `None` if the id is not a plain file name.
    ///
    /// A log stays in the folder in which it was started, even after the project's other files have moved. A
    /// second log would be read from the transcript's beginning, and would bring back what was erased from
    /// the first one.
    pub fn for_session(project: &Project, session_id: &SessionId) -> Option<TurnLog> {
        let log = TurnLog::in_turn_folder_of(project, session_id)?;
        if !project.has_local_files() || log.is_started() {
            return Some(log);
        }
        let earlier_log = project
            .earlier_external_project()
            .and_then(|project| TurnLog::in_turn_folder_of(&project, session_id));
        Some(earlier_log.filter(TurnLog::is_started).unwrap_or(log))
    }

    /// Returns the started logs of a session. There are two if an earlier version started another one after
    /// the project's files had moved.
    pub fn started_logs_of_session(project: &Project, session_id: &SessionId) -> Vec<TurnLog> {
        let locations = project.current_and_earlier_location();
        let logs = locations.iter().filter_map(|location| TurnLog::in_turn_folder_of(location, session_id));
        logs.filter(TurnLog::is_started).collect()
    }

    /// Returns the session's log in this project's turn folder, whether or not it has been started.
    pub(crate) fn in_turn_folder_of(project: &Project, session_id: &SessionId) -> Option<TurnLog> {
        let new_log = || TurnLog {
            folder: project.turn_logs_folder(),
            session_id: session_id.to_owned(),
            may_be_compressed: true,
        };
        is_plain_file_name(session_id).then(new_log)
    }

    /// Returns true if the log has been written before. The lock file is created first and never removed; a
    /// copied log has none.
    fn is_started(&self) -> bool {
        disk::exists(&self.lock_path()) || self.exists()
    }

    /// Returns a log of another kind, such as the working memory's, with a fixed name.
    pub(crate) fn in_folder(folder: PathBuf, name: &str) -> TurnLog {
        TurnLog { folder, session_id: SessionId::from(name), may_be_compressed: false }
    }

    /// Returns the logs of all sessions, the most recently written last. Includes those in the project's
    /// earlier location; if a session has a log in both, only the one in the project is returned, which is
    /// complete.
    pub fn all_sessions(project: &Project) -> Vec<TurnLog> {
        let mut logs = TurnLog::all_sessions_in_both_locations(project);
        let folder = project.turn_logs_folder();
        let session_ids_in_project: BTreeSet<SessionId> =
            logs.iter().filter(|log| log.folder == folder).map(|log| log.session_id.clone()).collect();
        logs.retain(|log| log.folder == folder || !session_ids_in_project.contains(&log.session_id));
        logs
    }

    /// Returns the logs of all sessions in both locations, the most recently written last. Unlike
    /// [`TurnLog::all_sessions`], includes the second log of a session that has one in each. For callers that check
    /// what any log still contains.
    pub fn all_sessions_in_both_locations(project: &Project) -> Vec<TurnLog> {
        let unsorted_logs = project
            .current_and_earlier_location()
            .iter()
            .flat_map(TurnLog::all_in_turn_folder_of)
            .collect::<Vec<_>>();
        let mut logs: Vec<(Option<SystemTime>, TurnLog)> =
            unsorted_logs.into_iter().map(|log| (log.modified_at(), log)).collect();
        logs.sort_by_key(|(modified, _)| *modified);
        logs.into_iter().map(|(_, log)| log).collect()
    }

    fn all_in_turn_folder_of(project: &Project) -> Vec<TurnLog> {
        let parse_log_name = |name: &String| {
            let session_id = compression::without_compressed_suffix(name).strip_suffix(".jsonl")?;
            TurnLog::in_turn_folder_of(project, &SessionId::from(session_id))
        };
        let mut logs: Vec<TurnLog> =
            disk::list_names(&project.turn_logs_folder()).iter().filter_map(parse_log_name).collect();
        // A kill during compression leaves a log in both forms.
        logs.dedup_by(|left, right| left.session_id == right.session_id);
        logs
    }

    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns the path of the uncompressed log.
    pub fn path(&self) -> PathBuf {
        self.path_with_extension("jsonl")
    }

    /// Returns the path of the file to which torn ends are moved.
    pub fn torn_path(&self) -> PathBuf {
        self.path_with_extension("torn")
    }

    fn head_path(&self) -> PathBuf {
        self.path_with_extension("head")
    }

    fn blob_folder(&self) -> PathBuf {
        self.path_with_extension("blobs")
    }

    fn pending_folder(&self) -> PathBuf {
        append_to_path(&self.folder, &["/pending"])
    }

    fn path_with_extension(&self, extension: &str) -> PathBuf {
        append_to_path(&self.folder, &["/", &self.session_id, ".", extension])
    }

    /// Returns true if there is a log, compressed or not.
    pub fn exists(&self) -> bool {
        self.is_uncompressed() || self.has_compressed_file()
    }

    pub fn is_uncompressed(&self) -> bool {
        disk::file_size(&self.path()).is_some()
    }

    /// Returns when the log was written last.
    pub fn modified_at(&self) -> Option<SystemTime> {
        disk::modified_at(&self.path())
            .or_else(|| disk::modified_at(&compression::compressed_path(&self.path())))
    }

    /// Returns the head that the last writer left. Returns `None` if there is no log or the head does not
    /// match its size.
    pub fn current_head(&self) -> Option<LogHead> {
        let head = LogHead::load(&self.head_path())?;
        let size = disk::file_size(&self.path());
        (size == Some(head.log_bytes) || size.is_none() && self.has_compressed_file()).then_some(head)
    }

    /// Returns true if the next writer must read more than `max_bytes` of the log because its head does not
    /// cover them.
    pub(crate) fn has_bytes_after_head_over(&self, max_bytes: u64) -> bool {
        let size = disk::file_size(&self.path()).unwrap_or(0);
        // A head beyond the end of the file belongs to another log.
        let covered_bytes =
            || LogHead::load(&self.head_path()).map(|head| head.log_bytes).filter(|bytes| *bytes <= size);
        size > max_bytes && size - covered_bytes().unwrap_or(0) > max_bytes
    }

    /// Returns how far a stream's transcript has been read, as far as known without the lock.
    pub fn transcript_offset_of(&self, stream: &str) -> u64 {
        self.current_head()
            .and_then(|head| head.streams.get(stream).map(|stream| stream.transcript_offset))
            .unwrap_or(0)
    }

    /// Takes the lock, repairs the log's end and merges pending records. Everything that is added comes after
    /// them.
    pub fn open_writer(&self, timeout: Duration) -> Result<LogWriter, StoreError> {
        self.open_writer_with_lock(self.acquire_lock(timeout)?)
    }

    /// Opens a writer under the log's lock, which the caller has taken.
    pub(crate) fn open_writer_with_lock(&self, lock: lock::Lock) -> Result<LogWriter, StoreError> {
        LogWriter::open(self.clone(), lock, None, Durability::Durable)
    }

    /// Returns the path of the lock file.
    pub(crate) fn lock_path(&self) -> PathBuf {
        self.path_with_extension("lock")
    }

    /// Opens a writer that does not wait for the disk. Until [`TurnLog::make_durable`] or a durable writer
    /// runs, a power cut may lose what is added, so it must be recoverable from elsewhere. The head file is
    /// not read again if nothing was added since `known_head`.
    pub fn open_lazy_writer(
        &self,
        known_head: Option<&LogHead>,
        timeout: Duration,
    ) -> Result<LogWriter, StoreError> {
        LogWriter::open(self.clone(), self.acquire_lock(timeout)?, known_head, Durability::Lazy)
    }

    /// Syncs to the disk what was added lazily.
    pub fn sync_if_unsynced(&self, timeout: Duration) -> Result<(), StoreError> {
        let head = LogHead::load(&self.head_path());
        if head.is_some_and(|head| head.unsynced.is_some()) {
            self.merge_pending_records(timeout)
        } else {
            Ok(())
        }
    }

    /// Checks what was added lazily if the system has been restarted since. Lines that a power cut damaged
    /// are moved aside.
    pub fn repair_if_system_restarted(&self, timeout: Duration) -> Result<(), StoreError> {
        let head = LogHead::load(&self.head_path());
        if head.is_some_and(|head| head.is_from_earlier_boot()) {
            self.merge_pending_records(timeout)
        } else {
            Ok(())
        }
    }

    /// Takes only the lock: nobody else writes while it is held.
    pub fn acquire_lock(&self, timeout: Duration) -> Result<lock::Lock, StoreError> {
        self.refuse_linked_files()?;
        lock::acquire(&self.lock_path(), timeout)
    }

    /// Returns an error if a file of the log is a link, because nothing may be written through a link to a
    /// file that is not ours, and a repository may contain links. Below a registered root the check is not
    /// needed: each file is opened there by a path walk that follows no links.
    fn refuse_linked_files(&self) -> Result<(), StoreError> {
        if safe_open::is_below_root(&self.folder) {
            return Ok(());
        }
        let files = ["jsonl", "head", "torn", "lock"].map(|extension| self.path_with_extension(extension));
        match files.into_iter().find(|path| disk::is_link(path)) {
            Some(path) => Err(StoreError::NotAFile { path }),
            None => Ok(()),
        }
    }

    /// Returns an error for a line of a newer format, because its meaning is unknown here.
    pub(crate) fn refuse_newer_line(
        &self,
        line: &[u8],
        parsed: Option<&LogLine<'_>>,
    ) -> Result<(), StoreError> {
        match LogLine::newer_format_of_line(line, parsed) {
            Some(format) => Err(StoreError::NewerFormat { path: self.path(), format }),
            None => Ok(()),
        }
    }

    /// Adds one record that no transcript contains. If the lock cannot be taken or the log cannot be written,
    /// the record is put into a pending file, which the next writer merges.
    pub fn append_or_defer(&self, record: &NewRecord, timeout: Duration) -> Result<(), StoreError> {
        let result = self.open_writer(timeout).and_then(|mut writer| {
            writer.append_records(std::slice::from_ref(record))?;
            Ok(writer)
        });
        match result {
            // The record is in the log now: putting it aside as well would duplicate it.
            Ok(writer) => writer.close(),
            Err(_) => pending_records::write_pending_record(self, record),
        }
    }

    /// Returns the working memory recorded in a head, if all blobs that it names are still there.
    pub fn unchanged_memory_in_head<'h>(&self, head: &'h LogHead) -> Option<&'h RecordedMemory> {
        head.memory
            .as_ref()
            .filter(|memory| memory.blob_folder_stamp == blobs::blob_folder_stamp(&self.blob_folder()))
    }

    /// Returns the content of a blob, or `None` if it is missing.
    pub fn read_blob(&self, hash: &str) -> Option<Vec<u8>> {
        blobs::read_blob(&self.blob_folder(), hash)
    }

    /// Returns the lines from first to last.
    pub fn forward_lines(&self) -> Result<ForwardLines, StoreError> {
        Ok(ForwardLines::from_open_file(&self.path(), self.open_expanded()?))
    }

    /// Returns the lines from last to first.
    pub fn backward_lines(&self) -> Result<BackwardLines, StoreError> {
        Ok(BackwardLines::from_open_file(&self.path(), self.open_expanded()?))
    }
}
