//! How the database is reached, as the users of libpq say it: `PLIMSOLL_DATABASE_URL` first, then a section of the service file,
//! then libpq's variables. Pure; [`crate::found`] reads the files and variables.
//!
//! No error repeats a value: a password that was not encoded can be a part of any of them.

mod connection_string;
pub(crate) mod libpq;
pub(crate) mod pass_file;
pub(crate) mod service_file;

pub(crate) use connection_string::parse as of_connection_string;

use libpq::{HONORED, IGNORED, REFUSED};
use postgres::Config;
use postgres::config::{ChannelBinding, Host, TargetSessionAttrs};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Values by libpq's keywords.
pub(crate) type Parameters = BTreeMap<&'static str, String>;

/// libpq waits without end; nobody is there to end that.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// libpq's least: one second is often too short.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(2);
const PORT: u16 = 5432;

/// Sent data that is never confirmed ends a connection after this time, and a silent connection is probed after this time.
const UNCONFIRMED: Duration = Duration::from_secs(30);
const KEEPALIVE: Duration = Duration::from_secs(30);

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
        "{0} is set, which is not supported: unset it, or state in PLIMSOLL_DATABASE_URL what is done here (docs/fleet.md)"
    )]
    Unsupported(String),
    /// A way to log in that cannot be insisted on.
    #[error(
        "`require_auth` (PGREQUIREAUTH) can only be scram-sha-256 here, which is then tied to TLS as by channel_binding=require: with channel_binding=disable, without TLS and for every other method it cannot be ensured"
    )]
    RequireAuth,
    /// A value that means nothing.
    #[error("a connection parameter cannot be used: {0}")]
    Value(String),
    /// Lists of servers that do not fit each other.
    #[error("the connection parameter `{0}` has more or fewer elements than there are servers")]
    Lists(&'static str),
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

/// How much TLS, with libpq's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
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

/// One of the servers, with everything that the client library is told.
#[derive(Debug, Clone)]
pub struct Server(pub(crate) Config);

impl Server {
    /// Returns the folder of its socket, if it listens on one.
    pub(crate) fn socket_folder(&self) -> Option<&Path> {
        match self.0.get_hosts().first()? {
            Host::Unix(folder) => Some(folder),
            Host::Tcp(_) => None,
        }
    }

    /// Returns the name that its certificate is for; empty for a socket.
    pub(crate) fn host_name(&self) -> &str {
        match self.0.get_hosts().first() {
            Some(Host::Tcp(name)) => name,
            Some(Host::Unix(_)) | None => "",
        }
    }

    fn port(&self) -> u16 {
        self.0.get_ports().first().copied().unwrap_or_default()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket_folder() {
            Some(folder) => write!(formatter, "{}/.s.PGSQL.{}", folder.display(), self.port()),
            None => write!(formatter, "{}:{}", self.host_name(), self.port()),
        }
    }
}

/// How the database is reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Tried in this order.
    pub servers: Vec<Server>,
    /// How much TLS.
    pub ssl: SslMode,
    /// Whom to trust.
    pub trust: Trust,
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
    let honored = HONORED.iter().map(|(keyword, _)| *keyword);
    let refused = REFUSED.iter().map(|(keyword, ..)| *keyword);
    honored.chain(refused).chain(IGNORED).find(|keyword| *keyword == name)
}

/// What libpq's variables say.
pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Parameters {
    let refused = REFUSED.iter().map(|(keyword, name, _)| (*keyword, *name));
    let stated = HONORED.iter().copied().chain(refused).filter_map(|(keyword, name)| {
        let value = variable(name).filter(|value| !name.is_empty() && !value.is_empty())?;
        Some((keyword, value))
    });
    stated.collect()
}

/// The settings that these parameters mean.
pub(crate) fn settings(parameters: &Parameters, here: Here) -> Result<Settings, SettingsError> {
    if let Some(name) = libpq::refused_setting(parameters) {
        return Err(SettingsError::Unsupported(name));
    }
    let value = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
    // As with libpq, the older name counts where the newer one is not set.
    let ssl = match (value("sslmode"), value("requiressl")) {
        (Some(mode), _) => {
            mode.parse().map_err(|_| SettingsError::Value("invalid value for option `sslmode`".to_owned()))?
        }
        (None, Some(required)) if required.starts_with('1') => SslMode::Require,
        (None, _) => SslMode::Prefer,
    };
    Ok(Settings {
        servers: servers(parameters, ssl, &here)?,
        ssl,
        trust: trust(ssl, value("sslrootcert"), here.root)?,
        open_pass_file: here.open_pass_file,
    })
}

/// The keywords that PostgreSQL's client library for Rust reads by itself.
const READ_BY_LIBRARY: [&str; 11] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "target_session_attrs",
    "user",
];

/// The servers of lists such as `host=a,b port=5432,5433`.
fn servers(parameters: &Parameters, ssl: SslMode, here: &Here) -> Result<Vec<Server>, SettingsError> {
    let list = |name: &str| -> Vec<&str> {
        let value = parameters.get(name).filter(|value| !value.is_empty());
        value.map(|value| value.split(',').map(str::trim).collect()).unwrap_or_default()
    };
    let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = hosts.len().max(addresses.len()).max(1);
    for (name, length) in [("host", hosts.len()), ("hostaddr", addresses.len()), ("port", ports.len())] {
        let is_for_all = length == 0 || name == "port" && length == 1;
        if !is_for_all && length != count {
            return Err(SettingsError::Lists(name));
        }
    }
    let at = |list: &[&str], place: usize| list.get(place).copied().unwrap_or_default().to_owned();
    let server = |place: usize| {
        let address = at(&addresses, place);
        let host = Some(at(&hosts, place)).filter(|host| !host.is_empty()).unwrap_or_else(|| address.clone());
        let port = at(&ports, if ports.len() > 1 { place } else { 0 });
        let mut parameters = parameters.clone();
        parameters.extend([("host", host), ("hostaddr", address), ("port", port)]);
        Ok(Server(client_config(&parameters, ssl, here)?))
    };
    (0..count).map(server).collect()
}

/// Returns the configuration of the client library for one server.
fn client_config(parameters: &Parameters, ssl: SslMode, here: &Here) -> Result<Config, SettingsError> {
    let stated = |name: &str| parameters.get(name).filter(|value| !value.is_empty());
    let pair = |name: &&str| {
        // A board is of no use on a standby: both words mean that it can be written to.
        let value = match stated(name)?.as_str() {
            "primary" if *name == "target_session_attrs" => "read-write",
            value => value,
        };
        Some(format!("{name}='{}' ", value.replace('\\', r"\\").replace('\'', r"\'")))
    };
    let text: String = READ_BY_LIBRARY.iter().filter_map(pair).collect();
    // The library's reason names the parameter without its value.
    let reason = |error: postgres::Error| error.source().map_or_else(String::new, ToString::to_string);
    let mut config: Config = text.parse().map_err(|error| SettingsError::Value(reason(error)))?;
    if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
        return Err(SettingsError::Value(
            "a board is written to, `target_session_attrs` excludes that".to_owned(),
        ));
    }
    if config.get_hosts().is_empty() {
        config.host_path(&here.socket_folder);
    }
    if config.get_ports().is_empty() {
        config.port(PORT);
    }
    let user = stated("user").cloned().or_else(|| here.user.clone()).ok_or(SettingsError::NoUser)?;
    if config.get_dbname().is_none() {
        config.dbname(&user);
    }
    config.user(&user);
    if config.get_application_name().is_none() {
        config.application_name("plimsoll-fleet");
    }
    let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
    let binding = binding(config.get_channel_binding(), stated("require_auth"), ssl)?;
    config
        .connect_timeout(connect_timeout.max(SHORTEST_TIMEOUT))
        .tcp_user_timeout(UNCONFIRMED)
        .keepalives_idle(KEEPALIVE)
        .channel_binding(binding);
    if stated("password").is_none() {
        let server = Server(config.clone());
        let host = match server.socket_folder() {
            Some(folder) if folder == here.socket_folder => "localhost".to_owned(),
            Some(folder) => folder.display().to_string(),
            None => server.host_name().to_owned(),
        };
        let database = config.get_dbname().unwrap_or_default();
        let known = pass_file::password(&here.passwords, &host, server.port(), database, &user);
        known.iter().for_each(|password| _ = config.password(password));
    }
    Ok(config)
}

/// How strongly a password is tied to TLS. PostgreSQL's client library for Rust can insist on no method of logging in, but
/// on this tie, which only SCRAM has: then no password is sent by any other method, and no server that asks for none is
/// accepted.
fn binding(
    stated: ChannelBinding,
    required: Option<&String>,
    ssl: SslMode,
) -> Result<ChannelBinding, SettingsError> {
    match required.map(String::as_str) {
        None => Ok(stated),
        Some("scram-sha-256") if stated != ChannelBinding::Disable && ssl != SslMode::Disable => {
            Ok(ChannelBinding::Require)
        }
        Some(_) => Err(SettingsError::RequireAuth),
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

#[cfg(test)]
mod tests;
