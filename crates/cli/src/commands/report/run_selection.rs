//! Selects the run to report on: the current one, or an earlier one by a prefix of its id.

use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::{RunId, RunState};
use plimsoll_store::{Project, StoreError, disk, state_file};
use std::path::PathBuf;

/// The selected run, and whether it is the current one.
pub(super) struct SelectedRun {
    pub(super) state: RunState,
    pub(super) is_current: bool,
}

/// The reason why no run could be selected.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunSelectionError {
    /// There is neither a current run nor an archived one.
    #[error(
        "there is no run in {0}, and none was archived\nhint: `plimsoll run` starts one; for sessions without a run use `plimsoll turns stats` and `plimsoll turns export --format html`"
    )]
    NoRuns(PathBuf),
    /// No run id begins with the prefix.
    #[error("no run starts with \"{id_prefix}\" in {folder}\nhint: {available}")]
    UnknownPrefix {
        id_prefix: String,
        /// The folder of the archived runs.
        folder: PathBuf,
        /// A sentence with the ids of all archived runs.
        available: String,
    },
    /// Several run ids begin with the prefix.
    #[error("several runs start with \"{id_prefix}\": {matches}\nhint: type more characters of the id")]
    AmbiguousPrefix {
        id_prefix: String,
        /// The matching ids.
        matches: String,
    },
    /// The run has no archived state, because it was still open when the next run began.
    #[error(
        "the run {id} left no state in {path}: it had not ended when the next one started\nhint: `plimsoll log` and `plimsoll query` still show it"
    )]
    NoArchivedState {
        id: String,
        /// Path of the missing state file.
        path: PathBuf,
    },
    /// A state that cannot be read or parsed, or that belongs to another run.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the run whose id begins with the prefix. Without a prefix, returns the current run, or the run archived last
/// if there is none.
pub(super) fn select_run_by_prefix_or_newest(
    project: &Project,
    id_prefix: Option<&str>,
) -> Result<SelectedRun, RunSelectionError> {
    let mut current_run = state_file::load_state(project, None)?.filter(|state| !state.run_id.is_empty());
    if let Some(state) = &mut current_run {
        plimsoll_flows::run::questions::refresh_open_questions(project, state);
    }
    let archived_ids = archived_run_ids(project);
    let Some(id_prefix) = id_prefix else {
        return match (current_run, newest_archived_run(project, &archived_ids)) {
            (Some(state), _) => Ok(SelectedRun { state, is_current: true }),
            (None, Some(id)) => {
                Ok(SelectedRun { state: load_archived_state_checking_id(project, &id)?, is_current: false })
            }
            (None, None) => Err(RunSelectionError::NoRuns(project.root().to_owned())),
        };
    };
    let current_id = current_run.as_ref().map(|state| state.run_id.clone());
    let mut matching_ids: Vec<&RunId> =
        archived_ids.iter().chain(&current_id).filter(|id| id.starts_with(id_prefix)).collect();
    matching_ids.sort();
    matching_ids.dedup();
    match matching_ids.as_slice() {
        [id] => match current_run.filter(|state| state.run_id == **id) {
            Some(state) => Ok(SelectedRun { state, is_current: true }),
            None => {
                Ok(SelectedRun { state: load_archived_state_checking_id(project, id)?, is_current: false })
            }
        },
        [] => Err(unknown_prefix_error(project, id_prefix, &archived_ids)),
        several_ids => Err(RunSelectionError::AmbiguousPrefix {
            id_prefix: to_safe_single_line(id_prefix),
            matches: list_run_ids(several_ids.iter().copied()),
        }),
    }
}

fn unknown_prefix_error(project: &Project, id_prefix: &str, archived_ids: &[RunId]) -> RunSelectionError {
    let available = if archived_ids.is_empty() {
        "there is none yet".to_owned()
    } else {
        format!("there are {}", list_run_ids(archived_ids.iter()))
    };
    RunSelectionError::UnknownPrefix {
        id_prefix: to_safe_single_line(id_prefix),
        folder: project.data_folder().join("runs"),
        available,
    }
}

fn list_run_ids<'a>(ids: impl Iterator<Item = &'a RunId>) -> String {
    ids.map(|id| to_safe_single_line(id)).collect::<Vec<_>>().join(", ")
}

fn archived_run_ids(project: &Project) -> Vec<RunId> {
    disk::list_names(&project.data_folder().join("runs")).into_iter().map(RunId::from).collect()
}

/// Returns the id of the run whose archive was written last.
fn newest_archived_run(project: &Project, run_ids: &[RunId]) -> Option<RunId> {
    let written_at = |id: &&RunId| disk::modified_at(&project.run_folder(id).join("state.json"));
    run_ids.iter().filter(|id| written_at(id).is_some()).max_by_key(written_at).cloned()
}

fn load_archived_state_checking_id(project: &Project, id: &RunId) -> Result<RunState, RunSelectionError> {
    let path = project.run_folder(id).join("state.json");
    let Some(state) = state_file::read_state_file(&path)? else {
        return Err(RunSelectionError::NoArchivedState { id: to_safe_single_line(id), path });
    };
    // A file that is not a state may parse as an empty one, so the id is compared.
    if state.run_id == *id {
        return Ok(state);
    }
    let reason = "it is not the state of this run".to_owned();
    Err(StoreError::Corrupt { path, reason, set_aside_note: String::new() }.into())
}
