//! Inspects the server, the role and its rights before the database's tables are used.

use crate::database::Database;
use crate::database_error::FleetError;
use crate::schema;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_policy::doctor::DatabaseInfo;
use postgres::{Error, Row};

/// `has_tls` describes the server's own connection, which behind PgBouncer is the one to PgBouncer.
const READ_SERVER: &str = "
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
      current_setting('transaction_read_only') = 'on' as is_read_only, current_user::text as role,
      coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as has_tls";
/// Reads the system catalog, which a role without rights on the schema can read as well.
const READ_SCHEMA_RIGHT: &str = "
    select has_schema_privilege(oid, 'usage') as may_use from pg_namespace where nspname = 'plimsoll'";
/// Rights on any column are enough, because members do not need to change every column.
const READ_MISSING_RIGHTS: &str = "
    select needed.what || ' on plimsoll.' || needed.name as lacks, needed.name = 'migration' as is_of_schema, needed.is_of_member
    from (values ('migration', 'select', true), ('plan', 'select', true), ('item', 'select', true), ('worker', 'select', true),
        ('event', 'select', true), ('plan', 'update', true), ('item', 'update', true), ('worker', 'update', true),
        ('worker', 'insert', true), ('event', 'insert', true), ('plan', 'insert', false), ('item', 'insert', false),
        ('plan', 'delete', false), ('event', 'delete', false)) as needed (name, what, is_of_member)
      join pg_class on relname = needed.name join pg_namespace on pg_namespace.oid = relnamespace and nspname = 'plimsoll'
    where not case needed.what
      when 'delete' then has_table_privilege(pg_class.oid, 'delete') else has_any_column_privilege(pg_class.oid, needed.what) end";

/// Reads the server's properties, the role's missing rights and the schema version. The tables need not exist.
pub fn inspect_server_schema_and_rights(database: &mut Database) -> Result<DatabaseInfo, FleetError> {
    const ACTION: &str = "look at the database";
    let server_rows = database.query(ACTION, READ_SERVER, &[])?;
    let schema_rows = database.query(ACTION, READ_SCHEMA_RIGHT, &[])?;
    let missing_right_rows = database.query(ACTION, READ_MISSING_RIGHTS, &[])?;
    let parse_rows =
        || parse_info_and_can_read_schema_version(&server_rows, &schema_rows, &missing_right_rows);
    let (mut database_info, can_read_schema_version) =
        parse_rows().map_err(|error| database.unreadable_row_error(ACTION, &error))?;
    if !schema_rows.is_empty() && can_read_schema_version {
        database_info.schema_version = schema::read_schema_version(database)?;
    }
    database_info.server = database.last_server_address().to_owned();
    database_info.is_remote = database.is_last_server_remote();
    Ok(database_info)
}

/// Returns the database's properties, and whether the role may read the schema version.
fn parse_info_and_can_read_schema_version(
    server_rows: &[Row],
    schema_rows: &[Row],
    missing_right_rows: &[Row],
) -> Result<(DatabaseInfo, bool), Error> {
    let mut can_read_schema_version = true;
    let mut database_info = DatabaseInfo {
        server: String::new(),
        is_remote: false,
        version: String::new(),
        version_number: 0,
        is_read_only: false,
        has_tls: false,
        role: String::new(),
        schema_version: None,
        supported_schema_version: schema::SCHEMA_VERSION,
        missing_rights: Vec::new(),
        can_create_fleets: true,
    };
    for row in server_rows {
        database_info.version = row.try_get("version")?;
        database_info.version_number = row.try_get("number")?;
        database_info.is_read_only = row.try_get("is_read_only")?;
        database_info.has_tls = row.try_get("has_tls")?;
        database_info.role = to_safe_single_line(row.try_get("role")?);
    }
    for row in schema_rows {
        if !row.try_get::<_, bool>("may_use")? {
            database_info.missing_rights.push("usage on schema plimsoll".to_owned());
            can_read_schema_version = false;
        }
    }
    for row in missing_right_rows {
        match row.try_get("is_of_member")? {
            true => {
                database_info.missing_rights.push(row.try_get("lacks")?);
                can_read_schema_version &= !row.try_get::<_, bool>("is_of_schema")?;
            }
            false => database_info.can_create_fleets = false,
        }
    }
    Ok((database_info, can_read_schema_version))
}
