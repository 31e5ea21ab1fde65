//! Writing the journal: one line, one write, so that lines of several programs never mix.

use crate::{Project, StoreError, clock, disk};
use serde_json::Value;
use session::journal::Entry;

/// Adds a line, stamped with the time.
pub fn note(project: &Project, entry: Entry) -> Result<(), StoreError> {
    let entry = Entry { at: clock::fine_stamp(clock::now()), ..entry };
    disk::append_line(&project.journal(), &entry.to_line())
}

/// True if the journal has a line of that event, run, iteration and session. For those who come after a kill: a line
/// is written after what it tells of.
pub fn tells(project: &Project, entry: &Entry) -> bool {
    let is_it = |line: &Value| {
        line["event"] == entry.event.as_str()
            && line["run_id"].as_str() == entry.run_id.as_deref()
            && line["iteration"].as_u64() == entry.iteration.map(u64::from)
            && line["session_id"].as_str() == entry.session_id.as_deref()
    };
    /// Whoever was killed comes back before so much more is written.
    const LAST: u64 = 4 * 1024 * 1024;
    let end = disk::read_end(&project.journal(), LAST).ok().flatten().unwrap_or_default();
    let mut lines = end.split(|byte| *byte == b'\n').rev();
    lines.any(|line| serde_json::from_slice(line).is_ok_and(|line| is_it(&line)))
}

/// The lines of the journal, oldest first; a torn line is left out.
pub fn read(project: &Project) -> Result<Vec<Value>, StoreError> {
    let text = disk::read_text(&project.journal())?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
