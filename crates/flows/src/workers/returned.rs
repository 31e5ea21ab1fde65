//! Where a run keeps why work on an item was sent back, until the item's next session is told it: in the run's own folder, or,
//! in a fleet, beside the item's branch.

use plimsoll_domain::RunState;
use plimsoll_domain::item_brief::{ReturnReason, ReturnedWork};
use plimsoll_domain::workers::Workers;
use plimsoll_store::{Durability, Project, StoreError, disk};
use std::path::PathBuf;

fn path(project: &Project, run: &RunState, item: usize) -> PathBuf {
    project.run_folder(&run.run_id).join(format!("worker-{:03}.returned.json", item + 1))
}

/// Keeps why the work on an item was sent back. What was kept before is replaced.
pub(super) fn keep(
    project: &Project,
    run: &RunState,
    item: usize,
    work: &ReturnedWork,
) -> Result<(), StoreError> {
    disk::replace(&path(project, run, item), render(work).as_bytes(), Durability::Lazy)
}

/// Loads why the last work on an item was sent back. Of what could not be kept whole the board has a line.
pub(super) fn load(project: &Project, run: &RunState, now: &Workers, item: usize) -> Option<ReturnedWork> {
    let kept = disk::read_text(&path(project, run, item)).ok().flatten();
    kept.and_then(|text| parse(&text)).or_else(|| from_note(&now.board.items[item].note))
}

/// What a line on the board says of work that was sent back; none for an item without such a line.
pub(super) fn from_note(note: &str) -> Option<ReturnedWork> {
    let work =
        ReturnedWork { reason: ReturnReason::Unfinished, output: note.to_owned(), ..ReturnedWork::default() };
    (!note.is_empty()).then_some(work)
}

pub(super) fn render(work: &ReturnedWork) -> String {
    serde_json::to_string(work).unwrap_or_default()
}

pub(super) fn parse(text: &str) -> Option<ReturnedWork> {
    serde_json::from_str(text).ok()
}
