//! Reads the journal as it grows. The journal is in the project, where an agent can replace, truncate or fill it. Each read is
//! therefore bounded, and an endless line is not kept in memory.

use plimsoll_domain::journal::{JournalEntry, JournalLine};
use plimsoll_store::disk;
use std::path::PathBuf;

/// Maximum number of bytes per read.
const MAX_READ_BYTES: usize = 256 * 1024;
/// Maximum length of a line; real entries have a few kilobytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct JournalTail {
    path: PathBuf,
    /// Byte offset of the next read.
    offset: u64,
    /// The beginning of a line whose end has not been read yet.
    partial_line: Vec<u8>,
    /// True while the remainder of an overlong line is being skipped.
    is_skipping_long_line: bool,
}

impl JournalTail {
    pub(crate) fn from_offset(path: PathBuf, offset: u64) -> JournalTail {
        JournalTail { path, offset, partial_line: Vec::new(), is_skipping_long_line: false }
    }

    /// Reads at most `MAX_READ_BYTES` from where the last call stopped, and returns the complete entries. Invalid and overlong
    /// lines are skipped.
    pub(crate) fn read_new_entries(&mut self) -> Vec<JournalEntry> {
        let Ok((bytes, next_offset)) =
            disk::read_chunk_and_next_offset(&self.path, self.offset, MAX_READ_BYTES)
        else {
            return Vec::new();
        };
        if next_offset < self.offset {
            self.partial_line.clear();
            self.is_skipping_long_line = false;
        }
        self.offset = next_offset;
        self.partial_line.extend(bytes);
        let complete_length = self
            .partial_line
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline_index| newline_index + 1);
        let line_bytes: Vec<u8> = self.partial_line.drain(..complete_length).collect();
        let mut lines: Vec<&[u8]> = line_bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if self.is_skipping_long_line && !lines.is_empty() {
            // This is the remainder of a line whose beginning was discarded.
            lines.remove(0);
            self.is_skipping_long_line = false;
        }
        if self.partial_line.len() > MAX_LINE_BYTES {
            self.partial_line.clear();
            self.is_skipping_long_line = true;
        }
        let short_lines = lines.into_iter().filter(|line| line.len() <= MAX_LINE_BYTES);
        short_lines
            .flat_map(JournalLine::parse_line_and_appended_entry)
            .filter_map(JournalLine::into_entry)
            .collect()
    }

    /// Returns true if the file extends beyond the offset of the next read.
    pub(crate) fn has_unread_bytes(&self) -> bool {
        disk::file_size(&self.path).is_some_and(|size| size > self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "{\"at\":\"2026-01-07T10:00:00Z\",\"event\":\"cancelled\"}\n";

    #[test]
    fn each_complete_entry_is_read_once_and_long_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let append = |text: &str| disk::append(&path, text.as_bytes()).unwrap();
        let mut tail = JournalTail::from_offset(path.clone(), 0);
        assert_eq!(tail.read_new_entries().len(), 0, "there is no file yet");
        append(ENTRY);
        append(&ENTRY[..20]);
        assert_eq!(tail.read_new_entries().len(), 1);
        assert_eq!(tail.read_new_entries().len(), 0);
        append(&ENTRY[20..]);
        assert_eq!(tail.read_new_entries().len(), 1);
        // A line longer than one read, and then a valid entry.
        append(&"x".repeat(3 * MAX_READ_BYTES));
        append(&format!("\n{ENTRY}not json\n{}\n", "y".repeat(MAX_LINE_BYTES + 1)));
        let mut entry_count = 0;
        while tail.has_unread_bytes() {
            entry_count += tail.read_new_entries().len();
            assert!(tail.partial_line.len() <= MAX_LINE_BYTES, "{}", tail.partial_line.len());
        }
        assert_eq!(entry_count, 1);
        // The file is replaced by a shorter one: reading continues at its end.
        disk::replace(&path, ENTRY.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
        assert_eq!(tail.read_new_entries().len(), 0);
        append(ENTRY);
        assert_eq!(tail.read_new_entries().len(), 1);
    }

    #[test]
    fn the_first_entry_after_a_truncated_long_line_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut tail = JournalTail::from_offset(path.clone(), 0);
        disk::append(&path, "x".repeat(MAX_LINE_BYTES + 1).as_bytes()).unwrap();
        assert_eq!(tail.read_new_entries().len(), 0);
        disk::replace(&path, ENTRY.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
        assert_eq!(tail.read_new_entries().len(), 0, "reading continues at the end");
        disk::append(&path, ENTRY.as_bytes()).unwrap();
        assert_eq!(tail.read_new_entries().len(), 1);
    }
}
