//! Files beside a log that belong to no record in it: a torn end, a leftover temporary file, a blob that no
//! record names, a pending file.

use super::compression::without_compressed_suffix;
use super::{TurnLog, pending_records};
use crate::{Project, StoreError, disk};
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::LogLine;
use plimsoll_domain::turn::record::referenced_blob_hashes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl TurnLog {
    /// Returns the logs of all sessions in both locations, including sessions that only have pending records.
    pub fn all_including_sessions_with_only_pending(project: &Project) -> Vec<TurnLog> {
        let mut logs = TurnLog::all_in_both_locations_oldest_modified_first(project);
        for location in project.current_and_earlier_location() {
            let folder = location.turn_logs_folder();
            for session_id in pending_records::sessions_with_pending_files(&folder.join("pending")) {
                let is_this_log =
                    |log: &TurnLog| log.folder == folder && log.session_id == session_id.as_str();
                if !logs.iter().any(is_this_log) {
                    logs.extend(TurnLog::for_session_in_turn_logs_folder(
                        &location,
                        &SessionId::from(session_id),
                    ));
                }
            }
        }
        logs
    }

    /// Merges pending records into the log.
    pub fn merge_pending_records(&self, timeout: Duration) -> Result<(), StoreError> {
        self.open_writer(timeout)?.close()
    }

    /// Returns the files of this log that belong to no record in it: unreferenced blobs, leftover temporary
    /// files, pending files and the torn file.
    pub fn find_unreferenced_pending_and_torn_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut referenced_hashes = BTreeSet::new();
        if self.exists() {
            for line in self.forward_lines()? {
                referenced_hashes.extend(
                    LogLine::parse(&line?.bytes)
                        .map(|parsed| referenced_blob_hashes(parsed.content))
                        .unwrap_or_default(),
                );
            }
        }
        let blob_folder = self.blob_folder();
        let unreferenced_blobs = disk::list_names(&blob_folder)
            .into_iter()
            .filter(|name| !referenced_hashes.contains(without_compressed_suffix(name)));
        let mut files: Vec<PathBuf> = unreferenced_blobs.map(|name| blob_folder.join(name)).collect();
        files.extend(self.find_leftover_temporary_log_files());
        files.extend(pending_records::pending_files(self));
        files.extend(Some(self.torn_path()).filter(|path| disk::file_size(path).is_some()));
        Ok(files)
    }

    /// Removes an unreferenced file, under the log's lock.
    pub fn remove_unreferenced_file(&self, path: &Path, timeout: Duration) -> Result<(), StoreError> {
        let _writer = self.open_writer(timeout)?;
        disk::remove_if_exists(path)
    }
}
