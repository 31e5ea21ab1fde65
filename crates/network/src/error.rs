//! Errors of requests.

use std::io;
use ureq::Error;

/// The error of a request without a response. Its text may contain the URI and a key in it, so callers decide what to show.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The response was not complete before the timeout.
    #[error("no answer in time")]
    Timeout,
    /// The host name cannot be resolved, or there is no network.
    #[error("host not found")]
    HostNotFound,
    /// A TLS error, such as an invalid certificate or no common protocol version.
    #[error("{0}")]
    Tls(String),
    /// An I/O error, such as a connection that was refused or reset.
    #[error("io: {0}")]
    Io(io::Error),
    /// The URI or a header is invalid.
    #[error("{0}")]
    InvalidRequest(String),
    /// The response is not valid HTTP.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The response body is larger than the caller's limit in bytes.
    #[error("an answer of more than {0} bytes")]
    ResponseTooLarge(u64),
    /// Another error of the HTTP client.
    #[error("{0}")]
    Other(String),
}

impl From<Error> for RequestError {
    fn from(error: Error) -> RequestError {
        match error {
            Error::Timeout(_) => RequestError::Timeout,
            Error::HostNotFound => RequestError::HostNotFound,
            Error::Tls(message) => RequestError::Tls(message.to_owned()),
            Error::Rustls(tls_error) => RequestError::Tls(tls_error.to_string()),
            Error::Io(io_error) => RequestError::Io(io_error),
            Error::Http(_) | Error::BadUri(_) => RequestError::InvalidRequest(error.to_string()),
            Error::Protocol(protocol_error) => RequestError::Protocol(protocol_error.to_string()),
            Error::BodyExceedsLimit(max_bytes) => RequestError::ResponseTooLarge(max_bytes),
            other_error => RequestError::Other(other_error.to_string()),
        }
    }
}
