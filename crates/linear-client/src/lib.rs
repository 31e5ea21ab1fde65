//! RULE: the only crate that talks to the network.
//!
//! It knows one API, Linear's, and of it five operations. What it promises: the key goes to the endpoint alone, never
//! in the clear to another computer, and never into an error's words; every call ends by its deadline; a redirect is
//! not followed. What it does not promise: that a call which failed was not done. Who writes chooses the id, and
//! writes the whole text, so that twice is once.

mod answer;
mod certificates;
mod endpoint;
mod error;
mod key;
mod linear;
mod operations;

pub use endpoint::Endpoint;
pub use error::{CourierError, GraphError, Wait};
pub use key::{Key, KeyProblem};
pub use linear::{Linear, RetryLimits};
pub use operations::{Issue, Posted, Viewer, WithWarnings};
