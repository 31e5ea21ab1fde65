//! Before a command looks for its project: a state upwards that is not this project's is named, and one of another
//! owner where we stand is left alone. And where the project of a new run begins.

use crate::commands::Verb;
use crate::console::{FAULT, fail, say_error};
use plimsoll_store::Project;
use plimsoll_store::layout::Beginning;
use std::process::ExitCode;

/// The project of a run that is about to begin; says first which folder that is, where it is not the current one.
pub fn of_new_run(plan: Option<&str>) -> Project {
    let beginning = Beginning::find(plan);
    beginning.words().iter().for_each(say_error);
    beginning.project()
}

/// The exit code of a command that must not continue here.
pub(crate) fn check(verb: &Verb) -> Option<ExitCode> {
    if !asks_for_the_project(verb) {
        return None;
    }
    let passed_over = Project::passed_over()?;
    if passed_over.is_here() {
        let code = if matches!(verb, Verb::Gate(_) | Verb::Monitor) { FAULT } else { 1 };
        return Some(fail(passed_over, code));
    }
    say_error(&passed_over);
    None
}

fn asks_for_the_project(verb: &Verb) -> bool {
    match verb {
        Verb::Start(_)
        | Verb::Run(_)
        | Verb::Status(_)
        | Verb::Stop(_)
        | Verb::Checkpoint(_)
        | Verb::Handoffs(_)
        | Verb::Prompt(_)
        | Verb::Monitor
        | Verb::Gate(_)
        | Verb::Log(_)
        | Verb::Report(_)
        | Verb::Plan(_)
        | Verb::Prune(_)
        | Verb::Doctor(_) => true,
        Verb::Init(_)
        | Verb::Uninstall(_)
        | Verb::StatusLine(_)
        | Verb::Query(_)
        | Verb::Turns(_)
        | Verb::Memory(_)
        | Verb::WithContext(_)
        | Verb::Generate(_)
        // `plimsoll-linear` and `plimsoll-fleet` do this themselves.
        | Verb::Linear(_)
        | Verb::Fleet(_)
        | Verb::Demo(_) => false,
    }
}
