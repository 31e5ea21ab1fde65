//! The content of the watch screen, read from the project's files.

use crate::commands::status::load_session_record;
use crate::journal_lines::LineStyle;
use crate::run_status::RunStatusView;
use crate::run_status::build_status_view;
use plimsoll_domain::forecast::ThresholdForecast;
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::run_figures::WorkerFigures;
use plimsoll_domain::{SessionRecord, Settings, UsageReading};
use plimsoll_flows::context::forecast;
use plimsoll_flows::context::measure::{
    MeasureInput, compute_session_thresholds, measure_usage_waiting_near_threshold,
};
use plimsoll_flows::run_figures::{
    RunFiguresReader, RunSnapshot, read_run_snapshot_retrying_if_lock_changed,
};
use plimsoll_flows::session_text;
use plimsoll_store::{Project, config};
use std::path::PathBuf;

/// The data that the watch screen shows.
#[derive(Debug, Clone)]
pub(super) struct ScreenContent {
    /// The project's folder, for display.
    pub(super) root: String,
    /// The run; `None` if there is none.
    pub(super) view: Option<RunStatusView>,
    /// Why the state cannot be read.
    pub(super) state_error: Option<String>,
    /// Context usage of the current session, as its hooks last measured it.
    pub(super) reading: Option<UsageReading>,
    /// Thresholds of the current session.
    pub(super) thresholds: Option<Thresholds>,
    /// When the checkpoint is due; `None` if it is past or cannot be estimated.
    pub(super) checkpoint_forecast: Option<ThresholdForecast>,
    /// The last text of the running session, or of each worker's session with the worker's number.
    pub(super) last_texts: Vec<LastText>,
    /// The log, oldest line first.
    pub(super) log: Vec<(String, LineStyle)>,
}

/// The last text that a running session has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastText {
    /// The number of the worker; `None` in a run with one session at a time.
    pub(super) worker_number: Option<usize>,
    pub(super) text: String,
}

/// Reads the last texts of the sessions that are running.
fn read_last_texts(project: &Project, snapshot: &RunSnapshot) -> Vec<LastText> {
    let RunSnapshot { state, figures, .. } = snapshot;
    if figures.sessions_running == 0 {
        return Vec::new();
    }
    if state.options.workers.is_none() {
        let words = session_text::read_last_text_of_session(state);
        return words.map(|text| LastText { worker_number: None, text }).into_iter().collect();
    }
    let read_words_of_worker = |worker: &WorkerFigures| {
        let text = session_text::read_last_text_of_worker(project, state, worker)?;
        Some(LastText { worker_number: Some(worker.worker_number), text })
    };
    figures.workers.iter().filter_map(read_words_of_worker).collect()
}

impl ScreenContent {
    /// Reads the content from the project's files. The log stays empty, because the caller reads it incrementally.
    pub(super) fn read_without_log(project: &Project, reader: &mut RunFiguresReader) -> ScreenContent {
        let (snapshot, state_error) = match read_run_snapshot_retrying_if_lock_changed(project, None, reader)
        {
            Ok(snapshot) => (snapshot, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let record = snapshot.as_ref().and_then(|snapshot| load_session_record(project, &snapshot.state));
        let record = record.unwrap_or_default();
        let (settings, _) = config::load_settings(project);
        let is_running = snapshot.as_ref().is_some_and(|snapshot| snapshot.figures.sessions_running > 0);
        ScreenContent {
            root: project.root().display().to_string(),
            last_texts: snapshot
                .as_ref()
                .map(|snapshot| read_last_texts(project, snapshot))
                .unwrap_or_default(),
            view: snapshot.map(|snapshot| build_status_view(project, snapshot)),
            state_error,
            thresholds: thresholds_from_last_reading(project, &settings, &record),
            checkpoint_forecast: is_running
                .then(|| measure_and_forecast_l2(project, &settings, &record))
                .flatten(),
            reading: record.usage.last_reading,
            log: Vec::new(),
        }
    }
}

fn measure_and_forecast_l2(
    project: &Project,
    settings: &Settings,
    record: &SessionRecord,
) -> Option<ThresholdForecast> {
    let transcript = record.start.transcript_path.as_ref().map(PathBuf::from);
    let transcript = transcript.as_deref();
    let measurement = measure_usage_waiting_near_threshold(&MeasureInput {
        project,
        settings,
        record,
        transcript_path: transcript,
        pending_calls: &[],
    });
    forecast::forecast_responses_and_minutes_to_thresholds(transcript, &measurement).forecast?.l2
}

fn thresholds_from_last_reading(
    project: &Project,
    settings: &Settings,
    record: &SessionRecord,
) -> Option<Thresholds> {
    let reading = record.usage.last_reading.as_ref()?;
    let input = MeasureInput { project, settings, record, transcript_path: None, pending_calls: &[] };
    Some(compute_session_thresholds(&input, reading.window.as_ref()?, reading.model.as_deref()))
}
