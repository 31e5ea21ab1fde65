//! Reads the figures of a run ([`RunFigures`]) from its files: for the screen of `plimsoll run`, for
//! `plimsoll status` and the report.
//!
//! The totals do not include running sessions, so their usage is read from their transcripts. A caller that
//! reads repeatedly keeps the reader, which reads only new lines.
//!
//! A [`RunSnapshot`] combines the figures with the run's state and its activity at one moment.

pub use crate::context::running_sessions::RunFiguresReader;

use crate::context::running_sessions::live_client_pid;
use crate::run_duration::seconds_of_work_if_never_paused;
use crate::workers::item_figures::read_snapshot_or_default_of_every_item;
use crate::workers::workers_file;
use plimsoll_domain::run_figures::{RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{RunId, RunState};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, determine_activity};
use plimsoll_policy::run_figures::{figures_of_parallel_run, figures_of_sequential_run};
use plimsoll_store::{Project, StoreError, lock, state_file};

/// The state, figures and activity of a run at one moment.
#[derive(Debug, Clone)]
pub struct RunSnapshot {
    pub state: RunState,
    pub figures: RunFigures,
    /// The current activity of the run.
    pub activity: RunActivity,
    /// Why no new session or item starts; `None` if nothing prevents that.
    pub stop_reason: Option<String>,
    /// True while a `plimsoll run` process works on the run or waits.
    pub is_run_active: bool,
}

/// How often to read a run that starts or ends during the read, because the state may then be out of date.
const MAX_SNAPSHOT_ATTEMPTS: usize = 5;

/// Reads a snapshot of the project's newest run, or of the run with this id; returns `None` if there is none.
pub fn read_run_snapshot_retrying_if_lock_changed(
    project: &Project,
    run_id: Option<&RunId>,
    reader: &mut RunFiguresReader,
) -> Result<Option<RunSnapshot>, StoreError> {
    let mut is_run_active = lock::is_run_locked(project);
    let mut attempts = 0;
    loop {
        let Some(state) = state_file::load_state(project, run_id)? else { return Ok(None) };
        let figures = read_figures_of_parallel_or_sequential_run(project, &state, reader)?;
        let is_active_now = lock::is_run_locked(project);
        attempts += 1;
        if is_active_now == is_run_active || attempts == MAX_SNAPSHOT_ATTEMPTS {
            return Ok(Some(read_activity_and_build_snapshot(project, state, figures, is_active_now)));
        }
        is_run_active = is_active_now;
    }
}

/// Builds a snapshot from a loaded state. For the newest run it reads current figures; an earlier run has no
/// running session, so its figures come from the state alone.
pub fn run_snapshot_reading_files_only_if_newest(
    project: &Project,
    state: &RunState,
    is_newest_run: bool,
) -> Result<RunSnapshot, StoreError> {
    if is_newest_run {
        let figures =
            read_figures_of_parallel_or_sequential_run(project, state, &mut RunFiguresReader::default())?;
        return Ok(read_activity_and_build_snapshot(
            project,
            state.clone(),
            figures,
            lock::is_run_locked(project),
        ));
    }
    Ok(RunSnapshot {
        figures: figures_of_sequential_run(state, None),
        activity: determine_activity(&ActivityEvidence::from_state_without_process_checks(state, false)),
        stop_reason: None,
        is_run_active: false,
        state: state.clone(),
    })
}

fn read_activity_and_build_snapshot(
    project: &Project,
    state: RunState,
    figures: RunFigures,
    is_run_active: bool,
) -> RunSnapshot {
    let workers_state = workers_file::load_workers_state(project, &state.run_id).ok().flatten();
    let session_stop_reason = state.iteration_record.stops_run_after_session.then(|| "Ctrl-C".to_owned());
    let stop_reason = workers_state.and_then(|workers| workers.stop_reason).or(session_stop_reason);
    let is_working = |worker: &&WorkerFigures| worker.activity == WorkerActivity::Working;
    let activity = determine_activity(&ActivityEvidence {
        is_stop_requested: stop_reason.is_some(),
        client_pid: live_client_pid(&state),
        is_api_failing: state.iteration_record.api_retry.is_some()
            || figures.api_retry_if_all_workers_retry().is_some(),
        running_item_count: figures.workers.iter().filter(is_working).count(),
        ..ActivityEvidence::from_state_without_process_checks(&state, is_run_active)
    });
    RunSnapshot { state, figures, activity, stop_reason, is_run_active }
}

/// How often to read the record of a parallel run that changes during the read, because an item that changes
/// its stage may then not be counted at all.
const MAX_READ_ATTEMPTS: usize = 5;

/// Reads the current figures of a run from its files.
fn read_figures_of_parallel_or_sequential_run(
    project: &Project,
    run_state: &RunState,
    reader: &mut RunFiguresReader,
) -> Result<RunFigures, StoreError> {
    let Some(mut workers_state) = workers_file::load_workers_state(project, &run_state.run_id)? else {
        return Ok(reader.read_figures_of_sequential_run(project, run_state));
    };
    let mut compute_figures = |workers_state: &WorkersState| {
        let item_run_snapshots =
            read_snapshot_or_default_of_every_item(reader, project, run_state, workers_state);
        figures_of_parallel_run(
            workers_state,
            &item_run_snapshots,
            lock::is_run_locked(project),
            seconds_of_work_if_never_paused(run_state),
        )
    };
    for _ in 1..MAX_READ_ATTEMPTS {
        let figures = compute_figures(&workers_state);
        let newest_workers_state =
            workers_file::load_workers_state(project, &run_state.run_id)?.unwrap_or_default();
        if newest_workers_state == workers_state {
            return Ok(figures);
        }
        workers_state = newest_workers_state;
    }
    Ok(compute_figures(&workers_state))
}
