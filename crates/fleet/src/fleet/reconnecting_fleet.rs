//! A fleet for repeated operations, each with a timeout.

use super::Fleet;
use crate::database::Database;
use crate::database_error::{DatabaseError, FleetError};
use crate::settings_loader;
use crate::timeout::{DATABASE_TIMEOUT, run_in_thread_with_timeout};
use std::sync::Arc;
use std::time::Duration;

/// Opens a fleet by its name.
type OpenFleet = Arc<dyn Fn(&str) -> Result<Fleet, FleetError> + Send + Sync>;

/// A fleet whose operations share one connection. It is reopened after a timeout.
pub(crate) struct ReconnectingFleet {
    pub(crate) name: String,
    /// `None` before the first operation and after a timeout or a failed connection: the next operation opens a new connection.
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

    /// Runs an operation in its own thread, and connects first if needed. An operation that timed out may still take
    /// effect, so it must be repeatable.
    pub(crate) fn run_with_reconnect_and_timeout<T: Send + 'static>(
        &mut self,
        action: &'static str,
        operation: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, FleetError> {
        let (connected_fleet, open_fleet, name) =
            (self.connected_fleet.take(), Arc::clone(&self.open_fleet), self.name.clone());
        let thread_outcome = run_in_thread_with_timeout(self.timeout, move || {
            let mut fleet = connected_fleet.map_or_else(|| open_fleet(&name), Ok)?;
            Ok((operation(&mut fleet), fleet))
        });
        let fleet_description = || format!("the fleet `{}`", self.name);
        let timeout_error = || FleetError::Database {
            action,
            server: fleet_description(),
            database_error: DatabaseError::NoResponse(self.timeout),
        };
        let (result, fleet) = thread_outcome.unwrap_or_else(|| Err(timeout_error()))?;
        self.connected_fleet = Some(fleet);
        result
    }
}
