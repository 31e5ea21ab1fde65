//! The content of the watch screen: the files at one moment.

use crate::commands::status::load_session_record;
use crate::journal_lines::Tone;
use crate::run_status::RunStatusView;
use crate::run_status::gather_status_view;
use plimsoll_domain::forecast::ThresholdForecast;
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::{SessionRecord, Settings, UsageReading};
use plimsoll_flows::context::forecast;
use plimsoll_flows::context::measure::{MeasureInput, measure_usage, session_thresholds};
use plimsoll_flows::run_figures::{RunFiguresReader, read_run_snapshot};
use plimsoll_store::{Project, config};
use std::path::PathBuf;

/// What the watch screen shows.
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
    /// The log, oldest line first.
    pub(super) log: Vec<(String, Tone)>,
}

impl ScreenContent {
    /// Reads the project; the log stays empty, because the caller reads it incrementally.
    pub(super) fn read_without_log(project: &Project, reader: &mut RunFiguresReader) -> ScreenContent {
        let (snapshot, state_error) = match read_run_snapshot(project, None, reader) {
            Ok(snapshot) => (snapshot, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let record = snapshot.as_ref().and_then(|snapshot| load_session_record(project, &snapshot.state));
        let record = record.unwrap_or_default();
        let (settings, _) = config::load_settings(project);
        let is_running = snapshot.as_ref().is_some_and(|snapshot| snapshot.figures.sessions_running > 0);
        ScreenContent {
            root: project.root().display().to_string(),
            view: snapshot.map(|snapshot| gather_status_view(project, snapshot)),
            state_error,
            thresholds: recorded_thresholds(project, &settings, &record),
            checkpoint_forecast: is_running
                .then(|| forecast_checkpoint(project, &settings, &record))
                .flatten(),
            reading: record.usage.last_reading,
            log: Vec::new(),
        }
    }
}

fn forecast_checkpoint(
    project: &Project,
    settings: &Settings,
    record: &SessionRecord,
) -> Option<ThresholdForecast> {
    let transcript = record.start.transcript_path.as_ref().map(PathBuf::from);
    let transcript = transcript.as_deref();
    let measurement = measure_usage(&MeasureInput {
        project,
        settings,
        record,
        transcript_path: transcript,
        pending_calls: &[],
    });
    forecast::forecast_session(transcript, &measurement).forecast?.l2
}

fn recorded_thresholds(project: &Project, settings: &Settings, record: &SessionRecord) -> Option<Thresholds> {
    let reading = record.usage.last_reading.as_ref()?;
    let input = MeasureInput { project, settings, record, transcript_path: None, pending_calls: &[] };
    Some(session_thresholds(&input, reading.window.as_ref()?, reading.model.as_deref()))
}
