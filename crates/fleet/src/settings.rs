//! How to connect to the database, as with libpq: `PLIMSOLL_DATABASE_URL` first, then a section of the service file, then libpq's
//! variables. This module does no I/O; [`crate::settings_loader`] reads files and variables.
//!
//! No error repeats a value, because any value may contain a part of a password that was not encoded.

mod connection_string;
pub(crate) mod libpq;
mod local_server;
pub(crate) mod pass_file;
pub(crate) mod service_file;

pub(crate) use connection_string::{
    parse_url_or_keyword_list as parse_connection_string, url_with_credentials,
};

use libpq::{IGNORED_PARAMETERS, REJECTED_PARAMETERS, SUPPORTED_PARAMETERS};
use postgres::Config;
use postgres::config::{ChannelBinding, TargetSessionAttrs};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Values by libpq keyword.
pub(crate) type Parameters = BTreeMap<&'static str, String>;

/// libpq waits without limit by default, but an unattended run has no user to interrupt it.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// libpq's minimum, because one second is often too short.
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const DEFAULT_PORT: u16 = 5432;

/// The connection is closed if sent data is not acknowledged for this long. An idle connection is probed after the same time.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE_IDLE_TIME: Duration = Duration::from_secs(30);

/// An error in the connection settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("the address of the database is neither postgresql://… nor a list of keyword=value")]
    NoAddress,
    #[error(
        "the address of the database cannot be read: in postgresql://… encode `@`, `/`, `:`, `?` and `%` in a name or password as %40, %2F, %3A, %3F and %25; in a list put quotes around a value with blanks"
    )]
    MalformedAddress,
    #[error("the database address or the service file has an unknown connection parameter")]
    UnknownParameter,
    #[error("{0} is set but not supported: unset it, or use PLIMSOLL_DATABASE_URL instead (docs/fleet.md)")]
    UnsupportedSetting(String),
    #[error(
        "`require_auth` (PGREQUIREAUTH) can only be scram-sha-256 here, which is then tied to TLS as by channel_binding=require: with channel_binding=disable, without TLS and for every other method it cannot be ensured"
    )]
    UnsupportedRequireAuth,
    #[error("a connection parameter cannot be used: {0}")]
    InvalidValue(String),
    #[error("the connection parameter `{0}` has more or fewer elements than there are servers")]
    ListLengthMismatch(&'static str),
    #[error("the service that PGSERVICE names is not in {0}")]
    ServiceNotFound(String),
    #[error("line {line} of {path} is neither [a section] nor keyword=value")]
    InvalidServiceLine {
        path: String,
        /// Counted from 1.
        line: usize,
    },
    /// The mode requires a root certificate, and there is none.
    #[error(
        "sslmode={0} needs the certificate that the server's is checked against: name its file in PGSSLROOTCERT, or put it at ~/.postgresql/root.crt"
    )]
    NoRootCertificate(SslMode),
    /// The certificates of this computer are trusted only together with a check of the host name.
    #[error("sslrootcert=system needs sslmode=verify-full")]
    SystemRootsNeedVerifyFull,
    #[error("no user is set (PGUSER), and the current user is unknown")]
    NoUser,
}

/// The TLS mode, with libpq's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS only if the server refuses a connection without it.
    Allow,
    /// TLS if the server has it.
    Prefer,
    /// TLS, with any certificate.
    Require,
    /// TLS, with a certificate of a trusted authority.
    VerifyCa,
    /// TLS, with a trusted certificate for this host.
    VerifyFull,
}

/// Which certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateTrust {
    /// Any certificate: protects against eavesdropping, not against impersonation.
    Any,
    /// Certificates signed by those in this file.
    File {
        /// A PEM file.
        path: PathBuf,
        /// Whether the certificate must be for the host's name.
        checks_host_name: bool,
    },
    /// Certificates signed by those that this computer trusts, for the host's name.
    System,
}

/// One server with the complete configuration of the client library.
#[derive(Debug, Clone)]
pub struct Server(pub(crate) Config);

impl Server {
    /// Returns the folder of the Unix socket, or `None` for TCP.
    pub(crate) fn socket_folder(&self) -> Option<&Path> {
        local_server::socket_folder(self.0.get_hosts().first()?)
    }

    /// Returns the host name that the certificate must have; empty for a socket.
    pub(crate) fn host_name(&self) -> &str {
        self.0.get_hosts().first().map_or("", local_server::host_name)
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

/// How to connect to the database.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// Tried in this order.
    pub servers: Vec<Server>,
    pub ssl_mode: SslMode,
    pub certificate_trust: CertificateTrust,
    /// A password file that is ignored because others may read it.
    pub insecure_pass_file: Option<PathBuf>,
}

/// Defaults of this computer and user.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalDefaults {
    /// The name of the current user.
    pub(crate) system_user: Option<String>,
    /// Folder of Unix sockets.
    pub(crate) socket_folder: PathBuf,
    /// `~/.postgresql/root.crt`, if it exists.
    pub(crate) root_certificate: Option<PathBuf>,
    /// The text of the password file, unless others may read it.
    pub(crate) pass_file_text: String,
    /// The path of the password file if others may read it.
    pub(crate) insecure_pass_file: Option<PathBuf>,
}

/// Returns the static keyword for a name, or `None` if libpq has no such keyword.
pub(crate) fn find_keyword(name: &str) -> Option<&'static str> {
    let supported_keywords = SUPPORTED_PARAMETERS.iter().map(|(keyword, _)| *keyword);
    let rejected_keywords = REJECTED_PARAMETERS.iter().map(|(keyword, ..)| *keyword);
    supported_keywords.chain(rejected_keywords).chain(IGNORED_PARAMETERS).find(|keyword| *keyword == name)
}

/// Reads parameters from libpq's environment variables.
pub(crate) fn parameters_from_environment(lookup: impl Fn(&str) -> Option<String>) -> Parameters {
    let rejected_parameters = REJECTED_PARAMETERS.iter().map(|(keyword, name, _)| (*keyword, *name));
    let non_empty_parameters =
        SUPPORTED_PARAMETERS.iter().copied().chain(rejected_parameters).filter_map(|(keyword, name)| {
            let value = lookup(name).filter(|value| !name.is_empty() && !value.is_empty())?;
            Some((keyword, value))
        });
    non_empty_parameters.collect()
}

/// Builds the connection settings. Fails if a parameter is not supported or a value is invalid.
pub(crate) fn settings_from_parameters(
    parameters: &Parameters,
    defaults: LocalDefaults,
) -> Result<ConnectionSettings, SettingsError> {
    if let Some(name) = libpq::describe_first_rejected_setting(parameters) {
        return Err(SettingsError::UnsupportedSetting(name));
    }
    let non_empty_value =
        |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
    // As in libpq, the older `requiressl` counts only if `sslmode` is not set.
    let ssl_mode = match (non_empty_value("sslmode"), non_empty_value("requiressl")) {
        (Some(mode), _) => mode
            .parse()
            .map_err(|_| SettingsError::InvalidValue("invalid value for option `sslmode`".to_owned()))?,
        (None, Some(requiressl)) if requiressl.starts_with('1') => SslMode::Require,
        (None, _) => SslMode::Prefer,
    };
    Ok(ConnectionSettings {
        servers: servers_from_lists(parameters, ssl_mode, &defaults)?,
        ssl_mode,
        certificate_trust: certificate_trust(
            ssl_mode,
            non_empty_value("sslrootcert"),
            defaults.root_certificate,
        )?,
        insecure_pass_file: defaults.insecure_pass_file,
    })
}

/// The keywords that the PostgreSQL client library for Rust parses.
const KEYWORDS_PARSED_BY_LIBRARY: [&str; 11] = [
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

/// Splits lists such as `host=a,b port=5432,5433` into servers.
fn servers_from_lists(
    parameters: &Parameters,
    ssl_mode: SslMode,
    defaults: &LocalDefaults,
) -> Result<Vec<Server>, SettingsError> {
    let list_values = |name: &str| -> Vec<&str> {
        let value = parameters.get(name).filter(|value| !value.is_empty());
        value.map(|value| value.split(',').map(str::trim).collect()).unwrap_or_default()
    };
    let (hosts, addresses, ports) = (list_values("host"), list_values("hostaddr"), list_values("port"));
    let server_count = hosts.len().max(addresses.len()).max(1);
    for (name, length) in [("host", hosts.len()), ("hostaddr", addresses.len()), ("port", ports.len())] {
        let is_shared_by_all = length == 0 || name == "port" && length == 1;
        if !is_shared_by_all && length != server_count {
            return Err(SettingsError::ListLengthMismatch(name));
        }
    }
    let element_or_empty =
        |list: &[&str], index: usize| list.get(index).copied().unwrap_or_default().to_owned();
    let server_from_elements = |index: usize| {
        let address = element_or_empty(&addresses, index);
        let host = Some(element_or_empty(&hosts, index))
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| address.clone());
        let port = element_or_empty(&ports, if ports.len() > 1 { index } else { 0 });
        let mut server_parameters = parameters.clone();
        server_parameters.extend([("host", host), ("hostaddr", address), ("port", port)]);
        Ok(Server(client_config(&server_parameters, ssl_mode, defaults)?))
    };
    (0..server_count).map(server_from_elements).collect()
}

/// Returns the configuration of the client library for one server.
fn client_config(
    parameters: &Parameters,
    ssl_mode: SslMode,
    defaults: &LocalDefaults,
) -> Result<Config, SettingsError> {
    let non_empty_value = |name: &str| parameters.get(name).filter(|value| !value.is_empty());
    let keyword_and_value = |name: &&str| {
        // A board must be writable, so `primary` and `read-write` mean the same here.
        let value = match non_empty_value(name)?.as_str() {
            "primary" if *name == "target_session_attrs" => "read-write",
            value => value,
        };
        Some(format!("{name}='{}' ", value.replace('\\', r"\\").replace('\'', r"\'")))
    };
    let connection_string: String = KEYWORDS_PARSED_BY_LIBRARY.iter().filter_map(keyword_and_value).collect();
    // The library's error names the parameter without its value.
    let error_reason = |error: postgres::Error| error.source().map_or_else(String::new, ToString::to_string);
    let mut config: Config =
        connection_string.parse().map_err(|error| SettingsError::InvalidValue(error_reason(error)))?;
    if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
        return Err(SettingsError::InvalidValue(
            "a board is written to, `target_session_attrs` excludes that".to_owned(),
        ));
    }
    if config.get_hosts().is_empty() {
        local_server::set_default_host(&mut config, &defaults.socket_folder);
    }
    if config.get_ports().is_empty() {
        config.port(DEFAULT_PORT);
    }
    let user = non_empty_value("user")
        .cloned()
        .or_else(|| defaults.system_user.clone())
        .ok_or(SettingsError::NoUser)?;
    if config.get_dbname().is_none() {
        config.dbname(&user);
    }
    config.user(&user);
    if config.get_application_name().is_none() {
        config.application_name("plimsoll-fleet");
    }
    let connect_timeout = config.get_connect_timeout().copied().unwrap_or(DEFAULT_CONNECT_TIMEOUT);
    let channel_binding = channel_binding_enforcing_required_auth(
        config.get_channel_binding(),
        non_empty_value("require_auth"),
        ssl_mode,
    )?;
    config
        .connect_timeout(connect_timeout.max(MIN_CONNECT_TIMEOUT))
        .tcp_user_timeout(TCP_USER_TIMEOUT)
        .keepalives_idle(KEEPALIVE_IDLE_TIME)
        .channel_binding(channel_binding);
    if non_empty_value("password").is_none() {
        let server = Server(config.clone());
        let host = match server.socket_folder() {
            Some(folder) if folder == defaults.socket_folder => "localhost".to_owned(),
            Some(folder) => folder.display().to_string(),
            None => server.host_name().to_owned(),
        };
        let database = config.get_dbname().unwrap_or_default();
        let password =
            pass_file::find_password(&defaults.pass_file_text, &host, server.port(), database, &user);
        password.iter().for_each(|password| _ = config.password(password));
    }
    Ok(config)
}

/// Returns the channel binding mode, or an error if it cannot enforce `required_auth`. The PostgreSQL client library for
/// Rust cannot require a login method, but it can require channel binding, which only SCRAM has. It then uses no other
/// login method, and rejects a server that requests none.
fn channel_binding_enforcing_required_auth(
    configured_binding: ChannelBinding,
    required_auth: Option<&String>,
    ssl_mode: SslMode,
) -> Result<ChannelBinding, SettingsError> {
    match required_auth.map(String::as_str) {
        None => Ok(configured_binding),
        Some("scram-sha-256")
            if configured_binding != ChannelBinding::Disable && ssl_mode != SslMode::Disable =>
        {
            Ok(ChannelBinding::Require)
        }
        Some(_) => Err(SettingsError::UnsupportedRequireAuth),
    }
}

/// Returns which certificates are accepted. As in libpq, an existing root certificate is used in every mode.
fn certificate_trust(
    ssl_mode: SslMode,
    root_certificate_setting: Option<&str>,
    default_root_certificate_path: Option<PathBuf>,
) -> Result<CertificateTrust, SettingsError> {
    let checks_host_name = ssl_mode == SslMode::VerifyFull;
    match root_certificate_setting {
        _ if ssl_mode == SslMode::Disable => Ok(CertificateTrust::Any),
        Some("system") if checks_host_name => Ok(CertificateTrust::System),
        Some("system") => Err(SettingsError::SystemRootsNeedVerifyFull),
        Some(path) => Ok(CertificateTrust::File { path: path.into(), checks_host_name }),
        None => match default_root_certificate_path {
            Some(path) => Ok(CertificateTrust::File { path, checks_host_name }),
            None if matches!(ssl_mode, SslMode::VerifyCa | SslMode::VerifyFull) => {
                Err(SettingsError::NoRootCertificate(ssl_mode))
            }
            None => Ok(CertificateTrust::Any),
        },
    }
}

#[cfg(test)]
mod tests;
