//! Reads the figures of a run ([`RunFigures`]) off its files: for the screen of `plimsoll run`, for `plimsoll status` and the report.
//!
//! Sessions that are running are in nobody's sums yet. Their transcripts say what they have used; whoever looks again and again keeps
//! the reader, which reads only what is new.
//!
//! A [`RunSnapshot`] has them beside the run's state and its activity, all of one moment.

pub use crate::context::running_sessions::FiguresReader;

use crate::context::running_sessions::living_client;
use crate::workers::item_figures::read_items;
use crate::workers::table;
use plimsoll_domain::run_figures::{RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunId, RunState};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, run_activity};
use plimsoll_policy::run_figures::{figures_of_sessions, figures_of_workers};
use plimsoll_store::{Project, StoreError, lock, state_file};

/// A run at one moment.
#[derive(Debug, Clone)]
pub struct RunSnapshot {
    /// Its state.
    pub state: RunState,
    /// Its figures.
    pub figures: RunFigures,
    /// What it does.
    pub activity: RunActivity,
    /// Why no new session or item starts; none if they do.
    pub stop_reason: Option<String>,
    /// True while a `plimsoll run` works on it or waits.
    pub is_run_active: bool,
}

/// How often a run is looked at again whose process has begun or ended meanwhile: what the state says is then of another moment.
const LOOKS: usize = 5;

/// Reads the run of a project, or the one with this id; none if there is none.
pub fn read_snapshot(
    project: &Project,
    run_id: Option<&RunId>,
    reader: &mut FiguresReader,
) -> Result<Option<RunSnapshot>, StoreError> {
    let mut is_run_active = lock::is_run_held(project);
    let mut looks = 0;
    loop {
        let Some(state) = state_file::load(project, run_id)? else { return Ok(None) };
        let figures = read_figures(project, &state, reader)?;
        let is_active_now = lock::is_run_held(project);
        looks += 1;
        if is_active_now == is_run_active || looks == LOOKS {
            return Ok(Some(snapshot(project, state, figures, is_active_now)));
        }
        is_run_active = is_active_now;
    }
}

/// Completes a state that was read before. Of an earlier run of the project nothing is running.
pub fn complete_snapshot(
    project: &Project,
    state: &RunState,
    is_present: bool,
) -> Result<RunSnapshot, StoreError> {
    if is_present {
        let figures = read_figures(project, state, &mut FiguresReader::default())?;
        return Ok(snapshot(project, state.clone(), figures, lock::is_run_held(project)));
    }
    Ok(RunSnapshot {
        figures: figures_of_sessions(state, None),
        activity: run_activity(&ActivityEvidence::from_state(state, false)),
        stop_reason: None,
        is_run_active: false,
        state: state.clone(),
    })
}

fn snapshot(project: &Project, state: RunState, figures: RunFigures, is_run_active: bool) -> RunSnapshot {
    let workers = table::load(project, &state.run_id).ok().flatten();
    let of_session = state.iteration_record.stops_after.then(|| "Ctrl-C".to_owned());
    let stop_reason = workers.and_then(|workers| workers.stop_reason).or(of_session);
    let is_working = |worker: &&WorkerFigures| worker.activity == WorkerActivity::Working;
    let activity = run_activity(&ActivityEvidence {
        is_stop_requested: stop_reason.is_some(),
        client: living_client(&state),
        is_api_failing: state.iteration_record.api_trouble.is_some() || figures.api_trouble().is_some(),
        items_at_work: figures.workers.iter().filter(is_working).count(),
        ..ActivityEvidence::from_state(&state, is_run_active)
    });
    RunSnapshot { state, figures, activity, stop_reason, is_run_active }
}

/// How often the record of a parallel run is read again if it has changed meanwhile: then an item may have been counted nowhere.
const ATTEMPTS: usize = 5;

/// Reads the figures of a run as its files have them now.
fn read_figures(
    project: &Project,
    run: &RunState,
    reader: &mut FiguresReader,
) -> Result<RunFigures, StoreError> {
    let Some(mut record) = table::load(project, &run.run_id)? else {
        return Ok(reader.read_sessions(project, run));
    };
    let mut read = |record: &Workers| {
        let facts = read_items(reader, project, run, record);
        figures_of_workers(record, &facts, lock::is_run_held(project))
    };
    for _ in 1..ATTEMPTS {
        let figures = read(&record);
        let now = table::load(project, &run.run_id)?.unwrap_or_default();
        if now == record {
            return Ok(figures);
        }
        record = now;
    }
    Ok(read(&record))
}
