//! Records the errors of hooks. The client does not show a hook's standard error, so the messages are stored for
//! `plimsoll doctor` and the status line.

use crate::hook_invocation::SESSION_VARIABLE;
use plimsoll_domain::{RecordedHookFailure, SessionId};
use plimsoll_protocol::HookPayload;
use plimsoll_store::{Project, environment, hook_failures};

/// Records the error messages of a hook. Ignores input without an event name: it is not from a hook, or it is from the
/// status line, which shows its errors itself. Errors while writing are ignored: they have already been reported, or are
/// the error to be recorded.
pub fn record_errors_of_hook_event(input: &[u8], program: &str, messages: &[String]) {
    let Some(payload) = HookPayload::parse(input).ok().filter(|payload| !payload.event.name().is_empty())
    else {
        return;
    };
    let Ok(project) = Project::from_project_dir_variable_or_cwd(payload.cwd.as_deref()) else { return };
    record_errors_if_data_folder_exists(
        &project,
        program,
        &payload.session_id.unwrap_or_default().into(),
        messages,
    );
}

/// Records the error messages of a hook that panicked, with the session id from the environment.
pub fn record_errors_without_payload(program: &str, messages: &[String]) {
    let session_id = environment::variable(SESSION_VARIABLE).unwrap_or_default();
    if let Ok(project) = Project::from_project_dir_variable_or_cwd(None) {
        record_errors_if_data_folder_exists(&project, program, &SessionId::from(session_id), messages);
    }
}

fn record_errors_if_data_folder_exists(
    project: &Project,
    program: &str,
    session_id: &SessionId,
    messages: &[String],
) {
    let to_recorded_failure = |message: &String| RecordedHookFailure {
        occurred_at: plimsoll_domain::Timestamp::UNKNOWN,
        program: program.to_owned(),
        session_id: session_id.to_owned(),
        message: message.clone(),
    };
    for message in messages {
        let _ =
            hook_failures::record_hook_failure_if_data_folder_exists(project, &to_recorded_failure(message));
    }
}
