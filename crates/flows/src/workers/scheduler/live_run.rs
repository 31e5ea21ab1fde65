//! Finds the process of an item's run, and commits what a failed run has left.

use crate::our_files::is_plimsoll_file;
use crate::workers::item_run;
use plimsoll_domain::workers::ItemProgress;
use plimsoll_launcher::client::LaunchedClient;
use plimsoll_launcher::git::{self, AllowedPrograms};
use plimsoll_launcher::process::{ProcessIdentity, is_alive, process_identity};
use plimsoll_launcher::wip::{WipCommitOutcome, commit_wip};
use plimsoll_store::{Project, lock};

/// Returns the process of an item's run if it is alive: the recorded process or, if a kill came before it was
/// recorded, the process that holds the lock of the worktree.
pub(super) fn live_item_process(project: &Project, item_progress: &ItemProgress) -> Option<LaunchedClient> {
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
/// worktree. A run that has not ended may still have its client at work, so nothing is committed.
pub(super) fn commit_failed_work_and_return_head(project: &Project, ended_run_id: &str) -> Option<String> {
    if !item_run::has_current_run_ended(project, ended_run_id) {
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
