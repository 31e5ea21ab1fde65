//! Every setting of libpq, and what becomes of it here: it is obeyed, or refused by name, or it makes no difference.
//!
//! A setting that is not obeyed must not be passed over in silence: whoever has set `PGREQUIREAUTH` or `PGSSLCRL` relies on it. The list
//! is that of PostgreSQL 19 with those of earlier versions.

use super::Parameters;

/// Means what it means to libpq: the keyword in an address or a service file, and the variable.
pub(crate) const HONORED: [(&str, &str); 17] = [
    ("application_name", "PGAPPNAME"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("dbname", "PGDATABASE"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("options", "PGOPTIONS"),
    ("passfile", "PGPASSFILE"),
    ("password", "PGPASSWORD"),
    ("port", "PGPORT"),
    ("require_auth", "PGREQUIREAUTH"),
    ("requiressl", "PGREQUIRESSL"),
    ("service", "PGSERVICE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("user", "PGUSER"),
];

/// Refused, unless the value is one of these, which say what is done in any case. Some have no variable.
pub(crate) const REFUSED: [(&str, &str, &[&str]); 22] = [
    // Only TLS encrypts, and begins after PostgreSQL's own question for it.
    ("gssencmode", "PGGSSENCMODE", &["disable", "prefer"]),
    ("sslnegotiation", "PGSSLNEGOTIATION", &["postgres"]),
    ("sslsni", "PGSSLSNI", &["1"]),
    // TLS 1.2 and 1.3 are accepted, and version 3.0 of PostgreSQL's protocol is spoken.
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", &["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", &["TLSv1.3"]),
    ("min_protocol_version", "PGMINPROTOCOLVERSION", &["3.0"]),
    // No certificate of the client is sent.
    ("sslcert", "PGSSLCERT", &[]),
    ("sslcertmode", "PGSSLCERTMODE", &["disable", "allow"]),
    ("sslkey", "PGSSLKEY", &[]),
    ("sslpassword", "", &[]),
    // Revoked certificates are not recognized.
    ("sslcrl", "PGSSLCRL", &[]),
    ("sslcrldir", "PGSSLCRLDIR", &[]),
    // The owner of a server behind a socket is not checked.
    ("requirepeer", "PGREQUIREPEER", &[]),
    ("replication", "", &["false", "off", "no", "0"]),
    ("servicefile", "", &[]),
    ("sslkeylogfile", "", &[]),
    // A password is the only way to log in.
    ("scram_client_key", "", &[]),
    ("scram_server_key", "", &[]),
    ("oauth_client_id", "", &[]),
    ("oauth_client_secret", "", &[]),
    ("oauth_issuer", "", &[]),
    ("oauth_scope", "", &[]),
];

/// Makes no difference to a connection of ours, or only to how fast or how pretty something is.
pub(crate) const IGNORED: [&str; 16] = [
    "authtype",
    "client_encoding",
    "fallback_application_name",
    // Nothing is delegated, and no ticket is used.
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    // Ours are the same everywhere.
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "tcp_user_timeout",
    "load_balance_hosts",
    "max_protocol_version",
    "oauth_ca_file",
    // TLS is never compressed.
    "sslcompression",
    "tty",
];

/// The first setting that is stated and refused, by its names.
pub(crate) fn refused_setting(parameters: &Parameters) -> Option<String> {
    let is_refused = |(keyword, _, except): &&(&str, &str, &[&str])| {
        let value = parameters.get(keyword).filter(|value| !value.is_empty());
        value.is_some_and(|value| !except.contains(&value.as_str()))
    };
    let (keyword, variable, _) = REFUSED.iter().find(is_refused)?;
    let variable = if variable.is_empty() { String::new() } else { format!(" ({variable})") };
    Some(format!("`{keyword}`{variable}"))
}
