//! Which run the project has: the one in its state, or in the copy of it.

use plimsoll_domain::{RunId, RunState};
use plimsoll_policy::foreign;
use plimsoll_store::{Project, StoreError, disk, state_file};

/// The id of the run in the state, or of its copy where an agent has taken the state away.
pub(super) fn newest_run_id(project: &Project) -> Result<Option<RunId>, StoreError> {
    // A copy of an older run must not bring that one back over it.
    if state_file::foreign(project)?.is_some() {
        return Ok(None);
    }
    let of_copy = || copy(project).map(|state| state.run_id);
    let known = match state_file::load(project, None) {
        Ok(Some(state)) => Some(state.run_id),
        // An agent's `git clean` takes the state with it; the copy is in `.git/plimsoll`, where that does not reach.
        Ok(None) => of_copy(),
        Err(error) => Some(of_copy().ok_or(error)?),
    };
    Ok(known.filter(|run_id| !run_id.is_empty()))
}

/// The copy of the newest run of ours.
pub(super) fn copy(project: &Project) -> Option<RunState> {
    let bytes = disk::read(&state_file::copy_path(project)).ok().flatten()?;
    RunState::from_text(&bytes).ok()
}

/// A state with the id of a run and without the rest of what makes it ours.
pub(super) fn nameless(project: &Project) -> Result<Option<serde_json::Value>, StoreError> {
    let text = state_file::text(project).ok().flatten();
    let document = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(document.filter(|document| !foreign::missing_marks(document).is_empty()))
}
