//! Where a command stands: which project it is about, and what is said of that.

use crate::console::{fail_with, say_error};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_store::Project;
use plimsoll_store::layout::Beginning;
use std::process::ExitCode;

/// Returns the project of a run that is about to begin; says first which folder that is, where it is not the current one.
pub fn of_new_run(plan: Option<&str>) -> Project {
    let beginning = Beginning::find(plan);
    beginning.words().iter().for_each(say_error);
    beginning.project()
}

/// Names a state upwards that is not this project's. Returns how a command ends that must not continue, because a state of
/// another owner is in this very folder.
pub fn refuse_foreign_place(status: ExitStatus) -> Option<ExitCode> {
    let passed_over = Project::passed_over()?;
    if passed_over.is_here() {
        return Some(fail_with(passed_over, status));
    }
    say_error(&passed_over);
    None
}
