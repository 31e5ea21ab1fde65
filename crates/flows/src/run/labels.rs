//! Labels for the client's own telemetry.

use plimsoll_domain::{RunState, SessionId};
use plimsoll_policy::telemetry;
use plimsoll_store::environment;

/// Labels for the client's own telemetry, where the user has it; a name or an item may hold a secret, and labels leave the
/// machine.
pub(super) fn of_session(state: &RunState, session_id: &SessionId) -> Vec<(String, String)> {
    let user = telemetry::Environment {
        enabled: environment::variable(telemetry::ENABLED),
        attributes: environment::variable(telemetry::ATTRIBUTES),
        parent: environment::variable(telemetry::PARENT),
    };
    let name = plimsoll_secrets::without(&state.options.task_name);
    let item = state.iteration_record.item.as_deref().map(plimsoll_secrets::without);
    let session = telemetry::Labelled {
        run_id: &state.run_id,
        run_name: &name,
        iteration: state.iteration,
        session_id,
        item: item.as_deref(),
    };
    let labels = telemetry::variables(&user, session).into_iter();
    labels.map(|(name, value)| (name.to_owned(), value)).collect()
}
