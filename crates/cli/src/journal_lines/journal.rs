//! Reads a journal file that may grow, be replaced by a repaired one, be cut short, or not exist yet.

use plimsoll_domain::journal::JournalLine;
use plimsoll_store::{StoreError, disk};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::time::SystemTime;

/// The journal, as far as it has been read. No line is returned twice, whatever happens to the file.
#[derive(Debug)]
pub(crate) struct JournalReader {
    path: PathBuf,
    file_stamp: Option<(u64, SystemTime)>,
    bytes_read: Vec<u8>,
    returned_line_hashes: HashSet<u64>,
    /// True once the file has changed other than by growing; from then on it may contain lines that were
    /// already returned.
    was_replaced: bool,
}

impl JournalReader {
    pub(crate) fn new(path: PathBuf) -> JournalReader {
        JournalReader {
            path,
            file_stamp: None,
            bytes_read: Vec::new(),
            returned_line_hashes: HashSet::new(),
            was_replaced: false,
        }
    }

    /// Reads all lines, including an incomplete last line.
    pub(crate) fn read_all(&self) -> Result<Vec<JournalLine>, StoreError> {
        let bytes = disk::read(&self.path)?.unwrap_or_default();
        Ok(bytes.split(|byte| *byte == b'\n').flat_map(JournalLine::parse_line_and_appended_entry).collect())
    }

    /// Reads the complete lines that no earlier call has returned.
    pub(crate) fn read_new_complete_lines(&mut self) -> Result<Vec<JournalLine>, StoreError> {
        let file_stamp = disk::file_size(&self.path).zip(disk::modified_at(&self.path));
        if file_stamp.is_some() && file_stamp == self.file_stamp {
            return Ok(Vec::new());
        }
        let mut bytes = disk::read(&self.path)?.unwrap_or_default();
        self.file_stamp = file_stamp;
        // The last line is still being written if it has no line break; a later call returns it.
        bytes.truncate(
            bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline_index| newline_index + 1),
        );
        self.was_replaced |= !bytes.starts_with(&self.bytes_read);
        let start = if self.was_replaced { 0 } else { self.bytes_read.len() };
        let (returned_line_hashes, may_repeat) = (&mut self.returned_line_hashes, self.was_replaced);
        let is_new_line = |line: &&[u8]| returned_line_hashes.insert(line_hash(line)) || !may_repeat;
        let lines = bytes[start..]
            .split(|byte| *byte == b'\n')
            .filter(is_new_line)
            .flat_map(JournalLine::parse_line_and_appended_entry)
            .collect();
        self.bytes_read = bytes;
        Ok(lines)
    }
}

/// Returns the hash by which a line is recognized.
fn line_hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}
