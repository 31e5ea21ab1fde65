//! Database errors, their classification, and hints for the user.

use crate::fleet_name::FleetName;
use crate::settings::SettingsError;
use crate::tls::TrustError;
use plimsoll_domain::workers::DATABASE_URL_VARIABLE as URL;
use plimsoll_policy::workers::StaleEpoch;
use plimsoll_store::StoreError;
use postgres::error::SqlState;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The operations that create a fleet.
pub(crate) const PREPARE_ACTION: &str = "prepare the fleet";
pub(crate) const CREATE_ACTION: &str = "create the fleet";
/// The operations that only the owner of a fleet may perform.
pub(crate) const DRAIN_ACTION: &str = "drain the fleet";
pub(crate) const RESUME_ACTION: &str = "resume the fleet";
pub(crate) const STOP_ACTION: &str = "stop the fleet";
pub(crate) const ANSWER_ACTION: &str = "answer a question";
pub(crate) const REOPEN_ACTION: &str = "open an item again";
pub(crate) const FORGET_ACTION: &str = "forget the fleet";

/// An error of a fleet operation.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// An error of the database. If the connection was lost, the operation may have happened.
    #[error("cannot {action} (PostgreSQL at {server}): {database_error}")]
    Database {
        /// The operation that failed, such as `claim an item`.
        action: &'static str,
        /// The server's address.
        server: String,
        database_error: DatabaseError,
    },
    /// The claim's epoch is stale: another worker has claimed the item since.
    #[error(transparent)]
    StaleEpoch(#[from] StaleEpoch),
    #[error(
        "the tables of the fleet `{name}` have version {actual_version}, and this program supports version {supported_version}"
    )]
    SchemaMismatch { name: String, actual_version: i32, supported_version: i32 },
    #[error("a fleet named `{0}` already exists")]
    NameTaken(String),
    #[error("the role `{0}`, which the fleet's members would use, already exists on this server")]
    RoleExists(String),
    #[error("there is no fleet named `{0}`")]
    FleetNotFound(String),
    #[error("the fleet `{name}` has active workers: {workers}")]
    WorkersActive {
        name: String,
        /// Names of the workers, separated by commas.
        workers: String,
    },
    #[error("a board has at most {0} items")]
    TooManyItems(usize),
}

/// An error of the database or of the connection to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was cut, possibly before the response arrived.
    #[error("the connection was lost before the answer came")]
    ConnectionLost,
    /// The server accepted the connection and never responded.
    #[error("no answer came within {} seconds", .0.as_secs())]
    NoResponse(Duration),
    #[error("it is starting or shutting down")]
    Restarting,
    #[error("all of its connections are taken")]
    TooManyConnections,
    /// A lock timeout, a conflict or a deadlock.
    #[error("it is busy: {0}")]
    Busy(String),
    #[error("the user or the password is wrong: {0}")]
    WrongPassword(String),
    #[error("it asks for a password, and none is set")]
    NoPassword {
        /// The password file that was ignored because others may read it.
        insecure_pass_file: Option<PathBuf>,
    },
    #[error("it has no TLS, which sslmode demands")]
    NoTls,
    #[error("its certificate is not accepted: {0}")]
    UntrustedCertificate(String),
    /// No common TLS version, or the server does not speak TLS.
    #[error("TLS cannot be set up: {0}")]
    TlsFailed(String),
    /// The server does not log in by SCRAM over TLS.
    #[error("it does not support the channel binding that channel_binding or require_auth demands: {0}")]
    NoChannelBinding(String),
    #[error("it closed the connection while connecting")]
    ClosedWhileConnecting,
    #[error("the server does not speak the PostgreSQL protocol")]
    NotPostgres,
    /// The server announced a message that exceeds the size limit.
    #[error("it announces an answer of {0} bytes, more than a fleet's database ever sends")]
    ResponseTooLong(u64),
    #[error("it refuses this user, database or connection: {0}")]
    AccessRefused(String),
    #[error("it is read-only: a standby, or set so")]
    ReadOnly,
    #[error("it has no space left: {0}")]
    DiskFull(String),
    #[error("the role may not do that: {0}")]
    MissingPermission(String),
    /// The schema of a fleet, or a table in it, does not exist.
    #[error("{0}")]
    MissingObject(String),
    /// The database knows another token for this member's name.
    #[error("{0}")]
    WrongMemberToken(String),
    #[error("{0}")]
    Other(String),
}

impl FleetError {
    /// Returns advice for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            FleetError::Settings(_) | FleetError::Store(_) => {
                Some(format!("set {URL}, or libpq's variables (PGHOST, PGSERVICE, …)"))
            }
            FleetError::Database {
                action: PREPARE_ACTION | CREATE_ACTION,
                database_error: DatabaseError::MissingPermission(_),
                ..
            } => Some(
                "give the role the rights to create schemas and roles: grant create on database … to …; alter role … createrole"
                    .to_owned(),
            ),
            FleetError::Database {
                action: DRAIN_ACTION | RESUME_ACTION | STOP_ACTION | ANSWER_ACTION | REOPEN_ACTION | FORGET_ACTION,
                database_error: DatabaseError::MissingPermission(_),
                ..
            } => Some("only the owner of the fleet may do that: connect as the role that created it".to_owned()),
            FleetError::Database { database_error: fault, .. } => fault.hint(),
            FleetError::SchemaMismatch { actual_version, supported_version, .. }
                if actual_version > supported_version =>
            {
                Some("install the newer Plimsoll on this computer, too".to_owned())
            }
            FleetError::SchemaMismatch { .. } => Some(
                "finish the fleet with the Plimsoll that created it, or create another one for what is open"
                    .to_owned(),
            ),
            FleetError::RoleExists(role) => Some(format!(
                "choose another name; or, if the role is a remnant of a deleted database: drop role \"{role}\""
            )),
            FleetError::NameTaken(_) => Some("choose another name, or forget that fleet first".to_owned()),
            FleetError::WorkersActive { name, .. } => Some(format!(
                "stop them first: plimsoll fleet stop {name}; workers count as inactive 90 seconds after their last report"
            )),
            FleetError::FleetNotFound(_) => {
                Some("plimsoll fleet status lists the fleets of the database".to_owned())
            }
            FleetError::Trust(_) | FleetError::StaleEpoch(_) | FleetError::TooManyItems(_) => None,
        }
    }

    /// Returns [`FleetError::FleetNotFound`] if the error is that the fleet's schema does not exist, and otherwise the error itself.
    pub(crate) fn or_fleet_not_found(self, name: &FleetName) -> FleetError {
        match self {
            FleetError::Database { database_error: DatabaseError::MissingObject(_), .. } => {
                FleetError::FleetNotFound(name.to_string())
            }
            error => error,
        }
    }

    /// Returns true for an error that may be temporary, so that repeating the operation may succeed.
    pub fn is_transient(&self) -> bool {
        let FleetError::Database { database_error: fault, .. } = self else { return false };
        matches!(
            fault,
            DatabaseError::Unreachable(_)
                | DatabaseError::ConnectionLost
                | DatabaseError::ClosedWhileConnecting
                | DatabaseError::NoResponse(_)
                | DatabaseError::Restarting
                | DatabaseError::TooManyConnections
                | DatabaseError::Busy(_)
                | DatabaseError::ReadOnly
                | DatabaseError::DiskFull(_)
        )
    }
}

/// Returns the schema of a fleet that PostgreSQL's message names, which is also the role of its members.
fn member_role_in_message(message: &str) -> Option<String> {
    let is_name_character = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let start = message.find("plimsoll_")?;
    let role: String =
        message[start..].chars().take_while(|character| is_name_character(*character)).collect();
    (role.len() > "plimsoll_".len()).then_some(role)
}

impl DatabaseError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            DatabaseError::Unreachable(_) => format!("start it, or state its address in {URL}"),
            DatabaseError::NoResponse(_) => {
                format!(
                    "check that PostgreSQL listens there, that it is not stopped, and the address in {URL}"
                )
            }
            DatabaseError::ConnectionLost => "try again: completed steps are kept, and no step is done twice".to_owned(),
            DatabaseError::Restarting | DatabaseError::Busy(_) => "try again in a moment".to_owned(),
            DatabaseError::TooManyConnections => "raise max_connections, or put PgBouncer in front of it".to_owned(),
            DatabaseError::NoPassword { insecure_pass_file: Some(path) } => {
                format!("others may read {0}, so it is ignored: chmod 600 {0}", path.display())
            }
            DatabaseError::WrongPassword(_) | DatabaseError::NoPassword { .. } => {
                format!("check the password in {URL}, PGPASSWORD or ~/.pgpass")
            }
            DatabaseError::NoTls => {
                "turn on `ssl` in its postgresql.conf, or set sslmode=prefer in a network that you trust"
                    .to_owned()
            }
            DatabaseError::UntrustedCertificate(_) => "check sslrootcert and the host's name in its certificate".to_owned(),
            DatabaseError::TlsFailed(_) => format!(
                "check that the address in {URL} is PostgreSQL's own, and that it has TLS 1.2 or 1.3 (ssl_min_protocol_version)"
            ),
            DatabaseError::NoChannelBinding(_) => "let the role have a password by SCRAM (password_encryption = scram-sha-256) and connect to PostgreSQL itself with TLS, not to a pool; or leave channel_binding and require_auth out".to_owned(),
            DatabaseError::ClosedWhileConnecting => format!(
                "check its log, any proxy or firewall in between, listen_addresses, and the address in {URL}"
            ),
            DatabaseError::NotPostgres | DatabaseError::ResponseTooLong(_) => {
                format!("check host and port in {URL}; do not send it a password")
            }
            DatabaseError::AccessRefused(message) if message.contains("not permitted to log in") => {
                "the owner of the fleet has disabled this role: `alter role … login` enables it again".to_owned()
            }
            DatabaseError::AccessRefused(_) => "check user, database and sslmode, and its pg_hba.conf".to_owned(),
            DatabaseError::ReadOnly => "name the primary, or add target_session_attrs=read-write".to_owned(),
            DatabaseError::DiskFull(_) => "make room on the disk of the database".to_owned(),
            DatabaseError::MissingPermission(message) => {
                let role = member_role_in_message(message).unwrap_or_else(|| "plimsoll_NAME".to_owned());
                format!("connect as {role}, the role of the fleet's members, or let its owner grant that role to yours")
            }
            DatabaseError::WrongMemberToken(_) => {
                "another clone has joined with that name: cancel this clone's run (plimsoll stop), and join again".to_owned()
            }
            DatabaseError::MissingObject(_) | DatabaseError::Other(_) => return None,
        };
        Some(hint)
    }
}

/// Prefixes and parts of tokio-postgres messages, for errors that it exposes no kind for. This one is for a failed TLS handshake.
const TLS_HANDSHAKE_ERROR_PREFIX: &str = "error performing TLS handshake";
const PROTOCOL_ERROR_PREFIXES: [&str; 2] =
    ["unexpected message from server", "error parsing response from server"];
const LOGIN_ERROR_PREFIX: &str = "authentication error";
const CHANNEL_BINDING_TEXT: &str = "channel binding";
const MISSING_PASSWORD_TEXT: &str = "password missing";

/// Classifies an error while connecting. Nothing was requested yet, so a lost connection is not [`DatabaseError::ConnectionLost`].
pub(crate) fn classify_connect_error(error: &postgres::Error) -> DatabaseError {
    match classify_postgres_error(error) {
        DatabaseError::ConnectionLost => DatabaseError::ClosedWhileConnecting,
        // tokio-postgres exposes no kind for protocol errors.
        DatabaseError::Other(text)
            if PROTOCOL_ERROR_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) =>
        {
            DatabaseError::NotPostgres
        }
        // pg_hba.conf requires a login method that tokio-postgres does not support.
        DatabaseError::Other(text) if text.starts_with(LOGIN_ERROR_PREFIX) => {
            DatabaseError::AccessRefused(text)
        }
        other_error => other_error,
    }
}

/// Classifies an error of the client library.
pub(crate) fn classify_postgres_error(error: &postgres::Error) -> DatabaseError {
    if let Some(server_error) = error.as_db_error() {
        return database_error_from_sqlstate(server_error.code(), server_error.message());
    }
    if let Some(database_error) = find_database_error_in_causes(error) {
        return database_error.clone();
    }
    let text = join_error_causes(error);
    if text.contains(MISSING_PASSWORD_TEXT) {
        DatabaseError::NoPassword { insecure_pass_file: None }
    } else if text.contains(CHANNEL_BINDING_TEXT) {
        DatabaseError::NoChannelBinding(text)
    } else if text.starts_with(TLS_HANDSHAKE_ERROR_PREFIX) {
        DatabaseError::TlsFailed(
            text.trim_start_matches(TLS_HANDSHAKE_ERROR_PREFIX).trim_start_matches(": ").to_owned(),
        )
    } else if text.starts_with("error connecting to server") {
        DatabaseError::Unreachable(describe_os_connect_error(error).unwrap_or(text))
    } else if error.is_closed() || text.starts_with("error communicating with the server") {
        DatabaseError::ConnectionLost
    } else {
        DatabaseError::Other(text)
    }
}

/// Describes the operating system's error of a failed connection. Returns `None` for other errors and for kinds without a
/// description.
fn describe_os_connect_error(error: &postgres::Error) -> Option<String> {
    let mut next_cause = error.source();
    while let Some(cause) = next_cause {
        // The client library also wraps its own errors in `io::Error`.
        let os_error = cause.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some());
        if let Some(error) = os_error {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "there is no such socket",
                io::ErrorKind::ConnectionRefused => "nothing listens there",
                io::ErrorKind::PermissionDenied => "this user may not connect to it",
                _ => return None,
            };
            return Some(reason.to_owned());
        }
        next_cause = cause.source();
    }
    None
}

/// Returns true if the server rejected the connection, so that another transport may succeed.
pub(crate) fn was_rejected_by_server(error: &postgres::Error) -> bool {
    error.as_db_error().is_some() || error.to_string() == TLS_HANDSHAKE_ERROR_PREFIX
}

/// Finds an error of this crate among the causes of an error, directly or inside an `io::Error`.
fn find_database_error_in_causes(error: &postgres::Error) -> Option<&DatabaseError> {
    let mut next_cause = error.source();
    while let Some(cause) = next_cause {
        let error_inside_io_error =
            || cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref)?.downcast_ref();
        if let Some(database_error) = cause.downcast_ref().or_else(error_inside_io_error) {
            return Some(database_error);
        }
        next_cause = cause.source();
    }
    None
}

pub(crate) fn database_error_from_sqlstate(code: &SqlState, message: &str) -> DatabaseError {
    let message = message.to_owned();
    match code.code() {
        "28P01" => DatabaseError::WrongPassword(message),
        "28000" | "3D000" => DatabaseError::AccessRefused(message),
        "25006" => DatabaseError::ReadOnly,
        "53100" => DatabaseError::DiskFull(message),
        "53300" => DatabaseError::TooManyConnections,
        "42501" => DatabaseError::MissingPermission(message),
        // A table is named with its schema only by the statements of this program, not inside the functions of the database.
        "3F000" => DatabaseError::MissingObject(message),
        "42P01" if message.contains(FleetName::SCHEMA_PREFIX) => DatabaseError::MissingObject(message),
        // Raised by `authenticate` in schema/items.sql.
        "PL001" => DatabaseError::WrongMemberToken(message),
        "57P01" | "57P02" | "57P03" => DatabaseError::Restarting,
        // A conflict, a deadlock, a lock timeout, no memory, a canceled statement.
        "40001" | "40P01" | "55P03" | "53200" | "57014" => DatabaseError::Busy(message),
        // The server closed the connection because it was idle for too long.
        "25P03" | "57P05" => DatabaseError::ConnectionLost,
        // PgBouncer reports its own login errors with the code of a protocol violation.
        "08P01" if message.contains("SASL authentication failed") || message.contains("password") => {
            DatabaseError::WrongPassword(message)
        }
        code if code.starts_with("08") => DatabaseError::Unreachable(message),
        code => DatabaseError::Other(format!("{message} (SQLSTATE {code})")),
    }
}

fn join_error_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next_cause = error.source();
    while let Some(error) = next_cause {
        text = format!("{text}: {error}");
        next_cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sqlstate_becomes_one_fault() {
        for (code, expected) in [
            ("28P01", DatabaseError::WrongPassword("x".to_owned())),
            ("28000", DatabaseError::AccessRefused("x".to_owned())),
            ("25006", DatabaseError::ReadOnly),
            ("53100", DatabaseError::DiskFull("x".to_owned())),
            ("57P03", DatabaseError::Restarting),
            ("55P03", DatabaseError::Busy("x".to_owned())),
            ("25P03", DatabaseError::ConnectionLost),
            ("08006", DatabaseError::Unreachable("x".to_owned())),
            ("3F000", DatabaseError::MissingObject("x".to_owned())),
            ("42P01", DatabaseError::Other("x (SQLSTATE 42P01)".to_owned())),
            ("PL001", DatabaseError::WrongMemberToken("x".to_owned())),
            ("PL002", DatabaseError::Other("x (SQLSTATE PL002)".to_owned())),
        ] {
            assert_eq!(database_error_from_sqlstate(&SqlState::from_code(code), "x"), expected);
        }
    }

    #[test]
    fn only_transient_faults_are_worth_waiting_for() {
        let fleet_error = |database_error| FleetError::Database {
            action: "claim an item",
            server: "db:5432".to_owned(),
            database_error,
        };
        for (database_error, expected) in [
            (DatabaseError::ConnectionLost, true),
            (DatabaseError::Restarting, true),
            (DatabaseError::DiskFull("x".to_owned()), true),
            (DatabaseError::NoTls, false),
            (DatabaseError::WrongPassword("x".to_owned()), false),
        ] {
            assert_eq!(fleet_error(database_error).is_transient(), expected);
        }
        let shown = fleet_error(DatabaseError::ConnectionLost).to_string();
        assert_eq!(
            shown,
            "cannot claim an item (PostgreSQL at db:5432): the connection was lost before the answer came"
        );
        assert!(!FleetError::FleetNotFound("x".to_owned()).is_transient());
    }
}
