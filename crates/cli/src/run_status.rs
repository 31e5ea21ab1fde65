//! Gathers and describes what a run's status shows, so that `status` and the report agree.

pub(crate) mod status_text;

use chrono::{DateTime, Utc};
use plimsoll_domain::RunState;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_flows::run::questions;
use plimsoll_flows::run_figures::RunSnapshot;
use plimsoll_flows::workers::pending_items::describe_pending_items;
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::{Project, clock};
use plimsoll_terminal::columns::line_width;
use status_text::StatusSummary;

/// The facts that the status screen shows.
#[derive(Debug, Clone)]
pub(crate) struct RunStatusView {
    pub(crate) state: RunState,
    /// Its figures, including running sessions.
    pub(crate) figures: RunFigures,
    /// Whether the run is working, waiting or over, according to its processes and files.
    pub(crate) activity: RunActivity,
    /// Why no new session or item starts; `None` if they do.
    pub(crate) stop_reason: Option<String>,
    /// Context usage of the current session; `None` if it was not measured.
    pub(crate) context: Option<String>,
    /// The open items of a parallel run that no local worker holds, a line each.
    pub(crate) pending_items: Vec<String>,
    /// Path of the journal.
    pub(crate) journal_path: String,
    /// Disk usage of the project's records, and how to free it; `None` if it was not determined.
    pub(crate) disk_usage: Option<String>,
    pub(crate) now: DateTime<Utc>,
    /// Maximum width of a line.
    pub(crate) width: usize,
}

impl RunStatusView {
    /// Returns true for a run with workers, which has no session of its own.
    pub(crate) fn has_workers(&self) -> bool {
        self.state.options.workers.is_some()
    }
}

/// Builds the status view from a snapshot, and adds the facts that a snapshot does not have.
pub(crate) fn gather_status_view(project: &Project, snapshot: RunSnapshot) -> RunStatusView {
    let RunSnapshot { mut state, figures, activity, stop_reason, .. } = snapshot;
    questions::refresh_open_questions(project, &mut state);
    RunStatusView {
        context: None,
        pending_items: describe_pending_items(project, &state).unwrap_or_default(),
        journal_path: project.relative_to_root(&project.journal_path()),
        // Left out here: `--watch` would read the sizes of all our files at each refresh.
        disk_usage: None,
        now: clock::now(),
        width: line_width(),
        state,
        figures,
        activity,
        stop_reason,
    }
}

/// Returns the status of a run, and why, as one sentence.
pub(crate) fn status_summary(project: &Project, snapshot: &RunSnapshot) -> StatusSummary {
    status_text::summarize_status(&gather_status_view(project, snapshot.clone()))
}
