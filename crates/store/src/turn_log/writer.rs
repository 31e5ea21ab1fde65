//! Adding to a log.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use super::head::MERGED;
use super::{Head, NewRecord, TurnLog, blobs, pending, repair};
use crate::lock::Lock;
use crate::{StoreError, disk, io};
use plimsoll_domain::log_line::{Header, line};
use std::fs::File;
use std::io::{ErrorKind, Write};

/// The one who may add.
#[derive(Debug)]
pub struct Writer {
    log: TurnLog,
    head: Head,
    file: Option<File>,
    _lock: Lock,
}

impl Writer {
    pub(super) fn open(log: TurnLog, lock: Lock) -> Result<Writer, StoreError> {
        let (head, repairs) = repair::repair(&log)?;
        let mut writer = Writer { log, head, file: None, _lock: lock };
        // The repair first: `verify` reads there that records were lost, whose numbers are given again from here on.
        writer.append(&repairs)?;
        writer.merge()?;
        Ok(writer)
    }

    /// How far the log goes.
    pub fn head(&self) -> &Head {
        &self.head
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

    fn write_all(&mut self, mut file: &File, entries: &[NewRecord]) -> Result<(), StoreError> {
        let path = self.log.path();
        let mut lines = String::new();
        blobs::put(&self.log.blob_folder(), entries.iter().flat_map(|entry| &entry.encoded.blobs))?;
        for entry in entries {
            let header = Header { seq: self.head.seq + 1, ..entry.header.clone() };
            let (text, link) = line(&self.head.link, header.clone(), &entry.encoded.content);
            self.head.take(&header, &link, text.len() as u64);
            lines.push_str(&text);
        }
        // In one write: what belongs together is there together.
        file.write_all(lines.as_bytes()).map_err(io("append to", &path))?;
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

    /// Puts what was added on the disk, then says how far the log goes.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.settle()
    }

    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        // The log before the head: one that is behind is read on from, one ahead names lines that a power cut took.
        file.sync_data().map_err(io("sync", &self.log.path()))?;
        self.head.save(&self.log.head_path())
    }
}
