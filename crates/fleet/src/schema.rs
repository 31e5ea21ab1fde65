//! The tables and their versions. They are brought up to date by whoever creates a fleet; everybody else only looks.

use crate::database::{Database, Stopped};
use crate::fault::FleetError;
use postgres::Transaction;
use postgres::types::Type;

/// What makes each version of the one before it.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/1.sql")];
/// The version that this program works with.
pub const VERSION: i32 = 1;

/// So that two who create a fleet at the same time do not make the tables at the same time. It ends with the transaction, also
/// behind PgBouncer. The number is "plimsoll" in ASCII.
const LOCK: &str = "select pg_advisory_xact_lock(8100965748541713516)";
const IS_THERE: &str = "select to_regclass('plimsoll.migration') is not null";
// The right to create a schema is asked for before it is looked whether there is one.
const BEGIN: &str = "
    create schema plimsoll;
    create table plimsoll.migration (version integer primary key, at timestamptz not null default now())";
const READ: &str = "select max(version) from plimsoll.migration";
const WRITE: &str = "insert into plimsoll.migration (version) values ($1)";

/// Brings the tables up to date.
pub(crate) fn migrate(database: &mut Database) -> Result<(), FleetError> {
    let server = database.server().to_owned();
    database.transaction("prepare the tables", |transaction| {
        transaction.batch_execute(LOCK)?;
        if !transaction.query_typed_one(IS_THERE, &[])?.get::<_, bool>(0) {
            transaction.batch_execute(BEGIN)?;
        }
        let found = read(transaction)?;
        if found > VERSION {
            return Err(FleetError::OtherSchema { server, found, known: VERSION }.into());
        }
        for (version, migration) in (1..).zip(MIGRATIONS) {
            if version > found {
                transaction.batch_execute(migration)?;
                transaction.execute_typed(WRITE, &[(&version, Type::INT4)])?;
            }
        }
        Ok(())
    })
}

/// The version of the tables that are there.
pub(crate) fn found(database: &mut Database) -> Result<Option<i32>, FleetError> {
    database.transaction("look at the tables", |transaction| {
        let is_there = transaction.query_typed_one(IS_THERE, &[])?.get::<_, bool>(0);
        if is_there { read(transaction).map(Some) } else { Ok(None) }
    })
}

/// Refuses tables of another version.
pub(crate) fn check(database: &mut Database) -> Result<(), FleetError> {
    let found = found(database)?;
    let server = database.server().to_owned();
    match found {
        Some(VERSION) => Ok(()),
        Some(found) => Err(FleetError::OtherSchema { server, found, known: VERSION }),
        None => Err(FleetError::NoSchema(server)),
    }
}

fn read(transaction: &mut Transaction<'_>) -> Result<i32, Stopped> {
    Ok(transaction.query_typed_one(READ, &[])?.get::<_, Option<i32>>(0).unwrap_or(0))
}
