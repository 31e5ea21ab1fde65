//! `plimsoll monitor`: prints the monitor's decision for shell scripts.

use crate::target_session::TargetSession;
use crate::{foreign_state, hook_answer};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::level::Level;
use plimsoll_domain::{Marker, UsageReading};
use plimsoll_flows::context::measure::{MeasureInput, measure_usage};
use plimsoll_flows::hooks::{post_tool::run_post_tool_hook, run_hook_on_input};
use plimsoll_store::{Project, config};
use plimsoll_terminal::console::{fail_with, print_text};
use plimsoll_terminal::standard_input;
use std::process::ExitCode;

/// With a hook's JSON on standard input, prints the decision as a bare marker line and returns its exit code. Without, measures the
/// session found from the state; this announces and records nothing.
pub(crate) fn run_post_tool_hook_or_print_level() -> ExitCode {
    let document = standard_input::read_document_if_piped();
    if let Some(code) = foreign_state::monitor_foreign_loop(&Project::find_for_command(), document.as_deref())
    {
        return code;
    }
    match document {
        Some(document) => {
            hook_answer::print_marker_or_error(&run_hook_on_input(&document, run_post_tool_hook))
        }
        None => print_level_of_run_session(&Project::find_for_command()),
    }
}

fn print_level_of_run_session(project: &Project) -> ExitCode {
    let target_session = match TargetSession::find_or_use_planned_run(project) {
        Ok(Some(target_session)) => target_session,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return fail_with(error, ExitStatus::InternalError),
    };
    let (settings, _) = config::load_settings(project);
    let transcript = target_session.transcript_path();
    let transcript = transcript.as_deref();
    let measurement = measure_usage(&MeasureInput {
        project,
        settings: &settings,
        record: &target_session.record,
        transcript_path: transcript,
        pending_calls: &[],
    });
    let level = measurement.projected_level().unwrap_or_default();
    if level > Level::L0
        && let Some(percent) = measurement.reading.as_ref().and_then(UsageReading::projected_percent)
    {
        print_text(Marker::Warning { level, percent });
    }
    ExitStatus::failure_if(level == Level::L3 && target_session.run.is_some()).into()
}
