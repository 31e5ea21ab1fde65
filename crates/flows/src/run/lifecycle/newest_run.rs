//! Finds the newest run of a project in its state, or in the copy of the state.

use plimsoll_domain::{RunId, RunState};
use plimsoll_policy::shell_loop;
use plimsoll_store::{Project, StoreError, disk, state_file};

/// Returns the id of the run in the state, or in the copy if the state is missing or cannot be read. Returns
/// `None` if there is no run, or if the state was written by another program.
pub(super) fn run_id_from_state_or_copy(project: &Project) -> Result<Option<RunId>, StoreError> {
    // The state of another program must not be overwritten by the copy of an older run.
    if state_file::load_state_document_of_other_program(project)?.is_some() {
        return Ok(None);
    }
    let copy_run_id = || load_state_copy(project).map(|state| state.run_id);
    let run_id = match state_file::load_state(project, None) {
        Ok(Some(state)) => Some(state.run_id),
        // `git clean` deletes the state, but not the copy in `.git/plimsoll`.
        Ok(None) => copy_run_id(),
        Err(error) => Some(copy_run_id().ok_or(error)?),
    };
    Ok(run_id.filter(|run_id| !run_id.is_empty()))
}

/// Loads the copy of the state of the newest run; `None` if it is missing or cannot be read.
pub(super) fn load_state_copy(project: &Project) -> Option<RunState> {
    let bytes = disk::read(&state_file::state_copy_path(project)).ok().flatten()?;
    RunState::from_json_text(&bytes).ok()
}

/// Returns the state if it lacks fields that Plimsoll always writes.
pub(super) fn incomplete_state_document(project: &Project) -> Result<Option<serde_json::Value>, StoreError> {
    let text = state_file::read_state_text(project).ok().flatten();
    let document = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(document.filter(|document| !shell_loop::missing_run_marker_fields(document).is_empty()))
}
