//! The changes that a run made to the files that check its work.

use plimsoll_domain::RunState;
use plimsoll_domain::changed_check::ChangedCheckFile;
use plimsoll_domain::git_names::CommitId;
use plimsoll_launcher::git::{self, FileLineChanges};
use plimsoll_policy::check_files::is_check_file;
use plimsoll_store::Project;

/// Returns the files that check the work and that the run has changed or deleted, up to a commit or else in
/// the working tree. New test files are left out, because they weaken no check.
pub(crate) fn changed_check_files(
    project: &Project,
    run: &RunState,
    end: Option<&CommitId>,
) -> Vec<ChangedCheckFile> {
    let base_commit = run.project_at_start.head_commit.as_deref().and_then(|head| CommitId::parse(head).ok());
    let Some(base_commit) = base_commit else { return Vec::new() };
    let commands = run.options.all_verify_commands();
    let changed_lines = git::line_changes_of_base_files(project.root(), &base_commit, end).into_iter();
    let to_check_file = |changed: FileLineChanges| ChangedCheckFile {
        path: changed.path,
        added_line_count: changed.added,
        removed_line_count: changed.removed,
        is_deleted: changed.is_deleted,
    };
    changed_lines.filter(|changed| is_check_file(&changed.path, &commands)).map(to_check_file).collect()
}
