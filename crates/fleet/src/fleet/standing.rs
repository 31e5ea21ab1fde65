//! How far a fleet has come, by the views that dashboards read.

use crate::database::Database;
use crate::fault::FleetError;
use crate::rows::moment;
use crate::schema;
use plimsoll_domain::board::Moment;
use postgres::types::Type;
use postgres::{Error, Row};

/// All fleets, or the one of a name.
const STANDINGS: &str = "
    select fleet, repo, target, deliver, began_at, ended, draining, items, open, at_work, offered, merged, aside, questions, workers,
      machines, cost, max_cost, tokens, sessions, (extract(epoch from created) * 1000)::bigint as created,
      (extract(epoch from paused_until) * 1000)::bigint as paused_until, plimsoll.moment() as now
    from plimsoll.fleet_status where $1::text is null or fleet = $1 order by created, fleet";

/// How far a fleet has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// The git remote by which the work travels.
    pub repo: String,
    /// The branch in which it comes together.
    pub target: String,
    /// `branch` or `merge`.
    pub deliver: String,
    /// The commit at which it began.
    pub began_at: String,
    /// Why it is over: `done` or `stopped`.
    pub ended: Option<String>,
    /// Nothing new is claimed.
    pub draining: bool,
    /// Nothing is claimed before.
    pub paused_until: Option<Moment>,
    /// Items by their stages.
    pub items: Counts,
    /// Workers that were heard of within a lease.
    pub workers: u64,
    /// The machines that they are on.
    pub machines: u64,
    /// Of all workers that there have been, in dollars.
    pub cost: f64,
    /// The limit.
    pub max_cost: Option<f64>,
    /// Of sessions that have ended.
    pub tokens: u64,
    /// How many those are.
    pub sessions: u64,
    /// When it was created.
    pub created: Moment,
    /// When this was read, by the same clock.
    pub now: Moment,
}

/// Items by their stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All.
    pub all: u64,
    /// Nobody works on them.
    pub open: u64,
    /// Somebody does.
    pub at_work: u64,
    /// They wait to be merged.
    pub offered: u64,
    /// They are.
    pub merged: u64,
    /// They are set aside.
    pub aside: u64,
    /// Of those, the ones that wait for an answer.
    pub questions: u64,
}

/// Every fleet in the database, the oldest first.
pub fn standings(database: &mut Database) -> Result<Vec<Standing>, FleetError> {
    schema::check(database)?;
    read(database, None)
}

pub(super) fn read(database: &mut Database, name: Option<&str>) -> Result<Vec<Standing>, FleetError> {
    const DOING: &str = "look at the fleets";
    let rows = database.query(DOING, STANDINGS, &[(&name, Type::TEXT)])?;
    let standings: Result<_, Error> = rows.iter().map(standing).collect();
    standings.map_err(|error| database.unreadable(DOING, &error))
}

fn standing(row: &Row) -> Result<Standing, Error> {
    let count = |name: &str| row.try_get(name).map(moment);
    Ok(Standing {
        name: row.try_get("fleet")?,
        repo: row.try_get("repo")?,
        target: row.try_get("target")?,
        deliver: row.try_get("deliver")?,
        began_at: row.try_get("began_at")?,
        ended: row.try_get("ended")?,
        draining: row.try_get("draining")?,
        paused_until: row.try_get::<_, Option<i64>>("paused_until")?.map(moment),
        items: Counts {
            all: count("items")?,
            open: count("open")?,
            at_work: count("at_work")?,
            offered: count("offered")?,
            merged: count("merged")?,
            aside: count("aside")?,
            questions: count("questions")?,
        },
        workers: count("workers")?,
        machines: count("machines")?,
        cost: row.try_get("cost")?,
        max_cost: row.try_get("max_cost")?,
        tokens: count("tokens")?,
        sessions: count("sessions")?,
        created: count("created")?,
        now: count("now")?,
    })
}
