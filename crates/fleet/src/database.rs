//! The database connection. It is opened on first use and again after it was lost.
//!
//! Nothing here relies on session state, so PgBouncer may run each transaction on another server connection: there are no named
//! prepared statements, settings are local to a transaction, and locks are row locks or transaction locks.

use crate::database_error::{
    DatabaseError, FleetError, classify_connect_error, classify_postgres_error, was_rejected_by_server,
};
use crate::settings::{ConnectionSettings, Server, SslMode};
use crate::size_limited_stream::SizeLimitedConnector;
use crate::timeout::run_in_thread_with_timeout;
use crate::tls;
use postgres::config::{SslMode as Tls, SslNegotiation};
use postgres::types::{ToSql, Type};
use postgres::{Client, IsolationLevel, NoTls, Row, Transaction};
use rustls::ClientConfig;
use std::path::PathBuf;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A statement parameter with its type. Without the type, the client would prepare a named statement to ask the server for it.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Limits of each transaction. The server ends a transaction whose client is silent for 10 seconds, because a frozen client would
/// block all others with its locks. A statement waits at most 30 seconds for a lock.
const SET_TRANSACTION_TIMEOUTS: &str =
    "set local idle_in_transaction_session_timeout = '10s'; set local lock_timeout = '30s'";

/// The SQLSTATE of a function that needs the isolation level read committed (schema/items.sql). It has changed nothing.
const WRONG_ISOLATION_LEVEL: &str = "PL003";

/// A database with a connection that is opened when needed.
pub struct Database {
    settings: ConnectionSettings,
    tls: ClientConfig,
    client: Option<Client>,
    /// The address of the last connection.
    last_server_address: String,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Database").field("server", &self.last_server_address).finish_non_exhaustive()
    }
}

/// Whether a connection uses TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Plain,
    Tls,
}

/// Returns the transports to try, in order. As in libpq, a Unix socket has no TLS.
fn transports_in_order(ssl_mode: SslMode, server: &Server) -> &'static [Transport] {
    if server.socket_folder().is_some() {
        return &[Transport::Plain];
    }
    match ssl_mode {
        SslMode::Disable => &[Transport::Plain],
        SslMode::Allow => &[Transport::Plain, Transport::Tls],
        SslMode::Prefer => &[Transport::Tls, Transport::Plain],
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Transport::Tls],
    }
}

impl Database {
    /// Connects to the first available server.
    pub fn connect(settings: ConnectionSettings) -> Result<Database, FleetError> {
        let tls = tls::tls_client_config(&settings.certificate_trust)?;
        let mut database = Database { settings, tls, client: None, last_server_address: String::new() };
        database.client_or_reconnect("connect")?;
        Ok(database)
    }

    /// Returns the address of the last connection.
    pub(crate) fn last_server_address(&self) -> &str {
        &self.last_server_address
    }

    /// Returns true if the last connection went to another computer.
    pub(crate) fn is_last_server_remote(&self) -> bool {
        let is_last_server = |server: &&Server| server.to_string() == self.last_server_address;
        let server = self.settings.servers.iter().find(is_last_server);
        let is_loopback_host = |name: &str| {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        };
        server.is_some_and(|server| server.socket_folder().is_none() && !is_loopback_host(server.host_name()))
    }

    /// Runs one statement in its own transaction and returns the rows.
    pub(crate) fn query(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, FleetError> {
        let rows = self.client_or_reconnect(action)?.query_typed(statement, parameters);
        match rows {
            // The default isolation level is another one, because of a setting of the server or of the role.
            Err(error) if error.code().is_some_and(|code| code.code() == WRONG_ISOLATION_LEVEL) => {
                self.run_in_transaction(action, |transaction| {
                    Ok(transaction.query_typed(statement, parameters)?)
                })
            }
            rows => rows.map_err(|error| self.disconnect_if_broken_and_wrap_error(action, &error)),
        }
    }

    /// Runs one statement and maps each row with `map_row`.
    pub(crate) fn query_and_map<T>(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
        map_row: impl Fn(&Row) -> Result<T, postgres::Error>,
    ) -> Result<Vec<T>, FleetError> {
        let rows = self.query(action, statement, parameters)?;
        let values: Result<_, _> = rows.iter().map(map_row).collect();
        values.map_err(|error| self.unreadable_row_error(action, &error))
    }

    /// Runs several statements in one transaction. Its isolation level is read committed whatever the server's default is: after
    /// waiting for a lock, the next statement must see what the lock's previous holder wrote. Rolls back if `operation` fails.
    pub(crate) fn run_in_transaction<T>(
        &mut self,
        action: &'static str,
        operation: impl FnOnce(&mut Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, FleetError> {
        let result = run_in_read_committed_transaction(self.client_or_reconnect(action)?, operation);
        result.map_err(|error| match error {
            TransactionError::Database(error) => self.disconnect_if_broken_and_wrap_error(action, &error),
            TransactionError::Fleet(error) => *error,
        })
    }

    /// Returns the error for a row without the expected columns, which happens if the tables were changed by hand.
    pub(crate) fn unreadable_row_error(&self, action: &'static str, error: &postgres::Error) -> FleetError {
        FleetError::Database {
            action,
            server: self.last_server_address.clone(),
            database_error: classify_postgres_error(error),
        }
    }

    fn client_or_reconnect(&mut self, action: &'static str) -> Result<&mut Client, FleetError> {
        let client = self.client.take().filter(|client| !client.is_closed());
        let client = client.map_or_else(|| self.connect_to_first_available_server(action), Ok)?;
        Ok(self.client.insert(client))
    }

    /// Connects to the first server that accepts a connection. If none does, returns the error of the last one.
    fn connect_to_first_available_server(&mut self, action: &'static str) -> Result<Client, FleetError> {
        let mut last_error = DatabaseError::Unreachable("no server is named".to_owned());
        for server in &self.settings.servers {
            self.last_server_address = server.to_string();
            match connect_trying_next_transport_if_rejected(&self.settings, &self.tls, server) {
                Ok(client) => return Ok(client),
                Err(server_error) => last_error = server_error,
            }
        }
        Err(FleetError::Database {
            action,
            server: self.last_server_address.clone(),
            database_error: last_error,
        })
    }

    /// Converts an error. Drops the connection unless the server reported the error and stays connected: otherwise its
    /// state is unknown.
    fn disconnect_if_broken_and_wrap_error(
        &mut self,
        action: &'static str,
        error: &postgres::Error,
    ) -> FleetError {
        let database_error = classify_postgres_error(error);
        if error.as_db_error().is_none()
            || matches!(database_error, DatabaseError::Restarting | DatabaseError::ConnectionLost)
        {
            self.client = None;
        }
        FleetError::Database { action, server: self.last_server_address.clone(), database_error }
    }
}

/// The reason why a transaction was rolled back.
#[derive(Debug)]
pub(crate) enum TransactionError {
    Database(postgres::Error),
    // Boxed because it is rare and large.
    Fleet(Box<FleetError>),
}

impl From<postgres::Error> for TransactionError {
    fn from(error: postgres::Error) -> TransactionError {
        TransactionError::Database(error)
    }
}

impl From<FleetError> for TransactionError {
    fn from(error: FleetError) -> TransactionError {
        TransactionError::Fleet(Box::new(error))
    }
}

fn run_in_read_committed_transaction<T>(
    client: &mut Client,
    operation: impl FnOnce(&mut Transaction<'_>) -> Result<T, TransactionError>,
) -> Result<T, TransactionError> {
    let mut transaction =
        client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start()?;
    transaction.batch_execute(SET_TRANSACTION_TIMEOUTS)?;
    // On an error the transaction is dropped, which rolls it back.
    let value = operation(&mut transaction)?;
    transaction.commit()?;
    Ok(value)
}

fn connect_trying_next_transport_if_rejected(
    settings: &ConnectionSettings,
    tls: &ClientConfig,
    server: &Server,
) -> Result<Client, DatabaseError> {
    let mut most_informative_error: Option<DatabaseError> = None;
    // As in libpq, the connect timeout covers DNS, TLS and the login of one attempt.
    let connect_timeout = server.0.get_connect_timeout().copied().unwrap_or_default();
    for transport in transports_in_order(settings.ssl_mode, server) {
        let (server, tls, transport) = (server.clone(), tls.clone(), *transport);
        let error = match run_in_thread_with_timeout(connect_timeout, move || {
            connect_with_transport(server, transport, &tls)
        }) {
            None => return Err(DatabaseError::NoResponse(connect_timeout)),
            Some(Ok(client)) => return Ok(client),
            Some(Err(error)) => error,
        };
        let latest_error = add_insecure_pass_file_if_no_password(
            classify_connect_error(&error),
            settings.insecure_pass_file.as_ref(),
        );
        let chosen_error = match most_informative_error {
            Some(earlier_error) => prefer_tls_or_access_error(earlier_error, latest_error),
            None => latest_error,
        };
        if !was_rejected_by_server(&error) {
            return Err(chosen_error);
        }
        most_informative_error = Some(chosen_error);
    }
    Err(most_informative_error.unwrap_or(DatabaseError::ConnectionLost))
}

/// Returns the more informative of two errors. If TLS is only preferred, its absence is not an error. A server that requires TLS
/// refuses a connection without it before it checks the password.
fn prefer_tls_or_access_error(first_error: DatabaseError, second_error: DatabaseError) -> DatabaseError {
    match (&first_error, &second_error) {
        (_, DatabaseError::NoTls) => first_error,
        (DatabaseError::NoTls, _)
        | (
            DatabaseError::AccessRefused(_),
            DatabaseError::WrongPassword(_) | DatabaseError::NoPassword { .. },
        ) => second_error,
        _ => first_error,
    }
}

fn add_insecure_pass_file_if_no_password(
    error: DatabaseError,
    insecure_pass_file: Option<&PathBuf>,
) -> DatabaseError {
    match error {
        DatabaseError::NoPassword { .. } => {
            DatabaseError::NoPassword { insecure_pass_file: insecure_pass_file.cloned() }
        }
        error => error,
    }
}

fn connect_with_transport(
    mut server: Server,
    transport: Transport,
    tls: &ClientConfig,
) -> Result<Client, postgres::Error> {
    if server.socket_folder().is_some() {
        return server.0.ssl_mode(Tls::Disable).connect(NoTls);
    }
    let tls = match transport {
        Transport::Plain => None,
        Transport::Tls => Some(MakeRustlsConnect::new(tls.clone())),
    };
    // With direct negotiation, the library leaves TLS to the connector: it sends no TLS request itself and passes every stream to
    // the connector.
    server
        .0
        .ssl_mode(Tls::Require)
        .ssl_negotiation(SslNegotiation::Direct)
        .connect(SizeLimitedConnector { tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_tried_in_libpqs_order() {
        let server = |text: &str| Server(text.parse().expect("settings"));
        for (ssl, expected) in [
            (SslMode::Disable, &[Transport::Plain][..]),
            (SslMode::Allow, &[Transport::Plain, Transport::Tls]),
            (SslMode::Prefer, &[Transport::Tls, Transport::Plain]),
            (SslMode::Require, &[Transport::Tls]),
            (SslMode::VerifyFull, &[Transport::Tls]),
        ] {
            assert_eq!(transports_in_order(ssl, &server("host=db")), expected, "{ssl}");
            assert_eq!(transports_in_order(ssl, &server("host=/tmp")), [Transport::Plain]);
        }
    }
}
