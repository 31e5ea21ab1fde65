//! Reports of the workers of a fleet.

use super::Fleet;
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::index_to_i32_saturating;
use postgres::types::Type;

/// Clears the allowance if the worker has no item, because a run that has ended needs no reserved money.
const UPSERT_WORKER: &str = "
    with clock as materialized (select plimsoll.moment() as now)
    insert into plimsoll.worker as known (plan, name, machine, pid, version, started, seen, session, percent, cost, item)
    select plan.id, $2, $3, $4, $5, clock.now, clock.now, $6, $7, $8, $9 from plimsoll.plan, clock where plan.id = $1
    on conflict (plan, name) do update set seen = excluded.seen, pid = excluded.pid, version = excluded.version,
      session = excluded.session, percent = excluded.percent, item = excluded.item,
      cost = greatest(known.cost, excluded.cost),
      allowance = case when excluded.item is not null then known.allowance end
    returning name";
/// A periodic report of a worker's parent process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Unique in the fleet.
    pub worker_name: String,
    /// The computer's name.
    pub machine_name: String,
    /// The parent process on that machine.
    pub pid: u32,
    pub plimsoll_version: String,
    /// The current session, or empty.
    pub session_id: String,
    /// Used percent of its context window.
    pub context_percent: Option<f64>,
    /// Cost since the worker started, in dollars. A total and not an increment, so that a repeated report is not counted twice.
    pub total_cost_usd: f64,
    /// Index of its item in the plan; `None` between two items.
    pub item_index: Option<usize>,
}

impl Fleet {
    /// Inserts or updates a worker's row, with the current time. Fails if the fleet was deleted.
    pub fn record_worker_report(&mut self, report: &WorkerReport) -> Result<(), FleetError> {
        let (pid, item) = (i64::from(report.pid), report.item_index.map(index_to_i32_saturating));
        let parameters: [Parameter<'_>; 9] = [
            (&self.plan_id, Type::INT8),
            (&report.worker_name, Type::TEXT),
            (&report.machine_name, Type::TEXT),
            (&pid, Type::INT8),
            (&report.plimsoll_version, Type::TEXT),
            (&report.session_id, Type::TEXT),
            (&report.context_percent, Type::FLOAT8),
            (&report.total_cost_usd, Type::FLOAT8),
            (&item, Type::INT4),
        ];
        let rows = self.database.query("report a worker", UPSERT_WORKER, &parameters)?;
        if rows.is_empty() { Err(FleetError::FleetNotFound(self.name.clone())) } else { Ok(()) }
    }
}
