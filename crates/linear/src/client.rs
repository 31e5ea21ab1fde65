//! The client for Linear's API.
//!
//! It has five operations: fetch the owner of the key, an issue or a comment, and create or update a comment. An [`Endpoint`] is
//! checked before anything is sent, a [`ApiKey`] appears in no message, and [`LinearClient`] sends one request after another within
//! [`RetryLimits`]. It knows nothing of runs.
//!
//! Guarantees: the key is sent only to the endpoint, never unencrypted to another computer, and never appears in an error
//! message. Every call ends by its deadline. Redirects are not followed.
//!
//! Limits: a call that failed may still have taken effect. The caller therefore chooses the comment's id and writes the full
//! text each time, so that a repeated write changes nothing.

mod endpoint;
mod error;
mod key;
mod linear;
mod operations;
mod response;

pub(crate) use endpoint::Endpoint;
pub(crate) use error::{LinearError, RequestedWait};
pub(crate) use key::{ApiKey, KeyFormatError};
pub(crate) use linear::{LinearClient, RetryLimits};
pub(crate) use operations::{PostedComment, Viewer, WithWarnings};
