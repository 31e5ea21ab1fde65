//! How far a fleet has come, by the views that dashboards read.

use super::Fleet;
use crate::database::Database;
use crate::fault::FleetError;
use crate::rows::{commits, moment};
use crate::schema;
use chrono::{DateTime, Duration, Utc};
use plimsoll_domain::board::Moment;
use plimsoll_store::clock;
use postgres::types::Type;
use postgres::{Error, Row};
use serde::{Serialize, Serializer};

/// All fleets, or the one of a name.
const STANDINGS: &str = "
    select fleet, repo, target, deliver, began_at, ended, draining, items, open, at_work, offered, merged, aside, questions, workers,
      machines, cost, max_cost, tokens, sessions, (extract(epoch from created) * 1000)::bigint as created,
      (extract(epoch from paused_until) * 1000)::bigint as paused_until, plimsoll.moment() as now
    from plimsoll.fleet_status where $1::text is null or fleet = $1 order by created, fleet";

/// How far a fleet has come.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// When it was created.
    #[serde(serialize_with = "stamp")]
    pub created: Moment,
    /// Why it is over: `done` or `stopped`.
    pub ended: Option<String>,
    /// Nothing new is claimed.
    pub draining: bool,
    /// Nothing is claimed before.
    #[serde(serialize_with = "optional_stamp")]
    pub paused_until: Option<Moment>,
    /// Items by their stages.
    pub items: Counts,
    /// Workers that were heard of within a lease.
    pub workers: u64,
    /// The machines that they are on.
    pub machines: u64,
    /// Of all workers that there have been, in dollars.
    #[serde(rename = "cost_usd")]
    pub cost: f64,
    /// The limit.
    #[serde(rename = "max_cost_usd")]
    pub max_cost: Option<f64>,
    /// Of sessions that have ended.
    pub tokens: u64,
    /// How many those are.
    pub sessions: u64,
    /// When this was read, by the same clock.
    #[serde(skip)]
    pub now: Moment,
}

/// Items by their stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

/// An item, counted from 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemStanding {
    /// Its number in the plan.
    pub number: u32,
    /// Its words there.
    pub text: String,
    /// `open`, `leased`, `offered`, `merged` or `aside`.
    pub stage: String,
    /// How often its work could not be merged.
    pub tries: u32,
    /// Its present attempt.
    pub epoch: u64,
    /// Who works on it.
    pub worker: Option<String>,
    /// `tries`, `question` or `ended`.
    pub aside: Option<String>,
    /// The question, or why its run ended.
    pub reason: Option<String>,
    /// Why its work was not merged.
    pub note: String,
    /// The commits by which somebody was about to land it.
    pub landings: Vec<String>,
    /// The last question that was answered, and the answer.
    pub answered: Option<Answered>,
    /// Of sessions that have ended, in dollars.
    #[serde(rename = "cost_usd")]
    pub cost: f64,
    /// The same in tokens.
    pub tokens: u64,
    /// How many they are.
    pub sessions: u32,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    /// The question.
    pub question: String,
    /// The user's answer.
    pub answer: String,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStanding {
    /// Its name.
    pub name: String,
    /// The computer.
    pub machine: String,
    /// The member's process there.
    pub pid: u32,
    /// Of Plimsoll.
    pub version: String,
    /// When it was first heard of.
    #[serde(serialize_with = "stamp")]
    pub started: Moment,
    /// When it was heard of last.
    #[serde(serialize_with = "stamp")]
    pub seen: Moment,
    /// True if that was within a lease.
    pub is_there: bool,
    /// The number of its item.
    pub item: Option<u32>,
    /// Its session.
    pub session: String,
    /// How full the context window is.
    pub percent: Option<f64>,
    /// In dollars.
    #[serde(rename = "cost_usd")]
    pub cost: f64,
}

const ITEMS: &str = "
    select item, text, stage, tries, epoch, worker, aside, reason, note, landings, question, answer, cost, tokens, sessions
    from plimsoll.fleet_items where fleet = $1 order by item";
const WORKERS: &str = "
    select worker, machine, pid, version, is_there, item, session, percent, cost,
      (extract(epoch from started) * 1000)::bigint as started, (extract(epoch from seen) * 1000)::bigint as seen
    from plimsoll.fleet_workers where fleet = $1 order by worker";

/// A moment of the database's as this computer's clock says it.
pub(crate) fn time(moment: Moment) -> DateTime<Utc> {
    let milliseconds = i64::try_from(moment % 1_000).unwrap_or_default();
    clock::at(moment / 1_000).unwrap_or_default() + Duration::milliseconds(milliseconds)
}

fn stamp<S: Serializer>(moment: &Moment, serializer: S) -> Result<S::Ok, S::Error> {
    clock::fine_stamp(time(*moment)).serialize(serializer)
}

fn optional_stamp<S: Serializer>(moment: &Option<Moment>, serializer: S) -> Result<S::Ok, S::Error> {
    moment.map(|moment| clock::fine_stamp(time(moment))).serialize(serializer)
}

impl Fleet {
    /// How far it has come.
    pub fn standing(&mut self) -> Result<Standing, FleetError> {
        let found = read(&mut self.database, Some(&self.name))?.pop();
        found.ok_or_else(|| FleetError::NoPlan(self.name.clone()))
    }

    /// Its items, in the plan's order.
    pub fn items(&mut self) -> Result<Vec<ItemStanding>, FleetError> {
        self.database.read("read the items", ITEMS, &[(&self.name, Type::TEXT)], item)
    }

    /// Its workers, also those of earlier members.
    pub fn workers(&mut self) -> Result<Vec<WorkerStanding>, FleetError> {
        self.database.read("read the workers", WORKERS, &[(&self.name, Type::TEXT)], worker)
    }
}

fn item(row: &Row) -> Result<ItemStanding, Error> {
    let (question, answer): (Option<String>, Option<String>) =
        (row.try_get("question")?, row.try_get("answer")?);
    Ok(ItemStanding {
        number: count(row.try_get("item")?),
        text: row.try_get("text")?,
        stage: row.try_get("stage")?,
        tries: count(row.try_get("tries")?),
        epoch: moment(row.try_get("epoch")?),
        worker: row.try_get("worker")?,
        aside: row.try_get("aside")?,
        reason: row.try_get("reason")?,
        note: row.try_get("note")?,
        landings: commits(row, "landings")?,
        answered: question.zip(answer).map(|(question, answer)| Answered { question, answer }),
        cost: row.try_get("cost")?,
        tokens: moment(row.try_get("tokens")?),
        sessions: count(row.try_get("sessions")?),
    })
}

fn worker(row: &Row) -> Result<WorkerStanding, Error> {
    Ok(WorkerStanding {
        name: row.try_get("worker")?,
        machine: row.try_get("machine")?,
        pid: u32::try_from(row.try_get::<_, i64>("pid")?).unwrap_or_default(),
        version: row.try_get("version")?,
        started: moment(row.try_get("started")?),
        seen: moment(row.try_get("seen")?),
        is_there: row.try_get("is_there")?,
        item: row.try_get::<_, Option<i32>>("item")?.map(count),
        session: row.try_get("session")?,
        percent: row.try_get("percent")?,
        cost: row.try_get("cost")?,
    })
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// Every fleet in the database, the oldest first.
pub fn standings(database: &mut Database) -> Result<Vec<Standing>, FleetError> {
    schema::check(database)?;
    read(database, None)
}

fn read(database: &mut Database, name: Option<&str>) -> Result<Vec<Standing>, FleetError> {
    database.read("look at the fleets", STANDINGS, &[(&name, Type::TEXT)], standing)
}

fn standing(row: &Row) -> Result<Standing, Error> {
    let count = |name: &str| row.try_get(name).map(moment);
    Ok(Standing {
        name: row.try_get("fleet")?,
        repo: row.try_get("repo")?,
        target: row.try_get("target")?,
        deliver: row.try_get("deliver")?,
        began_at: row.try_get("began_at")?,
        created: count("created")?,
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
        now: count("now")?,
    })
}
