//! The head of a log: where the log ends, and how much of it a power cut may still lose, because a hook does
//! not wait for a sync. It is written after each append, and rebuilt from the log if it is missing.

use crate::{Durability, StoreError, disk, sessions};
use plimsoll_domain::Timestamp;
use plimsoll_domain::format::FormatVersion;
use plimsoll_domain::log_line::RecordHeader;
use plimsoll_domain::turn::record::EncodedMemory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The last record and the length of a log, and how far each transcript has been read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogHead {
    /// The format of the file. A head of a newer format is ignored; the log itself is read instead.
    pub format: FormatVersion,
    /// The number of the last record.
    #[serde(rename = "seq")]
    pub sequence_number: u64,
    /// The chain hash of the last line.
    pub link: String,
    /// The length of the log in bytes.
    #[serde(rename = "bytes")]
    pub log_bytes: u64,
    /// When the last record happened.
    #[serde(rename = "at")]
    pub recorded_at: Timestamp,
    /// How far each transcript has been read.
    pub streams: BTreeMap<String, StreamPosition>,
    /// The pending files merged last, so that a kill between merging and removing one does not duplicate it.
    #[serde(rename = "merged")]
    pub merged_files: Vec<String>,
    /// The part that a power cut may still lose. `None` if everything is synced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsynced: Option<UnsyncedEnd>,
    /// The working memory of the last turn. All blobs that it names existed when the head was written. A head
    /// that is in doubt after a restart is rebuilt without this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<RecordedMemory>,
}

/// The working memory of the last turn. The next turn has the same one unless it is changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedMemory {
    /// The chain hash of the last line of the memory's log.
    #[serde(rename = "link")]
    pub log_chain_hash: String,
    /// How many model responses had been counted by then.
    #[serde(rename = "steps")]
    pub response_count: u64,
    /// The memory as encoded in the turn's content.
    pub packed: EncodedMemory,
    /// The stamp of the blob folder after the last write. Adding or removing a blob changes it.
    #[serde(rename = "pieces")]
    pub blob_folder_stamp: Option<String>,
}

/// The end of a log that was written and not synced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnsyncedEnd {
    /// The first byte that may not be on the disk.
    #[serde(rename = "from")]
    pub start_byte: u64,
    /// The system boot in which it was written. After a later boot it must be checked before it is trusted.
    #[serde(rename = "boot")]
    pub boot_id: String,
    /// True if it includes blobs.
    #[serde(rename = "has_pieces")]
    pub has_blobs: bool,
}

/// How far a transcript has been read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamPosition {
    /// The first byte that has not been read.
    #[serde(rename = "read")]
    pub transcript_offset: u64,
    #[serde(rename = "number")]
    pub turn_number: u64,
    /// The message id of its last turn.
    #[serde(rename = "message")]
    pub message_id: String,
}

/// The number of names of merged pending files that the head remembers, and the size of a merge batch. The files of a
/// batch are removed before the next batch is merged, so after a kill the head still names every file that was merged
/// but not removed, and none is merged twice.
pub(super) const MAX_MERGED_FILES: usize = 64;

impl LogHead {
    pub(super) fn load(path: &Path) -> Option<LogHead> {
        sessions::read_json_if_valid(path)
    }

    /// Writes the head. May be lazy if a head was saved before: if a power cut brings an older one back, more
    /// of the log is read.
    pub(super) fn save(&self, path: &Path, durability: Durability) -> Result<(), StoreError> {
        disk::replace(path, &serde_json::to_vec(self).unwrap_or_default(), durability)
    }

    /// Returns true if the log has an unsynced end and the system has been restarted since it was written, so
    /// that the end may have holes.
    pub(super) fn has_end_unsynced_before_reboot(&self) -> bool {
        let unsynced = self.unsynced.as_ref();
        unsynced
            .is_some_and(|unsynced| plimsoll_system::boot_id().is_none_or(|boot| boot != unsynced.boot_id))
    }

    /// Updates the head for a line that was added.
    pub(super) fn advance_past_line(&mut self, header: &RecordHeader, chain_hash: &str, line_bytes: u64) {
        self.sequence_number = header.sequence_number;
        chain_hash.clone_into(&mut self.link);
        self.log_bytes += line_bytes;
        header.recorded_at.clone_into(&mut self.recorded_at);
        if let Some(pending) = &header.pending_file {
            self.merged_files.push(pending.clone());
            self.merged_files.drain(..self.merged_files.len().saturating_sub(MAX_MERGED_FILES));
        }
        if header.transcript_offset.is_none() && header.turn_number.is_none() {
            return;
        }
        let stream = self.streams.entry(header.stream.clone()).or_default();
        stream.transcript_offset = header.transcript_offset.unwrap_or(stream.transcript_offset);
        stream.turn_number = header.turn_number.unwrap_or(stream.turn_number);
        if let Some(message) = &header.message_id {
            stream.message_id.clone_from(message);
        }
    }
}
