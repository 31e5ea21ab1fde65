//! What is known of a run when its status is shown.

use chrono::{DateTime, Utc};
use plimsoll_domain::RunState;
use plimsoll_domain::forecast::Outlook;

/// What the screen is made from.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// The run.
    pub(super) state: RunState,
    /// How full the current session is.
    pub(super) percent: Option<u64>,
    /// When its checkpoint is due, while that is ahead and can be estimated.
    pub(super) checkpoint_in: Option<Outlook>,
    /// Tokens of the session at work, which the run's own sum does not hold yet; none if there is no such session.
    pub(super) present_tokens: Option<u64>,
    /// How the workers stand, a line each; none in a run without.
    pub(super) workers: Vec<String>,
    /// True while a `plimsoll run` works or waits.
    pub(super) at_work: bool,
    /// The client of the current session, while it lives.
    pub(super) client: Option<u32>,
    /// Where the journal is.
    pub(super) journal: String,
    /// What our records of the project take, and what would help; none where that is not looked at.
    pub(super) recorded: Option<String>,
    /// Now.
    pub(super) now: DateTime<Utc>,
    /// No line is longer.
    pub(super) width: usize,
}
