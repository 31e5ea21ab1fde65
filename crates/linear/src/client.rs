//! The client for Linear's API.
//!
//! It knows five operations: who the key belongs to, an issue, a comment, and writing a comment for the first time or again. An
//! [`Endpoint`] is checked before anything is sent, a [`Key`] shows itself in no message, and [`Linear`] sends one request after
//! another within [`RetryLimits`]. It knows nothing of runs: what it carries is given to it.
//!
//! It promises: the key goes to the endpoint alone, never in the clear to another computer, and never into an error's words;
//! every call ends by its deadline; a redirect is not followed.
//!
//! Limits: it does not promise that a call which failed was not done. The caller chooses the comment's id, and writes the
//! whole text each time, so that writing twice is writing once.

mod answer;
mod endpoint;
mod error;
mod key;
mod linear;
mod operations;

pub(crate) use endpoint::Endpoint;
pub(crate) use error::{LinearError, Wait};
pub(crate) use key::{Key, KeyProblem};
pub(crate) use linear::{Linear, RetryLimits};
pub(crate) use operations::{Posted, Viewer, WithWarnings};
