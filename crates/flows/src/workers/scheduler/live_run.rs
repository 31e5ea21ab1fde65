//! Finds the process of an item's run, and commits what a failed run has left.

use crate::plimsoll_files::is_plimsoll_file;
use crate::workers::item_run;
use plimsoll_domain::workers::ItemProgress;
use plimsoll_launcher::client::LaunchedClient;
use plimsoll_launcher::git::{self, AllowedPrograms};
use plimsoll_launcher::process::{ProcessIdentity, is_alive, process_identity};
use plimsoll_launcher::wip::{WipCommitOutcome, commit_wip};
use plimsoll_store::{Project, lock};

/// Returns the process of an item's run if it is alive: the recorded process or, if the scheduler was killed
/// before it recorded one, the process that holds the lock of the worktree.
pub(super) fn live_recorded_process_or_lock_holder(
    project: &Project,
    item_progress: &ItemProgress,
) -> Option<LaunchedClient> {
    let recorded_process =
        item_progress.pid.map(|pid| ProcessIdentity { pid, start_time: item_progress.process_start_ticks });
    let recorded_process = recorded_process.filter(|identity| is_alive(*identity));
    let lock_holder = || {
        lock::is_run_locked(project)
            .then(|| lock::run_lock_holder_pid(project).and_then(process_identity))
            .flatten()
    };
    recorded_process.or_else(lock_holder).map(LaunchedClient::Adopted)
}

/// Commits what a failed run has left, and returns the last commit of its work. Returns `None` if there is no
/// worktree. Commits nothing if the run has not ended, because its client may still be running.
pub(super) fn commit_leftovers_if_run_ended_and_return_head(
    project: &Project,
    earlier_run_id: &str,
) -> Option<String> {
    if !item_run::has_current_run_ended(project, earlier_run_id) {
        return git::head_commit(project.root()).map(String::from);
    }
    let message = "plimsoll: what an attempt that failed has left";
    match commit_wip(project.root(), message, &is_plimsoll_file, AllowedPrograms::NoPrograms) {
        WipCommitOutcome::Committed { id, .. } => Some(id.into()),
        WipCommitOutcome::NothingToCommit | WipCommitOutcome::Refused { .. } => {
            git::head_commit(project.root()).map(String::from)
        }
    }
}
