//! Inspects the context window of the current session, or of a session that would start now.

use super::{DoctorInput, SettingsFiles};
use crate::context::measure::{
    MeasureInput, call_with_window_evidence, compute_session_thresholds, measure_usage_waiting_near_threshold,
};
use plimsoll_domain::reading::WindowSize;
use plimsoll_policy::doctor::{ClientInfo, WindowInfo};
use plimsoll_policy::window::{self, WindowEvidence};
use plimsoll_store::config::{self, LoadedSettings};
use plimsoll_store::{clock, disk, environment, sessions};
use std::path::{Path, PathBuf};

/// Environment variables that affect the window, the auto-compact threshold or the usage reading.
const WINDOW_VARIABLES: [&str; 8] = [
    "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    "CLAUDE_CODE_MAX_CONTEXT_TOKENS",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_COMPACT",
    "CLAUDE_CONTEXT_PERCENT",
];

pub(super) fn measure_session_and_resolve_window(
    input: &DoctorInput<'_>,
    settings_files: &SettingsFiles,
    client: &ClientInfo,
) -> WindowInfo {
    let LoadedSettings { settings, error: settings_error, .. } =
        config::load_from_current_files(input.project);
    let transcript_path = input.session_record.start.transcript_path.as_ref().map(PathBuf::from);
    let measure_input = MeasureInput {
        project: input.project,
        settings: &settings,
        record: input.session_record,
        transcript_path: transcript_path.as_deref(),
        pending_calls: &[],
    };
    let measurement = measure_usage_waiting_near_threshold(&measure_input);
    let session_model = measurement.reading.as_ref().and_then(|reading| reading.model.clone());
    let model = session_model
        .map(|model| (model, "as the present session was asked for"))
        .or_else(|| next_session_model_and_its_source(settings_files));
    let (candidate_windows, resolved_window) = windows_by_precedence_and_resolved(
        &measure_input,
        model.as_ref().map(|(model, _)| model.as_str()),
        client,
    );
    let window = measurement.reading.as_ref().and_then(|reading| reading.window.clone()).or(resolved_window);
    let model_name = model.as_ref().map(|(model, _)| model.as_str());
    WindowInfo {
        thresholds: measurement.thresholds.or_else(|| {
            window.as_ref().map(|window| compute_session_thresholds(&measure_input, window, model_name))
        }),
        session_id: measurement.reading.is_some().then(|| input.session_record.session_id.clone()),
        reading: measurement.reading,
        candidate_windows,
        window,
        levels: settings.levels,
        overrides: render_window_overrides(input, settings_files),
        settings_error: settings_error.map(|error| error.to_string()),
        missing_transcript: missing_transcript_if_recently_responded(input),
        model,
    }
}

/// Returns the path of the session's transcript if the session has responded within the last day and the file
/// does not exist. Older sessions do not count, because the client deletes old transcripts.
fn missing_transcript_if_recently_responded(input: &DoctorInput<'_>) -> Option<String> {
    let path = input.session_record.start.transcript_path.clone()?;
    let status_line_record =
        sessions::load_status_line_record(input.project, &input.session_record.session_id);
    let status_line_response_at = status_line_record
        .filter(|record| record.used_tokens.is_some_and(|tokens| tokens > 0))
        .map(|record| record.first_seen_at);
    let last_response_at = status_line_response_at
        .or_else(|| input.session_record.end.stop.as_ref().map(|stop| stop.stopped_at.clone()))?;
    let is_recent = clock::parse_timestamp(&last_response_at)
        .is_some_and(|response_time| (clock::now() - response_time).num_days() < 1);
    (is_recent && !disk::exists(Path::new(&path))).then_some(path)
}

/// Returns the model that a new session would start with, and the setting that selects it.
fn next_session_model_and_its_source(settings_files: &SettingsFiles) -> Option<(String, &'static str)> {
    let environment_model = environment::variable("ANTHROPIC_MODEL").map(|model| (model, "ANTHROPIC_MODEL"));
    environment_model.or_else(|| {
        let model = settings_files.iter().find_map(|file| file.summary_if_parsed()?.model.clone())?;
        Some((model, "Claude Code's settings"))
    })
}

fn windows_by_precedence_and_resolved(
    input: &MeasureInput<'_>,
    model: Option<&str>,
    client: &ClientInfo,
) -> (Vec<WindowSize>, Option<WindowSize>) {
    let status_line_record = sessions::load_status_line_record(input.project, &input.record.session_id);
    call_with_window_evidence(input, model, status_line_record.as_ref(), |evidence| {
        let evidence = &WindowEvidence { client_version: client.version_text.as_deref(), ..evidence.clone() };
        (window::windows_by_precedence(evidence), window::resolve_window_raising_it_to_used_tokens(evidence))
    })
}

/// Lists the variables and settings that change the window. Variables from a settings file's `env` are listed separately,
/// because they are set only in sessions and not in this process.
fn render_window_overrides(input: &DoctorInput<'_>, settings_files: &SettingsFiles) -> Vec<String> {
    let render_if_set = |name: &&str| Some(format!("{name}={}", environment::variable(name)?));
    let mut overrides: Vec<String> = WINDOW_VARIABLES.iter().filter_map(render_if_set).collect();
    let client_settings = config::load_client_settings(input.project);
    overrides.extend(
        client_settings.auto_compact_enabled.map(|is_enabled| format!("autoCompactEnabled: {is_enabled}")),
    );
    overrides.extend(client_settings.compaction_windows.iter().map(|window| {
        let tokens = window.tokens.map_or_else(|| "auto".to_owned(), |tokens| tokens.to_string());
        let model = window.model.as_ref().map(|model| format!(" for {model}")).unwrap_or_default();
        format!("autoCompactWindow: {tokens}{model}")
    }));
    for file in settings_files {
        let session_variables = file.summary_if_parsed().map(|summary| &summary.env);
        let relevant_variables = session_variables
            .into_iter()
            .flatten()
            .filter(|(name, _)| WINDOW_VARIABLES.contains(&name.as_str()));
        overrides.extend(relevant_variables.map(|(name, value)| {
            format!("{name}={value} in sessions, by the env of {}; not in the figures here", file.path)
        }));
    }
    overrides
}
