//! Erases contents of records permanently. The log first records the erasure; then the lines are written
//! again without the contents, each as long as before, so that neither the chain nor the head changes.

use super::compression::{compressed_path, without_compressed_suffix};
use super::{NewRecord, TurnLog, temporary_file};
use crate::size_limited_write::SizeLimitedFile;
use crate::{StoreError, disk, io_error};
use plimsoll_domain::log_line::{LogLine, RecordHeader, RecordKind, render_erased_line};
use plimsoll_domain::turn::record::referenced_blob_hashes;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The records whose contents an erasure removes.
struct ErasableRecords {
    requested: BTreeSet<u64>,
    /// Named by an earlier erasure, but still with their contents.
    unfinished: BTreeSet<u64>,
}

/// Returns the sequence numbers that an erasure record names. Only earlier records count, whatever the record
/// says.
pub(super) fn sequence_numbers_in_erasure(erasure: &LogLine<'_>) -> Vec<u64> {
    let fields: serde_json::Value = serde_json::from_str(erasure.content).unwrap_or_default();
    let sequence_numbers =
        fields["seqs"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64);
    sequence_numbers.filter(|number| *number < erasure.header.sequence_number).collect()
}

impl TurnLog {
    /// Erases the contents of these records, and of those named by an interrupted erasure. Returns how many
    /// were erased. Their numbers, times and chain hashes stay.
    pub fn erase_records_and_finish_interrupted(
        &self,
        sequence_numbers: &BTreeSet<u64>,
        timeout: Duration,
    ) -> Result<usize, StoreError> {
        let mut writer = self.open_writer(timeout)?;
        let ErasableRecords { requested, unfinished } =
            self.find_requested_and_unfinished_erasures(sequence_numbers)?;
        let sequence_numbers = &requested.union(&unfinished).copied().collect::<BTreeSet<u64>>();
        if sequence_numbers.is_empty() {
            return Ok(0);
        }
        if !requested.is_subset(&unfinished) {
            writer.append_records_or_roll_back(&[NewRecord::event_now(
                RecordKind::Erasure,
                &json!({"seqs": requested}),
            )])?;
        }
        // The head contains the memory of the last turn.
        writer.set_memory(None);
        // From here on the log names what is to be erased, even after a kill. The lock is kept until the end.
        writer.sync_and_save_head_if_unsynced()?;
        // Safe, because no other process has the lock.
        self.find_leftover_temporary_log_files().iter().try_for_each(|path| disk::remove_if_exists(path))?;
        let (erased_count, erased_blob_hashes) = self.rewrite_without_contents(sequence_numbers)?;
        // Lines are rewritten before blobs are removed, because no record may name a missing blob. A kill in
        // between leaves blobs that no record names, which the next erasure removes.
        self.remove_unreferenced_blobs(&erased_blob_hashes)?;
        // A torn end may contain what was erased, and so may a compressed form that a kill has left beside
        // this one.
        disk::remove_if_exists(&compressed_path(&self.path()))?;
        disk::remove_if_exists(&self.torn_path())?;
        drop(writer);
        Ok(erased_count)
    }

    /// Finds the records equal to these records of another log: turns of the same response, and any record
    /// with the same content. Erased records are found too, because their lines keep the hash of the content.
    pub fn find_equal_records(
        &self,
        other_log: &TurnLog,
        sequence_numbers_in_other_log: &BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>, StoreError> {
        let mut wanted_headers = Vec::new();
        for line in other_log.forward_lines()? {
            let line = line?;
            let header = LogLine::parse(&line.bytes).map(|parsed| parsed.header);
            wanted_headers.extend(
                header.filter(|header| sequence_numbers_in_other_log.contains(&header.sequence_number)),
            );
        }
        let is_equal_to_any_wanted = |header: &RecordHeader| {
            wanted_headers.iter().any(|wanted| {
                let is_same_response = wanted.message_id.is_some() && wanted.message_id == header.message_id;
                wanted.kind == header.kind
                    && wanted.stream == header.stream
                    && (is_same_response || wanted.content_hash == header.content_hash)
            })
        };
        let mut matches = BTreeSet::new();
        for line in self.forward_lines()? {
            let line = line?;
            let header = LogLine::parse(&line.bytes).map(|parsed| parsed.header);
            matches.extend(header.filter(is_equal_to_any_wanted).map(|header| header.sequence_number));
        }
        Ok(matches)
    }

    /// Finds the requested records that exist, and the records that an interrupted erasure has not erased. A number
    /// without a record is ignored, so that a later record with it is not erased. Erasure records are never erased.
    fn find_requested_and_unfinished_erasures(
        &self,
        sequence_numbers: &BTreeSet<u64>,
    ) -> Result<ErasableRecords, StoreError> {
        let (mut existing, mut with_contents, mut named_in_erasures) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for line in self.forward_lines()? {
            let line = line?;
            let Some(parsed) = LogLine::parse(&line.bytes) else { continue };
            let sequence_number = parsed.header.sequence_number;
            if parsed.header.kind == RecordKind::Erasure {
                named_in_erasures.extend(sequence_numbers_in_erasure(&parsed));
                continue;
            }
            existing.insert(sequence_number);
            if !parsed.is_erased() {
                with_contents.insert(sequence_number);
            }
        }
        Ok(ErasableRecords {
            requested: existing.intersection(sequence_numbers).copied().collect(),
            unfinished: with_contents.intersection(&named_in_erasures).copied().collect(),
        })
    }

    /// Returns the temporary files that a killed erasure or compression left behind. They may contain
    /// contents that were erased later.
    pub(crate) fn find_leftover_temporary_log_files(&self) -> Vec<PathBuf> {
        let prefix = format!("{}.jsonl.", self.session_id);
        let is_temporary_log_file = |name: &String| {
            name.trim_start_matches('.').starts_with(&prefix) && name.ends_with(disk::TEMPORARY_FILE_SUFFIX)
        };
        disk::list_names(&self.folder)
            .into_iter()
            .filter(is_temporary_log_file)
            .map(|name| self.folder.join(name))
            .collect()
    }

    /// Rewrites the log without the contents of these records. Returns how many were erased, and the hashes of the
    /// blobs that they named.
    fn rewrite_without_contents(
        &self,
        sequence_numbers: &BTreeSet<u64>,
    ) -> Result<(usize, BTreeSet<String>), StoreError> {
        let path = self.path();
        let temporary_path = disk::new_temporary_path(&path);
        let mut erased_count = 0;
        let mut erased_blob_hashes = BTreeSet::new();
        let mut writer = BufWriter::new(SizeLimitedFile(disk::open_for_append(&temporary_path)?));
        for line in self.forward_lines()? {
            let line = line?;
            let target = LogLine::parse(&line.bytes).filter(|parsed| {
                sequence_numbers.contains(&parsed.header.sequence_number)
                    && parsed.header.kind != RecordKind::Erasure
            });
            let result = match target {
                Some(parsed) if !parsed.is_erased() => {
                    erased_count += 1;
                    erased_blob_hashes.extend(referenced_blob_hashes(parsed.content));
                    writer.write_all(render_erased_line(&parsed, line.bytes.len()).as_bytes())
                }
                _ => writer.write_all(&line.bytes),
            };
            let line_end: &[u8] = if line.has_newline { b"\n" } else { b"" };
            result.and_then(|()| writer.write_all(line_end)).map_err(io_error("write", &temporary_path))?;
        }
        // Only this makes the erasure permanent: before the sync, a power cut could bring the old log back.
        temporary_file::sync_and_rename_temporary_file(writer, &temporary_path, &path, None)?;
        Ok((erased_count, erased_blob_hashes))
    }

    /// Removes the blobs that no record names, including those that a killed erasure left behind. If a record is
    /// unreadable, removes only those of them that are in `removable_if_log_damaged`.
    fn remove_unreferenced_blobs(
        &self,
        removable_if_log_damaged: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let (mut referenced_hashes, mut all_records_readable) = (BTreeSet::new(), true);
        for line in self.forward_lines()? {
            match LogLine::parse(&line?.bytes) {
                Some(parsed) if parsed.has_intact_content() => {
                    referenced_hashes.extend(referenced_blob_hashes(parsed.content));
                }
                _ => all_records_readable = false,
            }
        }
        let folder = self.blob_folder();
        let is_removable = |name: &String| {
            let hash = without_compressed_suffix(name);
            (all_records_readable || removable_if_log_damaged.contains(hash))
                && !referenced_hashes.contains(hash)
        };
        disk::list_names(&folder)
            .into_iter()
            .filter(is_removable)
            .try_for_each(|name| disk::remove_if_exists(&folder.join(name)))
    }
}
