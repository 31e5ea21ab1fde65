//! Reads the status and usage of the items' runs, which the record of the parallel run does not contain.

use crate::context::running_sessions::RunFiguresReader;
use crate::workers::{item_run, project_in_item_worktree};
use plimsoll_domain::RunState;
use plimsoll_domain::workers::{ItemProgress, WorkUsage, WorkersState};
use plimsoll_launcher::process::{ProcessIdentity, is_alive};
use plimsoll_policy::run_figures::ItemRunSnapshot;
use plimsoll_store::{Project, lock, sessions};

/// Reads the status and usage of all items' runs. Returns an entry for each item, which is empty if the item has
/// no run on this machine.
pub(crate) fn read_snapshot_or_default_of_every_item(
    reader: &mut RunFiguresReader,
    project: &Project,
    run_state: &RunState,
    workers_state: &WorkersState,
) -> Vec<ItemRunSnapshot> {
    let mut snapshots = Vec::new();
    for (item, item_progress) in workers_state.item_progress.iter().enumerate() {
        let is_worked_on_here = item_progress.pid.is_some() || workers_state.is_leased_by_this_machine(item);
        let item_project =
            if is_worked_on_here { project_in_item_worktree(project, run_state, item + 1) } else { None };
        snapshots.push(
            item_project
                .map(|item_project| {
                    read_snapshot_or_default_if_no_process(reader, &item_project, item_progress)
                })
                .unwrap_or_default(),
        );
    }
    reader.remove_sessions_not_read_since_last_call();
    snapshots
}

fn read_snapshot_or_default_if_no_process(
    reader: &mut RunFiguresReader,
    project: &Project,
    item_progress: &ItemProgress,
) -> ItemRunSnapshot {
    let recorded_process =
        item_progress.pid.map(|pid| ProcessIdentity { pid, start_time: item_progress.process_start_ticks });
    // If the scheduler was killed before it recorded the process, the lock of the worktree shows whether the
    // process is alive.
    let is_alive =
        recorded_process.is_some_and(is_alive) || recorded_process.is_none() && lock::is_run_locked(project);
    if recorded_process.is_none() && !is_alive {
        return ItemRunSnapshot::default();
    }
    let Some(state) = item_run::load_current_run(project, &item_progress.earlier_run_id) else {
        return ItemRunSnapshot { pid: item_progress.pid, is_alive, ..ItemRunSnapshot::default() };
    };
    let session = reader.read_usage_and_liveness_of_open_session(project, &state);
    let mut usage = item_run::usage_of_ended_sessions_of_run(&state);
    if let Some(session) = &session {
        usage += WorkUsage { sessions: 0, ..session.usage };
    }
    ItemRunSnapshot {
        pid: item_progress.pid,
        is_alive,
        usage: Some(usage),
        is_session_running: session.is_some_and(|session| session.is_alive),
        api_retry: session.and_then(|_| state.iteration_record.api_retry.clone()),
        window_percent: session.and_then(|_| {
            sessions::load_session_record(project, state.session_id.as_ref()?).usage.projected_percent
        }),
    }
}
