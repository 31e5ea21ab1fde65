//! The connection: made when it is needed, and made anew after it was lost.
//!
//! Nothing here relies on the session, so that PgBouncer may give each transaction another one: no prepared statement has a
//! name, no setting outlives its transaction, and locks are rows' or a transaction's.

use crate::deadline::answered;
use crate::fault::{Fault, FleetError, connect_fault, fault, was_answered};
use crate::guarded_stream::Connector;
use crate::settings::{Server, Settings, SslMode};
use crate::tls;
use postgres::config::{SslMode as Tls, SslNegotiation};
use postgres::types::{ToSql, Type};
use postgres::{Client, IsolationLevel, NoTls, Row, Transaction};
use rustls::ClientConfig;
use std::path::PathBuf;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A parameter of a statement, with its type: without it the client would ask the server, under a name.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// How long the server keeps a transaction whose client is silent: one that is frozen with locks holds up all others.
/// How long a statement waits for such a lock.
const LIMITS: &str = "set local idle_in_transaction_session_timeout = '10s'; set local lock_timeout = '30s'";

/// A database, connected or not.
pub struct Database {
    settings: Settings,
    tls: ClientConfig,
    client: Option<Client>,
    /// Where the last connection went.
    server: String,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Database").field("server", &self.server).finish_non_exhaustive()
    }
}

/// One way to speak to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Plain,
    Tls,
}

/// The ways that are tried, in their order. As with libpq, a socket has no TLS.
fn attempts(ssl: SslMode, server: &Server) -> &'static [Attempt] {
    if server.socket_folder().is_some() {
        return &[Attempt::Plain];
    }
    match ssl {
        SslMode::Disable => &[Attempt::Plain],
        SslMode::Allow => &[Attempt::Plain, Attempt::Tls],
        SslMode::Prefer => &[Attempt::Tls, Attempt::Plain],
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Attempt::Tls],
    }
}

impl Database {
    /// Connects.
    pub fn connect(settings: Settings) -> Result<Database, FleetError> {
        let tls = tls::config(&settings.trust)?;
        let mut database = Database { settings, tls, client: None, server: String::new() };
        database.connected("connect")?;
        Ok(database)
    }

    /// Where the last connection went.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// True if the last connection went over a network that is not this computer's own.
    pub(crate) fn is_remote(&self) -> bool {
        let is_it = |server: &&Server| server.to_string() == self.server;
        let server = self.settings.servers.iter().find(is_it);
        let is_own = |name: &str| {
            name == "localhost" || name.parse().is_ok_and(|at: std::net::IpAddr| at.is_loopback())
        };
        server.is_some_and(|server| server.socket_folder().is_none() && !is_own(server.host_name()))
    }

    /// One statement, which is a transaction of its own.
    pub(crate) fn query(
        &mut self,
        doing: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, FleetError> {
        let rows = self.connected(doing)?.query_typed(statement, parameters);
        rows.map_err(|error| self.failed(doing, &error))
    }

    /// The same, with what each row says.
    pub(crate) fn read<T>(
        &mut self,
        doing: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
        row: impl Fn(&Row) -> Result<T, postgres::Error>,
    ) -> Result<Vec<T>, FleetError> {
        let rows = self.query(doing, statement, parameters)?;
        let read: Result<_, _> = rows.iter().map(row).collect();
        read.map_err(|error| self.unreadable(doing, &error))
    }

    /// Several statements that happen together or not at all. Each sees what was committed before it began, whatever the server's
    /// default is: after a lock was waited for, the next statement has to see what its holder wrote.
    pub(crate) fn transaction<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Stopped>,
    ) -> Result<T, FleetError> {
        let done = in_transaction(self.connected(doing)?, work);
        done.map_err(|stopped| match stopped {
            Stopped::ByDatabase(error) => self.failed(doing, &error),
            Stopped::ByUs(error) => *error,
        })
    }

    /// An answer that is not what was asked for: somebody has changed the tables.
    pub(crate) fn unreadable(&self, doing: &'static str, error: &postgres::Error) -> FleetError {
        FleetError::Database { doing, server: self.server.clone(), fault: fault(error) }
    }

    fn connected(&mut self, doing: &'static str) -> Result<&mut Client, FleetError> {
        let client = self.client.take().filter(|client| !client.is_closed());
        let client = client.map_or_else(|| self.reach(doing), Ok)?;
        Ok(self.client.insert(client))
    }

    /// The first server that answers; else what the last one said.
    fn reach(&mut self, doing: &'static str) -> Result<Client, FleetError> {
        let mut last = Fault::Unreachable("no server is named".to_owned());
        for server in &self.settings.servers {
            self.server = server.to_string();
            match reach_one(&self.settings, &self.tls, server) {
                Ok(client) => return Ok(client),
                Err(fault) => last = fault,
            }
        }
        Err(FleetError::Database { doing, server: self.server.clone(), fault: last })
    }

    /// After an error nothing is known of the connection, unless the server itself said what was wrong.
    fn failed(&mut self, doing: &'static str, error: &postgres::Error) -> FleetError {
        let fault = fault(error);
        if error.as_db_error().is_none() || matches!(fault, Fault::Restarting | Fault::Lost) {
            self.client = None;
        }
        FleetError::Database { doing, server: self.server.clone(), fault }
    }
}

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    ByDatabase(postgres::Error),
    /// Boxed, because it is rare and large.
    ByUs(Box<FleetError>),
}

impl From<postgres::Error> for Stopped {
    fn from(error: postgres::Error) -> Stopped {
        Stopped::ByDatabase(error)
    }
}

impl From<FleetError> for Stopped {
    fn from(error: FleetError) -> Stopped {
        Stopped::ByUs(Box::new(error))
    }
}

fn in_transaction<T>(
    client: &mut Client,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Stopped>,
) -> Result<T, Stopped> {
    let mut transaction =
        client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start()?;
    transaction.batch_execute(LIMITS)?;
    // On an error it is dropped, which takes everything back.
    let answer = work(&mut transaction)?;
    transaction.commit()?;
    Ok(answer)
}

fn reach_one(settings: &Settings, tls: &ClientConfig, server: &Server) -> Result<Client, Fault> {
    let mut first: Option<Fault> = None;
    // As with libpq, this is the limit of all that belongs to connecting: the next server is asked then.
    let limit = server.0.get_connect_timeout().copied().unwrap_or_default();
    for attempt in attempts(settings.ssl, server) {
        let (server, tls, attempt) = (server.clone(), tls.clone(), *attempt);
        let error = match answered(limit, move || try_one(server, attempt, &tls)) {
            None => return Err(Fault::Silent(limit)),
            Some(Ok(client)) => return Ok(client),
            Some(Err(error)) => error,
        };
        let said = with_pass_file(connect_fault(&error), settings.open_pass_file.as_ref());
        let telling = match first {
            Some(first) => more_telling(first, said),
            None => said,
        };
        if !was_answered(&error) {
            return Err(telling);
        }
        first = Some(telling);
    }
    Err(first.unwrap_or(Fault::Lost))
}

/// Of two refusals the one that says more. Where TLS is only preferred, its absence is no refusal; and a server that wants TLS
/// refuses a connection without it, whatever the password.
fn more_telling(first: Fault, second: Fault) -> Fault {
    match (&first, &second) {
        (_, Fault::NoTls) => first,
        (Fault::NoTls, _) | (Fault::Refused(_), Fault::Password(_) | Fault::NoPassword { .. }) => second,
        _ => first,
    }
}

fn with_pass_file(fault: Fault, open: Option<&PathBuf>) -> Fault {
    match fault {
        Fault::NoPassword { .. } => Fault::NoPassword { open_pass_file: open.cloned() },
        fault => fault,
    }
}

fn try_one(mut server: Server, attempt: Attempt, tls: &ClientConfig) -> Result<Client, postgres::Error> {
    if server.socket_folder().is_some() {
        return server.0.ssl_mode(Tls::Disable).connect(NoTls);
    }
    let tls = match attempt {
        Attempt::Plain => None,
        Attempt::Tls => Some(MakeRustlsConnect::new(tls.clone())),
    };
    // To the library the connector is one that begins TLS at once: so it leaves the question for TLS to the connector, and hands
    // it every stream.
    server.0.ssl_mode(Tls::Require).ssl_negotiation(SslNegotiation::Direct).connect(Connector { tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_tried_in_libpqs_order() {
        let server = |text: &str| Server(text.parse().expect("settings"));
        for (ssl, expected) in [
            (SslMode::Disable, &[Attempt::Plain][..]),
            (SslMode::Allow, &[Attempt::Plain, Attempt::Tls]),
            (SslMode::Prefer, &[Attempt::Tls, Attempt::Plain]),
            (SslMode::Require, &[Attempt::Tls]),
            (SslMode::VerifyFull, &[Attempt::Tls]),
        ] {
            assert_eq!(attempts(ssl, &server("host=db")), expected, "{ssl}");
            assert_eq!(attempts(ssl, &server("host=/tmp")), [Attempt::Plain]);
        }
    }
}
