//! Which run is meant: the current one, or an earlier one by the beginning of its id.

use plimsoll_domain::text::one_line;
use plimsoll_domain::{RunId, RunState};
use plimsoll_store::{Project, StoreError, disk, state_file};
use std::path::PathBuf;

/// A run, and whether it is the current one.
pub(super) struct Chosen {
    pub(super) state: RunState,
    pub(super) is_present: bool,
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRun {
    /// Neither a state nor an archive.
    #[error(
        "there is no run in {0}, and none was archived\nhint: `plimsoll run` begins one; for sessions without a run use `plimsoll turns stats` and `plimsoll turns export --format html`"
    )]
    None(PathBuf),
    /// A prefix of nothing.
    #[error("no run begins with \"{wanted}\" in {folder}\nhint: {known}")]
    Unknown {
        /// What was typed.
        wanted: String,
        /// Where archives are.
        folder: PathBuf,
        /// The runs that there are.
        known: String,
    },
    /// A prefix of several.
    #[error("several runs begin with \"{wanted}\": {found}\nhint: type more of it")]
    Several {
        /// What was typed.
        wanted: String,
        /// The runs.
        found: String,
    },
    /// A run that was never over, and is no longer the current one.
    #[error(
        "the run {id} left no state in {path}: it was not over when the next one began\nhint: `plimsoll log` and `plimsoll query` still show it"
    )]
    NoState {
        /// The run.
        id: String,
        /// Where it would be.
        path: PathBuf,
    },
    /// The disk, or a state that does not parse.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The run that is meant.
pub(super) fn chosen(project: &Project, wanted: Option<&str>) -> Result<Chosen, NoRun> {
    let mut present = state_file::load(project, None)?.filter(|state| !state.run_id.is_empty());
    if let Some(state) = &mut present {
        plimsoll_flows::run::questions::refresh(project, state);
    }
    let runs = archived(project);
    let Some(wanted) = wanted else {
        return match (present, newest(project, &runs)) {
            (Some(state), _) => Ok(Chosen { state, is_present: true }),
            (None, Some(id)) => Ok(Chosen { state: load(project, &id)?, is_present: false }),
            (None, None) => Err(NoRun::None(project.root().to_owned())),
        };
    };
    let present_id = present.as_ref().map(|state| state.run_id.clone());
    let mut found: Vec<&RunId> = runs.iter().chain(&present_id).filter(|id| id.starts_with(wanted)).collect();
    found.sort();
    found.dedup();
    match found.as_slice() {
        [id] => match present.filter(|state| state.run_id == **id) {
            Some(state) => Ok(Chosen { state, is_present: true }),
            None => Ok(Chosen { state: load(project, id)?, is_present: false }),
        },
        [] => Err(unknown(project, wanted, &runs)),
        several => Err(NoRun::Several { wanted: one_line(wanted), found: named(several.iter().copied()) }),
    }
}

fn unknown(project: &Project, wanted: &str, runs: &[RunId]) -> NoRun {
    let known = if runs.is_empty() {
        "there is none yet".to_owned()
    } else {
        format!("there are {}", named(runs.iter()))
    };
    NoRun::Unknown { wanted: one_line(wanted), folder: project.own().join("runs"), known }
}

fn named<'a>(ids: impl Iterator<Item = &'a RunId>) -> String {
    ids.map(|id| one_line(id)).collect::<Vec<_>>().join(", ")
}

fn archived(project: &Project) -> Vec<RunId> {
    disk::names(&project.own().join("runs")).into_iter().map(RunId::from).collect()
}

/// The archive that was written last.
fn newest(project: &Project, runs: &[RunId]) -> Option<RunId> {
    let written = |id: &&RunId| disk::modified(&project.run_folder(id).join("state.json"));
    runs.iter().filter(|id| written(id).is_some()).max_by_key(written).cloned()
}

fn load(project: &Project, id: &RunId) -> Result<RunState, NoRun> {
    let path = project.run_folder(id).join("state.json");
    let Some(state) = state_file::read(&path)? else { return Err(NoRun::NoState { id: one_line(id), path }) };
    // What is no state at all may read as an empty one.
    if state.run_id == *id {
        return Ok(state);
    }
    let why = "it is not the state of this run".to_owned();
    Err(StoreError::Corrupt { path, why, aside: String::new() }.into())
}
