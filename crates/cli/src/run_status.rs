//! Builds and describes the status of a run, so that `status` and the report agree.

pub(crate) mod status_text;

use chrono::{DateTime, Utc};
use plimsoll_domain::RunState;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_flows::run::questions;
use plimsoll_flows::run_figures::RunSnapshot;
use plimsoll_flows::workers::pending_items::describe_pending_items_and_worktrees_folder;
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::{Project, clock};
use plimsoll_terminal::console::line_width_from_columns_or_terminal;
use status_text::StatusSummary;

/// The data that the status screen shows.
#[derive(Debug, Clone)]
pub(crate) struct RunStatusView {
    pub(crate) state: RunState,
    /// The run's figures, including running sessions.
    pub(crate) figures: RunFigures,
    /// Whether the run is working, waiting or ended, according to its processes and files.
    pub(crate) activity: RunActivity,
    /// Why no new session or item starts; `None` if new ones start.
    pub(crate) stop_reason: Option<String>,
    /// Context usage of the current session; `None` if it was not measured.
    pub(crate) context_usage: Option<String>,
    /// The open items of a parallel run that no local worker is working on, one line each.
    pub(crate) pending_item_lines: Vec<String>,
    /// Path of the journal.
    pub(crate) journal_path: String,
    /// Disk usage of the project's records, and how to free it; `None` if it was not measured.
    pub(crate) disk_usage: Option<String>,
    pub(crate) now: DateTime<Utc>,
    /// Maximum width of a line.
    pub(crate) max_line_width: usize,
}

impl RunStatusView {
    /// Returns true for a run with workers, which has no session of its own.
    pub(crate) fn has_workers(&self) -> bool {
        self.state.options.workers.is_some()
    }
}

/// Builds the status view from a snapshot. Rereads the open questions and the pending items.
pub(crate) fn build_status_view(project: &Project, snapshot: RunSnapshot) -> RunStatusView {
    let RunSnapshot { mut state, figures, activity, stop_reason, .. } = snapshot;
    questions::refresh_open_questions(project, &mut state);
    RunStatusView {
        context_usage: None,
        pending_item_lines: describe_pending_items_and_worktrees_folder(project, &state).unwrap_or_default(),
        journal_path: project.relative_to_root(&project.journal_path()),
        // Not measured here, because `--watch` would read the sizes of all our files at each refresh.
        disk_usage: None,
        now: clock::now(),
        max_line_width: line_width_from_columns_or_terminal(),
        state,
        figures,
        activity,
        stop_reason,
    }
}

/// Returns the status of a run and its reason, which are displayed as one sentence.
pub(crate) fn status_summary(project: &Project, snapshot: &RunSnapshot) -> StatusSummary {
    status_text::summarize_status(&build_status_view(project, snapshot.clone()))
}
