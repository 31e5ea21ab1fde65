//! Repairing a log's end before anything is added: a kill or a power cut may have torn the last line.

use super::{Forwards, Head, LineStart, NewRecord, RawLine, TurnLog, Unsynced, blobs};
use crate::{Durability, StoreError, disk};
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::turn::record::blobs_of;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How far the log goes, with its torn end moved aside, and what is to be said about it. A head that was read before the lock
/// was taken will do, if nothing was added in between.
pub(super) fn repair(
    log: &TurnLog,
    read_before: Option<&Head>,
) -> Result<(Head, Vec<NewRecord>), StoreError> {
    let size = match disk::size(&log.path()) {
        Some(size) => size,
        None => {
            log.unpack()?;
            disk::size(&log.path()).unwrap_or(0)
        }
    };
    let known = match read_before.filter(|head| head.bytes == size && size > 0) {
        Some(head) => Some(head.clone()),
        None => Head::load(&log.head_path()),
    };
    let is_in_doubt = known.as_ref().is_some_and(Head::is_in_doubt);
    // The same length counts as unharmed: reading the whole log at each event would cost too much; `verify` does.
    let known = match known {
        Some(head) if head.bytes == size && !is_in_doubt => return Ok((head, Vec::new())),
        known => known,
    };
    // The last writer was killed, or the system was.
    sweep(log);
    // A head beyond the end: the end was cut off, or the log is another one. Then all of it is read.
    let start = known.clone().filter(|head| head.bytes <= size && !is_in_doubt).unwrap_or_default();
    let doubted_from = doubted_from(log, known.as_ref());
    let (mut head, torn) = read_on(log, start, doubted_from)?;
    // What a writer that was killed has left is not on the disk; what the system has read after it was started is.
    let from = if known.is_some() { doubted_from } else { 0 };
    head.unsynced = (!is_in_doubt && head.bytes > from).then(|| Unsynced {
        from,
        boot: plimsoll_system::boot().unwrap_or_default(),
        has_pieces: true,
    });
    let mut records = Vec::new();
    if let Some(offset) = torn {
        quarantine(log, offset)?;
        records.push(NewRecord::event(
            RecordKind::Repair,
            &json!({"torn_bytes": size.saturating_sub(offset), "at_byte": offset}),
        ));
    }
    if let Some(known) = known.filter(|known| known.seq > head.seq) {
        let lost = json!({"lost_from": head.seq + 1, "lost_to": known.seq, "lost_link": known.link});
        records.push(NewRecord::event(RecordKind::Repair, &lost));
    }
    if head != Head::default() {
        // What has been checked is not checked again.
        head.save(&log.head_path(), Durability::Lazy)?;
    }
    Ok((head, records))
}

/// From which byte on a line counts only if it follows the one before and all of it is there: what was never said to be on the
/// disk. A head that is there and cannot be read was itself taken by a power cut.
fn doubted_from(log: &TurnLog, known: Option<&Head>) -> u64 {
    match known {
        Some(head) => head.unsynced.as_ref().map_or(head.bytes, |unsynced| unsynced.from),
        None if disk::size(&log.head_path()).is_some() => 0,
        None => u64::MAX,
    }
}

/// Reads what the head does not know of; answers where the torn end begins. Of what was on the disk, a line that cannot be
/// read is torn only if nothing comes after it; else it stays, and `verify` names it.
fn read_on(log: &TurnLog, mut head: Head, doubted_from: u64) -> Result<(Head, Option<u64>), StoreError> {
    let mut unreadable: Option<RawLine> = None;
    for line in Forwards::open(&log.path(), LineStart { line: 0, offset: head.bytes })? {
        let line = line?;
        if let Some(inner) = unreadable.take() {
            head.bytes += inner.bytes.len() as u64 + 1;
        }
        let offset = line.place.offset;
        let parsed = LogLine::parse(&line.bytes);
        log.refuse_newer(&line.bytes, parsed.as_ref())?;
        let is_doubted = offset >= doubted_from;
        match parsed {
            // A line without its break is torn even if it parses: what is added next would be glued to it.
            Some(parsed) if line.is_ended && (!is_doubted || is_sound(log, &head.link, &parsed)) => {
                head.take(&parsed.header, parsed.link, line.bytes.len() as u64 + 1);
            }
            _ if is_doubted => return Ok((head, Some(offset))),
            _ => unreadable = Some(line),
        }
    }
    Ok((head, unreadable.map(|line| line.place.offset)))
}

/// True if a line follows the one with this link, and it and its large pieces are what was written.
fn is_sound(log: &TurnLog, before: &str, line: &LogLine<'_>) -> bool {
    let folder = log.blob_folder();
    line.follows(before)
        && line.is_whole()
        && blobs_of(line.content).iter().all(|hash| blobs::is_sound(&folder, hash))
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
fn quarantine(log: &TurnLog, offset: u64) -> Result<(), StoreError> {
    // Kept first, cut off after: a kill in between keeps the torn bytes twice, and loses none.
    disk::append_rest(&log.path(), offset, &log.torn())?;
    disk::append(&log.torn(), b"\n")?;
    disk::cut(&log.path(), offset)
}
