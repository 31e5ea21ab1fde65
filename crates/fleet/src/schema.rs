//! The tables and their versions. Creating a fleet migrates them; every other command only checks the version.

use crate::database::{Database, TransactionError};
use crate::database_error::FleetError;
use postgres::Transaction;
use postgres::types::Type;

/// Statements that migrate from each version to the next.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/1.sql")];
/// The schema version that this program supports.
pub const SCHEMA_VERSION: i32 = 1;

/// Prevents two concurrent commands from both creating the tables. The lock ends with the transaction, so it also works behind
/// PgBouncer. The number is "plimsoll" in ASCII.
const LOCK_MIGRATIONS: &str = "select pg_advisory_xact_lock(8100965748541713516)";
const MIGRATION_TABLE_EXISTS: &str = "select to_regclass('plimsoll.migration') is not null";
// No `if not exists`: it would require the right to create a schema even if the schema exists.
const CREATE_SCHEMA: &str = "
    create schema plimsoll;
    create table plimsoll.migration (version integer primary key, at timestamptz not null default now())";
const READ_VERSION: &str = "select max(version) from plimsoll.migration";
const RECORD_VERSION: &str = "insert into plimsoll.migration (version) values ($1)";

/// Migrates the tables to the current version. Fails if they are newer.
pub(crate) fn migrate_to_current_version(database: &mut Database) -> Result<(), FleetError> {
    let server = database.last_server_address().to_owned();
    database.run_in_transaction("prepare the tables", |transaction| {
        transaction.batch_execute(LOCK_MIGRATIONS)?;
        if !transaction.query_typed_one(MIGRATION_TABLE_EXISTS, &[])?.get::<_, bool>(0) {
            transaction.batch_execute(CREATE_SCHEMA)?;
        }
        let actual_version = read_latest_version(transaction)?;
        if actual_version > SCHEMA_VERSION {
            return Err(FleetError::SchemaMismatch {
                server,
                actual_version,
                supported_version: SCHEMA_VERSION,
            }
            .into());
        }
        for (version, migration) in (1..).zip(MIGRATIONS) {
            if version > actual_version {
                transaction.batch_execute(migration)?;
                transaction.execute_typed(RECORD_VERSION, &[(&version, Type::INT4)])?;
            }
        }
        Ok(())
    })
}

/// Reads the version of the tables, or `None` if there are none.
pub(crate) fn read_schema_version(database: &mut Database) -> Result<Option<i32>, FleetError> {
    database.run_in_transaction("look at the tables", |transaction| {
        let has_migration_table = transaction.query_typed_one(MIGRATION_TABLE_EXISTS, &[])?.get::<_, bool>(0);
        if has_migration_table { read_latest_version(transaction).map(Some) } else { Ok(None) }
    })
}

/// Fails if the tables are missing or have another version.
pub(crate) fn check_schema_version(database: &mut Database) -> Result<(), FleetError> {
    let version = read_schema_version(database)?;
    let server = database.last_server_address().to_owned();
    match version {
        Some(SCHEMA_VERSION) => Ok(()),
        Some(actual_version) => {
            Err(FleetError::SchemaMismatch { server, actual_version, supported_version: SCHEMA_VERSION })
        }
        None => Err(FleetError::NoSchema(server)),
    }
}

fn read_latest_version(transaction: &mut Transaction<'_>) -> Result<i32, TransactionError> {
    Ok(transaction.query_typed_one(READ_VERSION, &[])?.get::<_, Option<i32>>(0).unwrap_or(0))
}
