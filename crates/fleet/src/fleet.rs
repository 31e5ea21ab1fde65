//! A fleet in the database: one plan, its items and its workers.
//!
//! Members read tables and call functions of the fleet's schema, which check every change; the definitions are in `schema/*.sql`.
//! Each operation of a member is a single statement, so PgBouncer may be in between.

mod budget;
pub(crate) mod claims;
pub(crate) mod database_inspection;
pub(crate) mod fleet_status;
pub(crate) mod journal;
pub(crate) mod machine_board;
pub(crate) mod members;
mod merger;
pub(crate) mod plan;
pub(crate) mod reconnecting_fleet;
mod results;
pub(crate) mod shared_plan;
mod user_actions;

use crate::database::{Database, Parameter};
use crate::database_error::FleetError;
use crate::fleet_name::FleetName;
use crate::rows::{ITEM_COLUMNS, item_from_row, plan_state_from_row};
use plimsoll_domain::board::BoardState;
use plimsoll_policy::workers::StaleEpoch;
use postgres::Row;
use postgres::types::FromSqlOwned;

/// A fleet in the database.
#[derive(Debug)]
pub struct Fleet {
    database: Database,
    name: FleetName,
}

const READ_PLAN_STATE: &str = "select paused_until, merger, merger_until, merger_epoch from {fleet}.plan";

impl Fleet {
    /// Reads the whole board.
    pub fn read_board(&mut self) -> Result<BoardState, FleetError> {
        let Fleet { database, name } = self;
        let select_items = name.qualify(&format!("select {ITEM_COLUMNS} from {{fleet}}.item order by place"));
        let board_state = database.run_in_transaction("read the board", |transaction| {
            let plan_row = transaction.query_typed_one(&name.qualify(READ_PLAN_STATE), &[])?;
            let item_rows = transaction.query_typed(&select_items, &[])?;
            let items: Vec<_> = item_rows.iter().map(item_from_row).collect::<Result<_, _>>()?;
            let items = items.into_iter().map(|(_, item)| item).collect();
            Ok(BoardState { items, ..plan_state_from_row(&plan_row)? })
        });
        board_state.map_err(|error| error.or_fleet_not_found(name))
    }

    /// Runs a statement in which `{fleet}` stands for the fleet's schema. Fails if the fleet was deleted.
    fn query(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, FleetError> {
        let Fleet { database, name } = self;
        database
            .query(action, &name.qualify(statement), parameters)
            .map_err(|error| error.or_fleet_not_found(name))
    }

    /// Runs a statement like [`Fleet::query`], and maps each row with `map_row`.
    fn query_and_map<T>(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
        map_row: impl Fn(&Row) -> Result<T, postgres::Error>,
    ) -> Result<Vec<T>, FleetError> {
        let Fleet { database, name } = self;
        database
            .query_and_map(action, &name.qualify(statement), parameters, map_row)
            .map_err(|error| error.or_fleet_not_found(name))
    }

    /// Runs a statement like [`Fleet::query`] that returns one row, and returns the value of its first column.
    fn query_value<T: FromSqlOwned>(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<T, FleetError> {
        let value = self.query_and_map(action, statement, parameters, |row| row.try_get(0))?.pop();
        value.ok_or_else(|| FleetError::FleetNotFound(self.name.to_string()))
    }

    /// Runs a statement that returns whether an epoch was current. Fails if it was stale.
    fn query_unless_stale_epoch(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<(), FleetError> {
        if self.query_value(action, statement, parameters)? { Ok(()) } else { Err(StaleEpoch.into()) }
    }
}

/// Removes NUL characters, which PostgreSQL cannot store in a text.
fn remove_nul_characters(text: &str) -> String {
    text.replace('\0', "")
}
