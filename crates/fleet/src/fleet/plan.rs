//! Creating, opening and deleting fleets.

use super::{Fleet, remove_nul_characters};
use crate::database::{Database, Parameter, TransactionError};
use crate::database_error::FleetError;
use crate::rows::{index_to_i32_saturating, stage_columns, to_i64_saturating};
use crate::schema;
use plimsoll_domain::board::BoardState;
use plimsoll_domain::state::DeliveryMode;
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::{LEASE_DURATION_MS, create_board_with_done_items_merged};
use postgres::types::Type;
use postgres::{Row, Transaction};
use serde_json::json;

/// Far more than any real plan has. It keeps indices within `integer`.
const MAX_ITEMS: usize = 100_000;

const INSERT_PLAN: &str = "
    insert into plimsoll.plan (name, repo, target, verify, deliver, objective_hash, max_cost, has_areas, began_at, plan_file,
      plan_is_tracked, below, promise, max_sessions, created)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, plimsoll.moment())
    on conflict (name) do nothing returning id";
const INSERT_ITEMS: &str = "
    insert into plimsoll.item (plan, place, text, needs, areas, stage)
    select $1, (row->>'place')::integer, row->>'text',
      array (select jsonb_array_elements_text(row->'needs')::integer),
      array (select jsonb_array_elements_text(row->'areas')), row->>'stage'
    from jsonb_array_elements($2::text::jsonb) as row";
const INSERT_CREATED_EVENT: &str = "
    insert into plimsoll.event (at, plan, kind, detail) values (plimsoll.moment(), $1, 'created', $2)";
const CHECK_WRITE_RIGHTS: &str = "
    insert into plimsoll.plan (name, repo, target, verify, deliver, objective_hash, has_areas, created)
      select '', '', '', '{}', '', '', false, 0 where false;
    insert into plimsoll.item (plan, place, text, needs, areas, stage) select 0, 0, '', '{}', '{}', '' where false;
    insert into plimsoll.event (at, plan, kind) select 0, 0, '' where false";
const FIND_PLAN: &str = "select id, has_areas from plimsoll.plan where name = $1";
const LOCK_PLAN: &str = "select from plimsoll.plan where id = $1 for update";
const READ_ACTIVE_WORKERS: &str = "
    select name from plimsoll.worker where plan = $1 and seen > plimsoll.moment() - $2 order by name limit 10";
const DELETE_EVENTS: &str = "delete from plimsoll.event where plan = $1";
const DELETE_PLAN: &str = "delete from plimsoll.plan where id = $1";

/// The settings of a new fleet, without its items.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPlan {
    /// Unique in the database.
    pub name: String,
    /// Address of the git remote through which the machines exchange their work.
    pub remote_address: String,
    /// The branch into which items are merged.
    pub target_branch: String,
    /// The commands that pass on the target branch.
    pub verify_commands: Vec<String>,
    pub delivery_mode: DeliveryMode,
    /// Identifies the task, which itself is not stored in the database.
    pub objective_hash: String,
    /// Cost limit of all workers on all machines, in dollars.
    pub max_cost_usd: Option<f64>,
    /// The commit at which the fleet starts.
    pub start_commit: String,
    /// Path of the plan, relative to the repository's root.
    pub plan_file: String,
    /// True if git tracks the plan, so that its ticks are committed.
    pub is_plan_tracked: bool,
    /// The project's folder, relative to the repository's root; empty for the root.
    pub project_folder: String,
    pub promise_word: String,
    /// Session limit of all workers on all machines.
    pub max_sessions: Option<u32>,
}

/// Returns a hash that identifies a task. Blank lines around the task do not matter.
pub fn hash_objective(objective: &str) -> String {
    plimsoll_domain::digest::sha256_hex(&[objective.trim().as_bytes()])
}

/// Prepares the creation of a fleet: migrates the tables. Fails if they cannot be written or the name is taken.
pub fn migrate_and_check_write_rights_and_name(
    database: &mut Database,
    fleet_name: &str,
) -> Result<(), FleetError> {
    schema::migrate_to_current_version(database)?;
    database.run_in_transaction("prepare the fleet", |transaction| {
        // Writes nothing, but fails if the database is read-only or the role has no right to write.
        transaction.batch_execute(CHECK_WRITE_RIGHTS)?;
        match transaction.query_typed_opt(FIND_PLAN, &[(&fleet_name, Type::TEXT)])? {
            None => Ok(()),
            Some(_) => Err(FleetError::NameTaken(fleet_name.to_owned()).into()),
        }
    })
}

impl Fleet {
    /// Migrates the tables and inserts a plan with its items. Fails if the name is taken.
    pub fn create_if_name_free(
        mut database: Database,
        new_plan: &NewPlan,
        items: &[EstimatedItem],
    ) -> Result<Fleet, FleetError> {
        let board = create_board_with_done_items_merged(items);
        if board.items.len() > MAX_ITEMS {
            return Err(FleetError::TooManyItems(MAX_ITEMS));
        }
        schema::migrate_to_current_version(&mut database)?;
        let has_areas = board.items.iter().any(|item| !item.stated_areas.is_empty());
        let new_plan_id = database.run_in_transaction("create the fleet", |transaction| {
            let new_plan_id = insert_plan_if_name_free(transaction, new_plan, has_areas)?
                .ok_or_else(|| FleetError::NameTaken(new_plan.name.clone()))?;
            transaction.execute_typed(
                INSERT_ITEMS,
                &[(&new_plan_id, Type::INT8), (&items_to_json(&board), Type::TEXT)],
            )?;
            let event_detail = format!("{} items", board.items.len());
            transaction.execute_typed(
                INSERT_CREATED_EVENT,
                &[(&new_plan_id, Type::INT8), (&event_detail, Type::TEXT)],
            )?;
            Ok(new_plan_id)
        })?;
        Ok(Fleet { database, plan_id: new_plan_id, name: new_plan.name.clone(), has_areas })
    }

    /// Opens an existing fleet. Fails if the schema version differs or there is no such fleet.
    pub fn open(mut database: Database, name: &str) -> Result<Fleet, FleetError> {
        schema::check_schema_version(&mut database)?;
        let read_id_and_has_areas = |row: &Row| Ok((row.try_get("id")?, row.try_get("has_areas")?));
        let id_and_has_areas = database
            .query_and_map("open the fleet", FIND_PLAN, &[(&name, Type::TEXT)], read_id_and_has_areas)?
            .pop();
        let (plan_id, has_areas) =
            id_and_has_areas.ok_or_else(|| FleetError::FleetNotFound(name.to_owned()))?;
        Ok(Fleet { database, plan_id, name: name.to_owned(), has_areas })
    }

    /// Deletes the fleet and everything that belongs to it. Fails if a worker is active.
    pub fn delete_if_no_active_workers(mut self) -> Result<(), FleetError> {
        let Fleet { database, plan_id, name, .. } = &mut self;
        database.run_in_transaction("forget the fleet", |transaction| {
            if transaction.query_typed_opt(LOCK_PLAN, &[(plan_id, Type::INT8)])?.is_none() {
                return Err(FleetError::FleetNotFound(name.clone()).into());
            }
            let parameters: [Parameter<'_>; 2] =
                [(plan_id, Type::INT8), (&to_i64_saturating(LEASE_DURATION_MS), Type::INT8)];
            let worker_rows = transaction.query_typed(READ_ACTIVE_WORKERS, &parameters)?;
            let worker_names: Result<Vec<String>, _> =
                worker_rows.iter().map(|row| row.try_get("name")).collect();
            let workers = worker_names?.join(", ");
            if !workers.is_empty() {
                return Err(FleetError::WorkersActive { name: name.clone(), workers }.into());
            }
            transaction.execute_typed(DELETE_EVENTS, &[(plan_id, Type::INT8)])?;
            transaction.execute_typed(DELETE_PLAN, &[(plan_id, Type::INT8)])?;
            Ok(())
        })
    }
}

fn insert_plan_if_name_free(
    transaction: &mut Transaction<'_>,
    new_plan: &NewPlan,
    has_areas: bool,
) -> Result<Option<i64>, TransactionError> {
    let delivery_text = match new_plan.delivery_mode {
        DeliveryMode::Branch => "branch",
        DeliveryMode::Merge => "merge",
    };
    let max_sessions = new_plan.max_sessions.map(i64::from);
    let parameters: [Parameter<'_>; 14] = [
        (&new_plan.name, Type::TEXT),
        (&new_plan.remote_address, Type::TEXT),
        (&new_plan.target_branch, Type::TEXT),
        (&new_plan.verify_commands, Type::TEXT_ARRAY),
        (&delivery_text, Type::TEXT),
        (&new_plan.objective_hash, Type::TEXT),
        (&new_plan.max_cost_usd, Type::FLOAT8),
        (&has_areas, Type::BOOL),
        (&new_plan.start_commit, Type::TEXT),
        (&new_plan.plan_file, Type::TEXT),
        (&new_plan.is_plan_tracked, Type::BOOL),
        (&new_plan.project_folder, Type::TEXT),
        (&new_plan.promise_word, Type::TEXT),
        (&max_sessions, Type::INT8),
    ];
    let row = transaction.query_typed_opt(INSERT_PLAN, &parameters)?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

/// Converts the items to JSON, so that one parameter holds any number of them.
fn items_to_json(board: &BoardState) -> String {
    let item_json = |(index, item): (usize, &plimsoll_domain::board::BoardItem)| {
        json!({
            "place": index,
            "text": remove_nul_characters(&item.text),
            "needs": item.dependency_indices.iter().map(|dependency_index| index_to_i32_saturating(*dependency_index)).collect::<Vec<_>>(),
            "areas": item.stated_areas.iter().map(|area| remove_nul_characters(area)).collect::<Vec<_>>(),
            "stage": stage_columns(&item.stage).stage,
        })
    };
    serde_json::Value::from(board.items.iter().enumerate().map(item_json).collect::<Vec<_>>()).to_string()
}
