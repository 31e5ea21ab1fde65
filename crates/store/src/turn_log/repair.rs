//! Repairs a log's end before anything is added: a kill or a power cut may have torn the last line.

use super::{ForwardLines, LineStart, LogHead, NewRecord, RawLine, TurnLog, UnsyncedEnd, blobs};
use crate::{Durability, StoreError, disk};
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::turn::record::referenced_blob_hashes;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Moves a torn end to the torn file. Returns the log's head, and records of the repair that the caller must
/// add. `cached_head` was read before the lock was taken; it is reused if nothing was added in between.
pub(super) fn repair_end_and_build_repair_records(
    log: &TurnLog,
    cached_head: Option<&LogHead>,
) -> Result<(LogHead, Vec<NewRecord>), StoreError> {
    let size = match disk::file_size(&log.path()) {
        Some(size) => size,
        None => {
            log.expand_log_or_set_aside_damaged()?;
            disk::file_size(&log.path()).unwrap_or(0)
        }
    };
    let old_head = match cached_head.filter(|head| head.log_bytes == size && size > 0) {
        Some(head) => Some(head.clone()),
        None => LogHead::load(&log.head_path()),
    };
    let has_end_unsynced_before_reboot =
        old_head.as_ref().is_some_and(LogHead::has_end_unsynced_before_reboot);
    // The same length counts as intact: reading the whole log at each event would cost too much. `verify`
    // reads it.
    let old_head = match old_head {
        Some(head) if head.log_bytes == size && !has_end_unsynced_before_reboot => {
            return Ok((head, Vec::new()));
        }
        old_head => old_head,
    };
    // The last writer was killed, or the system went down.
    remove_temporary_files_under_lock_or_old(log);
    // If the head names more bytes than the log has, the end was cut off or this is another log. The whole log
    // is then read.
    let start_head = old_head
        .clone()
        .filter(|head| head.log_bytes <= size && !has_end_unsynced_before_reboot)
        .unwrap_or_default();
    let first_unsynced_byte = first_possibly_unsynced_byte(log, old_head.as_ref());
    let (mut head, torn_offset) = advance_head_to_end_or_torn_line(log, start_head, first_unsynced_byte)?;
    // Lines left by a killed writer are not synced; lines that were read back after a restart are.
    let start_byte = if old_head.is_some() { first_unsynced_byte } else { 0 };
    head.unsynced = (!has_end_unsynced_before_reboot && head.log_bytes > start_byte).then(|| UnsyncedEnd {
        start_byte,
        boot_id: plimsoll_system::boot_id().unwrap_or_default(),
        has_blobs: true,
    });
    let mut repair_records = Vec::new();
    if let Some(offset) = torn_offset {
        move_torn_end_to_torn_file(log, offset)?;
        repair_records.push(NewRecord::event_now(
            RecordKind::Repair,
            &json!({"torn_bytes": size.saturating_sub(offset), "at_byte": offset}),
        ));
    }
    if let Some(old_head) = old_head.filter(|old_head| old_head.sequence_number > head.sequence_number) {
        let lost_range = json!({"lost_from": head.sequence_number + 1, "lost_to": old_head.sequence_number, "lost_link": old_head.link});
        repair_records.push(NewRecord::event_now(RecordKind::Repair, &lost_range));
    }
    if head != LogHead::default() {
        // Saved, so that what has been checked is not checked again.
        head.save(&log.head_path(), Durability::Lazy)?;
    }
    Ok((head, repair_records))
}

/// Returns the offset from which lines may not be synced, so that each must be complete and chained to the
/// previous one. Without a head file, no line is checked. A head file that exists and cannot be read was itself
/// damaged by a power cut, so every line is checked.
fn first_possibly_unsynced_byte(log: &TurnLog, head: Option<&LogHead>) -> u64 {
    match head {
        Some(head) => head.unsynced.as_ref().map_or(head.log_bytes, |unsynced| unsynced.start_byte),
        None if disk::file_size(&log.head_path()).is_some() => 0,
        None => u64::MAX,
    }
}

/// Reads the lines after the head, and returns the updated head and the offset of a torn end. Among synced
/// lines, an unreadable one is torn only if nothing follows it. Otherwise it stays, and `verify` names it.
fn advance_head_to_end_or_torn_line(
    log: &TurnLog,
    mut head: LogHead,
    first_unsynced_byte: u64,
) -> Result<(LogHead, Option<u64>), StoreError> {
    let mut unreadable_line: Option<RawLine> = None;
    for line in ForwardLines::open_at(&log.path(), LineStart { line_number: 0, offset: head.log_bytes })? {
        let line = line?;
        if let Some(skipped) = unreadable_line.take() {
            head.log_bytes += skipped.bytes.len() as u64 + 1;
        }
        let offset = line.start.offset;
        let parsed = LogLine::parse(&line.bytes);
        log.refuse_line_of_newer_format(&line.bytes, parsed.as_ref())?;
        let is_unsynced = offset >= first_unsynced_byte;
        match parsed {
            // Without a line break a line is torn even if it parses: the next record would be
            // appended to the same line.
            Some(parsed)
                if line.has_newline && (!is_unsynced || is_chained_and_intact(log, &head.link, &parsed)) =>
            {
                head.advance_past_line(&parsed.header, parsed.chain_hash, line.bytes.len() as u64 + 1);
            }
            _ if is_unsynced => return Ok((head, Some(offset))),
            _ => unreadable_line = Some(line),
        }
    }
    Ok((head, unreadable_line.map(|line| line.start.offset)))
}

/// Returns true if the line is chained to `previous_link`, and its content and its blobs are intact.
fn is_chained_and_intact(log: &TurnLog, previous_chain_hash: &str, line: &LogLine<'_>) -> bool {
    let folder = log.blob_folder();
    line.is_chained_to(previous_chain_hash)
        && line.has_intact_content()
        && referenced_blob_hashes(line.content).iter().all(|hash| blobs::is_blob_intact(&folder, hash))
}

/// Removes the temporary files that killed writers left behind. Heads and blobs are written under the lock,
/// which we hold, so their temporary files are removed at once. Others may still be written, so only old ones
/// are removed.
fn remove_temporary_files_under_lock_or_old(log: &TurnLog) {
    const MAX_WRITE_DURATION: Duration = Duration::from_secs(60);
    let is_old = |path: &Path| disk::time_since_modified(path).is_some_and(|age| age > MAX_WRITE_DURATION);
    let temporary_name_prefix = format!(".{}.", log.session_id());
    let blob_folder = log.blob_folder();
    for folder in [&log.folder, &blob_folder, &log.pending_folder()] {
        for name in
            disk::list_names(folder).into_iter().filter(|name| name.ends_with(disk::TEMPORARY_FILE_SUFFIX))
        {
            let path = folder.join(&name);
            let is_written_under_lock =
                folder == &blob_folder || name.starts_with(&format!("{temporary_name_prefix}head."));
            if is_written_under_lock || name.starts_with(&temporary_name_prefix) && is_old(&path) {
                let _ = disk::remove_if_exists(&path);
            }
        }
    }
}

/// Moves the torn bytes from the log to its torn file, so that nothing is lost.
fn move_torn_end_to_torn_file(log: &TurnLog, offset: u64) -> Result<(), StoreError> {
    // Copied first, cut off afterwards: a kill in between keeps the torn bytes twice, and loses none.
    disk::append_tail_to_copy(&log.path(), offset, &log.torn_path())?;
    disk::append(&log.torn_path(), b"\n")?;
    disk::truncate_and_sync(&log.path(), offset)
}
