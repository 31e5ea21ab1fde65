//! How the database is reached, as the users of libpq say it: `PLIMSOLL_DATABASE_URL` first, then a section of the service file,
//! then libpq's variables. Pure; [`crate::found`] reads the files and variables.
//!
//! No error repeats a value: a password that was not encoded can be a part of any of them.

mod connection_string;
pub(crate) mod libpq;
pub(crate) mod pass_file;
pub(crate) mod service_file;

pub(crate) use connection_string::parse as of_connection_string;

use libpq::LIBPQ_SETTINGS;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Values by libpq's keywords.
pub(crate) type Parameters = BTreeMap<&'static str, String>;

/// libpq waits without end; nobody is there to end that.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// libpq's least: one second is often too short.
const SHORTEST_TIMEOUT: u64 = 2;
const PORT: u16 = 5432;

/// What is wrong with what was said about the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No address at all.
    #[error("the address of the database is neither postgresql://… nor a list of keyword=value")]
    NoAddress,
    /// The address cannot be read.
    #[error(
        "the address of the database cannot be read: in postgresql://… encode `@`, `/`, `:`, `?` and `%` in a name or password as %40, %2F, %3A, %3F and %25; in a list put quotes around a value with blanks"
    )]
    Malformed,
    /// A keyword that we cannot obey.
    #[error(
        "the address of the database or the service file holds a connection parameter that is not known here"
    )]
    UnknownParameter,
    /// A setting of libpq's that is not obeyed here.
    #[error(
        "{name} is set, which is not supported: {why}; unset it, or state in PLIMSOLL_DATABASE_URL what is done here"
    )]
    Unsupported {
        /// Its keyword and its variable.
        name: String,
        /// Why it matters.
        why: &'static str,
    },
    /// A way to log in that cannot be insisted on.
    #[error(
        "`require_auth` (PGREQUIREAUTH) can only be scram-sha-256 here, which is then tied to TLS as by channel_binding=require: with channel_binding=disable, without TLS and for every other method it cannot be ensured"
    )]
    RequireAuth,
    /// A value that means nothing.
    #[error("the connection parameter `{parameter}` must be {expected}")]
    Value {
        /// The keyword.
        parameter: &'static str,
        /// What it may be.
        expected: &'static str,
    },
    /// The service is in no file.
    #[error("the service that PGSERVICE names is not in {0}")]
    NoService(String),
    /// A line of the service file.
    #[error("line {line} of {path} is neither [a section] nor keyword=value")]
    ServiceLine {
        /// The file.
        path: String,
        /// Counted from 1.
        line: usize,
    },
    /// A server is to be proved, and there is nothing to prove it by.
    #[error(
        "sslmode={0} needs the certificate that the server's is checked against: name its file in PGSSLROOTCERT, or put it at ~/.postgresql/root.crt"
    )]
    NoRoot(SslMode),
    /// The certificates of this computer prove whom we talk to only with the name.
    #[error("sslrootcert=system needs sslmode=verify-full")]
    WeakSystem,
    /// The user has no name.
    #[error("no user is named (PGUSER), and the system does not say who runs this")]
    NoUser,
}

/// A secret that no debug print shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

/// How much TLS, with libpq's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only if the server takes no connection without.
    Allow,
    /// If the server has it.
    Prefer,
    /// Always, from whomever.
    Require,
    /// Always, and the certificate is from whom we trust.
    VerifyCa,
    /// Always, and the certificate is that host's.
    VerifyFull,
}

const SSL_MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

impl fmt::Display for SslMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = SSL_MODES.iter().find(|(_, mode)| mode == self).map_or("", |(name, _)| name);
        formatter.write_str(name)
    }
}

/// Whose certificate is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Anybody's: it keeps listeners out, not impostors.
    Anyone,
    /// One from those in this file; with the host's name in it, if that is asked for.
    File {
        /// PEM.
        path: PathBuf,
        /// The name counts.
        by_name: bool,
    },
    /// One from those whom this computer trusts, with the host's name in it.
    System,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The folder of its socket.
    Socket(PathBuf),
    /// A name, or an address that is not to be looked up.
    Host {
        /// What its certificate is for.
        name: String,
        /// Where it is, if that is said.
        address: Option<IpAddr>,
    },
}

/// One of the servers, which are tried in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where.
    pub place: Place,
    /// Its port, also a part of a socket's name.
    pub port: u16,
    /// The password there.
    pub password: Option<Password>,
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Socket(folder) => write!(formatter, "{}/.s.PGSQL.{}", folder.display(), self.port),
            Place::Host { name, .. } => write!(formatter, "{name}:{}", self.port),
        }
    }
}

/// How strongly a password is tied to the TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Not at all.
    Disable,
    /// If the server can.
    Prefer,
    /// Always.
    Require,
}

/// How the database is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Tried in this order.
    pub servers: Vec<Server>,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// How much TLS.
    pub ssl: SslMode,
    /// Whom to trust.
    pub trust: Trust,
    /// With passwords.
    pub binding: Binding,
    /// For each server.
    pub connect_timeout: Duration,
    /// How we are called in `pg_stat_activity`.
    pub application: String,
    /// Options of the session.
    pub options: Option<String>,
    /// Only a server that takes writes.
    pub is_for_writing: bool,
    /// A password file that counts for nothing, because others may read it.
    pub open_pass_file: Option<PathBuf>,
}

/// What is true of this computer where nothing else is said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Here {
    /// Who runs this.
    pub(crate) user: Option<String>,
    /// Where servers have their sockets.
    pub(crate) socket_folder: PathBuf,
    /// `~/.postgresql/root.crt`, if it is there.
    pub(crate) root: Option<PathBuf>,
    /// The text of the password file, unless others may read it.
    pub(crate) passwords: String,
    /// That file, if they may.
    pub(crate) open_pass_file: Option<PathBuf>,
}

/// The keyword of libpq by this name.
pub(crate) fn keyword(name: &str) -> Option<&'static str> {
    LIBPQ_SETTINGS.iter().filter_map(|setting| setting.keyword).find(|keyword| *keyword == name)
}

/// What libpq's variables say.
pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Parameters {
    let stated = LIBPQ_SETTINGS.iter().filter_map(|setting| {
        let value = variable(setting.variable?).filter(|value| !value.is_empty())?;
        Some((setting.keyword?, value))
    });
    stated.collect()
}

/// The settings that these parameters mean.
pub(crate) fn settings(parameters: &Parameters, here: Here) -> Result<Settings, SettingsError> {
    if let Some((name, why)) = libpq::refused_setting(parameters) {
        return Err(SettingsError::Unsupported { name, why });
    }
    let value = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let user = value("user").map(str::to_owned).or(here.user).ok_or(SettingsError::NoUser)?;
    let database = value("dbname").unwrap_or(&user).to_owned();
    // As with libpq, the older name counts where the newer one is not set.
    let without_mode = if value("requiressl").is_some_and(|value| value.starts_with('1')) {
        SslMode::Require
    } else {
        SslMode::Prefer
    };
    let ssl = one_of("sslmode", value("sslmode"), &SSL_MODES, without_mode)?;
    let mut servers = servers(value("host"), value("hostaddr"), value("port"), &here.socket_folder)?;
    for server in &mut servers {
        let password = value("password").map(str::to_owned);
        let host = host_in_pass_file(server, &here.socket_folder);
        let of_file = || pass_file::password(&here.passwords, &host, server.port, &database, &user);
        server.password = password.or_else(of_file).map(Password);
    }
    Ok(Settings {
        servers,
        ssl,
        trust: trust(ssl, value("sslrootcert"), here.root)?,
        binding: binding(value("channel_binding"), value("require_auth"), ssl)?,
        connect_timeout: connect_timeout(value("connect_timeout"))?,
        application: value("application_name").unwrap_or("plimsoll-fleet").to_owned(),
        options: value("options").map(str::to_owned),
        is_for_writing: one_of("target_session_attrs", value("target_session_attrs"), &TARGETS, false)?,
        open_pass_file: here.open_pass_file,
        user,
        database,
    })
}

/// How strongly a password is tied to TLS. PostgreSQL's client library for Rust can insist on no method of logging in, but
/// on this tie, which only SCRAM has: then no password is sent by any other method, and no server that asks for none is
/// accepted.
fn binding(stated: Option<&str>, required: Option<&str>, ssl: SslMode) -> Result<Binding, SettingsError> {
    let binding = one_of("channel_binding", stated, &BINDINGS, Binding::Prefer)?;
    match required {
        None => Ok(binding),
        Some("scram-sha-256") if binding != Binding::Disable && ssl != SslMode::Disable => {
            Ok(Binding::Require)
        }
        Some(_) => Err(SettingsError::RequireAuth),
    }
}

const BINDINGS: [(&str, Binding); 3] =
    [("disable", Binding::Disable), ("prefer", Binding::Prefer), ("require", Binding::Require)];
/// A board is of no use on a standby: its words are not taken.
const TARGETS: [(&str, bool); 3] = [("any", false), ("read-write", true), ("primary", true)];

fn one_of<T: Copy>(
    parameter: &'static str,
    value: Option<&str>,
    known: &[(&str, T)],
    otherwise: T,
) -> Result<T, SettingsError> {
    let expected = match parameter {
        "sslmode" => "disable, allow, prefer, require, verify-ca or verify-full",
        "channel_binding" => "disable, prefer or require",
        _ => "any, read-write or primary: a board is written to",
    };
    let Some(value) = value else { return Ok(otherwise) };
    let found = known.iter().find(|(name, _)| *name == value);
    found.map(|(_, meaning)| *meaning).ok_or(SettingsError::Value { parameter, expected })
}

fn connect_timeout(value: Option<&str>) -> Result<Duration, SettingsError> {
    let Some(value) = value else { return Ok(CONNECT_TIMEOUT) };
    let refused = SettingsError::Value { parameter: "connect_timeout", expected: "a number of seconds" };
    match value.trim().parse::<i64>().map_err(|_| refused)? {
        // Without end for libpq.
        ..=0 => Ok(CONNECT_TIMEOUT),
        seconds => Ok(Duration::from_secs(seconds.unsigned_abs().max(SHORTEST_TIMEOUT))),
    }
}

/// Whose certificate is accepted. As with libpq, a root that is there is used, whatever the mode.
fn trust(ssl: SslMode, stated: Option<&str>, default: Option<PathBuf>) -> Result<Trust, SettingsError> {
    let by_name = ssl == SslMode::VerifyFull;
    match stated {
        _ if ssl == SslMode::Disable => Ok(Trust::Anyone),
        Some("system") if by_name => Ok(Trust::System),
        Some("system") => Err(SettingsError::WeakSystem),
        Some(path) => Ok(Trust::File { path: path.into(), by_name }),
        None => match default {
            Some(path) => Ok(Trust::File { path, by_name }),
            None if matches!(ssl, SslMode::VerifyCa | SslMode::VerifyFull) => Err(SettingsError::NoRoot(ssl)),
            None => Ok(Trust::Anyone),
        },
    }
}

/// The servers of lists such as `host=a,b port=5432,5433`.
fn servers(
    hosts: Option<&str>,
    addresses: Option<&str>,
    ports: Option<&str>,
    socket_folder: &std::path::Path,
) -> Result<Vec<Server>, SettingsError> {
    let list = |text: Option<&str>| -> Vec<String> {
        text.map(|text| text.split(',').map(|part| part.trim().to_owned()).collect()).unwrap_or_default()
    };
    let (hosts, addresses, ports) = (list(hosts), list(addresses), list(ports));
    let count = hosts.len().max(addresses.len()).max(1);
    let fits = |length: usize| length == 0 || length == count;
    if !fits(hosts.len()) || !fits(addresses.len()) {
        return Err(SettingsError::Value {
            parameter: "hostaddr",
            expected: "as many as there are in `host`",
        });
    }
    if ports.len() > 1 && !fits(ports.len()) {
        return Err(SettingsError::Value {
            parameter: "port",
            expected: "one for all hosts, or one for each",
        });
    }
    let at = |list: &[String], place: usize| list.get(place).filter(|part| !part.is_empty()).cloned();
    (0..count)
        .map(|place| {
            let port = port(at(&ports, if ports.len() > 1 { place } else { 0 }))?;
            let place = place_of(at(&hosts, place), at(&addresses, place), socket_folder)?;
            Ok(Server { place, port, password: None })
        })
        .collect()
}

fn place_of(
    host: Option<String>,
    address: Option<String>,
    socket_folder: &std::path::Path,
) -> Result<Place, SettingsError> {
    let refused = SettingsError::Value { parameter: "hostaddr", expected: "an IP address" };
    let address: Option<IpAddr> = address.map(|text| text.parse().map_err(|_| refused)).transpose()?;
    Ok(match (host, address) {
        (Some(host), None) if host.starts_with('/') => Place::Socket(host.into()),
        (None, None) => Place::Socket(socket_folder.to_owned()),
        (host, address) => {
            let name = host.or_else(|| address.map(|address| address.to_string())).unwrap_or_default();
            Place::Host { name, address }
        }
    })
}

fn port(text: Option<String>) -> Result<u16, SettingsError> {
    let Some(text) = text else { return Ok(PORT) };
    let refused = SettingsError::Value { parameter: "port", expected: "a number from 1 to 65535" };
    text.parse().ok().filter(|port| *port > 0).ok_or(refused)
}

/// What the password file calls a server.
fn host_in_pass_file(server: &Server, socket_folder: &std::path::Path) -> String {
    match &server.place {
        Place::Socket(folder) if folder == socket_folder => "localhost".to_owned(),
        Place::Socket(folder) => folder.display().to_string(),
        Place::Host { name, .. } => name.clone(),
    }
}

#[cfg(test)]
mod tests;
