//! A fleet for repeated operations, each with a timeout.

use super::Fleet;
use crate::database::Database;
use crate::database_fault::{DatabaseFault, FleetError};
use crate::deadline::{DATABASE_TIMEOUT, run_in_thread_with_timeout};
use crate::settings_loader;
use std::sync::Arc;
use std::time::Duration;

/// Opens a fleet by its name.
type OpenFleet = Arc<dyn Fn(&str) -> Result<Fleet, FleetError> + Send + Sync>;

/// A fleet for repeated operations. They use one connection for as long as it works.
pub(crate) struct ReconnectingFleet {
    pub(crate) name: String,
    /// `None` if the connection may be dead: the next operation opens a new one.
    pub(crate) connected_fleet: Option<Fleet>,
    pub(crate) open_fleet: OpenFleet,
    pub(crate) timeout: Duration,
}

impl ReconnectingFleet {
    pub(crate) fn new(name: &str) -> ReconnectingFleet {
        let open_fleet = |name: &str| {
            Fleet::open(Database::connect(settings_loader::load_settings_from_environment()?)?, name)
        };
        ReconnectingFleet {
            name: name.to_owned(),
            connected_fleet: None,
            open_fleet: Arc::new(open_fleet),
            timeout: DATABASE_TIMEOUT,
        }
    }

    /// Runs an operation in a thread of its own. An operation that timed out may still take effect, so it must be repeatable.
    pub(crate) fn run_with_timeout<T: Send + 'static>(
        &mut self,
        action: &'static str,
        operation: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, FleetError> {
        let (connected_fleet, open_fleet, name) =
            (self.connected_fleet.take(), Arc::clone(&self.open_fleet), self.name.clone());
        let outcome = run_in_thread_with_timeout(self.timeout, move || {
            let mut fleet = connected_fleet.map_or_else(|| open_fleet(&name), Ok)?;
            Ok((operation(&mut fleet), fleet))
        });
        let server_name = || format!("the fleet `{}`", self.name);
        let timeout_error = || FleetError::Database {
            action,
            server: server_name(),
            fault: DatabaseFault::NoAnswer(self.timeout),
        };
        let (result, fleet) = outcome.unwrap_or_else(|| Err(timeout_error()))?;
        self.connected_fleet = Some(fleet);
        result
    }
}
