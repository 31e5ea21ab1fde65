//! Every parameter of libpq: each is supported, rejected by name, or ignored because it makes no difference.
//!
//! An unsupported parameter must not be ignored silently: a user who sets `PGREQUIREAUTH` or `PGSSLCRL` relies on it. The
//! list covers PostgreSQL 19 and earlier versions.

use super::Parameters;

/// Supported with libpq's meaning: the keyword in an address or a service file, and the variable.
pub(crate) const SUPPORTED_PARAMETERS: [(&str, &str); 17] = [
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

/// Rejected, except for values that match this program's behavior: keyword, variable (may be empty) and allowed values.
pub(crate) const REJECTED_PARAMETERS: [(&str, &str, &[&str]); 22] = [
    // TLS is the only encryption, and it starts after PostgreSQL's own TLS request.
    ("gssencmode", "PGGSSENCMODE", &["disable", "prefer"]),
    ("sslnegotiation", "PGSSLNEGOTIATION", &["postgres"]),
    ("sslsni", "PGSSLSNI", &["1"]),
    // TLS 1.2 and 1.3 are accepted, and PostgreSQL's protocol has version 3.0.
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", &["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", &["TLSv1.3"]),
    ("min_protocol_version", "PGMINPROTOCOLVERSION", &["3.0"]),
    // No client certificate is sent.
    ("sslcert", "PGSSLCERT", &[]),
    ("sslcertmode", "PGSSLCERTMODE", &["disable", "allow"]),
    ("sslkey", "PGSSLKEY", &[]),
    ("sslpassword", "", &[]),
    // Revoked certificates are not detected.
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

/// Ignored, because they do not affect this program's connections, or only their speed or appearance.
pub(crate) const IGNORED_PARAMETERS: [&str; 16] = [
    "authtype",
    "client_encoding",
    "fallback_application_name",
    // Nothing is delegated, and no ticket is used.
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    // Always set to fixed values.
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

/// Returns the keyword and variable, for an error message, of the first parameter that is set to a rejected value.
pub(crate) fn describe_first_rejected_setting(parameters: &Parameters) -> Option<String> {
    let is_rejected = |(keyword, _, allowed_values): &&(&str, &str, &[&str])| {
        let value = parameters.get(keyword).filter(|value| !value.is_empty());
        value.is_some_and(|value| !allowed_values.contains(&value.as_str()))
    };
    let (keyword, variable, _) = REJECTED_PARAMETERS.iter().find(is_rejected)?;
    let variable_suffix = if variable.is_empty() { String::new() } else { format!(" ({variable})") };
    Some(format!("`{keyword}`{variable_suffix}"))
}
