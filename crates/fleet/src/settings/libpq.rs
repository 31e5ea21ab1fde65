//! Every setting of libpq, and what becomes of it here: it is obeyed, or refused by name, or it makes no difference.
//!
//! A setting that is not obeyed must not be passed over in silence: whoever has set `PGREQUIREAUTH` or `PGSSLCRL` relies on it. The list
//! is that of PostgreSQL 19 with those of earlier versions.

use super::Parameters;

/// What becomes of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It means what it means to libpq.
    Honored,
    /// It is refused, unless its value is one of these, which say what is done in any case.
    Refused {
        /// Those values.
        except: &'static [&'static str],
        /// Why it matters.
        why: &'static str,
    },
    /// It makes no difference to a connection of ours, or only to how fast or how pretty something is.
    Ignored,
}

/// A setting: its keyword in an address or a service file, and its variable. Some have only one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LibpqSetting {
    pub(crate) keyword: Option<&'static str>,
    pub(crate) variable: Option<&'static str>,
    pub(crate) treatment: Treatment,
}

const fn setting(
    keyword: Option<&'static str>,
    variable: Option<&'static str>,
    treatment: Treatment,
) -> LibpqSetting {
    LibpqSetting { keyword, variable, treatment }
}
const fn honored(keyword: &'static str, variable: &'static str) -> LibpqSetting {
    setting(Some(keyword), Some(variable), Treatment::Honored)
}
const fn refused(
    keyword: &'static str,
    variable: Option<&'static str>,
    except: &'static [&'static str],
    why: &'static str,
) -> LibpqSetting {
    setting(Some(keyword), variable, Treatment::Refused { except, why })
}
const fn ignored(keyword: Option<&'static str>, variable: Option<&'static str>) -> LibpqSetting {
    setting(keyword, variable, Treatment::Ignored)
}

const NO_CERTIFICATE: &str =
    "no certificate of the client is sent, so a server that wants one refuses the connection";
const NO_REVOCATION: &str = "revoked certificates are not recognized, so one of them would be accepted";
const NO_OAUTH: &str = "logging in by OAuth is not supported";
const NO_SCRAM_KEY: &str = "only a password is supported, not the keys that are derived from it";
const OLD_TLS: &[&str] = &["TLSv1", "TLSv1.1", "TLSv1.2"];

/// All of them.
pub(crate) const LIBPQ_SETTINGS: [LibpqSetting; 63] = [
    honored("application_name", "PGAPPNAME"),
    honored("channel_binding", "PGCHANNELBINDING"),
    honored("connect_timeout", "PGCONNECT_TIMEOUT"),
    honored("dbname", "PGDATABASE"),
    honored("host", "PGHOST"),
    honored("hostaddr", "PGHOSTADDR"),
    honored("options", "PGOPTIONS"),
    honored("passfile", "PGPASSFILE"),
    honored("password", "PGPASSWORD"),
    honored("port", "PGPORT"),
    honored("require_auth", "PGREQUIREAUTH"),
    honored("service", "PGSERVICE"),
    honored("sslmode", "PGSSLMODE"),
    honored("sslrootcert", "PGSSLROOTCERT"),
    honored("target_session_attrs", "PGTARGETSESSIONATTRS"),
    honored("user", "PGUSER"),
    honored("requiressl", "PGREQUIRESSL"),
    setting(None, Some("PGSERVICEFILE"), Treatment::Honored),
    setting(None, Some("PGSYSCONFDIR"), Treatment::Honored),
    refused("servicefile", None, &[], "the service file is named by PGSERVICEFILE alone"),
    refused(
        "gssencmode",
        Some("PGGSSENCMODE"),
        &["disable", "prefer"],
        "there is no encryption by GSSAPI: use TLS",
    ),
    refused(
        "min_protocol_version",
        Some("PGMINPROTOCOLVERSION"),
        &["3.0"],
        "only version 3.0 of PostgreSQL's protocol is spoken",
    ),
    refused(
        "replication",
        None,
        &["false", "off", "no", "0"],
        "a connection for replication takes no statements",
    ),
    refused(
        "requirepeer",
        Some("PGREQUIREPEER"),
        &[],
        "the owner of a server behind a socket is not checked, so any user's server would be accepted",
    ),
    refused(
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        OLD_TLS,
        "TLS 1.2 and 1.3 are both accepted, and nothing older",
    ),
    refused(
        "ssl_max_protocol_version",
        Some("PGSSLMAXPROTOCOLVERSION"),
        &["TLSv1.3"],
        "TLS 1.2 and 1.3 are both accepted, and nothing older",
    ),
    refused("sslcert", Some("PGSSLCERT"), &[], NO_CERTIFICATE),
    refused("sslcertmode", Some("PGSSLCERTMODE"), &["disable", "allow"], NO_CERTIFICATE),
    refused("sslkey", Some("PGSSLKEY"), &[], NO_CERTIFICATE),
    refused("sslpassword", None, &[], NO_CERTIFICATE),
    refused("sslcrl", Some("PGSSLCRL"), &[], NO_REVOCATION),
    refused("sslcrldir", Some("PGSSLCRLDIR"), &[], NO_REVOCATION),
    refused("sslkeylogfile", None, &[], "keys of connections are written nowhere"),
    refused(
        "sslnegotiation",
        Some("PGSSLNEGOTIATION"),
        &["postgres"],
        "TLS begins only after PostgreSQL's own question for it",
    ),
    refused(
        "sslsni",
        Some("PGSSLSNI"),
        &["1"],
        "the server's name is sent when TLS begins, where a network can read it",
    ),
    refused("scram_client_key", None, &[], NO_SCRAM_KEY),
    refused("scram_server_key", None, &[], NO_SCRAM_KEY),
    refused("oauth_client_id", None, &[], NO_OAUTH),
    refused("oauth_client_secret", None, &[], NO_OAUTH),
    refused("oauth_issuer", None, &[], NO_OAUTH),
    refused("oauth_scope", None, &[], NO_OAUTH),
    ignored(Some("authtype"), None),
    ignored(Some("client_encoding"), Some("PGCLIENTENCODING")),
    ignored(Some("fallback_application_name"), None),
    // Nothing is delegated, and no ticket is used.
    ignored(Some("gssdelegation"), Some("PGGSSDELEGATION")),
    ignored(Some("gsslib"), Some("PGGSSLIB")),
    ignored(Some("krbsrvname"), Some("PGKRBSRVNAME")),
    // Ours are the same everywhere.
    ignored(Some("keepalives"), None),
    ignored(Some("keepalives_count"), None),
    ignored(Some("keepalives_idle"), None),
    ignored(Some("keepalives_interval"), None),
    ignored(Some("tcp_user_timeout"), None),
    ignored(Some("load_balance_hosts"), Some("PGLOADBALANCEHOSTS")),
    ignored(Some("max_protocol_version"), Some("PGMAXPROTOCOLVERSION")),
    ignored(Some("oauth_ca_file"), Some("PGOAUTHCAFILE")),
    // TLS is never compressed.
    ignored(Some("sslcompression"), Some("PGSSLCOMPRESSION")),
    ignored(Some("tty"), Some("PGTTY")),
    ignored(None, Some("PGDATESTYLE")),
    ignored(None, Some("PGGEQO")),
    ignored(None, Some("PGLOCALEDIR")),
    ignored(None, Some("PGOAUTHDEBUG")),
    ignored(None, Some("PGREALM")),
    ignored(None, Some("PGTZ")),
];

/// The first setting that is stated and refused, with its names and why it matters.
pub(crate) fn refused_setting(parameters: &Parameters) -> Option<(String, &'static str)> {
    LIBPQ_SETTINGS.iter().find_map(|setting| {
        let Treatment::Refused { except, why } = setting.treatment else { return None };
        let keyword = setting.keyword?;
        let value = parameters.get(keyword).filter(|value| !value.is_empty())?;
        if except.contains(&value.as_str()) {
            return None;
        }
        let variable = setting.variable.map(|name| format!(" ({name})")).unwrap_or_default();
        Some((format!("`{keyword}`{variable}"), why))
    })
}
