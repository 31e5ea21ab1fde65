//! The changes of a run to the files that check its work, such as tests.

use plimsoll_domain::RunState;
use plimsoll_domain::changed_check::ChangedCheckFile;
use plimsoll_domain::git_names::CommitId;
use plimsoll_launcher::git::{self, FileLineChanges};
use plimsoll_policy::check_files::is_check_file;
use plimsoll_store::Project;

/// Returns the check files that the run has changed or deleted, from its start up to `end_commit`, or up to
/// the working tree if that is `None`. New test files are left out, because they do not weaken a check.
pub(crate) fn list_check_files_changed_since_run_start(
    project: &Project,
    run: &RunState,
    end_commit: Option<&CommitId>,
) -> Vec<ChangedCheckFile> {
    let base_commit = run.project_at_start.head_commit.as_deref().and_then(|head| CommitId::parse(head).ok());
    let Some(base_commit) = base_commit else { return Vec::new() };
    let commands = run.options.unique_verify_and_check_commands();
    let file_changes = git::line_changes_of_base_files(project.root(), &base_commit, end_commit).into_iter();
    let to_check_file = |changes: FileLineChanges| ChangedCheckFile {
        path: changes.path,
        added_line_count: changes.added,
        removed_line_count: changes.removed,
        is_deleted: changes.is_deleted,
    };
    file_changes.filter(|changes| is_check_file(&changes.path, &commands)).map(to_check_file).collect()
}
