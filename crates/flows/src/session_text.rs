//! The last text that a running session has written, for `plimsoll status --watch`.

use crate::checkpoint::facts::read_last_assistant_text;
use crate::workers::project_in_item_worktree;
use plimsoll_domain::RunState;
use plimsoll_domain::run_figures::WorkerFigures;
use plimsoll_store::{Project, config, state_file};

/// Returns the last text of the run's current session; `None` if it has written none.
pub fn read_last_text_of_session(state: &RunState) -> Option<String> {
    // The path in the session's record is not used: a program in the project can write there what it likes.
    read_last_assistant_text(&config::find_client_transcript(state.session_id.as_ref()?)?)
}

/// Returns the last text of the session that a worker of a parallel run is running.
pub fn read_last_text_of_worker(
    project: &Project,
    state: &RunState,
    worker: &WorkerFigures,
) -> Option<String> {
    let item_project = project_in_item_worktree(project, state, worker.item_number)?;
    let item_state = state_file::load_state(&item_project, None).ok().flatten()?;
    read_last_text_of_session(&item_state)
}
