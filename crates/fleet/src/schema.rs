//! The schema of a fleet: its tables, views and functions, and the role of its members.
//!
//! Each fleet has a schema and a role of its own, so that the members of one fleet see nothing of another. Both have the same name.

use crate::database::{Database, Parameter, TransactionError};
use crate::database_error::FleetError;
use crate::fleet_name::FleetName;
use postgres::Transaction;
use postgres::types::Type;

/// The version of the schema that this program creates and supports. A fleet keeps the version with which it was created.
pub const SCHEMA_VERSION: i32 = 1;

/// Creates the contents of a schema. The names in it are not qualified: they are looked up in the schema that is created.
const SCHEMA_DEFINITION: [&str; 6] = [
    include_str!("schema/tables.sql"),
    include_str!("schema/items.sql"),
    include_str!("schema/merging.sql"),
    include_str!("schema/workers.sql"),
    include_str!("schema/owner.sql"),
    include_str!("schema/views.sql"),
];
const RIGHTS: &str = include_str!("schema/rights.sql");

/// The SQLSTATEs of a schema or role that exists, and of one that another command creates at this moment.
const EXISTS_SQLSTATES: [&str; 3] = ["42P06", "42710", "23505"];
const READ_EXISTING_NAMES: &str = "
    select exists (select from pg_namespace where nspname = $1) as has_schema,
      exists (select from pg_roles where rolname = $1) as has_role";
/// If not everybody may connect to the database, the members' role needs the right.
const PUBLIC_MAY_CONNECT: &str = "select has_database_privilege('public', current_database(), 'connect')";
const READ_DATABASE_NAME: &str = "select quote_ident(current_database()) as database";
/// Schemas with the tables of a fleet that the role may read.
const LIST_FLEET_SCHEMAS: &str = "
    select nspname::text as schema from pg_namespace
    where starts_with(nspname::text, $1) and has_schema_privilege(oid, 'usage')
      and exists (
        select from pg_class
        where relnamespace = pg_namespace.oid and relname = 'plan' and has_table_privilege(pg_class.oid, 'select'))
    order by nspname";

/// Creates the schema of a fleet and the role of its members, which logs in with this password verifier.
pub(crate) fn create_schema_and_role(
    transaction: &mut Transaction<'_>,
    name: &FleetName,
    password_verifier: &str,
) -> Result<(), TransactionError> {
    let parameters: [Parameter<'_>; 1] = [(&name.schema(), Type::TEXT)];
    let existing_names = transaction.query_typed_one(READ_EXISTING_NAMES, &parameters)?;
    if existing_names.try_get("has_schema")? {
        return Err(FleetError::NameTaken(name.to_string()).into());
    }
    if existing_names.try_get("has_role")? {
        return Err(FleetError::RoleExists(name.schema()).into());
    }
    // A verifier has no quotes: it consists of base64 and `$:=`. A role that belongs to its owner can be ended by the owner.
    let create_statement = name.qualify(&format!(
        "create role {{fleet}} login password '{password_verifier}'; create schema {{fleet}};
         grant {{fleet}} to current_user; set local search_path to {{fleet}}, pg_temp"
    ));
    transaction.batch_execute(&create_statement).map_err(|error| name_taken_if_exists(error, name))?;
    for definition in SCHEMA_DEFINITION {
        transaction.batch_execute(definition)?;
    }
    transaction.batch_execute(&name.qualify(RIGHTS))?;
    if !transaction.query_typed_one(PUBLIC_MAY_CONNECT, &[])?.try_get::<_, bool>(0)? {
        let database = read_quoted_database_name(transaction)?;
        transaction
            .batch_execute(&name.qualify(&format!("grant connect on database {database} to {{fleet}}")))?;
    }
    Ok(())
}

/// Two commands that create fleets of the same name at the same time wait for each other, and then the name is taken.
fn name_taken_if_exists(error: postgres::Error, name: &FleetName) -> TransactionError {
    if error.code().is_some_and(|code| EXISTS_SQLSTATES.contains(&code.code())) {
        FleetError::NameTaken(name.to_string()).into()
    } else {
        error.into()
    }
}

/// Drops the schema of a fleet and the role of its members. Returns the reason if the role cannot be dropped, for example because it
/// owns something in another database; it then cannot log in any more.
pub(crate) fn drop_schema_and_role(
    transaction: &mut Transaction<'_>,
    name: &FleetName,
) -> Result<Option<String>, TransactionError> {
    transaction.batch_execute(&name.qualify("drop schema {fleet} cascade"))?;
    let parameters: [Parameter<'_>; 1] = [(&name.schema(), Type::TEXT)];
    if !transaction.query_typed_one(READ_EXISTING_NAMES, &parameters)?.try_get::<_, bool>("has_role")? {
        return Ok(None);
    }
    let database = read_quoted_database_name(transaction)?;
    let drop_statements = name.qualify(&format!(
        "revoke all on database {database} from {{fleet}}; drop owned by {{fleet}} cascade; drop role {{fleet}}"
    ));
    let mut savepoint = transaction.transaction()?;
    match savepoint.batch_execute(&drop_statements) {
        Ok(()) => {
            savepoint.commit()?;
            Ok(None)
        }
        Err(error) => {
            savepoint.rollback()?;
            transaction.batch_execute(&name.qualify("alter role {fleet} nologin"))?;
            let reason =
                error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
            Ok(Some(reason))
        }
    }
}

fn read_quoted_database_name(transaction: &mut Transaction<'_>) -> Result<String, TransactionError> {
    Ok(transaction.query_typed_one(READ_DATABASE_NAME, &[])?.try_get("database")?)
}

/// Lists the fleets whose schemas the role may use, sorted by name.
pub(crate) fn list_fleet_names(database: &mut Database) -> Result<Vec<FleetName>, FleetError> {
    let schema_names = database.query_and_map(
        "list the fleets",
        LIST_FLEET_SCHEMAS,
        &[(&FleetName::SCHEMA_PREFIX, Type::TEXT)],
        |row| row.try_get::<_, String>("schema"),
    )?;
    Ok(schema_names.iter().filter_map(|schema| FleetName::from_schema(schema)).collect())
}

/// Reads the version of a fleet's schema. Fails if there is no such fleet.
pub(crate) fn read_schema_version(database: &mut Database, name: &FleetName) -> Result<i32, FleetError> {
    let versions = database.query_and_map(
        "open the fleet",
        &name.qualify("select schema_version from {fleet}.plan"),
        &[],
        |row| row.try_get::<_, i32>("schema_version"),
    );
    versions
        .map_err(|error| error.or_fleet_not_found(name))?
        .pop()
        .ok_or_else(|| FleetError::FleetNotFound(name.to_string()))
}

/// Fails if there is no such fleet, or if its schema has another version.
pub(crate) fn check_schema_version(database: &mut Database, name: &FleetName) -> Result<(), FleetError> {
    match read_schema_version(database, name)? {
        SCHEMA_VERSION => Ok(()),
        actual_version => Err(FleetError::SchemaMismatch {
            name: name.to_string(),
            actual_version,
            supported_version: SCHEMA_VERSION,
        }),
    }
}
