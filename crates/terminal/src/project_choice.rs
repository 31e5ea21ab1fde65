//! Selects the project of a command, and prints notices about it.

use crate::console::{fail_with, print_notice, print_warning};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_store::Project;
use plimsoll_store::layout::ProjectRoot;
use std::process::ExitCode;

/// Returns the project of a new run. Prints its folder unless that is the current folder.
pub fn find_project_for_new_run_and_print_notice(plan_path: Option<&str>) -> Project {
    let project_root = ProjectRoot::find_from_current_dir(plan_path);
    project_root.render_notice_unless_current_dir().iter().for_each(print_notice);
    project_root.project_with_local_files()
}

/// Checks for a state in or above the current folder that is ignored, such as one of another user. If it belongs to the current
/// project, prints an error and returns the exit code. Otherwise prints a warning, if there is one, and returns `None`.
pub fn fail_if_project_state_ignored_warn_if_parent(failure_status: ExitStatus) -> Option<ExitCode> {
    let ignored_state = Project::ignored_state_file_unless_another_is_used()?;
    if ignored_state.is_in_current_folder() {
        return Some(fail_with(ignored_state, failure_status));
    }
    print_warning(&ignored_state);
    None
}
