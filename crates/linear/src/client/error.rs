//! Errors of requests to Linear, with advice for the user.

use std::time::Duration;

/// An error of an operation. No variant contains the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinearError {
    /// The address in `LINEAR_API_URL` cannot be used.
    #[error("the address in LINEAR_API_URL cannot be used: {problem}")]
    InvalidEndpoint { problem: &'static str },
    /// This computer has no root certificates.
    #[error("{reason}")]
    NoCertificates { reason: String },
    /// No server was reached.
    #[error("{host} cannot be reached: {reason}")]
    Unreachable { host: String, reason: String },
    /// No response arrived in time.
    #[error("{host} did not answer within {} s", timeout.as_secs_f32().ceil())]
    Timeout { host: String, timeout: Duration },
    /// The connection is not secure: a certificate or protocol is wrong.
    #[error("no secure connection to {host}: {reason}")]
    Tls { host: String, reason: String },
    /// Too many requests.
    #[error("Linear asks to wait: too many requests")]
    RateLimited { requested_wait: RequestedWait },
    /// The key is invalid.
    #[error("Linear rejects the key: {message}")]
    Unauthorized {
        /// Linear's error message.
        message: String,
    },
    /// The key lacks a permission.
    #[error("Linear does not allow it: {message}")]
    Forbidden {
        /// Linear's error message.
        message: String,
    },
    /// Linear rejected the operation with GraphQL errors.
    #[error("Linear refuses: {}", join_errors(errors))]
    Rejected { errors: Vec<GraphqlError> },
    /// The server failed (status 5xx).
    #[error("{host} answered with the status {status}{}", prefix_with_colon(message))]
    ServerError {
        host: String,
        status: u16,
        /// The first GraphQL error, or the beginning of the response body.
        message: String,
    },
    /// The response does not follow Linear's API.
    #[error("{host} does not answer as Linear does: {problem}")]
    UnexpectedResponse { host: String, problem: String },
}

/// One error of a GraphQL response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GraphqlError {
    /// The human-readable message, redacted and truncated.
    pub(crate) message: String,
    /// The error code; empty if there is none.
    pub(crate) code: String,
    /// The affected field, such as `commentCreate.comment`; empty if there is none.
    pub(crate) path: String,
}

impl std::fmt::Display for GraphqlError {
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

/// The wait that a rate-limited response asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedWait {
    /// Until this Unix time in milliseconds.
    UntilUnixMillis(u64),
    ForDuration(Duration),
    /// The response specifies no wait.
    Unspecified,
}

impl LinearError {
    /// Returns advice for the user.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            LinearError::InvalidEndpoint { .. } => "unset LINEAR_API_URL, or let it begin with https://",
            LinearError::NoCertificates { .. } => {
                "install the package ca-certificates, or name a file of them in SSL_CERT_FILE"
            }
            LinearError::Unreachable { .. } => {
                "check the network; behind a proxy set HTTPS_PROXY (and NO_PROXY)"
            }
            LinearError::Timeout { .. } => "check the network; try again later",
            LinearError::Tls { .. } => {
                "check the clock and the proxy; set SSL_CERT_FILE to a company's own certificate"
            }
            LinearError::RateLimited { .. } => "try again after that time",
            LinearError::Unauthorized { .. } => {
                "make a new key in Linear (Settings, Security & access, Personal API keys) and set LINEAR_API_KEY"
            }
            LinearError::Forbidden { .. } => {
                "use a key that may read and write, of a user who has access to the team"
            }
            LinearError::Rejected { .. } => "check linear.issue; `plimsoll linear check` checks each part",
            LinearError::ServerError { .. } => "try again later; see https://linearstatus.com",
            LinearError::UnexpectedResponse { .. } => "check LINEAR_API_URL and the proxy",
        }
    }

    /// Returns true if a retry after a short backoff may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            LinearError::Unreachable { .. } | LinearError::Timeout { .. } | LinearError::ServerError { .. }
        )
    }

    /// Returns true if Linear reports that the requested object does not exist. Linear has no error code for it, so
    /// the message is searched.
    pub(crate) fn is_not_found(&self) -> bool {
        let LinearError::Rejected { errors } = self else { return false };
        errors.iter().any(|error| error.message.to_lowercase().contains("not found"))
    }
}

fn join_errors(errors: &[GraphqlError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn prefix_with_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
