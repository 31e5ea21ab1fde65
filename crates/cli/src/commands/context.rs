//! `plimsoll context`: tells the module inside the client what follows from the context usage.

use crate::reported_session::{ReportError, ReportedSession};
use clap::Args;
use plimsoll_domain::UsageReading;
use plimsoll_domain::level::Level;
use plimsoll_flows::context::measure::Measurement;
use plimsoll_policy::module_answer::{SilenceReason, render_band_lines_from_l1};
use plimsoll_protocol::client_report::SCHEMA_VERSION;
use plimsoll_terminal::console::{fail, print_json};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `plimsoll context`.
#[derive(Debug, Args)]
pub(crate) struct ContextArguments {
    /// Print one JSON object, the only form there is
    #[arg(long, required = true)]
    json: bool,
    /// What only Claude Code knows of the session, as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON")]
    client: String,
}

/// Prints the thresholds and what the module does and shows in this session.
pub(crate) fn print_context_for_module(arguments: &ContextArguments) -> ExitCode {
    match context_for_module(&arguments.client) {
        Ok(document) => {
            print_json(document);
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

fn context_for_module(client: &str) -> Result<Value, ReportError> {
    let session = ReportedSession::load_from_argument_or_stdin(client)?;
    session.record_first_module_report_time();
    let reason = session.reason_for_silence();
    Ok(context_json(&session, &session.measure_usage(), reason))
}

fn context_json(
    session: &ReportedSession,
    measurement: &Measurement,
    reason: Option<SilenceReason>,
) -> Value {
    let used_tokens = measurement.reading.as_ref().map(UsageReading::projected_tokens);
    let thresholds = measurement.thresholds.as_ref();
    let shown = used_tokens.zip(thresholds).filter(|_| reason.is_none());
    let band_lines =
        shown.map(|(used, thresholds)| render_band_lines_from_l1(used, thresholds, &session.report.agents));
    json!({
        "schema_version": SCHEMA_VERSION,
        "session": session.session_id,
        "answers": reason.is_none(),
        "reason": reason.map(SilenceReason::describe),
        "compaction": session.settings.compaction,
        "handoff_at": session.settings.handoff_at,
        "level": measurement.projected_level().unwrap_or(Level::L0),
        "percent": measurement.reading.as_ref().and_then(UsageReading::projected_percent),
        "tokens": used_tokens,
        "window": thresholds.map(|thresholds| thresholds.window),
        "tokens_left": used_tokens.zip(thresholds).map(|(used, thresholds)| thresholds.auto_compact.tokens.saturating_sub(used)),
        "thresholds": thresholds.map(|thresholds| json!({
            "l1": thresholds.l1,
            "l2": thresholds.l2,
            "l3": thresholds.l3,
            "auto_compact": thresholds.auto_compact.tokens,
        })),
        "band": band_lines.unwrap_or_default(),
    })
}
