//! `plimsoll context`: how full is it, who says so, and what follows.

mod table;
#[cfg(test)]
mod tests;

use crate::console;
use crate::console::fail;
use crate::render;
use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::forecast::Forecast;
use plimsoll_domain::level::Level;
use plimsoll_domain::{Reading, SessionId, Settings};
use plimsoll_flows::context::forecast::{self, SessionForecast};
use plimsoll_flows::context::item_cost::lines_named;
use plimsoll_flows::context::measure::{Measurement, Question, measure, measure_once_written};
use plimsoll_store::{Project, clock, config};
use std::process::ExitCode;
use table::View;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ContextArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Exit with the level: 0 normal, 1 warn, 2 checkpoint, 3 emergency (0 when unknown)
    #[arg(long)]
    exit_code: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll context
  plimsoll context --json
  plimsoll context --exit-code >/dev/null || echo 'close to the load line'";

/// Shows it.
pub(crate) fn context(arguments: &ContextArguments) -> ExitCode {
    let project = Project::of_command();
    let (settings, complaint) = config::load(&project);
    if let Some(complaint) = complaint {
        console::say_error(&complaint);
    }
    let whose = match TargetSession::find(&project) {
        Ok(whose) => whose,
        Err(error) => return fail(error, 1),
    };
    let transcript = whose.as_ref().and_then(TargetSession::transcript);
    let record = whose.as_ref().map(|whose| whose.record.clone()).unwrap_or_default();
    let question = Question {
        project: &project,
        settings: &settings,
        record: &record,
        transcript: transcript.as_deref(),
        calls: &[],
    };
    let measurement =
        if TargetSession::is_inside() { measure_once_written(&question) } else { measure(&question) };
    let forecast_of_session = forecast::of_session(transcript.as_deref(), &measurement);
    let item = whose.as_ref().and_then(|whose| whose.run.as_ref()?.item_in_hand());
    let lines = item.and_then(|item| lines_named(&project, item));
    let level = measurement.level();
    if arguments.json {
        console::json(json(&measurement, forecast_of_session.forecast.as_ref(), &record.session_id));
    } else {
        let page = text(&measurement, &forecast_of_session, whose.as_ref(), lines, &settings);
        render::page::show(&page, arguments.markdown);
    }
    ExitCode::from(if arguments.exit_code { level.map_or(0, Level::number) } else { 0 })
}

fn json(measurement: &Measurement, forecast: Option<&Forecast>, session_id: &SessionId) -> String {
    let reading = measurement.reading.as_ref();
    serde_json::json!({
        "session_id": session_id,
        "level": measurement.level().map(|level| level.to_string()),
        "percent": reading.and_then(Reading::percent),
        "percent_used": reading.and_then(Reading::percent_used),
        "reading": reading,
        "marks": measurement.thresholds,
        "forecast": forecast,
        "age_seconds": reading.and_then(age_seconds),
    })
    .to_string()
}

fn age_seconds(reading: &Reading) -> Option<i64> {
    clock::moment(reading.at.as_ref()?).map(|at| (clock::now() - at).num_seconds().max(0))
}

fn text(
    measurement: &Measurement,
    forecast_of_session: &SessionForecast,
    whose: Option<&TargetSession>,
    lines: Option<u64>,
    settings: &Settings,
) -> String {
    let Some(whose) = whose else {
        return "Context: ? (no session has been recorded here: with the hooks of `plimsoll init` one is after its first answer)".to_owned();
    };
    let reading = measurement.reading.as_ref();
    let view = View {
        session_id: &whose.record.session_id,
        reading,
        age_seconds: reading.and_then(age_seconds),
        thresholds: measurement.thresholds.as_ref(),
        forecast_of_session,
        trouble: measurement.trouble.as_ref().map(ToString::to_string),
        run: whose.run.as_ref(),
        lines,
        handoff: whose.record.checkpoint.handoff.as_deref(),
        settings,
    };
    view.text()
}
