//! The workers of a fleet, and what they cost.

use super::Fleet;
use crate::database::Parameter;
use crate::fault::FleetError;
use postgres::types::Type;

const REPORT: &str = "
    with clock as materialized (select plimsoll.moment() as now)
    insert into plimsoll.worker as known (plan, name, machine, pid, version, started, seen, session, percent, cost)
    select plan.id, $2, $3, $4, $5, clock.now, clock.now, $6, $7, $8 from plimsoll.plan, clock where plan.id = $1
    on conflict (plan, name) do update set seen = excluded.seen, session = excluded.session, percent = excluded.percent,
      cost = greatest(known.cost, excluded.cost)
    returning name";
const SPENT: &str = "
    select (select coalesce(sum(cost), 0) from plimsoll.worker where worker.plan = plan.id) as cost, max_cost
    from plimsoll.plan where id = $1";

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
}

/// What a fleet has cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// All workers on all machines, in dollars.
    pub cost: f64,
    /// Nothing is claimed from here on.
    pub most: Option<f64>,
}

impl Spent {
    /// True if nothing more is claimed.
    pub fn is_over(self) -> bool {
        self.most.is_some_and(|most| self.cost >= most)
    }
}

impl Fleet {
    /// Keeps what a worker says of itself, with the time.
    pub fn report(&mut self, worker: &WorkerReport) -> Result<(), FleetError> {
        let pid = i64::from(worker.pid);
        let parameters: [Parameter<'_>; 8] = [
            (&self.plan, Type::INT8),
            (&worker.name, Type::TEXT),
            (&worker.machine, Type::TEXT),
            (&pid, Type::INT8),
            (&worker.version, Type::TEXT),
            (&worker.session, Type::TEXT),
            (&worker.percent, Type::FLOAT8),
            (&worker.cost, Type::FLOAT8),
        ];
        let rows = self.database.query("report a worker", REPORT, &parameters)?;
        if rows.is_empty() { Err(FleetError::NoPlan(self.name.clone())) } else { Ok(()) }
    }

    /// What all workers have cost together.
    pub fn spent(&mut self) -> Result<Spent, FleetError> {
        const DOING: &str = "add up the cost";
        let rows = self.database.query(DOING, SPENT, &[(&self.plan, Type::INT8)])?;
        let row = rows.first().ok_or_else(|| FleetError::NoPlan(self.name.clone()))?;
        let spent = || Ok(Spent { cost: row.try_get("cost")?, most: row.try_get("max_cost")? });
        spent().map_err(|error| self.database.unreadable(DOING, &error))
    }
}
