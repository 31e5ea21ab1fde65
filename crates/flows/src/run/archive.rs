//! Archives a run that has ended: copies its state, task, plan and progress next to the output of its
//! sessions.

use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::{RunState, RunStatus, Timestamp};
use plimsoll_store::{Durability, Project, StoreError, disk};

/// Copies the files that the next run will overwrite into the run's folder, removes the prompt block from
/// PROMPT.md, and queues the note for Linear. The copy of the memory is removed if the run cannot be reopened.
pub(crate) fn archive_run_and_clean_up_prompt_and_memory(
    project: &Project,
    state: &RunState,
) -> Result<(), StoreError> {
    let folder = project.run_folder(&state.run_id);
    let plan_path = state.options.todo_file.as_ref().map(|file| project.root().join(file));
    for path in [Some(project.prompt_path()), Some(project.progress_path()), plan_path].into_iter().flatten()
    {
        let Some(file_name) = path.file_name() else { continue };
        if let Some(bytes) = disk::read(&path)? {
            disk::replace(&folder.join(file_name), &bytes, Durability::Lazy)?;
        }
    }
    // After the copy above, because in a shell loop the file still contains the block of the last session. A
    // failed cleanup must not prevent the archive.
    let _ = crate::run::prompt::remove_block_from_user_prompt(project, state);
    // A run that stopped for a reason the user can fix may be resumed, and then needs the copy of its memory.
    if state.lifecycle.status().is_final() {
        plimsoll_store::memory::remove_copy(project)?;
    }
    crate::linear::notes::queue_run_end_note(project, state);
    let state_json = serde_json::to_vec_pretty(state).unwrap_or_default();
    // Last: if this file exists, the archive is complete.
    disk::replace(&folder.join(STATE_FILE_NAME), &state_json, Durability::Lazy)
}

const STATE_FILE_NAME: &str = "state.json";

/// Returns true if the archive was written completely for this end of the run.
pub(crate) fn is_end_archived(project: &Project, state: &RunState) -> bool {
    let archived_bytes = disk::read(&project.run_folder(&state.run_id).join(STATE_FILE_NAME)).ok().flatten();
    let archived_state = archived_bytes.and_then(|bytes| RunState::from_json_text(&bytes).ok());
    archived_state.is_some_and(|archived| run_end_key(&archived) == run_end_key(state))
}

/// Returns the fields that distinguish one end of a run from another. The whole state is not compared: a
/// `--resume` that does not reopen the run may change its options, and archiving it again would copy files
/// that the user has changed since then.
fn run_end_key(state: &RunState) -> (RunStatus, Option<&Timestamp>, u32, IterationPhase, Option<&Timestamp>) {
    let record = &state.iteration_record;
    let (status, ended_at) = (state.lifecycle.status(), state.lifecycle.ended_at());
    (status, ended_at, state.iteration, record.phase, record.ended_at.as_ref())
}
