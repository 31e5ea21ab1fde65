//! Records the faults of hooks: what they write to standard error is not shown, so it is kept for
//! `plimsoll doctor` and the status line.

use crate::hook_invocation::SESSION_VARIABLE;
use plimsoll_domain::{Fault, SessionId};
use plimsoll_protocol::HookPayload;
use plimsoll_store::{Project, environment, faults};

/// Records the messages of a failed hook. Skips input without an event: it is not from a hook, or it is from
/// the status line, which shows faults itself and writes only the reading. A disk error has been reported
/// already, or is the fault itself.
pub fn record_faults(input: &[u8], program: &str, messages: &[String]) {
    let Some(payload) = HookPayload::parse(input).ok().filter(|payload| !payload.event.name().is_empty())
    else {
        return;
    };
    let Ok(project) = Project::for_hook(payload.cwd.as_deref()) else { return };
    save_faults(&project, program, &payload.session_id.unwrap_or_default().into(), messages);
}

/// Records the messages of a hook that panicked, when nothing but the environment is available.
pub fn record_faults_without_payload(program: &str, messages: &[String]) {
    let session_id = environment::variable(SESSION_VARIABLE).unwrap_or_default();
    if let Ok(project) = Project::for_hook(None) {
        save_faults(&project, program, &SessionId::from(session_id), messages);
    }
}

fn save_faults(project: &Project, program: &str, session_id: &SessionId, messages: &[String]) {
    let to_fault = |message: &String| Fault {
        occurred_at: plimsoll_domain::Timestamp::UNKNOWN,
        program: program.to_owned(),
        session_id: session_id.to_owned(),
        message: message.clone(),
    };
    for message in messages {
        let _ = faults::record_fault(project, &to_fault(message));
    }
}
