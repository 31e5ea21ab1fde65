//! A run that is over is kept whole: its state, task, plan and progress, beside the output of its sessions.

use plimsoll_domain::state::Phase;
use plimsoll_domain::{RunState, Status, Timestamp};
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
    if state.lifecycle.status().is_final() {
        plimsoll_store::memory::forget_copy(project)?;
    }
    crate::linear::notes::note_end(project, state);
    let document = serde_json::to_vec_pretty(state).unwrap_or_default();
    // Last: where it is, all is.
    disk::replace(&folder.join(STATE), &document, Durability::Lazy)
}

const STATE: &str = "state.json";

/// True if the archive is of this end of the run: no process died on the way to it.
pub(crate) fn is_archived(project: &Project, state: &RunState) -> bool {
    let kept = disk::read(&project.run_folder(&state.run_id).join(STATE)).ok().flatten();
    let kept = kept.and_then(|kept| RunState::from_text(&kept).ok());
    kept.is_some_and(|kept| end_of(&kept) == end_of(state))
}

/// What tells one end of a run from another. Not the whole state: a `--resume` of a run that stays over may have changed its
/// options, and archiving again would copy files that the user has changed since.
fn end_of(state: &RunState) -> (Status, Option<&Timestamp>, u32, Phase, Option<&Timestamp>) {
    let record = &state.iteration_record;
    let (status, ended_at) = (state.lifecycle.status(), state.lifecycle.ended_at());
    (status, ended_at, state.iteration, record.phase, record.ended_at.as_ref())
}
