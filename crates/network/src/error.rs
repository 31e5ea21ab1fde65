//! Why a request has no answer.

use std::io;
use ureq::Error;

/// Why a request has no answer. Its words may repeat the address, and with it a key: callers decide what they show.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The answer was not complete in time.
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
    /// Nothing can be sent to this address with these headers.
    #[error("{0}")]
    Unsendable(String),
    /// The answer is not HTTP.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The answer is longer than the caller allows.
    #[error("an answer of more than {0} bytes")]
    TooLong(u64),
    /// Another fault of the client.
    #[error("{0}")]
    Other(String),
}

impl From<Error> for RequestError {
    fn from(error: Error) -> RequestError {
        match error {
            Error::Timeout(_) => RequestError::Timeout,
            Error::HostNotFound => RequestError::HostNotFound,
            Error::Tls(why) => RequestError::Tls(why.to_owned()),
            Error::Rustls(why) => RequestError::Tls(why.to_string()),
            Error::Io(why) => RequestError::Io(why),
            Error::Http(_) | Error::BadUri(_) => RequestError::Unsendable(error.to_string()),
            Error::Protocol(why) => RequestError::Protocol(why.to_string()),
            Error::BodyExceedsLimit(most) => RequestError::TooLong(most),
            other => RequestError::Other(other.to_string()),
        }
    }
}
