//! What can be said of a database before anything in it is believed: the server, the role and its rights.

use crate::database::Database;
use crate::fault::FleetError;
use crate::schema;
use plimsoll_domain::text::one_line;
use plimsoll_policy::doctor::DatabaseFacts;
use postgres::{Error, Row};

/// TLS as the server sees it: of PgBouncer's connection, if that is between.
const SERVER: &str = "
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
      current_setting('transaction_read_only') = 'on' as is_read_only, current_user::text as role,
      coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as has_tls";
/// By the catalogue, which answers also a role that may not look into the schema.
const SCHEMA: &str = "
    select has_schema_privilege(oid, 'usage') as may_use from pg_namespace where nspname = 'plimsoll'";
/// Members need not change every column.
const LACKS: &str = "
    select needed.what || ' on plimsoll.' || needed.name as lacks, needed.name = 'migration' as is_of_schema, needed.is_of_member
    from (values ('migration', 'select', true), ('plan', 'select', true), ('item', 'select', true), ('worker', 'select', true),
        ('event', 'select', true), ('plan', 'update', true), ('item', 'update', true), ('worker', 'update', true),
        ('worker', 'insert', true), ('event', 'insert', true), ('plan', 'insert', false), ('item', 'insert', false),
        ('plan', 'delete', false), ('event', 'delete', false)) as needed (name, what, is_of_member)
      join pg_class on relname = needed.name join pg_namespace on pg_namespace.oid = relnamespace and nspname = 'plimsoll'
    where not case needed.what
      when 'delete' then has_table_privilege(pg_class.oid, 'delete') else has_any_column_privilege(pg_class.oid, needed.what) end";

/// Looks at them. Nothing of ours has to be there.
pub fn examine(database: &mut Database) -> Result<DatabaseFacts, FleetError> {
    const DOING: &str = "look at the database";
    let server = database.query(DOING, SERVER, &[])?;
    let schemas = database.query(DOING, SCHEMA, &[])?;
    let lacking = database.query(DOING, LACKS, &[])?;
    let read = || read(&server, &schemas, &lacking);
    let (mut found, may_read) = read().map_err(|error| database.unreadable(DOING, &error))?;
    if !schemas.is_empty() && may_read {
        found.schema = schema::found(database)?;
    }
    found.server = database.server().to_owned();
    found.is_remote = database.is_remote();
    Ok(found)
}

/// Also returns whether the role may read which schema there is.
fn read(server: &[Row], schemas: &[Row], lacking: &[Row]) -> Result<(DatabaseFacts, bool), Error> {
    let mut may_read = true;
    let mut found = DatabaseFacts {
        server: String::new(),
        is_remote: false,
        version: String::new(),
        version_number: 0,
        is_read_only: false,
        has_tls: false,
        role: String::new(),
        schema: None,
        known_schema: schema::VERSION,
        lacks: Vec::new(),
        may_create: true,
    };
    for row in server {
        found.version = row.try_get("version")?;
        found.version_number = row.try_get("number")?;
        found.is_read_only = row.try_get("is_read_only")?;
        found.has_tls = row.try_get("has_tls")?;
        found.role = one_line(row.try_get("role")?);
    }
    for row in schemas {
        if !row.try_get::<_, bool>("may_use")? {
            found.lacks.push("usage on schema plimsoll".to_owned());
            may_read = false;
        }
    }
    for row in lacking {
        match row.try_get("is_of_member")? {
            true => {
                found.lacks.push(row.try_get("lacks")?);
                may_read &= !row.try_get::<_, bool>("is_of_schema")?;
            }
            false => found.may_create = false,
        }
    }
    Ok((found, may_read))
}
