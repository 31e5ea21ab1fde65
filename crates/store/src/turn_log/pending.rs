//! What could not be added when it happened: one small file for each record, merged by the one that writes next.

use super::{NewRecord, TurnLog};
use crate::sessions;
use crate::{StoreError, clock, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Puts a record aside under a unique name.
pub(super) fn put(log: &TurnLog, entry: &NewRecord) -> Result<(), StoreError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let moment = clock::now().format("%Y%m%dT%H%M%S%6f");
        // The moment comes first behind the session, so that sorted by name the oldest is merged first.
        let name = format!("{}.{moment}.{}.{number}.json", log.session_id(), std::process::id());
        let bytes = serde_json::to_vec(entry).unwrap_or_default();
        if disk::create_new(&log.pending_folder().join(name), &bytes)? {
            return Ok(());
        }
    }
}

/// What waits for this log, oldest first: name, file, record. One that cannot be read is left where it is.
pub(super) fn waiting(log: &TurnLog) -> Vec<(String, PathBuf, NewRecord)> {
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        let entry = sessions::load_parsed(&path)?;
        Some((name, path, entry))
    };
    files(log).into_iter().filter_map(read).collect()
}

/// The files that wait for this log, readable or not.
pub(super) fn files(log: &TurnLog) -> Vec<PathBuf> {
    let folder = log.pending_folder();
    let is_ours = |name: &String| session_of(name) == Some(log.session_id());
    disk::names(&folder).into_iter().filter(is_ours).map(|name| folder.join(name)).collect()
}

/// The sessions for which something waits in a folder.
pub(super) fn sessions(folder: &Path) -> BTreeSet<String> {
    disk::names(folder).iter().filter_map(|name| session_of(name)).map(str::to_owned).collect()
}

/// Session, moment, process, number, ending: another session's id may begin like this one's.
fn session_of(name: &str) -> Option<&str> {
    let mut parts = name.strip_suffix(".json")?.rsplitn(4, '.');
    let (_number, _process, _moment) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().filter(|session| !session.is_empty())
}
