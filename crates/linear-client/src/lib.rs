//! RULE: the only crate that talks to the network.
//!
//! It knows one API, Linear's, and of it five operations: who the key belongs to, an issue, a comment, and writing a comment
//! for the first time or again. An [`Endpoint`] is checked before anything is sent, a [`Key`] shows itself in no message, and
//! [`Linear`] sends one request after another within [`RetryLimits`]. It knows nothing of runs: what it carries is given to it.
//!
//! It promises: the key goes to the endpoint alone, never in the clear to another computer, and never into an error's words;
//! every call ends by its deadline; a redirect is not followed.
//!
//! Limits: it does not promise that a call which failed was not done. The caller chooses the comment's id, and writes the
//! whole text each time, so that writing twice is writing once.
//!
//! ```no_run
//! use plimsoll_linear_client::{Endpoint, Key, Linear, RetryLimits};
//! use std::time::Duration;
//!
//! let key = Key::new("lin_api_…").expect("one line without spaces");
//! let linear = Linear::new(Endpoint::new(None)?, key)?;
//! let issue = linear.issue("ENG-123", RetryLimits::of(Duration::from_secs(20), 3))?;
//! # Ok::<(), plimsoll_linear_client::LinearError>(())
//! ```

mod answer;
mod endpoint;
mod error;
mod key;
mod linear;
mod operations;

pub use endpoint::Endpoint;
pub use error::{GraphError, LinearError, Wait};
pub use key::{Key, KeyProblem};
pub use linear::{Linear, RetryLimits};
pub use operations::{Issue, Posted, Viewer, WithWarnings};
