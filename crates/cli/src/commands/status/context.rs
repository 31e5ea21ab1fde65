//! How full a session's context window is, where the figure comes from, and what follows: for `plimsoll status`.

mod table;
#[cfg(test)]
mod tests;

use crate::target_session::TargetSession;
use plimsoll_domain::level::Level;
use plimsoll_domain::{Reading, SessionRecord, Settings};
use plimsoll_flows::context::forecast::{self, SessionForecast};
use plimsoll_flows::context::item_cost::lines_named;
use plimsoll_flows::context::measure::{Measurement, Question, measure, measure_once_written};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_store::{Project, StoreError, clock, config};
use plimsoll_terminal::console;
use plimsoll_terminal::duration::for_people as duration;
use serde_json::{Value, json};
pub(super) use table::Row;
use table::View;

/// The context usage of the session that a command is about.
pub(super) struct SessionContext {
    /// None if no session has been recorded.
    target: Option<TargetSession>,
    /// The record of that session, or an empty one.
    record: SessionRecord,
    measurement: Measurement,
    forecast_of_session: SessionForecast,
    /// Lines of the files that the current item names.
    lines: Option<u64>,
    settings: Settings,
}

impl SessionContext {
    /// Measures the session, and prints what is wrong with the settings.
    pub(super) fn measure(project: &Project) -> Result<SessionContext, StoreError> {
        let (settings, complaint) = config::load(project);
        complaint.iter().for_each(console::say_error);
        let target = TargetSession::find(project)?;
        let transcript = target.as_ref().and_then(TargetSession::transcript);
        let mut record = target.as_ref().map(|target| target.record.clone()).unwrap_or_default();
        // The record may be foreign, and the model reads what is printed.
        record.checkpoint.handoff.take_if(|file| project.handoff_path(file).is_none());
        let question = Question {
            project,
            settings: &settings,
            record: &record,
            transcript: transcript.as_deref(),
            calls: &[],
        };
        let measurement =
            if TargetSession::is_inside() { measure_once_written(&question) } else { measure(&question) };
        let forecast_of_session = forecast::of_session(transcript.as_deref(), &measurement);
        let item = target.as_ref().and_then(|target| item_in_hand(target.run.as_ref()?));
        let lines = item.and_then(|item| lines_named(project, item));
        Ok(SessionContext { target, record, measurement, forecast_of_session, lines, settings })
    }

    /// Returns true if a session has been recorded.
    pub(super) fn has_session(&self) -> bool {
        self.target.is_some()
    }

    /// Returns true for a session of now: it belongs to the open run, or the command runs inside it.
    pub(super) fn is_current(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.run.is_some() || TargetSession::is_inside())
    }

    /// Returns 0 to 3; 0 also if the usage is unknown.
    pub(super) fn level_number(&self) -> u8 {
        self.measurement.level().map_or(0, Level::number)
    }

    pub(super) fn to_json(&self) -> Value {
        let reading = self.measurement.reading.as_ref();
        json!({
            "session_id": self.record.session_id,
            "level": self.measurement.level().map(|level| level.to_string()),
            "percent": reading.and_then(Reading::percent),
            "percent_used": reading.and_then(Reading::percent_used),
            "reading": reading,
            "marks": self.measurement.thresholds,
            "forecast": self.forecast_of_session.forecast,
            "age_seconds": reading.and_then(age_seconds),
        })
    }

    /// Returns the table with a recommendation; `run_rows` describe the project's run.
    pub(super) fn to_markdown(&self, run_rows: &[Row]) -> String {
        if !self.has_session() && run_rows.is_empty() {
            return "Context: ? (no session has been recorded here: with the hooks of `plimsoll init` one is after its first answer)".to_owned();
        }
        self.view().text(run_rows)
    }

    /// Returns the usage, the level and the next threshold in one sentence.
    pub(super) fn to_sentence(&self) -> String {
        self.view().sentence()
    }

    /// Returns lines for a project without a run, each with its title; none if no session has been recorded.
    pub(super) fn to_lines(&self) -> Vec<Row> {
        if !self.has_session() {
            return Vec::new();
        }
        let view = self.view();
        let age = view.age_seconds.map(|age| format!(", measured {} ago", duration(age)));
        vec![
            ("Session", format!("{}{}", view.session_id, age.unwrap_or_default())),
            ("Context", view.sentence()),
            ("Next", view.advice().replace("\n\n", " ")),
            ("More", "plimsoll status --markdown".to_owned()),
        ]
    }

    fn view(&self) -> View<'_> {
        let reading = self.measurement.reading.as_ref();
        View {
            session_id: &self.record.session_id,
            reading,
            age_seconds: reading.and_then(age_seconds),
            thresholds: self.measurement.thresholds.as_ref(),
            forecast_of_session: &self.forecast_of_session,
            trouble: self.measurement.trouble.as_ref().map(ToString::to_string),
            run: self.target.as_ref().and_then(|target| target.run.as_ref()),
            lines: self.lines,
            handoff: self.record.checkpoint.handoff.as_deref(),
            settings: &self.settings,
        }
    }
}

fn age_seconds(reading: &Reading) -> Option<i64> {
    clock::moment(reading.at.as_ref()?).map(|at| (clock::now() - at).num_seconds().max(0))
}
