//! What a run changed of the files that check its work, and of those that the user protects.

use plimsoll_domain::changed_check::ChangedCheck;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_area::overlap;
use plimsoll_domain::{RunState, item_area};
use plimsoll_launcher::git::{self, ChangedLines};
use plimsoll_policy::check_files::is_check_file;
use plimsoll_store::Project;

/// Returns the files that check the work and that the run has changed or deleted up to a commit (such as `HEAD`). New tests
/// are no weaker ones.
pub(crate) fn changed_checks(project: &Project, run: &RunState, end: &str) -> Vec<ChangedCheck> {
    let Some(base) = base(run) else { return Vec::new() };
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

/// Returns the protected files that differ from what they were when the run began, also those that are not committed.
pub(super) fn changed_protected(project: &Project, run: &RunState) -> Vec<String> {
    let protected = item_area::normalized(&run.options.protect);
    let Some(base) = base(run).filter(|_| !protected.is_empty()) else { return Vec::new() };
    let changed = git::paths_changed_since(project.root(), &base).into_iter();
    changed.filter(|path| overlap(std::slice::from_ref(path), &protected)).collect()
}

fn base(run: &RunState) -> Option<CommitId> {
    CommitId::parse(run.at_start.head.as_deref()?).ok()
}
