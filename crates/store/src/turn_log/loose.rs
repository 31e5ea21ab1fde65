//! What is next to a log and is part of no record: a torn end, a piece without a reference, a pending record that cannot be read.

use super::packed::plain_name;
use super::{TurnLog, pending};
use crate::{Project, StoreError, disk};
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::LogLine;
use plimsoll_domain::turn::record::blobs_of;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl TurnLog {
    /// The logs of all sessions in both folders, also of those of which nothing but what waits has been written yet.
    pub fn all_with_waiting(project: &Project) -> Vec<TurnLog> {
        let mut logs = TurnLog::all_copies(project);
        for place in project.with_earlier() {
            let folder = place.turns();
            for session_id in pending::sessions(&folder.join("pending")) {
                let is_it = |log: &TurnLog| log.folder == folder && log.session_id == session_id.as_str();
                if !logs.iter().any(is_it) {
                    logs.extend(TurnLog::in_folder_of(&place, &SessionId::from(session_id)));
                }
            }
        }
        logs
    }

    /// Merges what waits into the log, so that it is one with it.
    pub fn settle(&self, timeout: Duration) -> Result<(), StoreError> {
        self.write(timeout)?.close()
    }

    /// The files of this log whose bytes belong to no record.
    pub fn loose(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut named = BTreeSet::new();
        if self.exists() {
            for line in self.forwards()? {
                named.extend(
                    LogLine::parse(&line?.bytes).map(|parsed| blobs_of(parsed.content)).unwrap_or_default(),
                );
            }
        }
        let blobs = self.blob_folder();
        let unnamed = disk::names(&blobs).into_iter().filter(|name| !named.contains(plain_name(name)));
        let mut loose: Vec<PathBuf> = unnamed.map(|name| blobs.join(name)).collect();
        loose.extend(self.drafts());
        loose.extend(pending::files(self));
        loose.extend(Some(self.torn()).filter(|path| disk::size(path).is_some()));
        Ok(loose)
    }

    /// Takes such a file away, under the log's lock.
    pub fn drop_loose(&self, path: &Path, timeout: Duration) -> Result<(), StoreError> {
        let _writer = self.write(timeout)?;
        disk::remove(path)
    }
}
