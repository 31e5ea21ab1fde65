//! Processes that a killed run leaves running: its client, and the tools that the client started.

use crate::hook_invocation::{RUN_VARIABLE, SESSION_VARIABLE};
use plimsoll_domain::RunState;
use plimsoll_launcher::process;
use std::time::Duration;

/// Returns the client of the current iteration if it is alive: identified by its recorded pid and start time,
/// or by its session and run ids if `plimsoll run` died before it could record the pid.
pub(crate) fn find_live_client_of_current_iteration(run: &RunState) -> Option<process::ProcessIdentity> {
    let record = &run.iteration_record;
    let session_id = run.session_id.as_deref().filter(|id| !id.is_empty())?;
    let recorded_process = record
        .pid
        .zip(record.process_start_ticks)
        .map(|(pid, start_ticks)| process::ProcessIdentity { pid, start_time: start_ticks });
    // By pid and start time, because pids are reused. The search by ids covers a kill between the client's
    // start and the write of the state, when no pid has been recorded.
    recorded_process.filter(|identity| process::is_alive(*identity)).or_else(|| {
        process::find_oldest_process_by_argument_and_env(
            session_id,
            &format!("{RUN_VARIABLE}={}", run.run_id),
        )
    })
}

/// Ends the tools that a killed client left running: they would continue into the next session.
pub(crate) fn end_surviving_processes(run: &RunState) {
    // SIGKILL to the client leaves its running Bash tool alive; SIGTERM and SIGINT stop it (2.1.329).
    if let Some(markers) = session_environment_markers(run) {
        end_processes_with_environment(&markers);
    }
}

/// Ends the processes that have these variables of a session in their environment.
pub(crate) fn end_processes_with_environment([run_marker, session_marker]: &[String; 2]) {
    process::wait_then_end_processes_with_both_variables(
        [run_marker, session_marker],
        Duration::from_secs(1),
    );
}

/// Returns the variables that every process started inside the current session has in its environment.
pub(crate) fn session_environment_markers(run: &RunState) -> Option<[String; 2]> {
    let session_id = run.session_id.as_ref().filter(|id| !id.is_empty())?;
    Some([format!("{RUN_VARIABLE}={}", run.run_id), format!("{SESSION_VARIABLE}={session_id}")])
}
