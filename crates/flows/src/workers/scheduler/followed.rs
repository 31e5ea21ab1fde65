//! What is seen of an item's run while it is at work.

use crate::our_files::is_ours;
use crate::workers::child;
use plimsoll_domain::workers::Work;
use plimsoll_launcher::client::Client;
use plimsoll_launcher::git::{self, AllowedPrograms};
use plimsoll_launcher::process::{Identity, identity, is_alive};
use plimsoll_launcher::wip::{Wip, commit_wip};
use plimsoll_store::{Project, lock};

/// The item's run, if it lives: the process that was written down, or whoever holds the lock of its worktree, where a kill came
/// before that.
pub(super) fn living(project: &Project, work: &Work) -> Option<Client> {
    let known = work.pid.map(|pid| Identity { pid, started: work.process_started });
    let known = known.filter(|known| is_alive(*known));
    let holder =
        || lock::is_run_held(project).then(|| lock::run_holder(project).and_then(identity)).flatten();
    known.or_else(holder).map(Client::Adopted)
}

/// Commits what a run that failed has left, and answers with the end of its work; none if there is no worktree. A run that is not
/// over goes on, perhaps with its client at work: everything stays as it is.
pub(super) fn keep_work(project: &Project, earlier_run: &str) -> Option<String> {
    if !child::is_over(project, earlier_run) {
        return git::head(project.root()).map(String::from);
    }
    let message = "plimsoll: what an attempt that failed has left";
    match commit_wip(project.root(), message, &is_ours, AllowedPrograms::Nothing) {
        Wip::Committed { id, .. } => Some(id.into()),
        Wip::Nothing | Wip::Refused { .. } => git::head(project.root()).map(String::from),
    }
}
