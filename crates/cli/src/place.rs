//! Before a command looks for its project: a state upwards that is not this project's is named, and one of another
//! owner where we stand is left alone.

use crate::commands::Verb;
use plimsoll_terminal::console::FAULT;
use plimsoll_terminal::place::refuse_foreign_place;
use std::process::ExitCode;

/// The exit code of a command that must not continue here.
pub(crate) fn check(verb: &Verb) -> Option<ExitCode> {
    if !asks_for_the_project(verb) {
        return None;
    }
    refuse_foreign_place(if matches!(verb, Verb::Gate(_) | Verb::Monitor) { FAULT } else { 1 })
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
