//! Which project a command works on, and what the user is told about it.

use crate::console::{fail_with, print_error};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_store::Project;
use plimsoll_store::layout::ProjectRoot;
use std::process::ExitCode;

/// Returns the project of a new run. Tells the user which folder that is, unless it is the current one.
pub fn select_project_for_new_run(plan_path: Option<&str>) -> Project {
    let project_root = ProjectRoot::find_from_current_dir(plan_path);
    project_root.render_notice().iter().for_each(print_error);
    project_root.project_with_local_files()
}

/// Tells the user about the state of another owner in a folder above. Returns an exit code if that state is in the current project,
/// so the command must not continue.
pub fn refuse_or_warn_of_ignored_state(exit_status: ExitStatus) -> Option<ExitCode> {
    let ignored_state = Project::ignored_state_above()?;
    if ignored_state.is_current_project() {
        return Some(fail_with(ignored_state, exit_status));
    }
    print_error(&ignored_state);
    None
}
