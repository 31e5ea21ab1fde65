//! Environment variables that label the client's own telemetry.

use plimsoll_domain::{RunState, SessionId};
use plimsoll_policy::telemetry;
use plimsoll_store::environment;

/// Returns the environment variables that label the telemetry of a session; empty if the user has not enabled
/// telemetry. Secrets are removed from the name and the item, because labels leave the machine.
pub(super) fn session_telemetry_variables(
    state: &RunState,
    session_id: &SessionId,
    exports_spans: bool,
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
    to_owned_pairs(telemetry::telemetry_variables_for_session_if_enabled(
        &read_telemetry_environment(exports_spans),
        labeled_session,
    ))
}

/// Returns the environment variables that label the telemetry of a worker, which runs one item of a parallel
/// run. The worker's sessions add their own labels.
pub(crate) fn worker_telemetry_variables(
    run: &RunState,
    item_number: usize,
    attempt: u64,
    exports_spans: bool,
) -> Vec<(String, String)> {
    to_owned_pairs(telemetry::telemetry_variables_for_worker_if_enabled(
        &read_telemetry_environment(exports_spans),
        &run.run_id,
        item_number,
        attempt,
    ))
}

fn read_telemetry_environment(exports_spans: bool) -> telemetry::TelemetryEnvironment {
    telemetry::TelemetryEnvironment {
        enable_telemetry: environment::variable(telemetry::ENABLE_VARIABLE),
        resource_attributes: environment::variable(telemetry::RESOURCE_ATTRIBUTES_VARIABLE),
        traceparent: environment::variable(telemetry::TRACEPARENT_VARIABLE),
        exports_run_spans: exports_spans,
    }
}

fn to_owned_pairs(variables: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
