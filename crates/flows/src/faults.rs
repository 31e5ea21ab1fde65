//! A hook has failed: what it told standard error, where nobody looks, is kept for `plimsoll doctor` and the status line.

use crate::call::SESSION_VARIABLE;
use protocol::Hook;
use protocol::status::StatusPayload;
use session::Fault;
use store::{Project, environment, faults};

/// Keeps what a hook complained of. What is no object of the client's tells nothing of a session: it was no client
/// that called. That the disk refuses is told already, or is the fault itself.
pub fn note(input: &[u8], program: &str, complaints: &[String]) {
    let Ok(hook) = Hook::parse(input) else { return };
    let workspace = StatusPayload::parse(input).unwrap_or_default().workspace;
    let project = Project::of_hook(workspace.project_dir.as_deref().or(hook.cwd.as_deref()));
    keep(&project, program, hook.session_id.as_deref().unwrap_or_default(), complaints);
}

/// The same after a panic, when nothing is at hand but the environment.
pub fn note_without_payload(program: &str, complaints: &[String]) {
    let session_id = environment::variable(SESSION_VARIABLE).unwrap_or_default();
    keep(&Project::of_hook(None), program, &session_id, complaints);
}

fn keep(project: &Project, program: &str, session_id: &str, complaints: &[String]) {
    let fault = |what: &String| Fault {
        at: String::new(),
        program: program.to_owned(),
        session_id: session_id.to_owned(),
        what: what.clone(),
    };
    for complaint in complaints {
        let _ = faults::note(project, &fault(complaint));
    }
}
