//! Plans: how one comes into the database, and goes.

use super::{Fleet, storable};
use crate::database::{Database, Parameter, Stopped};
use crate::fault::FleetError;
use crate::rows::{columns, number, small};
use crate::schema;
use plimsoll_domain::board::BoardState;
use plimsoll_domain::state::Deliver;
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::{LEASE, board};
use postgres::types::Type;
use postgres::{Row, Transaction};
use serde_json::json;

/// Far more than anybody plans; the places are the database's numbers.
const MOST_ITEMS: usize = 100_000;

const CREATE: &str = "
    insert into plimsoll.plan (name, repo, target, verify, deliver, objective_hash, max_cost, has_areas, began_at, plan_file,
      plan_is_tracked, below, promise, max_sessions, created)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, plimsoll.moment())
    on conflict (name) do nothing returning id";
const ITEMS: &str = "
    insert into plimsoll.item (plan, place, text, needs, areas, stage)
    select $1, (row->>'place')::integer, row->>'text',
      array (select jsonb_array_elements_text(row->'needs')::integer),
      array (select jsonb_array_elements_text(row->'areas')), row->>'stage'
    from jsonb_array_elements($2::text::jsonb) as row";
const CREATED: &str = "
    insert into plimsoll.event (at, plan, kind, detail) values (plimsoll.moment(), $1, 'created', $2)";
const MAY_WRITE: &str = "
    insert into plimsoll.plan (name, repo, target, verify, deliver, objective_hash, has_areas, created)
      select '', '', '', '{}', '', '', false, 0 where false;
    insert into plimsoll.item (plan, place, text, needs, areas, stage) select 0, 0, '', '{}', '{}', '' where false;
    insert into plimsoll.event (at, plan, kind) select 0, 0, '' where false";
const OPEN: &str = "select id, has_areas from plimsoll.plan where name = $1";
const LOCK: &str = "select from plimsoll.plan where id = $1 for update";
const AT_WORK: &str = "
    select name from plimsoll.worker where plan = $1 and seen > plimsoll.moment() - $2 order by name limit 10";
const FORGET_EVENTS: &str = "delete from plimsoll.event where plan = $1";
const FORGET: &str = "delete from plimsoll.plan where id = $1";

/// What a fleet is to do, apart from its items.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPlan {
    /// The fleet's name, of which there is one in a database.
    pub name: String,
    /// The git remote by which the work travels.
    pub repo: String,
    /// The branch in which it comes together.
    pub target: String,
    /// The commands that pass on it.
    pub verify: Vec<String>,
    /// How far the work goes.
    pub deliver: Deliver,
    /// What tells one task from another; the task itself stays where it is.
    pub objective_hash: String,
    /// For all workers on all machines, in dollars.
    pub max_cost: Option<f64>,
    /// The commit at which it begins.
    pub began_at: String,
    /// The plan's file, from the repository's root on.
    pub plan_file: String,
    /// True if git follows it: then its ticks are committed.
    pub plan_is_tracked: bool,
    /// The project's folder, from the repository's root on; empty for the root.
    pub below: String,
    /// The word of the promise.
    pub promise: String,
    /// For all workers on all machines.
    pub max_sessions: Option<u32>,
}

/// What tells one task from another, whatever blank lines are around it.
pub fn objective_hash(task: &str) -> String {
    plimsoll_domain::digest::sha256(&[task.trim().as_bytes()])
}

/// Brings the tables up to date for a fleet that is about to be created, and refuses a name that is taken.
pub fn prepare(database: &mut Database, name: &str) -> Result<(), FleetError> {
    schema::migrate(database)?;
    database.transaction("prepare the fleet", |transaction| {
        // Nothing is written, but a database that takes no writes, or not from this role, says so.
        transaction.batch_execute(MAY_WRITE)?;
        match transaction.query_typed_opt(OPEN, &[(&name, Type::TEXT)])? {
            None => Ok(()),
            Some(_) => Err(FleetError::NameTaken(name.to_owned()).into()),
        }
    })
}

impl Fleet {
    /// Puts a plan into the database, after bringing its tables up to date.
    pub fn create(mut database: Database, plan: &NewPlan, items: &[Item]) -> Result<Fleet, FleetError> {
        let board = board(items);
        if board.items.len() > MOST_ITEMS {
            return Err(FleetError::TooManyItems(MOST_ITEMS));
        }
        schema::migrate(&mut database)?;
        let has_areas = board.items.iter().any(|item| !item.areas.is_empty());
        let id = database.transaction("create the fleet", |transaction| {
            let id = insert(transaction, plan, has_areas)?
                .ok_or_else(|| FleetError::NameTaken(plan.name.clone()))?;
            transaction.execute_typed(ITEMS, &[(&id, Type::INT8), (&rows(&board), Type::TEXT)])?;
            let words = format!("{} items", board.items.len());
            transaction.execute_typed(CREATED, &[(&id, Type::INT8), (&words, Type::TEXT)])?;
            Ok(id)
        })?;
        Ok(Fleet { database, plan: id, name: plan.name.clone(), has_areas })
    }

    /// A fleet that is there.
    pub fn open(mut database: Database, name: &str) -> Result<Fleet, FleetError> {
        schema::check(&mut database)?;
        let row = |row: &Row| Ok((row.try_get("id")?, row.try_get("has_areas")?));
        let found = database.read("open the fleet", OPEN, &[(&name, Type::TEXT)], row)?.pop();
        let (plan, has_areas) = found.ok_or_else(|| FleetError::NoPlan(name.to_owned()))?;
        Ok(Fleet { database, plan, name: name.to_owned(), has_areas })
    }

    /// Takes a plan out of the database with all that belongs to it, unless somebody is at work on it.
    pub fn forget(mut self) -> Result<(), FleetError> {
        let Fleet { database, plan, name, .. } = &mut self;
        database.transaction("forget the fleet", |transaction| {
            if transaction.query_typed_opt(LOCK, &[(plan, Type::INT8)])?.is_none() {
                return Err(FleetError::NoPlan(name.clone()).into());
            }
            let parameters: [Parameter<'_>; 2] = [(plan, Type::INT8), (&number(LEASE), Type::INT8)];
            let workers = transaction.query_typed(AT_WORK, &parameters)?;
            let workers: Result<Vec<String>, _> = workers.iter().map(|row| row.try_get("name")).collect();
            let workers = workers?.join(", ");
            if !workers.is_empty() {
                return Err(FleetError::AtWork { name: name.clone(), workers }.into());
            }
            transaction.execute_typed(FORGET_EVENTS, &[(plan, Type::INT8)])?;
            transaction.execute_typed(FORGET, &[(plan, Type::INT8)])?;
            Ok(())
        })
    }
}

fn insert(
    transaction: &mut Transaction<'_>,
    plan: &NewPlan,
    has_areas: bool,
) -> Result<Option<i64>, Stopped> {
    let deliver = match plan.deliver {
        Deliver::Branch => "branch",
        Deliver::Merge => "merge",
    };
    let max_sessions = plan.max_sessions.map(i64::from);
    let parameters: [Parameter<'_>; 14] = [
        (&plan.name, Type::TEXT),
        (&plan.repo, Type::TEXT),
        (&plan.target, Type::TEXT),
        (&plan.verify, Type::TEXT_ARRAY),
        (&deliver, Type::TEXT),
        (&plan.objective_hash, Type::TEXT),
        (&plan.max_cost, Type::FLOAT8),
        (&has_areas, Type::BOOL),
        (&plan.began_at, Type::TEXT),
        (&plan.plan_file, Type::TEXT),
        (&plan.plan_is_tracked, Type::BOOL),
        (&plan.below, Type::TEXT),
        (&plan.promise, Type::TEXT),
        (&max_sessions, Type::INT8),
    ];
    let row = transaction.query_typed_opt(CREATE, &parameters)?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

/// The items as one parameter, however many there are.
fn rows(board: &BoardState) -> String {
    let row = |(place, item): (usize, &plimsoll_domain::board::BoardItem)| {
        json!({
            "place": place,
            "text": storable(&item.text),
            "needs": item.needs.iter().map(|need| small(*need)).collect::<Vec<_>>(),
            "areas": item.areas.iter().map(|area| storable(area)).collect::<Vec<_>>(),
            "stage": columns(&item.stage).stage,
        })
    };
    serde_json::Value::from(board.items.iter().enumerate().map(row).collect::<Vec<_>>()).to_string()
}
