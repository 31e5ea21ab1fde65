//! The payload to explain: the client's payload if it is piped in, else a payload built from the record of the
//! session that was measured last.

use crate::target_session::TargetSession;
use plimsoll_domain::SessionId;
use plimsoll_store::{Project, clock, sessions};
use plimsoll_terminal::standard_input;
use serde_json::{Value, json};

/// The origin of a payload.
pub(crate) enum PayloadOrigin {
    /// Piped in.
    StandardInput,
    /// Built from the record of a session in this project, by its id.
    Session(String),
    /// No session has been recorded.
    NoSession,
}

impl PayloadOrigin {
    pub(crate) fn describe(&self) -> String {
        match self {
            PayloadOrigin::StandardInput => "the payload on standard input".to_owned(),
            PayloadOrigin::Session(id) => {
                format!("session {id}, as far as its record shows (cost, limits and cache are unknown)")
            }
            PayloadOrigin::NoSession => "no recorded session".to_owned(),
        }
    }
}

/// Reads the payload from standard input if it is piped in, else builds it from the session's record.
pub(crate) fn read_stdin_or_build_payload() -> (Vec<u8>, PayloadOrigin) {
    if let Some(document) = standard_input::read_nonblank_piped_input_if_data_arrives() {
        return (document, PayloadOrigin::StandardInput);
    }
    let project = Project::find_upwards_from_current_dir();
    let target = TargetSession::find_current_or_run_or_latest(&project).ok().flatten();
    let id = target.map(|target| target.record.session_id).filter(|id| !id.is_empty());
    let payload = build_payload_from_status_or_session_record(&project, id.as_ref());
    (
        payload.to_string().into_bytes(),
        id.map_or(PayloadOrigin::NoSession, |id| PayloadOrigin::Session(id.to_string())),
    )
}

/// Builds a payload in the client's format from the session's record, without cost, limits and cache, which are not
/// recorded.
fn build_payload_from_status_or_session_record(project: &Project, id: Option<&SessionId>) -> Value {
    let root = project.root().to_string_lossy();
    // The status line record is preferred: it has the exact window, whereas the transcript has only the model.
    let status_record = id.and_then(|id| sessions::load_status_line_record(project, id)).unwrap_or_default();
    let reading = id.and_then(|id| sessions::load_session_record(project, id).usage.last_reading);
    let used_tokens = status_record.used_tokens.or(reading.as_ref().map(|reading| reading.used_tokens));
    let output_tokens = status_record.output_tokens.or(reading.as_ref().map(|reading| reading.output_tokens));
    let window_tokens = status_record
        .window_tokens
        .or(reading.as_ref().and_then(|reading| Some(reading.window.as_ref()?.tokens)));
    let model = status_record.model.or(reading.and_then(|reading| reading.model));
    json!({
        "session_id": id,
        "cwd": root,
        "workspace": {"current_dir": root, "project_dir": root},
        "model": {"id": model},
        "context_window": {
            "context_window_size": window_tokens,
            "total_input_tokens": used_tokens,
            "current_usage": used_tokens.map(|used| json!({"input_tokens": used, "output_tokens": output_tokens})),
            "used_percentage": used_tokens.zip(window_tokens).and_then(|(used, window)| plimsoll_domain::reading::rounded_percent(used, window)),
        },
    })
}

/// Returns a payload with a value for every segment.
pub(crate) fn sample_payload() -> Value {
    let now = clock::now().timestamp();
    let root = Project::find_upwards_from_current_dir().root().to_string_lossy().into_owned();
    json!({
        "session_id": "00000000-0000-4000-8000-000000000000",
        "cwd": root,
        "workspace": {"current_dir": root, "project_dir": root, "added_dirs": []},
        "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "effort": {"level": "medium"},
        "version": "2.1.329",
        "output_style": {"name": "default"},
        "cost": {
            "total_cost_usd": 1.84, "total_duration_ms": 2_460_000, "total_api_duration_ms": 1_149_000,
            "total_lines_added": 156, "total_lines_removed": 23
        },
        "context_window": {
            "total_input_tokens": 430_000, "total_output_tokens": 1_200, "context_window_size": 1_000_000,
            "current_usage": {
                "input_tokens": 10, "output_tokens": 1_200,
                "cache_creation_input_tokens": 8_990, "cache_read_input_tokens": 421_000
            },
            "used_percentage": 43, "remaining_percentage": 57
        },
        "prompt_cache": {"warm": true, "ttl": "5m", "expires_at": now + 240, "hit_ratio": 0.979},
        "rate_limits": {
            "five_hour": {"used_percentage": 42, "resets_at": now + 9_000},
            "seven_day": {"used_percentage": 78, "resets_at": now + 300_000},
            "spend_limit": {"used_percentage": 12, "resets_at": now + 900_000}
        }
    })
}
