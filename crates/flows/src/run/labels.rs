//! Labels for the client's own telemetry.

use plimsoll_domain::{RunState, SessionId};
use plimsoll_policy::telemetry;
use plimsoll_store::environment;

/// Labels for the client's own telemetry, where the user has it; a name or an item may hold a secret, and labels leave the
/// machine.
pub(super) fn of_session(state: &RunState, session_id: &SessionId, has_spans: bool) -> Vec<(String, String)> {
    let name = plimsoll_secrets::without(&state.options.task_name);
    let item = state.iteration_record.item.as_deref().map(plimsoll_secrets::without);
    let session = telemetry::Labelled {
        run_id: &state.run_id,
        run_name: &name,
        iteration: state.iteration,
        session_id,
        item: item.as_deref(),
    };
    owned(telemetry::variables(&users(has_spans), session))
}

/// The same for the run of an item of a parallel run, whose sessions add their own.
pub(crate) fn of_worker(run: &RunState, item: usize, attempt: u64, has_spans: bool) -> Vec<(String, String)> {
    owned(telemetry::of_worker(&users(has_spans), &run.run_id, item, attempt))
}

fn users(has_spans: bool) -> telemetry::Environment {
    telemetry::Environment {
        enabled: environment::variable(telemetry::ENABLED),
        attributes: environment::variable(telemetry::ATTRIBUTES),
        parent: environment::variable(telemetry::PARENT),
        has_spans,
    }
}

fn owned(variables: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
