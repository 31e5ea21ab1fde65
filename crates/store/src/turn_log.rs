//! The turn log of a session: an append-only file of chained lines, a head file that records where the log
//! ends, blobs for large contents, and pending records that wait to be merged.
//!
//! The log is authoritative. The head only avoids reading the log, and shows when its end has been cut off.
//! There is one writer at a time, under a lock on a separate file. A torn end is moved to a separate file
//! before anything is added.

mod blobs;
mod compression;
mod entry;
mod erasure;
mod erasure_requests;
mod head;
mod pending_records;
mod reader;
mod repair;
mod temporary_file;
mod unreferenced_files;
mod verify;
mod writer;

pub use entry::NewRecord;
pub use erasure_requests::ErasureRequest;
pub use head::{LogHead, RecordedMemory, StreamPosition, UnsyncedEnd};
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::LogLine;
use plimsoll_system::paths::append_to_path;
pub use reader::{BackwardLines, ForwardLines, LineStart, RawLine};
pub use verify::{LogFinding, VerificationReport};
pub use writer::LogWriter;

use crate::layout::is_plain_file_name;
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
    pub fn for_session_where_started_or_current(
        project: &Project,
        session_id: &SessionId,
    ) -> Option<TurnLog> {
        let log = TurnLog::for_session_in_turn_logs_folder(project, session_id)?;
        if !project.has_local_files() || log.is_started() {
            return Some(log);
        }
        let earlier_log = project
            .earlier_external_project()
            .and_then(|project| TurnLog::for_session_in_turn_logs_folder(&project, session_id));
        Some(earlier_log.filter(TurnLog::is_started).unwrap_or(log))
    }

    /// Returns the started logs of a session. There are two if an earlier version started another one after
    /// the project's files had moved.
    pub fn started_logs_of_session(project: &Project, session_id: &SessionId) -> Vec<TurnLog> {
        let locations = project.current_and_earlier_location();
        let logs = locations
            .iter()
            .filter_map(|location| TurnLog::for_session_in_turn_logs_folder(location, session_id));
        logs.filter(TurnLog::is_started).collect()
    }

    /// Returns the session's log in this project's turn logs folder, whether or not it has been started. Returns
    /// `None` if the id is not a plain file name.
    pub(crate) fn for_session_in_turn_logs_folder(
        project: &Project,
        session_id: &SessionId,
    ) -> Option<TurnLog> {
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

    /// Returns a log that belongs to no session and is never compressed, such as the working memory's.
    pub(crate) fn in_folder_never_compressed(folder: PathBuf, name: &str) -> TurnLog {
        TurnLog { folder, session_id: SessionId::from(name), may_be_compressed: false }
    }

    /// Returns the logs of all sessions, the most recently written last. Includes those in the project's
    /// earlier location; if a session has a log in both, only the one in the project is returned, which is
    /// complete.
    pub fn one_per_session_oldest_modified_first(project: &Project) -> Vec<TurnLog> {
        let mut logs = TurnLog::all_in_both_locations_oldest_modified_first(project);
        let folder = project.turn_logs_folder();
        let session_ids_in_project: BTreeSet<SessionId> =
            logs.iter().filter(|log| log.folder == folder).map(|log| log.session_id.clone()).collect();
        logs.retain(|log| log.folder == folder || !session_ids_in_project.contains(&log.session_id));
        logs
    }

    /// Returns the logs of all sessions in both locations, the most recently written last. Unlike
    /// [`TurnLog::one_per_session_oldest_modified_first`], includes the second log of a session that has one in each. For
    /// callers that check what any log still contains.
    pub fn all_in_both_locations_oldest_modified_first(project: &Project) -> Vec<TurnLog> {
        let unsorted_logs = project
            .current_and_earlier_location()
            .iter()
            .flat_map(TurnLog::all_in_turn_logs_folder)
            .collect::<Vec<_>>();
        let mut logs: Vec<(Option<SystemTime>, TurnLog)> =
            unsorted_logs.into_iter().map(|log| (log.modified_at(), log)).collect();
        logs.sort_by_key(|(modified_at, _)| *modified_at);
        logs.into_iter().map(|(_, log)| log).collect()
    }

    /// Returns the logs in this project's turn logs folder, one for each session.
    fn all_in_turn_logs_folder(project: &Project) -> Vec<TurnLog> {
        let log_for_file_name = |name: &String| {
            let session_id = compression::without_compressed_suffix(name).strip_suffix(".jsonl")?;
            TurnLog::for_session_in_turn_logs_folder(project, &SessionId::from(session_id))
        };
        let mut logs: Vec<TurnLog> =
            disk::list_names(&project.turn_logs_folder()).iter().filter_map(log_for_file_name).collect();
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
    pub(crate) fn has_more_bytes_after_head_than(&self, max_bytes: u64) -> bool {
        let size = disk::file_size(&self.path()).unwrap_or(0);
        // A head beyond the end of the file belongs to another log.
        let load_covered_bytes =
            || LogHead::load(&self.head_path()).map(|head| head.log_bytes).filter(|bytes| *bytes <= size);
        size > max_bytes && size - load_covered_bytes().unwrap_or(0) > max_bytes
    }

    /// Returns how far a stream's transcript has been read, as far as known without the lock.
    pub fn transcript_offset_of(&self, stream: &str) -> u64 {
        self.current_head()
            .and_then(|head| head.streams.get(stream).map(|position| position.transcript_offset))
            .unwrap_or(0)
    }

    /// Takes the lock, repairs the log's end and merges pending records. New records are added after them.
    pub fn open_writer(&self, timeout: Duration) -> Result<LogWriter, StoreError> {
        self.open_writer_with_lock(self.acquire_lock(timeout)?)
    }

    /// Opens a writer under the log's lock, which the caller has taken.
    pub(crate) fn open_writer_with_lock(&self, lock: lock::Lock) -> Result<LogWriter, StoreError> {
        LogWriter::open_repairing_and_merging_pending(self.clone(), lock, None, Durability::Durable)
    }

    /// Returns the path of the lock file.
    pub(crate) fn lock_path(&self) -> PathBuf {
        self.path_with_extension("lock")
    }

    /// Takes the lock and opens a writer that does not sync. Until a durable writer or
    /// [`TurnLog::sync_and_merge_pending_if_unsynced`] runs, a power cut may lose what is added, so the
    /// caller must be able to add it again. The head file is not read again if nothing was added since
    /// `cached_head`.
    pub fn lock_and_open_writer_without_sync(
        &self,
        cached_head: Option<&LogHead>,
        timeout: Duration,
    ) -> Result<LogWriter, StoreError> {
        LogWriter::open_repairing_and_merging_pending(
            self.clone(),
            self.acquire_lock(timeout)?,
            cached_head,
            Durability::Lazy,
        )
    }

    /// Syncs records that were added without a sync, if there are any. Also merges pending records then.
    pub fn sync_and_merge_pending_if_unsynced(&self, timeout: Duration) -> Result<(), StoreError> {
        let head = LogHead::load(&self.head_path());
        if head.is_some_and(|head| head.unsynced.is_some()) {
            self.merge_pending_records(timeout)
        } else {
            Ok(())
        }
    }

    /// Checks records that were added without a sync if the system has been restarted since. Moves lines that a
    /// power cut damaged to the torn file, and merges pending records.
    pub fn repair_and_merge_pending_if_rebooted(&self, timeout: Duration) -> Result<(), StoreError> {
        let head = LogHead::load(&self.head_path());
        if head.is_some_and(|head| head.has_end_unsynced_before_reboot()) {
            self.merge_pending_records(timeout)
        } else {
            Ok(())
        }
    }

    /// Takes the lock without opening a writer. No other process writes while the lock is held.
    pub fn acquire_lock(&self, timeout: Duration) -> Result<lock::Lock, StoreError> {
        self.refuse_symlinks_if_folder_outside_roots()?;
        lock::acquire(&self.lock_path(), timeout)
    }

    /// Returns an error if a file of the log is a symbolic link: a repository may contain links, and nothing may be
    /// written through a link to a file outside. Below a registered root the check is not
    /// needed: each file is opened there by a path walk that follows no links.
    fn refuse_symlinks_if_folder_outside_roots(&self) -> Result<(), StoreError> {
        if safe_open::is_below_root(&self.folder) {
            return Ok(());
        }
        let files = ["jsonl", "head", "torn", "lock"].map(|extension| self.path_with_extension(extension));
        match files.into_iter().find(|path| disk::is_link(path)) {
            Some(path) => Err(StoreError::NotAFile { path }),
            None => Ok(()),
        }
    }

    /// Returns an error if the line has a newer format, which this version cannot interpret.
    pub(crate) fn refuse_line_of_newer_format(
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
    /// the record is written to a pending file, which the next writer merges.
    pub fn append_or_write_to_pending_file(
        &self,
        record: &NewRecord,
        timeout: Duration,
    ) -> Result<(), StoreError> {
        let result = self.open_writer(timeout).and_then(|mut writer| {
            writer.append_records_or_roll_back(std::slice::from_ref(record))?;
            Ok(writer)
        });
        match result {
            // The record is in the log now: a pending file would duplicate it.
            Ok(writer) => writer.close(),
            Err(_) => pending_records::write_pending_record(self, record),
        }
    }

    /// Returns the working memory recorded in a head, if no blob has been added or removed since.
    pub fn head_memory_if_blobs_unchanged<'h>(&self, head: &'h LogHead) -> Option<&'h RecordedMemory> {
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
