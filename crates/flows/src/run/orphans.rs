//! What a run that died, or was killed, leaves working: its client, and the tools that the client started.

use crate::hook_invocation::{RUN_VARIABLE, SESSION_VARIABLE};
use plimsoll_domain::RunState;
use plimsoll_launcher::process;
use std::time::Duration;

/// The client of the current iteration, if it lives: known by pid and start, or found by its session and run
/// where its `plimsoll run` died before it could note them.
pub(crate) fn orphan(run: &RunState) -> Option<process::Identity> {
    let record = &run.iteration_record;
    let session_id = run.session_id.as_deref().filter(|id| !id.is_empty())?;
    let known =
        record.pid.zip(record.process_started).map(|(pid, started)| process::Identity { pid, started });
    // By pid and start time, for pids come back. The search by ids is for a kill between the client's start and the
    // state, when no pid has been written.
    known
        .filter(|known| process::is_alive(*known))
        .or_else(|| process::find(session_id, &format!("{RUN_VARIABLE}={}", run.run_id)))
}

/// A client that was killed leaves its tools working: they would work into the next session.
pub(crate) fn end_left_behind(run: &RunState) {
    // SIGKILL to the client leaves its running Bash tool finishing its work; SIGTERM and SIGINT stop it (2.1.329).
    if let Some(settings) = settings_of(run) {
        end_started_with(&settings);
    }
}

/// Ends the processes that carry these settings of a session in their environment.
pub(crate) fn end_started_with([run, session]: &[String; 2]) {
    process::end_left_behind([run, session], Duration::from_secs(1));
}

/// What is in the environment of everything that is started inside the current session.
pub(crate) fn settings_of(run: &RunState) -> Option<[String; 2]> {
    let session_id = run.session_id.as_ref().filter(|id| !id.is_empty())?;
    Some([format!("{RUN_VARIABLE}={}", run.run_id), format!("{SESSION_VARIABLE}={session_id}")])
}
