//! The context usage of a session, its source and what follows from it, for `plimsoll status`.

mod table;
#[cfg(test)]
mod tests;

use crate::target_session::TargetSession;
use plimsoll_domain::level::Level;
use plimsoll_domain::{SessionRecord, Settings, UsageReading};
use plimsoll_flows::context::forecast::{self, SessionForecast};
use plimsoll_flows::context::item_cost::count_lines_of_named_files;
use plimsoll_flows::context::measure::{
    MeasureInput, Measurement, measure_usage_waiting_near_threshold, wait_for_tool_call_and_measure_usage,
};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_store::{Project, StoreError, clock, config};
use plimsoll_terminal::console;
use plimsoll_terminal::duration::format_seconds;
use serde_json::{Value, json};
use table::ContextView;
pub(super) use table::TitledRow;

/// The context usage of the session that a command is about.
pub(super) struct SessionContext {
    /// None if no session has been recorded.
    target: Option<TargetSession>,
    /// The record of that session, or an empty one.
    record: SessionRecord,
    measurement: Measurement,
    session_forecast: SessionForecast,
    /// Number of lines of the files that the current item names.
    item_file_lines: Option<u64>,
    settings: Settings,
}

impl SessionContext {
    /// Measures the session's usage, and prints any error in the settings.
    pub(super) fn measure(project: &Project) -> Result<SessionContext, StoreError> {
        let (settings, settings_error) = config::load_settings(project);
        settings_error.iter().for_each(console::print_warning);
        let target = TargetSession::find_current_or_run_or_latest(project)?;
        let transcript = target.as_ref().and_then(TargetSession::transcript_path);
        let mut record = target.as_ref().map(|target| target.record.clone()).unwrap_or_default();
        // Someone else may have written the record, and the model reads what is printed here.
        record.checkpoint_progress.last_handoff.take_if(|file| project.resolve_handoff(file).is_none());
        let input = MeasureInput {
            project,
            settings: &settings,
            record: &record,
            transcript_path: transcript.as_deref(),
            pending_calls: &[],
        };
        let measurement = if TargetSession::is_called_inside_session() {
            wait_for_tool_call_and_measure_usage(&input)
        } else {
            measure_usage_waiting_near_threshold(&input)
        };
        let session_forecast =
            forecast::forecast_responses_and_minutes_to_thresholds(transcript.as_deref(), &measurement);
        let item = target.as_ref().and_then(|target| current_unparked_item(target.run.as_ref()?));
        let item_file_lines = item.and_then(|item| count_lines_of_named_files(project, item));
        Ok(SessionContext { target, record, measurement, session_forecast, item_file_lines, settings })
    }

    /// Returns true if a session has been recorded.
    pub(super) fn has_session(&self) -> bool {
        self.target.is_some()
    }

    /// Returns true if the session belongs to the open run, or if the command runs inside it.
    pub(super) fn is_current(&self) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| target.run.is_some() || TargetSession::is_called_inside_session())
    }

    /// Returns 0 to 3; 0 also if the usage is unknown.
    pub(super) fn level_number(&self) -> u8 {
        self.measurement.projected_level().map_or(0, Level::number)
    }

    pub(super) fn to_json(&self) -> Value {
        let reading = self.measurement.reading.as_ref();
        json!({
            "session_id": self.record.session_id,
            "level": self.measurement.projected_level().map(|level| level.to_string()),
            "percent": reading.and_then(UsageReading::projected_percent),
            "percent_used": reading.and_then(UsageReading::percent_shown_by_client),
            "reading": reading,
            "marks": self.measurement.thresholds,
            "forecast": self.session_forecast.forecast,
            "age_seconds": reading.and_then(reading_age_seconds),
        })
    }

    /// Returns the table with a recommendation; `run_rows` describe the project's run.
    pub(super) fn to_markdown(&self, run_rows: &[TitledRow]) -> String {
        if !self.has_session() && run_rows.is_empty() {
            return "Context: ? (no session has been recorded here: with the hooks of `plimsoll init` one is after its first answer)".to_owned();
        }
        self.context_view().render_table_and_advice(run_rows)
    }

    /// Returns the usage, the level and the next threshold in one sentence.
    pub(super) fn to_sentence(&self) -> String {
        self.context_view().render_usage_and_next_event_sentence()
    }

    /// Returns lines for a project without a run, each with its title; none if no session has been recorded.
    pub(super) fn to_titled_rows(&self) -> Vec<TitledRow> {
        if !self.has_session() {
            return Vec::new();
        }
        let view = self.context_view();
        let age = view.age_seconds.map(|age| format!(", measured {} ago", format_seconds(age)));
        vec![
            ("Session", format!("{}{}", view.session_id, age.unwrap_or_default())),
            ("Context", view.render_usage_and_next_event_sentence()),
            ("Next", view.render_advice_and_when_checkpoint_is_due().replace("\n\n", " ")),
            ("More", "plimsoll status --markdown".to_owned()),
        ]
    }

    fn context_view(&self) -> ContextView<'_> {
        let reading = self.measurement.reading.as_ref();
        ContextView {
            session_id: &self.record.session_id,
            reading,
            age_seconds: reading.and_then(reading_age_seconds),
            thresholds: self.measurement.thresholds.as_ref(),
            session_forecast: &self.session_forecast,
            transcript_error: self.measurement.transcript_error.as_ref().map(ToString::to_string),
            run: self.target.as_ref().and_then(|target| target.run.as_ref()),
            item_file_lines: self.item_file_lines,
            handoff: self.record.checkpoint_progress.last_handoff.as_deref(),
            settings: &self.settings,
        }
    }
}

fn reading_age_seconds(reading: &UsageReading) -> Option<i64> {
    clock::parse_timestamp(reading.responded_at.as_ref()?).map(|at| (clock::now() - at).num_seconds().max(0))
}
