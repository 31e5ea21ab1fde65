//! What a run changed of the files that check its work.

use plimsoll_domain::RunState;
use plimsoll_domain::changed_check::ChangedCheck;
use plimsoll_domain::git_names::CommitId;
use plimsoll_launcher::git::{self, ChangedLines};
use plimsoll_policy::check_files::is_check_file;
use plimsoll_store::Project;

/// Returns the files that check the work and that the run has changed or deleted, up to a commit or else as they are in the
/// working tree. New tests are no weaker ones.
pub(crate) fn changed_checks(project: &Project, run: &RunState, end: Option<&CommitId>) -> Vec<ChangedCheck> {
    let base = run.at_start.head.as_deref().and_then(|head| CommitId::parse(head).ok());
    let Some(base) = base else { return Vec::new() };
    let commands = run.options.commands();
    let changed = git::changed_lines(project.root(), &base, end).into_iter();
    let check = |changed: ChangedLines| ChangedCheck {
        path: changed.path,
        added: changed.added,
        removed: changed.removed,
        is_deleted: changed.is_deleted,
    };
    changed.filter(|changed| is_check_file(&changed.path, &commands)).map(check).collect()
}
