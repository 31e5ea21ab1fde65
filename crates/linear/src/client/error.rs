//! What can go wrong between here and Linear, and what to do about it.

use std::time::Duration;

/// Why an operation was not answered as it should be. No variant holds the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinearError {
    /// The address in `LINEAR_API_URL` cannot be used.
    #[error("the address in LINEAR_API_URL cannot be used: {what}")]
    Endpoint {
        /// What is wrong with it.
        what: &'static str,
    },
    /// This computer has no root certificates.
    #[error("{why}")]
    Certificates {
        /// What the search said.
        why: String,
    },
    /// No server was reached.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The computer that was asked.
        host: String,
        /// What the system said.
        why: String,
    },
    /// There was no answer in time.
    #[error("{host} did not answer within {} s", limit.as_secs_f32().ceil())]
    Silent {
        /// The computer that was asked.
        host: String,
        /// How long it had.
        limit: Duration,
    },
    /// The connection is not what it should be: a certificate, a protocol.
    #[error("no secure connection to {host}: {why}")]
    Tls {
        /// The computer that was asked.
        host: String,
        /// What TLS said.
        why: String,
    },
    /// Too many requests.
    #[error("Linear asks us to wait: too many requests")]
    Limited {
        /// How long.
        wait: Wait,
    },
    /// The key is wrong.
    #[error("Linear rejects the key: {said}")]
    Unauthorized {
        /// Linear's words.
        said: String,
    },
    /// The key does not allow it.
    #[error("Linear does not allow it: {said}")]
    Forbidden {
        /// Linear's words.
        said: String,
    },
    /// The operation was understood and refused.
    #[error("Linear refuses: {}", joined(errors))]
    Refused {
        /// Each of its errors.
        errors: Vec<GraphError>,
    },
    /// The server has a fault.
    #[error("{host} answered with the status {status}{}", colon(said))]
    Server {
        /// The computer that was asked.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of what it said.
        said: String,
    },
    /// Something answered that does not speak as Linear does.
    #[error("{host} does not answer as Linear does: {what}")]
    Strange {
        /// The computer that was asked.
        host: String,
        /// What is strange.
        what: String,
    },
}

/// One error of a GraphQL answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GraphError {
    /// What it says to people.
    pub(crate) message: String,
    /// Its code; empty if there is none.
    pub(crate) code: String,
    /// The field it is about, such as `commentCreate.comment`.
    pub(crate) path: String,
}

impl std::fmt::Display for GraphError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)?;
        match (self.code.as_str(), self.path.as_str()) {
            ("", "") => Ok(()),
            ("", path) => write!(formatter, " (at {path})"),
            (code, "") => write!(formatter, " ({code})"),
            (code, path) => write!(formatter, " ({code}, at {path})"),
        }
    }
}

/// How long Linear wants to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until this moment, in milliseconds since the beginning of 1970.
    Until(u64),
    /// For how long.
    For(Duration),
    /// It does not say.
    Unknown,
}

impl LinearError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            LinearError::Endpoint { .. } => "unset LINEAR_API_URL, or let it begin with https://",
            LinearError::Certificates { .. } => {
                "install the package ca-certificates, or name a file of them in SSL_CERT_FILE"
            }
            LinearError::Unreachable { .. } => {
                "check the network; behind a proxy set HTTPS_PROXY (and NO_PROXY)"
            }
            LinearError::Silent { .. } => "check the network; try again later",
            LinearError::Tls { .. } => {
                "check the clock and the proxy; set SSL_CERT_FILE to a company's own certificate"
            }
            LinearError::Limited { .. } => "try again after that time",
            LinearError::Unauthorized { .. } => {
                "make a new key in Linear (Settings, Security & access, Personal API keys) and set LINEAR_API_KEY"
            }
            LinearError::Forbidden { .. } => {
                "use a key that may read and write, of a user who has access to the team"
            }
            LinearError::Refused { .. } => "check linear.issue; `plimsoll linear check` checks each part",
            LinearError::Server { .. } => "try again later; see https://linearstatus.com",
            LinearError::Strange { .. } => "check LINEAR_API_URL and the proxy",
        }
    }

    /// True for what may be better in a second.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            LinearError::Unreachable { .. } | LinearError::Silent { .. } | LinearError::Server { .. }
        )
    }

    /// True when Linear says that what was named is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        let LinearError::Refused { errors } = self else { return false };
        errors.iter().any(|error| error.message.to_lowercase().contains("not found"))
    }
}

fn joined(errors: &[GraphError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn colon(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}
