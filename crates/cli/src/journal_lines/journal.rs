//! The journal's file as it is read: it may grow, be replaced by a repaired one, be cut short, or not be there yet.

use plimsoll_domain::journal::Line;
use plimsoll_store::{StoreError, disk};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::time::SystemTime;

/// The journal as far as it has been read. A line that has been read once is not read again, whatever becomes
/// of the file.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    stamp: Option<(u64, SystemTime)>,
    read: Vec<u8>,
    known: HashSet<u64>,
    /// True once the file has not merely grown: from then on it may hold lines that were read before.
    was_replaced: bool,
}

impl Journal {
    /// Nothing has been read yet.
    pub(crate) fn new(path: PathBuf) -> Journal {
        Journal { path, stamp: None, read: Vec::new(), known: HashSet::new(), was_replaced: false }
    }

    /// Everything that is there, the last line also where its end is missing.
    pub(crate) fn all(&self) -> Result<Vec<Line>, StoreError> {
        let bytes = disk::read(&self.path)?.unwrap_or_default();
        Ok(bytes.split(|byte| *byte == b'\n').flat_map(Line::read).collect())
    }

    /// The whole lines that have come since the last time.
    pub(crate) fn news(&mut self) -> Result<Vec<Line>, StoreError> {
        let stamp = disk::size(&self.path).zip(disk::modified(&self.path));
        if stamp.is_some() && stamp == self.stamp {
            return Ok(Vec::new());
        }
        let mut now = disk::read(&self.path)?.unwrap_or_default();
        self.stamp = stamp;
        // A line without its end is on its way: it is news once it is whole.
        now.truncate(now.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        self.was_replaced |= !now.starts_with(&self.read);
        let from = if self.was_replaced { 0 } else { self.read.len() };
        let (known, may_repeat) = (&mut self.known, self.was_replaced);
        let is_fresh = |line: &&[u8]| known.insert(mark(line)) || !may_repeat;
        let lines = now[from..].split(|byte| *byte == b'\n').filter(is_fresh).flat_map(Line::read).collect();
        self.read = now;
        Ok(lines)
    }
}

/// By this a line is known again.
fn mark(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}
