//! Reads and writes the journal. Each line is a single write, so that lines of several processes never mix.

use crate::{Project, StoreError, clock, disk};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalLine};
use std::path::Path;

/// Appends an entry to the journal, with the current time.
pub fn append_entry(project: &Project, entry: JournalEntry) -> Result<(), StoreError> {
    let entry = JournalEntry { recorded_at: clock::to_millis_timestamp(clock::now()), ..entry };
    // Taking a lock would update the location. This takes none, and a hook may have looked up its project long ago.
    project.update_location_if_moved_into_project();
    disk::append_line(&project.journal_path(), &entry.to_line())
}

/// Returns true if the end of the journal has a line about the same event, run, iteration and session. A line
/// is written after its event, so a process that resumes after a kill uses this to avoid a duplicate.
pub fn has_same_event_and_origin_near_end(project: &Project, entry: &JournalEntry) -> bool {
    /// Bytes at the end of the journal that are searched. A killed process is restarted before more than this
    /// is written.
    const MAX_TAIL_BYTES: u64 = 4 * 1024 * 1024;
    let tail =
        disk::read_last_lines(&project.journal_path(), MAX_TAIL_BYTES).ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&tail).rsplit('\n').any(|line| entry.has_same_event_name_and_origin(line))
}

/// Reads the entries of the journal, oldest first. Lines that do not parse are skipped.
pub fn read_entries(project: &Project) -> Result<Vec<JournalEntry>, StoreError> {
    read_entries_from_file(&project.journal_path())
}

/// Reads the journal of a removed worktree of an item's run: it was moved next to the run's output.
pub fn read_entries_of_removed_worktree(
    project: &Project,
    run_id: &RunId,
) -> Result<Vec<JournalEntry>, StoreError> {
    read_entries_from_file(&project.run_folder(run_id).join("journal.jsonl"))
}

fn read_entries_from_file(path: &Path) -> Result<Vec<JournalEntry>, StoreError> {
    let text = disk::read(path)?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').flat_map(JournalLine::parse_line_and_appended_entry);
    Ok(lines.filter_map(JournalLine::into_entry).collect())
}
