//! A `ralph-state.json` that Plimsoll did not write: runs `gate` and `monitor` for its shell loop, and
//! describes its state for other commands.

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::run::shell_loop;
use plimsoll_flows::run::shell_loop::LoopCommandOutput;
use plimsoll_policy::shell_loop::{ShellLoop, missing_run_marker_fields, render_no_run_here_and_loop_status};
use plimsoll_store::{Project, StoreError, state_file};
use plimsoll_terminal::console::{fail_with, print_text, print_warning};
use plimsoll_terminal::standard_input;
use std::process::ExitCode;

/// Judges the session of a foreign shell loop. Returns `None` if the state belongs to one of our runs, or if
/// there is no state.
pub(crate) fn judge_foreign_loop_and_print_output(project: &Project) -> Option<ExitCode> {
    let result = shell_loop::is_shell_loop_running(project).and_then(|is_running| {
        // The loop pipes the session's output to us; the pipe closes when the session ends.
        let session_output =
            if is_running { standard_input::read_nonblank_piped_input_up_to_max_wait() } else { None };
        shell_loop::judge_session_and_update_loop_state(project, session_output.as_deref())
    });
    print_loop_output_if_foreign(result)
}

/// Runs the monitor for a foreign shell loop. Returns `None` if the state belongs to one of our runs, or if
/// there is no state.
pub(crate) fn monitor_foreign_loop_and_print_output(
    project: &Project,
    input: Option<&[u8]>,
) -> Option<ExitCode> {
    print_loop_output_if_foreign(shell_loop::measure_loop_session_and_checkpoint_if_due(project, input))
}

fn print_loop_output_if_foreign(result: Result<Option<LoopCommandOutput>, StoreError>) -> Option<ExitCode> {
    match result {
        Ok(None) => None,
        Ok(Some(LoopCommandOutput { marker_line, warnings, exit_status })) => {
            warnings.iter().for_each(print_warning);
            marker_line.iter().for_each(print_text);
            Some(exit_status.into())
        }
        Err(error) => Some(fail_with(error, ExitStatus::InternalError)),
    }
}

/// Describes a foreign state; `None` if there is none.
pub(crate) fn describe_foreign_state(project: &Project) -> Option<String> {
    let document = state_file::load_state_document_of_other_program(project).ok().flatten()?;
    Some(render_no_run_here_and_loop_status(
        &project.relative_to_root(project.state_path()),
        &missing_run_marker_fields(&document),
        &ShellLoop::from_document_collecting_invalid_fields(&document),
    ))
}
