//! Inspects the server, the role and its rights before a fleet is used.

use crate::database::{Database, Parameter};
use crate::database_error::FleetError;
use crate::fleet_name::FleetName;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_policy::doctor::DatabaseInfo;
use postgres::types::Type;
use postgres::{Error, Row};

const ACTION: &str = "inspect the database";
/// `has_tls` describes the server's own connection, which behind PgBouncer is the one to PgBouncer.
const READ_SERVER: &str = "
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
      current_setting('transaction_read_only') = 'on' as is_read_only, current_user::text as role,
      coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as has_tls";
/// Reads the system catalog, which a role without rights on the schema can read as well.
const READ_SCHEMA_RIGHTS: &str = "
    select pg_has_role(nspowner, 'usage') as is_owner, has_schema_privilege(oid, 'usage') as may_use
    from pg_namespace where nspname = $1";
/// A member reads every table but that of the tokens, and calls every function that runs with the rights of the owner.
const READ_MISSING_RIGHTS: &str = "
    select 'select on ' || relname as lacks from pg_class
    where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind in ('r', 'v') and relname <> 'member'
      and not has_table_privilege(oid, 'select')
    union all
    select 'execute on ' || proname from pg_proc
    where pronamespace = (select oid from pg_namespace where nspname = $1) and prosecdef
      and not has_function_privilege(oid, 'execute')
    order by lacks";

/// Reads the server's properties, and the rights of the role on a fleet. The fleet need not exist.
pub fn inspect_server_and_rights(
    database: &mut Database,
    name: &FleetName,
) -> Result<DatabaseInfo, FleetError> {
    let parameters: [Parameter<'_>; 1] = [(&name.schema(), Type::TEXT)];
    let server_rows = database.query(ACTION, READ_SERVER, &[])?;
    let schema_rows = database.query(ACTION, READ_SCHEMA_RIGHTS, &parameters)?;
    let missing_right_rows = database.query(ACTION, READ_MISSING_RIGHTS, &parameters)?;
    let database_info = parse_database_info(name, &server_rows, &schema_rows, &missing_right_rows)
        .map_err(|error| database.unreadable_row_error(ACTION, &error))?;
    Ok(DatabaseInfo {
        server: database.last_server_address().to_owned(),
        is_remote: database.is_last_server_remote(),
        ..database_info
    })
}

fn parse_database_info(
    name: &FleetName,
    server_rows: &[Row],
    schema_rows: &[Row],
    missing_right_rows: &[Row],
) -> Result<DatabaseInfo, Error> {
    let mut database_info = DatabaseInfo {
        server: String::new(),
        is_remote: false,
        version: String::new(),
        version_number: 0,
        is_read_only: false,
        has_tls: false,
        role: String::new(),
        member_role: name.schema(),
        missing_rights: Vec::new(),
        is_owner: false,
        has_fleet: !schema_rows.is_empty(),
    };
    for row in server_rows {
        database_info.version = row.try_get("version")?;
        database_info.version_number = row.try_get("number")?;
        database_info.is_read_only = row.try_get("is_read_only")?;
        database_info.has_tls = row.try_get("has_tls")?;
        database_info.role = to_safe_single_line(row.try_get("role")?);
    }
    for row in schema_rows {
        database_info.is_owner = row.try_get("is_owner")?;
        if !row.try_get::<_, bool>("may_use")? {
            database_info.missing_rights.push(format!("usage on schema {}", name.schema()));
        }
    }
    for row in missing_right_rows {
        database_info.missing_rights.push(row.try_get("lacks")?);
    }
    Ok(database_info)
}
