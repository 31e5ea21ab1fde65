//! `plimsoll monitor`: prints the monitor's decision for shell scripts.

use crate::target_session::TargetSession;
use crate::{foreign_state, hook_response_output};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::level::Level;
use plimsoll_domain::{Marker, UsageReading};
use plimsoll_flows::context::measure::{MeasureInput, measure_usage_waiting_near_threshold};
use plimsoll_flows::hooks::{post_tool::run_post_tool_hook, run_hook_on_input};
use plimsoll_store::{Project, config};
use plimsoll_terminal::console::{fail_with, print_text};
use plimsoll_terminal::standard_input;
use std::process::ExitCode;

/// With a hook's JSON on standard input, runs the PostToolUse hook, prints its marker and returns its exit code. Without
/// input, measures the session that the state names, and records nothing.
pub(crate) fn run_post_tool_hook_or_print_warning() -> ExitCode {
    let document = standard_input::read_nonblank_piped_input_if_data_arrives();
    if let Some(code) = foreign_state::monitor_foreign_loop_and_print_output(
        &Project::find_upwards_from_current_dir(),
        document.as_deref(),
    ) {
        return code;
    }
    match document {
        Some(document) => hook_response_output::print_marker_and_first_error(&run_hook_on_input(
            &document,
            run_post_tool_hook,
        )),
        None => print_warning_and_fail_at_l3_in_run(&Project::find_upwards_from_current_dir()),
    }
}

/// Prints a warning marker if the session has reached a threshold. Returns exit code 1 at L3 if the session belongs to a run.
fn print_warning_and_fail_at_l3_in_run(project: &Project) -> ExitCode {
    let target_session = match TargetSession::find_current_or_run_or_planned_or_latest(project) {
        Ok(Some(target_session)) => target_session,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return fail_with(error, ExitStatus::InternalError),
    };
    let (settings, _) = config::load_settings(project);
    let transcript = target_session.transcript_path();
    let transcript = transcript.as_deref();
    let measurement = measure_usage_waiting_near_threshold(&MeasureInput {
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
