//! Errors of the database, what they mean, and hints for the user.

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
    #[error("cannot {action} (PostgreSQL at {server}): {fault}")]
    Database {
        /// What was being done.
        action: &'static str,
        /// The server's address.
        server: String,
        fault: DatabaseFault,
    },
    /// The claim's epoch is stale: somebody else has taken over.
    #[error(transparent)]
    StaleEpoch(#[from] StaleEpoch),
    #[error("the database at {0} has no fleet yet")]
    NoSchema(String),
    #[error(
        "the database at {server} has tables of version {actual_version}; this program knows version {supported_version}"
    )]
    SchemaMismatch { server: String, actual_version: i32, supported_version: i32 },
    #[error("there is a fleet with the name `{0}` already")]
    NameTaken(String),
    #[error("there is no fleet with the name `{0}`")]
    FleetNotFound(String),
    #[error("workers of the fleet `{name}` are at work: {workers}")]
    WorkersActive {
        name: String,
        /// Names of the workers, separated by commas.
        workers: String,
    },
    #[error("a board has at most {0} items")]
    TooManyItems(usize),
}

/// A fault of the database or of the connection to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseFault {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was cut, possibly before the response arrived.
    #[error("the connection was lost before the answer came")]
    ConnectionLost,
    /// The server accepted the connection and never answered.
    #[error("no answer came within {} seconds", .0.as_secs())]
    NoAnswer(Duration),
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
    #[error("it does not tie the password to TLS, which channel_binding or require_auth demands: {0}")]
    NoChannelBinding(String),
    #[error("it closed the connection while connecting")]
    ClosedWhileConnecting,
    #[error("what answers there does not speak PostgreSQL's protocol")]
    NotPostgres,
    /// The server announces a message that is longer than any that a fleet needs.
    #[error("it announces an answer of {0} bytes, which is more than a fleet's database ever sends")]
    AnswerTooLong(u64),
    #[error("it refuses this user, database or connection: {0}")]
    AccessRefused(String),
    #[error("it is read-only: a standby, or set so")]
    ReadOnly,
    #[error("it has no space left: {0}")]
    DiskFull(String),
    #[error("the role may not do that: {0}")]
    MissingRight(String),
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
            FleetError::Database { fault, .. } => fault.hint(),
            FleetError::NoSchema(_) => {
                Some(format!("create a fleet first, or set {URL} to the database that has it"))
            }
            FleetError::SchemaMismatch { actual_version, supported_version, .. }
                if actual_version > supported_version =>
            {
                Some("install the newer Plimsoll on this computer, too".to_owned())
            }
            FleetError::SchemaMismatch { .. } => {
                Some("create a fleet with this version: it brings the tables up to date".to_owned())
            }
            FleetError::NameTaken(_) => Some("choose another name, or forget that fleet first".to_owned()),
            FleetError::WorkersActive { name, .. } => Some(format!(
                "stop them first: plimsoll fleet stop {name}; 90 seconds after their last word they count as gone"
            )),
            FleetError::FleetNotFound(_) => {
                Some("plimsoll fleet status lists the fleets of the database".to_owned())
            }
            FleetError::Trust(_) | FleetError::StaleEpoch(_) | FleetError::TooManyItems(_) => None,
        }
    }

    /// Returns true for a fault that may pass, so that repeating the operation may succeed.
    pub fn is_transient(&self) -> bool {
        let FleetError::Database { fault, .. } = self else { return false };
        matches!(
            fault,
            DatabaseFault::Unreachable(_)
                | DatabaseFault::ConnectionLost
                | DatabaseFault::ClosedWhileConnecting
                | DatabaseFault::NoAnswer(_)
                | DatabaseFault::Restarting
                | DatabaseFault::TooManyConnections
                | DatabaseFault::Busy(_)
                | DatabaseFault::ReadOnly
                | DatabaseFault::DiskFull(_)
        )
    }
}

impl DatabaseFault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            DatabaseFault::Unreachable(_) => format!("start it, or state its address in {URL}"),
            DatabaseFault::NoAnswer(_) => {
                format!(
                    "check that PostgreSQL listens there, that it is not stopped, and the address in {URL}"
                )
            }
            DatabaseFault::ConnectionLost => "try again: what was done stays done, and nothing is done twice".to_owned(),
            DatabaseFault::Restarting | DatabaseFault::Busy(_) => "try again in a moment".to_owned(),
            DatabaseFault::TooManyConnections => "raise max_connections, or put PgBouncer in front of it".to_owned(),
            DatabaseFault::NoPassword { insecure_pass_file: Some(path) } => {
                format!("others may read {0}, so it counts for nothing: chmod 600 {0}", path.display())
            }
            DatabaseFault::WrongPassword(_) | DatabaseFault::NoPassword { .. } => {
                format!("check the password in {URL}, PGPASSWORD or ~/.pgpass")
            }
            DatabaseFault::NoTls => {
                "turn on `ssl` in its postgresql.conf, or set sslmode=prefer in a network that you trust"
                    .to_owned()
            }
            DatabaseFault::UntrustedCertificate(_) => "check sslrootcert and the host's name in its certificate".to_owned(),
            DatabaseFault::TlsFailed(_) => format!(
                "check that the address in {URL} is PostgreSQL's own, and that it has TLS 1.2 or 1.3 (ssl_min_protocol_version)"
            ),
            DatabaseFault::NoChannelBinding(_) => "let the role have a password by SCRAM (password_encryption = scram-sha-256) and connect to PostgreSQL itself with TLS, not to a pool; or leave channel_binding and require_auth out".to_owned(),
            DatabaseFault::ClosedWhileConnecting => format!(
                "see its log, and what stands between (a proxy, a firewall, listen_addresses); check the address in {URL}"
            ),
            DatabaseFault::NotPostgres | DatabaseFault::AnswerTooLong(_) => {
                format!("check host and port in {URL}: do not trust what answers there with a password")
            }
            DatabaseFault::AccessRefused(_) => "check user, database and sslmode, and its pg_hba.conf".to_owned(),
            DatabaseFault::ReadOnly => "name the primary, or add target_session_attrs=read-write".to_owned(),
            DatabaseFault::DiskFull(_) => "make room on the disk of the database".to_owned(),
            DatabaseFault::MissingRight(_) => {
                "grant the role what it lacks: plimsoll doctor --fleet NAME says what that is".to_owned()
            }
            DatabaseFault::Other(_) => return None,
        };
        Some(hint)
    }
}

/// Messages of tokio-postgres for errors without a kind of their own. This one is for a failed TLS handshake.
const TLS_ERROR_PREFIX: &str = "error performing TLS handshake";
const PROTOCOL_ERROR_PREFIXES: [&str; 2] =
    ["unexpected message from server", "error parsing response from server"];
const LOGIN_ERROR_PREFIX: &str = "authentication error";
const CHANNEL_BINDING_TEXT: &str = "channel binding";
const NO_PASSWORD_TEXT: &str = "password missing";

/// Classifies an error while connecting. Nothing was requested yet, so a lost connection is not [`DatabaseFault::ConnectionLost`].
pub(crate) fn classify_connect_error(error: &postgres::Error) -> DatabaseFault {
    match classify_error(error) {
        DatabaseFault::ConnectionLost => DatabaseFault::ClosedWhileConnecting,
        // The library has no kind for these either.
        DatabaseFault::Other(text)
            if PROTOCOL_ERROR_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) =>
        {
            DatabaseFault::NotPostgres
        }
        // pg_hba.conf requires a method that the library does not have.
        DatabaseFault::Other(text) if text.starts_with(LOGIN_ERROR_PREFIX) => {
            DatabaseFault::AccessRefused(text)
        }
        fault => fault,
    }
}

/// Classifies an error of the client library.
pub(crate) fn classify_error(error: &postgres::Error) -> DatabaseFault {
    if let Some(server_error) = error.as_db_error() {
        return fault_from_sqlstate(server_error.code(), server_error.message());
    }
    if let Some(fault_in_causes) = find_fault_in_causes(error) {
        return fault_in_causes.clone();
    }
    let text = join_error_causes(error);
    if text.contains(NO_PASSWORD_TEXT) {
        DatabaseFault::NoPassword { insecure_pass_file: None }
    } else if text.contains(CHANNEL_BINDING_TEXT) {
        DatabaseFault::NoChannelBinding(text)
    } else if text.starts_with(TLS_ERROR_PREFIX) {
        DatabaseFault::TlsFailed(
            text.trim_start_matches(TLS_ERROR_PREFIX).trim_start_matches(": ").to_owned(),
        )
    } else if text.starts_with("error connecting to server") {
        DatabaseFault::Unreachable(describe_system_connect_error(error).unwrap_or(text))
    } else if error.is_closed() || text.starts_with("error communicating with the server") {
        DatabaseFault::ConnectionLost
    } else {
        DatabaseFault::Other(text)
    }
}

/// Describes the system's error of a failed connection. Returns `None` if the error is not the system's.
fn describe_system_connect_error(error: &postgres::Error) -> Option<String> {
    let mut source = error.source();
    while let Some(cause) = source {
        // The client library also wraps its own errors in `io::Error`.
        let system_error = cause.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some());
        if let Some(error) = system_error {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "there is no such socket",
                io::ErrorKind::ConnectionRefused => "nothing listens there",
                io::ErrorKind::PermissionDenied => "this user may not connect to it",
                _ => return None,
            };
            return Some(reason.to_owned());
        }
        source = cause.source();
    }
    None
}

/// Returns true if the server rejected the connection, so that another transport may succeed.
pub(crate) fn was_rejected_by_server(error: &postgres::Error) -> bool {
    error.as_db_error().is_some() || error.to_string() == TLS_ERROR_PREFIX
}

/// Finds a fault reported by this crate among the causes of an error, directly or inside an `io::Error`.
fn find_fault_in_causes(error: &postgres::Error) -> Option<&DatabaseFault> {
    let mut source = error.source();
    while let Some(cause) = source {
        let fault_in_io_error =
            || cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref)?.downcast_ref();
        if let Some(fault) = cause.downcast_ref().or_else(fault_in_io_error) {
            return Some(fault);
        }
        source = cause.source();
    }
    None
}

pub(crate) fn fault_from_sqlstate(code: &SqlState, message: &str) -> DatabaseFault {
    let message = message.to_owned();
    match code.code() {
        "28P01" => DatabaseFault::WrongPassword(message),
        "28000" | "3D000" => DatabaseFault::AccessRefused(message),
        "25006" => DatabaseFault::ReadOnly,
        "53100" => DatabaseFault::DiskFull(message),
        "53300" => DatabaseFault::TooManyConnections,
        "42501" => DatabaseFault::MissingRight(message),
        "57P01" | "57P02" | "57P03" => DatabaseFault::Restarting,
        // A conflict, a deadlock, a lock timeout, no memory, a canceled statement.
        "40001" | "40P01" | "55P03" | "53200" | "57014" => DatabaseFault::Busy(message),
        // The server closed the connection because it was idle for too long.
        "25P03" | "57P05" => DatabaseFault::ConnectionLost,
        // PgBouncer reports its own login errors with the code of a protocol violation.
        "08P01" if message.contains("SASL authentication failed") || message.contains("password") => {
            DatabaseFault::WrongPassword(message)
        }
        code if code.starts_with("08") => DatabaseFault::Unreachable(message),
        code => DatabaseFault::Other(format!("{message} (SQLSTATE {code})")),
    }
}

fn join_error_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sqlstate_becomes_one_fault() {
        for (code, expected) in [
            ("28P01", DatabaseFault::WrongPassword("x".to_owned())),
            ("28000", DatabaseFault::AccessRefused("x".to_owned())),
            ("25006", DatabaseFault::ReadOnly),
            ("53100", DatabaseFault::DiskFull("x".to_owned())),
            ("57P03", DatabaseFault::Restarting),
            ("55P03", DatabaseFault::Busy("x".to_owned())),
            ("25P03", DatabaseFault::ConnectionLost),
            ("08006", DatabaseFault::Unreachable("x".to_owned())),
            ("42P01", DatabaseFault::Other("x (SQLSTATE 42P01)".to_owned())),
        ] {
            assert_eq!(fault_from_sqlstate(&SqlState::from_code(code), "x"), expected);
        }
    }

    #[test]
    fn only_transient_faults_are_worth_waiting_for() {
        let database_error =
            |fault| FleetError::Database { action: "claim an item", server: "db:5432".to_owned(), fault };
        for (fault, expected) in [
            (DatabaseFault::ConnectionLost, true),
            (DatabaseFault::Restarting, true),
            (DatabaseFault::DiskFull("x".to_owned()), true),
            (DatabaseFault::NoTls, false),
            (DatabaseFault::WrongPassword("x".to_owned()), false),
        ] {
            assert_eq!(database_error(fault).is_transient(), expected);
        }
        let shown = database_error(DatabaseFault::ConnectionLost).to_string();
        assert_eq!(
            shown,
            "cannot claim an item (PostgreSQL at db:5432): the connection was lost before the answer came"
        );
        assert!(!FleetError::FleetNotFound("x".to_owned()).is_transient());
    }
}
