//! Creating, opening and deleting fleets.

use super::{Fleet, remove_nul_characters};
use crate::database::{Database, Parameter};
use crate::database_error::{CREATE_ACTION, FORGET_ACTION, FleetError, PREPARE_ACTION};
use crate::fleet_name::{FleetName, InvalidFleetName};
use crate::rows::index_to_i32_saturating;
use crate::schema;
use plimsoll_domain::board::{BoardState, ItemStage};
use plimsoll_domain::state::DeliveryMode;
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::create_board_with_done_items_merged;
use postgres::Transaction;
use postgres::types::Type;
use postgres_protocol::password::scram_sha_256;
use serde_json::json;

/// Far more than any real plan has. It keeps indices within `integer`.
const MAX_ITEMS: usize = 100_000;

const INSERT_PLAN: &str = "
    insert into {fleet}.plan (schema_version, name, repo, target, verify, deliver, objective_hash, max_cost, has_areas, began_at,
      plan_file, plan_is_tracked, below, promise, max_sessions, created)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, {fleet}.moment())";
const INSERT_ITEMS: &str = "
    insert into {fleet}.item (place, text, needs, areas, stage)
    select (row->>'place')::integer, row->>'text',
      array (select jsonb_array_elements_text(row->'needs')::integer),
      array (select jsonb_array_elements_text(row->'areas')), row->>'stage'
    from jsonb_array_elements($1::text::jsonb) as row";
const INSERT_CREATED_EVENT: &str = "
    insert into {fleet}.event (at, kind, detail) values ({fleet}.moment(), 'created', $1)";
const LOCK_PLAN: &str = "select from {fleet}.plan for update";
const READ_ACTIVE_WORKERS: &str =
    "select name from {fleet}.worker where {fleet}.is_there(seen) order by name limit 10";

/// The settings of a new fleet, without its items.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPlan {
    /// Unique in the database.
    pub name: FleetName,
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

/// Fails if the fleet cannot be created, for example because its name is taken or the role may not create roles. Creates the schema
/// and the role, and drops them in the same transaction.
pub fn check_fleet_can_be_created(database: &mut Database, name: &FleetName) -> Result<(), FleetError> {
    database.run_in_transaction(PREPARE_ACTION, |transaction| {
        schema::create_schema_and_role(transaction, name, &scram_sha_256(b"never used"))?;
        schema::drop_schema_and_role(transaction, name).map(drop)
    })
}

impl Fleet {
    /// Creates a fleet: its schema, the role of its members with this password, and its plan. Fails if the name is taken.
    pub fn create_if_name_free(
        mut database: Database,
        new_plan: &NewPlan,
        items: &[EstimatedItem],
        member_password: &str,
    ) -> Result<Fleet, FleetError> {
        let board = create_board_with_done_items_merged(items);
        if board.items.len() > MAX_ITEMS {
            return Err(FleetError::TooManyItems(MAX_ITEMS));
        }
        let name = &new_plan.name;
        database.run_in_transaction(CREATE_ACTION, |transaction| {
            // The server gets only a hash, so that no log of statements has the password.
            let password_verifier = scram_sha_256(member_password.as_bytes());
            schema::create_schema_and_role(transaction, name, &password_verifier)?;
            insert_plan_row(transaction, new_plan, &board)?;
            transaction
                .execute_typed(&name.qualify(INSERT_ITEMS), &[(&items_to_json(&board), Type::TEXT)])?;
            let event_detail = format!("{} items", board.items.len());
            transaction.execute_typed(&name.qualify(INSERT_CREATED_EVENT), &[(&event_detail, Type::TEXT)])?;
            Ok(())
        })?;
        Ok(Fleet { database, name: name.clone() })
    }

    /// Opens an existing fleet. Fails if the schema version differs or there is no such fleet.
    pub fn open(mut database: Database, name: &str) -> Result<Fleet, FleetError> {
        let name =
            FleetName::parse(name).map_err(|InvalidFleetName| FleetError::FleetNotFound(name.to_owned()))?;
        schema::check_schema_version(&mut database, &name)?;
        Ok(Fleet { database, name })
    }

    /// Deletes the fleet, everything that belongs to it, and the role of its members. Fails if a worker is active. Returns the reason
    /// if the role could not be dropped.
    pub fn delete_if_no_active_workers(mut self) -> Result<Option<String>, FleetError> {
        let Fleet { database, name } = &mut self;
        let result = database.run_in_transaction(FORGET_ACTION, |transaction| {
            transaction.query_typed(&name.qualify(LOCK_PLAN), &[])?;
            let worker_rows = transaction.query_typed(&name.qualify(READ_ACTIVE_WORKERS), &[])?;
            let worker_names: Result<Vec<String>, _> =
                worker_rows.iter().map(|row| row.try_get("name")).collect();
            let workers = worker_names?.join(", ");
            if !workers.is_empty() {
                return Err(FleetError::WorkersActive { name: name.to_string(), workers }.into());
            }
            schema::drop_schema_and_role(transaction, name)
        });
        result.map_err(|error| error.or_fleet_not_found(name))
    }
}

fn insert_plan_row(
    transaction: &mut Transaction<'_>,
    new_plan: &NewPlan,
    board: &BoardState,
) -> Result<(), postgres::Error> {
    let delivery_text = match new_plan.delivery_mode {
        DeliveryMode::Branch => "branch",
        DeliveryMode::Merge => "merge",
    };
    let has_areas = board.items.iter().any(|item| !item.stated_areas.is_empty());
    let max_sessions = new_plan.max_sessions.map(i64::from);
    let parameters: [Parameter<'_>; 15] = [
        (&schema::SCHEMA_VERSION, Type::INT4),
        (&new_plan.name.as_str(), Type::TEXT),
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
    transaction.execute_typed(&new_plan.name.qualify(INSERT_PLAN), &parameters).map(drop)
}

/// Converts the items to JSON, so that one parameter holds any number of them.
fn items_to_json(board: &BoardState) -> String {
    let item_json = |(index, item): (usize, &plimsoll_domain::board::BoardItem)| {
        json!({
            "place": index,
            "text": remove_nul_characters(&item.text),
            "needs": item.dependency_indices.iter().map(|dependency_index| index_to_i32_saturating(*dependency_index)).collect::<Vec<_>>(),
            "areas": item.stated_areas.iter().map(|area| remove_nul_characters(area)).collect::<Vec<_>>(),
            "stage": if item.stage == ItemStage::Merged { "merged" } else { "open" },
        })
    };
    serde_json::Value::from(board.items.iter().enumerate().map(item_json).collect::<Vec<_>>()).to_string()
}
