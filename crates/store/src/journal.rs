//! Writing the journal: one line, one write, so that lines of several programs never mix.

use crate::{Project, StoreError, clock, disk};
use session::journal::Entry;

/// Adds a line, stamped with the time.
pub fn note(project: &Project, entry: Entry) -> Result<(), StoreError> {
    let entry = Entry { at: clock::fine_stamp(clock::now()), ..entry };
    disk::append(&project.journal(), format!("{}\n", entry.to_line()).as_bytes())
}

/// The lines of the journal, oldest first; a torn line is left out.
pub fn read(project: &Project) -> Result<Vec<serde_json::Value>, StoreError> {
    let text = disk::read_text(&project.journal())?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
