//! `plimsoll monitor`: the monitor's decision for shell glue.

use crate::target_session::TargetSession;
use crate::{foreign_state, hook_answer};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::level::Level;
use plimsoll_domain::{Marker, Reading};
use plimsoll_flows::context::measure::{Question, measure};
use plimsoll_flows::hooks::{answer, post_tool::post_tool};
use plimsoll_store::{Project, config};
use plimsoll_terminal::console::{fail_with, say};
use plimsoll_terminal::standard_input;
use std::process::ExitCode;

/// With a hook's JSON on standard input: its decision as a bare marker line, and its exit code. Without: a look
/// at the session found from the state, which announces nothing and writes nothing.
pub(crate) fn monitor() -> ExitCode {
    let document = standard_input::document();
    if let Some(code) = foreign_state::monitor(&Project::of_command(), document.as_deref()) {
        return code;
    }
    match document {
        Some(document) => hook_answer::print(&answer(&document, post_tool)),
        None => look(&Project::of_command()),
    }
}

fn look(project: &Project) -> ExitCode {
    let whose = match TargetSession::find_for_monitor(project) {
        Ok(Some(whose)) => whose,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return fail_with(error, ExitStatus::InternalError),
    };
    let (settings, _) = config::load(project);
    let transcript = whose.transcript();
    let transcript = transcript.as_deref();
    let measurement =
        measure(&Question { project, settings: &settings, record: &whose.record, transcript, calls: &[] });
    let level = measurement.level().unwrap_or_default();
    if level > Level::L0
        && let Some(percent) = measurement.reading.as_ref().and_then(Reading::percent)
    {
        say(Marker::Warning { level, percent });
    }
    ExitStatus::failure_if(level == Level::L3 && whose.run.is_some()).into()
}
