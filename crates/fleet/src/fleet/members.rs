//! The workers of a fleet, and what they cost.

use super::Fleet;
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::small;
use postgres::types::Type;

/// Of a run that is over nothing is set aside any more.
const REPORT: &str = "
    with clock as materialized (select plimsoll.moment() as now)
    insert into plimsoll.worker as known (plan, name, machine, pid, version, started, seen, session, percent, cost, item)
    select plan.id, $2, $3, $4, $5, clock.now, clock.now, $6, $7, $8, $9 from plimsoll.plan, clock where plan.id = $1
    on conflict (plan, name) do update set seen = excluded.seen, pid = excluded.pid, version = excluded.version,
      session = excluded.session, percent = excluded.percent, item = excluded.item,
      cost = greatest(known.cost, excluded.cost),
      allowance = case when excluded.item is not null then known.allowance end
    returning name";
/// What a worker's parent process says of it, every now and then.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Of this worker alone, in all of the fleet.
    pub name: String,
    /// The computer's name.
    pub machine: String,
    /// The parent process there.
    pub pid: u32,
    /// Of Plimsoll.
    pub version: String,
    /// The session at work; empty for none.
    pub session: String,
    /// How full its context window is.
    pub percent: Option<f64>,
    /// What it has cost from its beginning, in dollars. Not what was added: then a report could be counted twice.
    pub cost: f64,
    /// The place of its item in the plan; none between two.
    pub item: Option<usize>,
}

impl Fleet {
    /// Keeps what a worker says of itself, with the time.
    pub fn report(&mut self, worker: &WorkerReport) -> Result<(), FleetError> {
        let (pid, item) = (i64::from(worker.pid), worker.item.map(small));
        let parameters: [Parameter<'_>; 9] = [
            (&self.plan, Type::INT8),
            (&worker.name, Type::TEXT),
            (&worker.machine, Type::TEXT),
            (&pid, Type::INT8),
            (&worker.version, Type::TEXT),
            (&worker.session, Type::TEXT),
            (&worker.percent, Type::FLOAT8),
            (&worker.cost, Type::FLOAT8),
            (&item, Type::INT4),
        ];
        let rows = self.database.query("report a worker", REPORT, &parameters)?;
        if rows.is_empty() { Err(FleetError::NoPlan(self.name.clone())) } else { Ok(()) }
    }
}
