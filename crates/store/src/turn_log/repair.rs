//! Repairing a log's end before anything is added: a kill or a power cut may have torn the last line.

use super::{Forwards, Head, LineStart, NewRecord, RawLine, TurnLog};
use crate::{StoreError, disk};
use plimsoll_domain::log_line::{LogLine, RecordKind};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How far the log goes, with its torn end moved aside, and what is to be said about it.
pub(super) fn repair(log: &TurnLog) -> Result<(Head, Vec<NewRecord>), StoreError> {
    let size = disk::size(&log.path()).unwrap_or(0);
    let known = Head::load(&log.head_path());
    // The same length counts as unharmed: reading the whole log at each event would cost too much; `verify` does.
    if let Some(head) = known.as_ref().filter(|head| head.bytes == size) {
        return Ok((head.clone(), Vec::new()));
    }
    // The last writer was killed.
    sweep(log);
    // A head beyond the end: the end was cut off, or the log is another one. Then all of it is read.
    let start = known.clone().filter(|head| head.bytes <= size).unwrap_or_default();
    let (head, torn) = read_on(log, start)?;
    let mut records = Vec::new();
    if let Some(torn) = &torn {
        quarantine(log, torn)?;
        records.push(NewRecord::event(
            RecordKind::Repair,
            &json!({"torn_bytes": torn.bytes.len(), "at_byte": torn.place.offset}),
        ));
    }
    if let Some(known) = known.filter(|known| known.seq > head.seq) {
        let lost = json!({"lost_from": head.seq + 1, "lost_to": known.seq, "lost_link": known.link});
        records.push(NewRecord::event(RecordKind::Repair, &lost));
    }
    Ok((head, records))
}

/// Reads what the head does not know of. A line that cannot be read is a torn end only if nothing comes after it;
/// else it stays, and `verify` names it.
fn read_on(log: &TurnLog, mut head: Head) -> Result<(Head, Option<RawLine>), StoreError> {
    let mut unreadable: Option<RawLine> = None;
    for line in Forwards::open(&log.path(), LineStart { line: 0, offset: head.bytes })? {
        let line = line?;
        if let Some(inner) = unreadable.take() {
            head.bytes += inner.bytes.len() as u64 + 1;
        }
        match LogLine::parse(&line.bytes) {
            // A line without its break is torn even if it parses: what is added next would be glued to it.
            Some(parsed) if line.is_ended => {
                head.take(&parsed.header, parsed.link, line.bytes.len() as u64 + 1);
            }
            _ => unreadable = Some(line),
        }
    }
    Ok((head, unreadable))
}

/// What the dead left half written. Heads and large pieces are written under the lock, which we hold; what waits is
/// not, and may still be on its way.
fn sweep(log: &TurnLog) {
    const ON_ITS_WAY: Duration = Duration::from_secs(60);
    let is_old = |path: &Path| disk::age(path).is_some_and(|age| age > ON_ITS_WAY);
    let ours = format!(".{}.", log.session_id());
    let blobs = log.blob_folder();
    for folder in [&log.folder, &blobs, &log.pending_folder()] {
        for name in disk::names(folder).into_iter().filter(|name| name.ends_with(disk::DRAFT)) {
            let path = folder.join(&name);
            let is_dead = folder == &blobs || name.starts_with(&format!("{ours}head."));
            if is_dead || name.starts_with(&ours) && is_old(&path) {
                let _ = disk::remove(&path);
            }
        }
    }
}

/// Nothing is thrown away: the torn bytes are kept beside the log.
fn quarantine(log: &TurnLog, torn: &RawLine) -> Result<(), StoreError> {
    let mut bytes = torn.bytes.clone();
    bytes.push(b'\n');
    // Kept first, cut off after: a kill in between keeps the torn bytes twice, and loses none.
    disk::append(&log.torn(), &bytes)?;
    disk::cut(&log.path(), torn.place.offset)
}
