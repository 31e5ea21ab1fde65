//! How far a log goes: written after each append, and made again from the log whenever it is not there. And how much of
//! it a power cut may still take: a hook at work does not wait for the disk.

use crate::{Durability, StoreError, disk, sessions};
use plimsoll_domain::Timestamp;
use plimsoll_domain::format::Format;
use plimsoll_domain::log_line::Header;
use plimsoll_domain::turn::record::PackedMemory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// How far a log goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The format of the file. A head of a newer one counts as none: the log itself tells then.
    pub format: Format,
    /// The number of the last line.
    pub seq: u64,
    /// The link of the last line.
    pub link: String,
    /// The length of the log.
    pub bytes: u64,
    /// When the last record happened.
    pub at: Timestamp,
    /// How far each transcript has been read.
    pub streams: BTreeMap<String, Stream>,
    /// Pending files that were merged last: a kill between merging and removing one must not double it.
    pub merged: Vec<String>,
    /// What a power cut may still take; none if all of it is on the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsynced: Option<Unsynced>,
    /// The working memory as the last turn has it. Whatever it names was there when the head was written: a head in doubt is
    /// made anew, without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<NotedMemory>,
}

/// The working memory as the last turn has it: while nothing is written there, the next turn has the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotedMemory {
    /// The link of its log's last line.
    pub link: String,
    /// How many answers of models had been counted by then.
    pub steps: u64,
    /// As the turn's content has it.
    pub packed: PackedMemory,
    /// What the folder of large pieces is known by since the last one was put there: whoever takes one away changes it.
    pub pieces: Option<String>,
}

/// The end of a log that was written and not put on the disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unsynced {
    /// From this byte on.
    pub from: u64,
    /// The start of the system in which it was written: in a later one it is believed only after it has been checked.
    pub boot: String,
    /// True if large pieces are among it.
    pub has_pieces: bool,
}

/// How far a transcript has been read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stream {
    /// Up to this byte.
    pub read: u64,
    /// The number of its last turn.
    pub number: u64,
    /// The message of its last turn.
    pub message: String,
}

/// How many merged names are remembered at most: no more may be merged before their files are removed.
pub(super) const MERGED: usize = 64;

impl Head {
    pub(super) fn load(path: &Path) -> Option<Head> {
        sessions::load_parsed(path)
    }

    /// Lazily, where a head has been saved before: an older one that a power cut brings back costs no more than reading on.
    pub(super) fn save(&self, path: &Path, durability: Durability) -> Result<(), StoreError> {
        disk::replace(path, &serde_json::to_vec(self).unwrap_or_default(), durability)
    }

    /// True if the system has been started anew since the end was written: it may have holes.
    pub(super) fn is_in_doubt(&self) -> bool {
        let unsynced = self.unsynced.as_ref();
        unsynced.is_some_and(|unsynced| plimsoll_system::boot().is_none_or(|boot| boot != unsynced.boot))
    }

    /// Takes note of a line that was added.
    pub(super) fn take(&mut self, header: &Header, link: &str, bytes: u64) {
        self.seq = header.seq;
        link.clone_into(&mut self.link);
        self.bytes += bytes;
        header.at.clone_into(&mut self.at);
        if let Some(pending) = &header.pending {
            self.merged.push(pending.clone());
            self.merged.drain(..self.merged.len().saturating_sub(MERGED));
        }
        if header.read.is_none() && header.number.is_none() {
            return;
        }
        let stream = self.streams.entry(header.stream.clone()).or_default();
        stream.read = header.read.unwrap_or(stream.read);
        stream.number = header.number.unwrap_or(stream.number);
        if let Some(message) = &header.message {
            stream.message.clone_from(message);
        }
    }
}
