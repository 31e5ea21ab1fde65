//! Gathers what a run's status shows, and puts it into words, so that `status` and the report say the same.

pub(crate) mod words;

use chrono::{DateTime, Utc};
use plimsoll_domain::RunState;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_flows::run::questions;
use plimsoll_flows::run_figures::RunSnapshot;
use plimsoll_flows::workers::pending_items::describe_pending_items;
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::{Project, clock};
use plimsoll_terminal::columns::width;
use words::Standing;

/// The facts that the screen shows.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The run.
    pub(crate) state: RunState,
    /// Its figures, with the sessions that are running.
    pub(crate) figures: RunFigures,
    /// Whether the run is working, waiting or over, by what is seen of it.
    pub(crate) activity: RunActivity,
    /// Why no new session or item starts; none if they do.
    pub(crate) stop_reason: Option<String>,
    /// The context usage of the current session; none if that is not looked at.
    pub(crate) context: Option<String>,
    /// The open items of a parallel run that no worker here holds, a line each.
    pub(crate) pending_items: Vec<String>,
    /// The path of the journal.
    pub(crate) journal: String,
    /// How much space our records of the project take, and how to free it; none where that is not looked at.
    pub(crate) recorded: Option<String>,
    /// Now.
    pub(crate) now: DateTime<Utc>,
    /// No line is longer.
    pub(crate) width: usize,
}

impl View {
    /// Returns true for a run with workers: it has no session of its own.
    pub(crate) fn has_workers(&self) -> bool {
        self.state.options.workers.is_some()
    }
}

/// Gathers what is known beside the figures.
pub(crate) fn view(project: &Project, snapshot: RunSnapshot) -> View {
    let RunSnapshot { mut state, figures, activity, stop_reason, .. } = snapshot;
    questions::refresh(project, &mut state);
    View {
        context: None,
        pending_items: describe_pending_items(project, &state).unwrap_or_default(),
        journal: project.relative(&project.journal()),
        // Not at each refresh of `--watch`: that would look at every file of ours again.
        recorded: None,
        now: clock::now(),
        width: width(),
        state,
        figures,
        activity,
        stop_reason,
    }
}

/// The status of a run, and why, in one sentence.
pub(crate) fn standing(project: &Project, snapshot: &RunSnapshot) -> Standing {
    words::standing(&view(project, snapshot.clone()))
}
