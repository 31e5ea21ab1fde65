//! Stores why the work on an item was sent back, for the item's next session: in the folder of the run or, in
//! a fleet, beside the item's branch.

use plimsoll_domain::RunState;
use plimsoll_domain::item_brief::{ReturnReason, ReturnedWork};
use plimsoll_domain::workers::WorkersState;
use plimsoll_store::{Durability, Project, StoreError, disk};
use std::path::PathBuf;

fn returned_work_path(project: &Project, run_state: &RunState, item: usize) -> PathBuf {
    project.run_folder(&run_state.run_id).join(format!("worker-{:03}.returned.json", item + 1))
}

/// Saves why the work on an item was sent back. Replaces the previously saved reason.
pub(super) fn save(
    project: &Project,
    run_state: &RunState,
    item: usize,
    returned_work: &ReturnedWork,
) -> Result<(), StoreError> {
    disk::replace(
        &returned_work_path(project, run_state, item),
        to_json(returned_work).as_bytes(),
        Durability::Lazy,
    )
}

/// Loads why the last work on an item was sent back. Falls back to the short note on the board if the file is
/// missing or cannot be read.
pub(super) fn load_or_convert_board_note(
    project: &Project,
    run_state: &RunState,
    workers_state: &WorkersState,
    item: usize,
) -> Option<ReturnedWork> {
    let saved_text = disk::read_text(&returned_work_path(project, run_state, item)).ok().flatten();
    saved_text
        .and_then(|text| from_json(&text))
        .or_else(|| note_as_unfinished_work_unless_empty(&workers_state.board.items[item].next_session_note))
}

/// Converts the board's note about work that was sent back. Returns `None` for an empty note.
pub(super) fn note_as_unfinished_work_unless_empty(note: &str) -> Option<ReturnedWork> {
    let returned_work = ReturnedWork {
        return_reason: ReturnReason::Unfinished,
        output: note.to_owned(),
        ..ReturnedWork::default()
    };
    (!note.is_empty()).then_some(returned_work)
}

pub(super) fn to_json(returned_work: &ReturnedWork) -> String {
    serde_json::to_string(returned_work).unwrap_or_default()
}

pub(super) fn from_json(text: &str) -> Option<ReturnedWork> {
    serde_json::from_str(text).ok()
}
