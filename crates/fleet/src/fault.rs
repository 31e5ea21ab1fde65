//! What the database said, and what that means for whoever waits.

use crate::settings::SettingsError;
use crate::tls::TrustError;
use plimsoll_domain::workers::DATABASE_VARIABLE as URL;
use plimsoll_policy::workers::Fenced;
use plimsoll_store::StoreError;
use postgres::error::SqlState;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Nothing says how the database is reached, or what does cannot be understood.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file that says how the database is reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No server can be trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The database. What was asked for may have happened all the same if the connection was lost.
    #[error("cannot {doing} (PostgreSQL at {server}): {fault}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// Where.
        server: String,
        /// What was wrong.
        fault: Fault,
    },
    /// Somebody else has taken it over.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The database has no tables of ours.
    #[error("the database at {0} has no fleet yet")]
    NoSchema(String),
    /// The tables are of another version than this program.
    #[error("the database at {server} has tables of version {found}; this program knows version {known}")]
    OtherSchema {
        /// Where.
        server: String,
        /// What it has.
        found: i32,
        /// What we know.
        known: i32,
    },
    /// Two fleets of one name.
    #[error("there is a fleet with the name `{0}` already")]
    NameTaken(String),
    /// None of that name.
    #[error("there is no fleet with the name `{0}`")]
    NoPlan(String),
    /// A fleet that is at work.
    #[error("workers of the fleet `{name}` are at work: {workers}")]
    AtWork {
        /// The fleet.
        name: String,
        /// Who.
        workers: String,
    },
    /// A plan of a shape that no board has.
    #[error("a board has at most {0} items")]
    TooManyItems(usize),
}

/// What was wrong with the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nobody answers.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was cut, perhaps before the answer to what was done.
    #[error("the connection was lost before the answer came")]
    Lost,
    /// Somebody took the connection, and never answered.
    #[error("no answer came within {} seconds", .0.as_secs())]
    Silent(Duration),
    /// The server ends or begins.
    #[error("it is starting or shutting down")]
    Restarting,
    /// All connections are taken.
    #[error("all of its connections are taken")]
    Crowded,
    /// Somebody else is at the same rows, for too long or in another order.
    #[error("it is busy: {0}")]
    Busy(String),
    /// The password, or whoever has none.
    #[error("the user or the password is wrong: {0}")]
    Password(String),
    /// It asks for a password, and there is none.
    #[error("it asks for a password, and none is set")]
    NoPassword {
        /// The password file that others may read.
        open_pass_file: Option<PathBuf>,
    },
    /// It has no TLS.
    #[error("it has no TLS, which sslmode demands")]
    NoTls,
    /// The certificate does not match.
    #[error("its certificate is not accepted: {0}")]
    Untrusted(String),
    /// There is no common version of TLS, or somebody else answers.
    #[error("TLS cannot be set up: {0}")]
    TlsFailed(String),
    /// It does not log in by the method that ties the password to TLS.
    #[error("it does not tie the password to TLS, which channel_binding or require_auth demands: {0}")]
    NoBinding(String),
    /// It ended the connection before it answered.
    #[error("it closed the connection while connecting")]
    Closed,
    /// Something else listens there.
    #[error("what answers there does not speak PostgreSQL's protocol")]
    NotPostgres,
    /// An answer that is longer than any that a fleet needs.
    #[error("it announces an answer of {0} bytes, which is more than a fleet's database ever sends")]
    TooLong(u64),
    /// It takes nobody from here.
    #[error("it refuses this user, database or connection: {0}")]
    Refused(String),
    /// Nothing can be written.
    #[error("it is read-only: a standby, or set so")]
    ReadOnly,
    /// The disk.
    #[error("it has no space left: {0}")]
    Full(String),
    /// The role may not.
    #[error("the role may not do that: {0}")]
    NoRight(String),
    /// What it says itself.
    #[error("{0}")]
    Other(String),
}

impl FleetError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            FleetError::Settings(_) | FleetError::Store(_) => {
                Some(format!("set {URL}, or libpq's variables (PGHOST, PGSERVICE, …)"))
            }
            FleetError::Database { fault, .. } => fault.hint(),
            FleetError::NoSchema(_) => {
                Some(format!("create a fleet first, or set {URL} to the database that has it"))
            }
            FleetError::OtherSchema { found, known, .. } if found > known => {
                Some("install the newer Plimsoll on this computer, too".to_owned())
            }
            FleetError::OtherSchema { .. } => {
                Some("create a fleet with this version: it brings the tables up to date".to_owned())
            }
            FleetError::NameTaken(_) => Some("choose another name, or forget that fleet first".to_owned()),
            FleetError::AtWork { name, .. } => Some(format!(
                "stop them first: plimsoll fleet stop {name}; 90 seconds after their last word they count as gone"
            )),
            FleetError::NoPlan(_) => {
                Some("plimsoll fleet status lists the fleets of the database".to_owned())
            }
            FleetError::Trust(_) | FleetError::Fenced(_) | FleetError::TooManyItems(_) => None,
        }
    }

    /// True for what waiting may end: everything that was asked for can be asked for again.
    pub fn may_pass(&self) -> bool {
        let FleetError::Database { fault, .. } = self else { return false };
        matches!(
            fault,
            Fault::Unreachable(_)
                | Fault::Lost
                | Fault::Closed
                | Fault::Silent(_)
                | Fault::Restarting
                | Fault::Crowded
                | Fault::Busy(_)
                | Fault::ReadOnly
                | Fault::Full(_)
        )
    }
}

impl Fault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Fault::Unreachable(_) => format!("start it, or state its address in {URL}"),
            Fault::Silent(_) => {
                format!(
                    "check that PostgreSQL listens there, that it is not stopped, and the address in {URL}"
                )
            }
            Fault::Lost => "try again: what was done stays done, and nothing is done twice".to_owned(),
            Fault::Restarting | Fault::Busy(_) => "try again in a moment".to_owned(),
            Fault::Crowded => "raise max_connections, or put PgBouncer in front of it".to_owned(),
            Fault::NoPassword { open_pass_file: Some(path) } => {
                format!("others may read {0}, so it counts for nothing: chmod 600 {0}", path.display())
            }
            Fault::Password(_) | Fault::NoPassword { .. } => {
                format!("check the password in {URL}, PGPASSWORD or ~/.pgpass")
            }
            Fault::NoTls => {
                "turn on `ssl` in its postgresql.conf, or set sslmode=prefer in a network that you trust"
                    .to_owned()
            }
            Fault::Untrusted(_) => "check sslrootcert and the host's name in its certificate".to_owned(),
            Fault::TlsFailed(_) => format!(
                "check that the address in {URL} is PostgreSQL's own, and that it has TLS 1.2 or 1.3 (ssl_min_protocol_version)"
            ),
            Fault::NoBinding(_) => "let the role have a password by SCRAM (password_encryption = scram-sha-256) and connect to PostgreSQL itself with TLS, not to a pool; or leave channel_binding and require_auth out".to_owned(),
            Fault::Closed => format!(
                "see its log, and what stands between (a proxy, a firewall, listen_addresses); check the address in {URL}"
            ),
            Fault::NotPostgres | Fault::TooLong(_) => {
                format!("check host and port in {URL}: do not trust what answers there with a password")
            }
            Fault::Refused(_) => "check user, database and sslmode, and its pg_hba.conf".to_owned(),
            Fault::ReadOnly => "name the primary, or add target_session_attrs=read-write".to_owned(),
            Fault::Full(_) => "make room on the disk of the database".to_owned(),
            Fault::NoRight(_) => {
                "grant the role what it lacks: plimsoll doctor --fleet NAME says what that is".to_owned()
            }
            Fault::Other(_) => return None,
        };
        Some(hint)
    }
}

/// What tokio-postgres says of TLS that did not come about; it has no kind of it that can be asked for.
const TLS: &str = "error performing TLS handshake";
const OUT_OF_TURN: [&str; 2] = ["unexpected message from server", "error parsing response from server"];
const LOGIN: &str = "authentication error";
const BINDING: &str = "channel binding";
const NO_PASSWORD: &str = "password missing";

/// What an error means while a connection is made: nothing was asked for yet, so nothing can be lost.
pub(crate) fn connect_fault(error: &postgres::Error) -> Fault {
    match fault(error) {
        Fault::Lost => Fault::Closed,
        // The library has no kind of these that can be asked for either.
        Fault::Other(words) if OUT_OF_TURN.iter().any(|begin| words.starts_with(begin)) => Fault::NotPostgres,
        // A method that pg_hba.conf demands and the library does not have.
        Fault::Other(words) if words.starts_with(LOGIN) => Fault::Refused(words),
        fault => fault,
    }
}

/// What an error of the client means.
pub(crate) fn fault(error: &postgres::Error) -> Fault {
    if let Some(said) = error.as_db_error() {
        return of_server(said.code(), said.message());
    }
    if let Some(fault) = own_fault(error) {
        return fault.clone();
    }
    let words = chain(error);
    if words.contains(NO_PASSWORD) {
        Fault::NoPassword { open_pass_file: None }
    } else if words.contains(BINDING) {
        Fault::NoBinding(words)
    } else if words.starts_with(TLS) {
        Fault::TlsFailed(words.trim_start_matches(TLS).trim_start_matches(": ").to_owned())
    } else if words.starts_with("error connecting to server") {
        Fault::Unreachable(why_unreachable(error).unwrap_or(words))
    } else if error.is_closed() || words.starts_with("error communicating with the server") {
        Fault::Lost
    } else {
        Fault::Other(words)
    }
}

/// Explains the system's error of a failed connection. Returns none if the error is not the system's.
fn why_unreachable(error: &postgres::Error) -> Option<String> {
    let mut source = error.source();
    while let Some(cause) = source {
        // The client states reasons of its own as such errors, too.
        let of_system = cause.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some());
        if let Some(error) = of_system {
            let words = match error.kind() {
                io::ErrorKind::NotFound => "there is no such socket",
                io::ErrorKind::ConnectionRefused => "nothing listens there",
                io::ErrorKind::PermissionDenied => "this user may not connect to it",
                _ => return None,
            };
            return Some(words.to_owned());
        }
        source = cause.source();
    }
    None
}

/// True if a server was there and did not like how it was spoken to: another way may do.
pub(crate) fn was_answered(error: &postgres::Error) -> bool {
    error.as_db_error().is_some() || error.to_string() == TLS
}

/// Our own reason in an error of the client: it is its cause, or that of an error of the system.
fn own_fault(error: &postgres::Error) -> Option<&Fault> {
    let mut source = error.source();
    while let Some(cause) = source {
        let of_system = || cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref)?.downcast_ref();
        if let Some(fault) = cause.downcast_ref().or_else(of_system) {
            return Some(fault);
        }
        source = cause.source();
    }
    None
}

pub(crate) fn of_server(code: &SqlState, message: &str) -> Fault {
    let message = message.to_owned();
    match code.code() {
        "28P01" => Fault::Password(message),
        "28000" | "3D000" => Fault::Refused(message),
        "25006" => Fault::ReadOnly,
        "53100" => Fault::Full(message),
        "53300" => Fault::Crowded,
        "42501" => Fault::NoRight(message),
        "57P01" | "57P02" | "57P03" => Fault::Restarting,
        // A conflict, a deadlock, a lock that was waited for too long, memory, a statement that somebody ended.
        "40001" | "40P01" | "55P03" | "53200" | "57014" => Fault::Busy(message),
        // It ended a connection on which we were silent for too long.
        "25P03" | "57P05" => Fault::Lost,
        // PgBouncer's own words have the code of a broken protocol.
        "08P01" if message.contains("SASL authentication failed") || message.contains("password") => {
            Fault::Password(message)
        }
        code if code.starts_with("08") => Fault::Unreachable(message),
        code => Fault::Other(format!("{message} (SQLSTATE {code})")),
    }
}

fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_has_one_meaning() {
        for (code, expected) in [
            ("28P01", Fault::Password("x".to_owned())),
            ("28000", Fault::Refused("x".to_owned())),
            ("25006", Fault::ReadOnly),
            ("53100", Fault::Full("x".to_owned())),
            ("57P03", Fault::Restarting),
            ("55P03", Fault::Busy("x".to_owned())),
            ("25P03", Fault::Lost),
            ("08006", Fault::Unreachable("x".to_owned())),
            ("42P01", Fault::Other("x (SQLSTATE 42P01)".to_owned())),
        ] {
            assert_eq!(of_server(&SqlState::from_code(code), "x"), expected);
        }
    }

    #[test]
    fn only_what_passes_is_worth_waiting_for() {
        let of = |fault| FleetError::Database { doing: "claim an item", server: "db:5432".to_owned(), fault };
        for (fault, expected) in [
            (Fault::Lost, true),
            (Fault::Restarting, true),
            (Fault::Full("x".to_owned()), true),
            (Fault::NoTls, false),
            (Fault::Password("x".to_owned()), false),
        ] {
            assert_eq!(of(fault).may_pass(), expected);
        }
        let shown = of(Fault::Lost).to_string();
        assert_eq!(
            shown,
            "cannot claim an item (PostgreSQL at db:5432): the connection was lost before the answer came"
        );
        assert!(!FleetError::NoPlan("x".to_owned()).may_pass());
    }
}
