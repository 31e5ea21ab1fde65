//! Pending records: records that could not be added when they happened, one small file for each. The next
//! writer merges them.

use super::{NewRecord, TurnLog};
use crate::sessions;
use crate::{StoreError, clock, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes a record to a pending file with a unique name.
pub(super) fn write_pending_record(log: &TurnLog, record: &NewRecord) -> Result<(), StoreError> {
    static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let timestamp = clock::now().format("%Y%m%dT%H%M%S%6f");
        // The time comes right after the session id, so that in name order the oldest is merged first.
        let name = format!("{}.{timestamp}.{}.{number}.json", log.session_id(), std::process::id());
        let bytes = serde_json::to_vec(record).unwrap_or_default();
        if disk::create_new(&log.pending_folder().join(name), &bytes)? {
            return Ok(());
        }
    }
}

/// Returns the pending records of this log, oldest first, as name, path and record. Unreadable files are
/// skipped and stay.
pub(super) fn read_pending_records(log: &TurnLog) -> Vec<(String, PathBuf, NewRecord)> {
    let parse_file = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        let record = sessions::read_json_if_valid(&path)?;
        Some((name, path, record))
    };
    pending_files(log).into_iter().filter_map(parse_file).collect()
}

/// Returns the pending files of this log, readable or not.
pub(super) fn pending_files(log: &TurnLog) -> Vec<PathBuf> {
    let folder = log.pending_folder();
    let is_ours = |name: &String| session_id_of_name(name) == Some(log.session_id());
    disk::list_names(&folder).into_iter().filter(is_ours).map(|name| folder.join(name)).collect()
}

/// Returns the sessions that have pending files in a folder.
pub(super) fn sessions_with_pending_files(folder: &Path) -> BTreeSet<String> {
    disk::list_names(folder).iter().filter_map(|name| session_id_of_name(name)).map(str::to_owned).collect()
}

/// Extracts the session id from a name: session, time, process, number, suffix. Parsed from the right,
/// because another session's id may start with this one and contain dots.
fn session_id_of_name(name: &str) -> Option<&str> {
    let mut parts = name.strip_suffix(".json")?.rsplitn(4, '.');
    let (_number, _process, _timestamp) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().filter(|session| !session.is_empty())
}
