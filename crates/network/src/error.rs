//! Errors of requests.

use std::io;
use ureq::Error;

/// The reason why a request has no response. Its text may contain the address and with it a key: callers decide what to
/// show.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The response was not complete in time.
    #[error("no answer in time")]
    Timeout,
    /// No computer has this name, or there is no network.
    #[error("host not found")]
    HostNotFound,
    /// The connection is not secure: a certificate or a protocol is wrong.
    #[error("{0}")]
    Tls(String),
    /// The system refused the connection or cut it.
    #[error("io: {0}")]
    Io(io::Error),
    /// The address or a header is invalid, so no request can be built.
    #[error("{0}")]
    InvalidRequest(String),
    /// The response is not valid HTTP.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The response has more bytes than the caller allows.
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
