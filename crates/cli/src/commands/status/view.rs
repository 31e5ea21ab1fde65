//! What is known of a run when its status is shown.

use chrono::{DateTime, Utc};
use plimsoll_domain::RunState;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_policy::run_activity::RunActivity;

/// What the screen is made from.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// The run.
    pub(super) state: RunState,
    /// Its figures, with the sessions that are running.
    pub(super) figures: RunFigures,
    /// What it does.
    pub(super) activity: RunActivity,
    /// Why no new session or item starts; none if they do.
    pub(super) stop_reason: Option<String>,
    /// The context usage of the current session; none if that is not looked at.
    pub(super) context: Option<String>,
    /// The open items of a parallel run that no worker here holds, a line each.
    pub(super) pending_items: Vec<String>,
    /// Where the journal is.
    pub(super) journal: String,
    /// What our records of the project take, and what would help; none where that is not looked at.
    pub(super) recorded: Option<String>,
    /// Now.
    pub(super) now: DateTime<Utc>,
    /// No line is longer.
    pub(super) width: usize,
}

impl View {
    /// Returns true for a run with workers: it has no session of its own.
    pub(super) fn has_workers(&self) -> bool {
        self.state.options.workers.is_some()
    }
}
