//! A run that is over is kept whole: its state, task, plan and progress, beside the output of its sessions.

use plimsoll_domain::{RunState, Status};
use plimsoll_store::{Durability, Project, StoreError, disk};

/// Copies what the next run will write again into the run's own folder.
pub(crate) fn archive(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let folder = project.run_folder(&state.run_id);
    let todo = state.options.todo_file.as_ref().map(|file| project.root().join(file));
    for file in [Some(project.prompt()), Some(project.progress()), todo].into_iter().flatten() {
        let Some(name) = file.file_name() else { continue };
        if let Some(bytes) = disk::read(&file)? {
            disk::replace(&folder.join(name), &bytes, Durability::Lazy)?;
        }
    }
    // After the copy above: in a shell loop the file still has the block that its last session got. That it cannot be
    // tidied up is no reason to leave the run without an archive.
    let _ = crate::run::prompt::put_back(project, state);
    // One that stopped for a reason the user can repair may continue, and then needs the copy of its memory.
    if matches!(state.lifecycle.status(), Status::Completed | Status::Cancelled) {
        plimsoll_store::memory::forget_copy(project)?;
    }
    crate::run::linear_notes::note_end(project, state);
    // Last: where it is, all is.
    disk::replace(&folder.join(STATE), &document(state), Durability::Lazy)
}

const STATE: &str = "state.json";

fn document(state: &RunState) -> Vec<u8> {
    serde_json::to_vec_pretty(state).unwrap_or_default()
}

/// True if no process died on the way.
pub(crate) fn is_archived(project: &Project, state: &RunState) -> bool {
    let kept = disk::read(&project.run_folder(&state.run_id).join(STATE)).ok().flatten();
    kept.is_some_and(|kept| kept == document(state))
}
