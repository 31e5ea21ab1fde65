//! What could not be added when it happened: one small file for each record, merged by whoever writes next.

use super::{Entry, TurnLog};
use crate::{StoreError, clock, disk};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Puts a record aside under a name that nobody else takes.
pub(super) fn put(log: &TurnLog, entry: &Entry) -> Result<(), StoreError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let moment = clock::now().format("%Y%m%dT%H%M%S%6f");
        let name = format!("{}.{moment}.{}.{number}.json", log.session_id(), std::process::id());
        let bytes = serde_json::to_vec(entry).unwrap_or_default();
        if disk::create_new(&log.pending_folder().join(name), &bytes)? {
            return Ok(());
        }
    }
}

/// What waits for this log, oldest first: name, file, record. One that cannot be read is left where it is.
pub(super) fn waiting(log: &TurnLog) -> Vec<(String, PathBuf, Entry)> {
    let folder = log.pending_folder();
    let prefix = format!("{}.", log.session_id());
    // Moment, process, number, ending: another session's id may begin like this one's.
    let ours = |name: &String| {
        let rest = name.strip_prefix(&prefix).filter(|rest| rest.ends_with(".json"));
        rest.is_some_and(|rest| rest.split('.').count() == 4)
    };
    let read = |name: String| {
        let path = folder.join(&name);
        let entry = serde_json::from_slice(&disk::read(&path).ok()??).ok()?;
        Some((name, path, entry))
    };
    disk::names(&folder).into_iter().filter(ours).filter_map(read).collect()
}
