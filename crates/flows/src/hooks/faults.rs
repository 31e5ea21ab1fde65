//! A hook has failed: what it wrote to standard error, which is not shown, is kept for `plimsoll doctor` and the status line.

use crate::hook_invocation::SESSION_VARIABLE;
use plimsoll_domain::{Fault, SessionId};
use plimsoll_protocol::Hook;
use plimsoll_store::{Project, environment, faults};

/// Keeps what a hook complained of. Input without an event was no hook's call, or the status line's, which shows
/// faults by itself and writes only the reading. A disk error has been reported already, or is the fault itself.
pub fn note(input: &[u8], program: &str, complaints: &[String]) {
    let Some(hook) = Hook::parse(input).ok().filter(|hook| !hook.event.name().is_empty()) else { return };
    let Ok(project) = Project::of_hook(hook.cwd.as_deref()) else { return };
    keep(&project, program, &hook.session_id.unwrap_or_default().into(), complaints);
}

/// The same after a panic, when nothing is at hand but the environment.
pub fn note_without_payload(program: &str, complaints: &[String]) {
    let session_id = environment::variable(SESSION_VARIABLE).unwrap_or_default();
    if let Ok(project) = Project::of_hook(None) {
        keep(&project, program, &SessionId::from(session_id), complaints);
    }
}

fn keep(project: &Project, program: &str, session_id: &SessionId, complaints: &[String]) {
    let fault = |what: &String| Fault {
        at: plimsoll_domain::Timestamp::UNKNOWN,
        program: program.to_owned(),
        session_id: session_id.to_owned(),
        what: what.clone(),
    };
    for complaint in complaints {
        let _ = faults::note(project, &fault(complaint));
    }
}
