//! Appends records to a log.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use super::blobs::IntactBlobs;
use super::head::MAX_MERGED_FILES;
use super::{LogHead, NewRecord, RecordedMemory, TurnLog, UnsyncedEnd, blobs, pending_records, repair};
use crate::lock::Lock;
use crate::{Durability, StoreError, disk, io_error, size_limited_write};
use plimsoll_domain::log_line::{RecordHeader, render_line_and_chain_hash};
use plimsoll_system::files::sync_data;
use std::fs::File;
use std::io::ErrorKind;

/// A writer of a log. Holds the log's lock until it is dropped.
#[derive(Debug)]
pub struct LogWriter {
    log: TurnLog,
    head: LogHead,
    file: Option<File>,
    durability: Durability,
    /// How many bytes of the log are known to be synced.
    synced_bytes: u64,
    /// True if blobs may not be synced.
    has_unsynced_blobs: bool,
    intact_blobs: IntactBlobs,
    _lock: Lock,
}

impl LogWriter {
    /// Opens a writer: repairs the log's end, adds records of the repair and merges pending records.
    pub(super) fn open_repairing_and_merging_pending(
        log: TurnLog,
        lock: Lock,
        cached_head: Option<&LogHead>,
        durability: Durability,
    ) -> Result<LogWriter, StoreError> {
        let (mut head, repair_records) = repair::repair_end_and_build_repair_records(&log, cached_head)?;
        if log.head_memory_if_blobs_unchanged(&head).is_none() {
            head.memory = None;
        }
        let unsynced_end = head
            .unsynced
            .clone()
            .unwrap_or(UnsyncedEnd { start_byte: head.log_bytes, ..UnsyncedEnd::default() });
        // The head and the first lines of a new log are synced. Otherwise a power cut could lose
        // the head file, and nothing would show which lines to check.
        let durability = if head.sequence_number == 0 { Durability::Durable } else { durability };
        if head == LogHead::default() {
            head.save(&log.head_path(), Durability::Durable)?;
        }
        let (synced_bytes, has_unsynced_blobs) = (unsynced_end.start_byte, unsynced_end.has_blobs);
        let mut writer = LogWriter {
            log,
            head,
            file: None,
            durability,
            synced_bytes,
            has_unsynced_blobs,
            intact_blobs: IntactBlobs::default(),
            _lock: lock,
        };
        // The repair records come first: `verify` learns from them that records were lost, whose numbers are
        // used again from here on.
        writer.append_records_or_roll_back(&repair_records)?;
        writer.merge_pending_records()?;
        Ok(writer)
    }

    pub fn head(&self) -> &LogHead {
        &self.head
    }

    /// Returns true if nothing has changed since this head was read: no record was added, and its recorded
    /// memory is still valid.
    pub fn is_unchanged_since(&self, head: &LogHead) -> bool {
        self.head.sequence_number == head.sequence_number
            && self.head.link == head.link
            && self.head.memory.is_some() == head.memory.is_some()
    }

    /// Records the working memory for the next turn.
    pub fn set_memory(&mut self, memory: Option<RecordedMemory>) {
        self.head.memory = memory;
    }

    /// Appends records in one write, without a sync. After a failure the log is truncated to its old length.
    pub fn append_records_or_roll_back(&mut self, records: &[NewRecord]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let old_head = self.head.clone();
        let file = match self.file.take() {
            Some(file) => file,
            None => disk::open_for_append(&self.log.path())?,
        };
        let result = self.write_blobs_and_lines(&file, records).inspect_err(|_| {
            // Truncates the open file, whatever is at its path by now.
            let _ = file.set_len(old_head.log_bytes);
            self.head = old_head;
        });
        self.file = Some(file);
        result
    }

    /// Writes the records' blobs and lines, and advances the head in memory.
    fn write_blobs_and_lines(&mut self, file: &File, records: &[NewRecord]) -> Result<(), StoreError> {
        let path = self.log.path();
        let mut lines = String::new();
        let blobs = records.iter().flat_map(|record| &record.encoded.blobs);
        self.has_unsynced_blobs |=
            blobs::write_missing_or_damaged_blobs(&self.log.blob_folder(), blobs, &mut self.intact_blobs)?;
        for record in records {
            let header =
                RecordHeader { sequence_number: self.head.sequence_number + 1, ..record.header.clone() };
            let (line_text, chain_hash) =
                render_line_and_chain_hash(&self.head.link, header.clone(), &record.encoded.content);
            self.head.advance_past_line(&header, &chain_hash, line_text.len() as u64);
            lines.push_str(&line_text);
        }
        // In one write, so that records that belong together are added together.
        size_limited_write::write_all(file, lines.as_bytes()).map_err(io_error("append to", &path))?;
        // An agent's `git clean` may have removed the file while it was open.
        if disk::file_size(&path) != Some(self.head.log_bytes) {
            return Err(io_error("append to", &path)(ErrorKind::NotFound.into()));
        }
        Ok(())
    }

    /// Merges pending records before any new record. The files are removed in batches that the head
    /// remembers, so that a kill in between duplicates nothing.
    fn merge_pending_records(&mut self) -> Result<(), StoreError> {
        for batch in pending_records::read_pending_records(&self.log).chunks(MAX_MERGED_FILES) {
            for (name, _, record) in batch {
                if !self.head.merged_files.contains(name) {
                    let mut record = record.clone();
                    record.header.pending_file = Some(name.clone());
                    self.append_records_or_roll_back(&[record])?;
                }
            }
            // Synced before the files are removed. If a kill comes before the head is written, the repair
            // finds the names in the lines.
            self.sync_and_save_head_if_unsynced()?;
            batch.iter().try_for_each(|(_, path, _)| disk::remove_if_exists(path))?;
        }
        Ok(())
    }

    /// Writes the head, after syncing what was added. A lazy writer does not sync, but records in the head
    /// which end is not synced.
    pub fn close(mut self) -> Result<(), StoreError> {
        match self.durability {
            Durability::Durable => self.sync_and_save_head_if_unsynced(),
            Durability::Lazy => self.save_head_or_sync_if_too_much_unsynced(),
        }
    }

    /// A lazy writer leaves no more than this unsynced, because an unsynced end is read again after a restart.
    const MAX_UNSYNCED_BYTES: u64 = 4 * 1024 * 1024;

    /// Saves the head, recording which end is not synced. Syncs instead if that end is too long or the system boot
    /// cannot be determined.
    fn save_head_or_sync_if_too_much_unsynced(&mut self) -> Result<(), StoreError> {
        let boot_id = plimsoll_system::boot_id().filter(|_| {
            self.head.log_bytes - self.synced_bytes.min(self.head.log_bytes) < Self::MAX_UNSYNCED_BYTES
        });
        match boot_id {
            _ if self.file.is_none() => Ok(()),
            None => self.sync_and_save_head_if_unsynced(),
            Some(boot_id) => {
                self.head.unsynced = Some(UnsyncedEnd {
                    start_byte: self.synced_bytes,
                    boot_id,
                    has_blobs: self.has_unsynced_blobs,
                });
                self.save_head_with_blob_folder_stamp()
            }
        }
    }

    /// Syncs everything, then writes the head. Does nothing if everything is synced.
    pub(super) fn sync_and_save_head_if_unsynced(&mut self) -> Result<(), StoreError> {
        let unsynced_end = self.head.unsynced.take();
        let file = match self.file.take() {
            None if unsynced_end.is_none() => return Ok(()),
            None => disk::open_for_append(&self.log.path())?,
            Some(file) => file,
        };
        // The log is synced before the head: a head that is behind only means reading more, but one that is
        // ahead names lines that a power cut lost. Blobs are many files, so their volume is synced once.
        if self.has_unsynced_blobs {
            disk::sync_volume(&self.log.folder)?;
        } else {
            sync_data(&file).map_err(io_error("sync", &self.log.path()))?;
        }
        (self.synced_bytes, self.has_unsynced_blobs) = (self.head.log_bytes, false);
        self.save_head_with_blob_folder_stamp()
    }

    /// Writes the head, after updating the stamp of the blob folder in it.
    fn save_head_with_blob_folder_stamp(&mut self) -> Result<(), StoreError> {
        // Only this writer has added blobs since it was opened.
        if let Some(memory) = &mut self.head.memory {
            memory.blob_folder_stamp = blobs::blob_folder_stamp(&self.log.blob_folder());
        }
        self.head.save(&self.log.head_path(), Durability::Lazy)
    }
}
