//! The journal as it grows. It is in the project: it may be replaced, cut, or filled by an agent, so each look reads a bounded
//! piece, and a line without an end is not kept.

use plimsoll_domain::journal::{JournalEntry, JournalLine};
use plimsoll_store::disk;
use std::path::PathBuf;

/// The most that one look reads.
const PIECE: usize = 256 * 1024;
/// Ours have a few kilobytes.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct JournalTail {
    path: PathBuf,
    /// Where the next look begins.
    from: u64,
    /// The beginning of a line whose end is not there yet.
    torn: Vec<u8>,
    /// True while in the middle of a line that is too long.
    is_lost: bool,
}

impl JournalTail {
    pub(crate) fn of(path: PathBuf, from: u64) -> JournalTail {
        JournalTail { path, from, torn: Vec::new(), is_lost: false }
    }

    /// What has been added since the last look.
    pub(crate) fn look(&mut self) -> Vec<JournalEntry> {
        let Ok((bytes, next)) = disk::read_from(&self.path, self.from, PIECE) else { return Vec::new() };
        if next < self.from {
            self.torn.clear();
        }
        self.from = next;
        self.torn.extend(bytes);
        let whole = self.torn.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.torn.drain(..whole).collect();
        let mut lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        if self.is_lost && !lines.is_empty() {
            // The rest of a line whose beginning was thrown away.
            lines.remove(0);
            self.is_lost = false;
        }
        if self.torn.len() > LONGEST_LINE {
            self.torn.clear();
            self.is_lost = true;
        }
        let short = lines.into_iter().filter(|line| line.len() <= LONGEST_LINE);
        short.flat_map(JournalLine::parse_all).filter_map(JournalLine::into_entry).collect()
    }

    /// True if there is more to read.
    pub(crate) fn has_more(&self) -> bool {
        disk::file_size(&self.path).is_some_and(|size| size > self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "{\"at\":\"2026-01-07T10:00:00Z\",\"event\":\"cancelled\"}\n";

    #[test]
    fn lines_come_once_whole_and_never_a_book() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let add = |text: &str| disk::append(&path, text.as_bytes()).unwrap();
        let mut tail = JournalTail::of(path.clone(), 0);
        assert_eq!(tail.look().len(), 0, "there is no file yet");
        add(ENTRY);
        add(&ENTRY[..20]);
        assert_eq!(tail.look().len(), 1);
        assert_eq!(tail.look().len(), 0);
        add(&ENTRY[20..]);
        assert_eq!(tail.look().len(), 1);
        // A line without an end, in pieces, and then one of ours.
        add(&"x".repeat(3 * PIECE));
        add(&format!("\n{ENTRY}not json\n{}\n", "y".repeat(LONGEST_LINE + 1)));
        let mut seen = 0;
        while tail.has_more() {
            seen += tail.look().len();
            assert!(tail.torn.len() <= LONGEST_LINE, "{}", tail.torn.len());
        }
        assert_eq!(seen, 1);
        // Replaced by a shorter one: it goes on behind what that has.
        disk::replace(&path, ENTRY.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
        assert_eq!(tail.look().len(), 0);
        add(ENTRY);
        assert_eq!(tail.look().len(), 1);
    }
}
