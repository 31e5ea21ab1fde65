//! A fleet that is asked again and again, with an end to each wait.

use super::Fleet;
use crate::database::Database;
use crate::deadline::{ANSWER, answered};
use crate::fault::{Fault, FleetError};
use crate::found;
use std::sync::Arc;
use std::time::Duration;

/// Opens a fleet by its name.
type OpenFleet = Arc<dyn Fn(&str) -> Result<Fleet, FleetError> + Send + Sync>;

/// A fleet that is asked again and again, on one connection as long as that holds.
pub(crate) struct WatchedFleet {
    pub(crate) name: String,
    /// None while nobody knows whether its connection still answers: the next question is asked on a new one.
    pub(crate) fleet: Option<Fleet>,
    pub(crate) open: OpenFleet,
    pub(crate) limit: Duration,
}

impl WatchedFleet {
    pub(crate) fn new(name: &str) -> WatchedFleet {
        let open = |name: &str| Fleet::open(Database::connect(found::find_settings()?)?, name);
        WatchedFleet { name: name.to_owned(), fleet: None, open: Arc::new(open), limit: ANSWER }
    }

    /// Asks in a thread of its own. A question that is given up may be obeyed all the same: each can be asked again.
    pub(crate) fn ask<T: Send + 'static>(
        &mut self,
        doing: &'static str,
        question: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, FleetError> {
        let (known, open, name) = (self.fleet.take(), Arc::clone(&self.open), self.name.clone());
        let asked = answered(self.limit, move || {
            let mut fleet = known.map_or_else(|| open(&name), Ok)?;
            Ok((question(&mut fleet), fleet))
        });
        let server = || format!("the fleet `{}`", self.name);
        let silent = || FleetError::Database { doing, server: server(), fault: Fault::Silent(self.limit) };
        let (answer, fleet) = asked.unwrap_or_else(|| Err(silent()))?;
        self.fleet = Some(fleet);
        answer
    }
}
