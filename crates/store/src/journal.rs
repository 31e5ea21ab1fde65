//! Writing the journal: one line, one write, so that lines of several programs never mix.

use crate::{Project, StoreError, clock, disk};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, Line};
use std::path::Path;

/// Adds a line, stamped with the time.
pub fn note(project: &Project, entry: JournalEntry) -> Result<(), StoreError> {
    let entry = JournalEntry { at: clock::fine_stamp(clock::now()), ..entry };
    // No lock is waited for here, but a hook that is long at work looked up its project long ago.
    project.follow_move();
    disk::append_line(&project.journal(), &entry.to_line())
}

/// True if the journal has a line about the same event, run, iteration and session. For those who come after a kill: a
/// line is written after what it records.
pub fn tells(project: &Project, entry: &JournalEntry) -> bool {
    /// A killed process is started again before this much more is written.
    const LAST: u64 = 4 * 1024 * 1024;
    let end = disk::read_end(&project.journal(), LAST).ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&end).rsplit('\n').any(|line| entry.is_told_by(line))
}

/// The entries of the journal, oldest first; what is none is left out.
pub fn read(project: &Project) -> Result<Vec<JournalEntry>, StoreError> {
    read_file(&project.journal())
}

/// Those of an item's run, whose worktree is gone: its journal was moved beside the run's output.
pub fn read_moved(project: &Project, run_id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
    read_file(&project.run_folder(run_id).join("journal.jsonl"))
}

fn read_file(path: &Path) -> Result<Vec<JournalEntry>, StoreError> {
    let text = disk::read(path)?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').flat_map(Line::read);
    Ok(lines.filter_map(Line::into_entry).collect())
}
