//! What to show: the client's payload if it is piped in, else what is known of the session
//! that was measured last.

use crate::target_session::TargetSession;
use plimsoll_domain::SessionId;
use plimsoll_store::{Project, clock, sessions};
use plimsoll_terminal::standard_input;
use serde_json::{Value, json};

/// Whose figures these are.
pub(crate) enum Origin {
    /// Piped in.
    StandardInput,
    /// A session here, by its id.
    Session(String),
    /// Nobody's.
    Nothing,
}

impl Origin {
    pub(crate) fn words(&self) -> String {
        match self {
            Origin::StandardInput => "the payload on standard input".to_owned(),
            Origin::Session(id) => {
                format!("session {id}, as far as its record shows (cost, limits and cache are unknown)")
            }
            Origin::Nothing => "no recorded session".to_owned(),
        }
    }
}

/// What there is.
pub(crate) fn find() -> (Vec<u8>, Origin) {
    if let Some(document) = standard_input::document() {
        return (document, Origin::StandardInput);
    }
    let project = Project::of_command();
    let known = TargetSession::find(&project).ok().flatten();
    let id = known.map(|whose| whose.record.session_id).filter(|id| !id.is_empty());
    let payload = of_session(&project, id.as_ref());
    (payload.to_string().into_bytes(), id.map_or(Origin::Nothing, |id| Origin::Session(id.to_string())))
}

/// As the client would tell it, as far as we know.
fn of_session(project: &Project, id: Option<&SessionId>) -> Value {
    let place = project.root().to_string_lossy();
    // The status line knows the exact window, the transcript only the model: the former goes first.
    let published = id.and_then(|id| sessions::load_status(project, id)).unwrap_or_default();
    let reading = id.and_then(|id| sessions::load(project, id).usage.reading);
    let used = published.used.or(reading.as_ref().map(|reading| reading.used));
    let output = published.output.or(reading.as_ref().map(|reading| reading.output));
    let window =
        published.window.or(reading.as_ref().and_then(|reading| Some(reading.window.as_ref()?.tokens)));
    let model = published.model.or(reading.and_then(|reading| reading.model));
    json!({
        "session_id": id,
        "cwd": place,
        "workspace": {"current_dir": place, "project_dir": place},
        "model": {"id": model},
        "context_window": {
            "context_window_size": window,
            "total_input_tokens": used,
            "current_usage": used.map(|used| json!({"input_tokens": used, "output_tokens": output})),
            "used_percentage": used.zip(window).and_then(|(used, window)| plimsoll_domain::reading::percent(used, window)),
        },
    })
}

/// A session that has something of everything.
pub(crate) fn sample() -> Value {
    let now = clock::now().timestamp();
    let place = Project::of_command().root().to_string_lossy().into_owned();
    json!({
        "session_id": "00000000-0000-4000-8000-000000000000",
        "cwd": place,
        "workspace": {"current_dir": place, "project_dir": place, "added_dirs": []},
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
