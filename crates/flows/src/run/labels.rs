//! Labels for the client's own telemetry.

use plimsoll_domain::{RunState, SessionId};
use plimsoll_policy::telemetry;
use plimsoll_store::environment;

/// Returns the labels of a session for the client's own telemetry, if the user has it on. Secrets are removed
/// from the name and the item, because labels leave the machine.
pub(super) fn session_labels(
    state: &RunState,
    session_id: &SessionId,
    has_spans: bool,
) -> Vec<(String, String)> {
    let run_name = plimsoll_secrets::redact(&state.options.task_name);
    let item = state.iteration_record.item.as_deref().map(plimsoll_secrets::redact);
    let labeled_session = telemetry::LabeledSession {
        run_id: &state.run_id,
        run_name: &run_name,
        iteration: state.iteration,
        session_id,
        item: item.as_deref(),
    };
    to_owned_pairs(telemetry::telemetry_variables_for_session(&user_environment(has_spans), labeled_session))
}

/// Returns the labels of the run of one item of a parallel run; its sessions add their own.
pub(crate) fn worker_labels(
    run: &RunState,
    item_number: usize,
    attempt: u64,
    has_spans: bool,
) -> Vec<(String, String)> {
    to_owned_pairs(telemetry::telemetry_variables_for_worker(
        &user_environment(has_spans),
        &run.run_id,
        item_number,
        attempt,
    ))
}

fn user_environment(has_spans: bool) -> telemetry::TelemetryEnvironment {
    telemetry::TelemetryEnvironment {
        enable_telemetry: environment::variable(telemetry::ENABLE_VARIABLE),
        resource_attributes: environment::variable(telemetry::RESOURCE_ATTRIBUTES_VARIABLE),
        traceparent: environment::variable(telemetry::TRACEPARENT_VARIABLE),
        exports_run_spans: has_spans,
    }
}

fn to_owned_pairs(variables: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
