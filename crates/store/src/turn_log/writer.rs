//! Adding to a log.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use super::blobs::KnownPieces;
use super::head::MERGED;
use super::{Head, NewRecord, NotedMemory, TurnLog, Unsynced, blobs, pending, repair};
use crate::lock::Lock;
use crate::{Durability, StoreError, disk, io, limited};
use plimsoll_domain::log_line::{Header, line};
use plimsoll_system::files::sync_data;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;

/// The one who may add.
#[derive(Debug)]
pub struct Writer {
    log: TurnLog,
    head: Head,
    file: Option<File>,
    durability: Durability,
    /// The length that was on the disk when this one began.
    synced: u64,
    /// True if large pieces of it may not be.
    has_pieces: bool,
    known_pieces: KnownPieces,
    _lock: Lock,
}

impl Writer {
    pub(super) fn open(
        log: TurnLog,
        lock: Lock,
        known: Option<&Head>,
        durability: Durability,
    ) -> Result<Writer, StoreError> {
        let (mut head, repairs) = repair::repair(&log, known)?;
        if log.noted_memory(&head).is_none() {
            head.memory = None;
        }
        let unsynced = head.unsynced.clone().unwrap_or(Unsynced { from: head.bytes, ..Unsynced::default() });
        // The head of a new log is on the disk before its lines are written, and then the first of them: else a power cut could
        // take the head's very name, and nobody would know which lines to doubt.
        let durability = if head.seq == 0 { Durability::Durable } else { durability };
        if head == Head::default() {
            head.save(&log.head_path(), Durability::Durable)?;
        }
        let (synced, has_pieces) = (unsynced.from, unsynced.has_pieces);
        let mut writer = Writer {
            log,
            head,
            file: None,
            durability,
            synced,
            has_pieces,
            known_pieces: KnownPieces::default(),
            _lock: lock,
        };
        // The repair first: `verify` reads there that records were lost, whose numbers are given again from here on.
        writer.append(&repairs)?;
        writer.merge()?;
        Ok(writer)
    }

    /// How far the log goes.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// True if nothing has changed since a head was read: no record was added, and what it noted of the memory is still there.
    pub fn goes_on_from(&self, head: &Head) -> bool {
        self.head.seq == head.seq
            && self.head.link == head.link
            && self.head.memory.is_some() == head.memory.is_some()
    }

    /// Notes the working memory for the turn that comes next.
    pub fn note_memory(&mut self, memory: Option<NotedMemory>) {
        self.head.memory = memory;
    }

    /// Adds records in one write. After a failure the log is as it was.
    pub fn append(&mut self, entries: &[NewRecord]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let before = self.head.clone();
        let file = match self.file.take() {
            Some(file) => file,
            None => disk::open_to_append(&self.log.path())?,
        };
        let written = self.write_all(&file, entries).inspect_err(|_| {
            // This file, whatever is at its path by now.
            let _ = file.set_len(before.bytes);
            self.head = before;
        });
        self.file = Some(file);
        written
    }

    fn write_all(&mut self, file: &File, entries: &[NewRecord]) -> Result<(), StoreError> {
        let path = self.log.path();
        let mut lines = String::new();
        let pieces = entries.iter().flat_map(|entry| &entry.encoded.blobs);
        self.has_pieces |= blobs::put(&self.log.blob_folder(), pieces, &mut self.known_pieces)?;
        for entry in entries {
            let header = Header { seq: self.head.seq + 1, ..entry.header.clone() };
            let (text, link) = line(&self.head.link, header.clone(), &entry.encoded.content);
            self.head.take(&header, &link, text.len() as u64);
            lines.push_str(&text);
        }
        // In one write: what belongs together is there together.
        limited::write_all(file, lines.as_bytes()).map_err(io("append to", &path))?;
        // An agent's `git clean` may have taken the file away while we held it.
        if disk::size(&path) != Some(self.head.bytes) {
            return Err(io("append to", &path)(ErrorKind::NotFound.into()));
        }
        Ok(())
    }

    /// What waited comes before anything that happens from now on; removed in steps that the head remembers, so that
    /// a kill on the way doubles nothing.
    fn merge(&mut self) -> Result<(), StoreError> {
        for step in pending::waiting(&self.log).chunks(MERGED) {
            for (name, _, entry) in step {
                if !self.head.merged.contains(name) {
                    let mut entry = entry.clone();
                    entry.header.pending = Some(name.clone());
                    self.append(&[entry])?;
                }
            }
            // On the disk before the files go. After a kill before the head `repair` finds the names in the lines.
            self.settle()?;
            step.iter().try_for_each(|(_, path, _)| disk::remove(path))?;
        }
        Ok(())
    }

    /// Says how far the log goes, after what was added is on the disk; or, for one who does not wait for that, says which of
    /// it is not.
    pub fn close(mut self) -> Result<(), StoreError> {
        match self.durability {
            Durability::Durable => self.settle(),
            Durability::Lazy => self.leave(),
        }
    }

    /// No more than this is left to the next writer: it is read again after a start of the system.
    const MOST_UNSYNCED: u64 = 4 * 1024 * 1024;

    fn leave(&mut self) -> Result<(), StoreError> {
        let boot = plimsoll_system::boot()
            .filter(|_| self.head.bytes - self.synced.min(self.head.bytes) < Self::MOST_UNSYNCED);
        match boot {
            _ if self.file.is_none() => Ok(()),
            None => self.settle(),
            Some(boot) => {
                self.head.unsynced = Some(Unsynced { from: self.synced, boot, has_pieces: self.has_pieces });
                self.save_head()
            }
        }
    }

    /// Everything is on the disk, then the head says how far it goes.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        let unsynced = self.head.unsynced.take();
        let file = match self.file.take() {
            None if unsynced.is_none() => return Ok(()),
            None => disk::open_to_append(&self.log.path())?,
            Some(file) => file,
        };
        // The log before the head: one that is behind is read on from, one ahead names lines that a power cut took. Pieces are
        // many files, which wait once, for their volume.
        if self.has_pieces {
            disk::sync_volume(&self.log.folder)?;
        } else {
            sync_data(file.as_fd()).map_err(|error| io("sync", &self.log.path())(error.into()))?;
        }
        (self.synced, self.has_pieces) = (self.head.bytes, false);
        self.save_head()
    }

    fn save_head(&mut self) -> Result<(), StoreError> {
        // Since this one began, only it has put pieces there.
        if let Some(noted) = &mut self.head.memory {
            noted.pieces = blobs::folder_version(&self.log.blob_folder());
        }
        self.head.save(&self.log.head_path(), Durability::Lazy)
    }
}
