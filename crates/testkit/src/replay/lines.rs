//! Lines of the transcript and of the stream, built from the recording.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// The constant parts of the client's output, such as its init line, a result and the attachments of a first turn.
static RECORDING: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("recorded.json")).expect("the recording is JSON"));

/// Returns the current time in the client's format.
pub(super) fn timestamp_now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Returns the current time in milliseconds since 1970, as the client writes it when a prompt was sent.
pub(super) fn milliseconds_since_epoch() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Returns a random UUID (version 4).
pub(super) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The values of a session that replace the placeholders in its lines.
#[derive(Clone, Debug)]
pub(super) struct LineContext {
    pub(super) session_id: String,
    pub(super) home: String,
    pub(super) project: String,
    pub(super) dashed_project: String,
    pub(super) branch: String,
}

impl LineContext {
    /// Returns a part of the recording with the placeholders replaced by this session's values.
    pub(super) fn recorded_part(&self, part_name: &str) -> Value {
        self.fill_placeholders(&RECORDING[part_name])
    }

    fn fill_placeholders(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let text = text.replace("<session>", &self.session_id).replace("<project>", &self.project);
                let text = text.replace("<home>", &self.home).replace("<dashed>", &self.dashed_project);
                text.replace("<today>", &timestamp_now()[..10]).into()
            }
            Value::Array(values) => values.iter().map(|value| self.fill_placeholders(value)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.fill_placeholders(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    /// Adds the common fields at the end of each conversation line.
    pub(super) fn add_common_fields(&self, line: &mut Value, working_folder: &Path) {
        line["userType"] = "external".into();
        line["entrypoint"] = "sdk-cli".into();
        line["cwd"] = working_folder.display().to_string().into();
        line["sessionId"] = self.session_id.clone().into();
        line["version"] = crate::client::CLIENT_VERSION.into();
        line["gitBranch"] = self.branch.clone().into();
    }

    /// Returns a transcript line that is not part of the conversation.
    pub(super) fn queue_operation_or_marker_line(&self, line_type: &str) -> Value {
        match line_type {
            "enqueue" | "dequeue" => json!({
                "type": "queue-operation", "operation": line_type, "timestamp": timestamp_now(), "sessionId": self.session_id,
            }),
            _ => json!({ "type": line_type, "atis": "", "sessionId": self.session_id }),
        }
    }
}

/// Returns a system reminder in the form that the transcript stores.
pub(super) fn system_reminder_for_transcript(text: &str) -> Value {
    json!([{ "content": system_reminder_text(text) }])
}

/// Returns a system reminder in the form that the model reads.
pub(super) fn system_reminder_text(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// Returns the usage of a message in the format of the transcript.
pub(super) fn transcript_usage(usage: &Value) -> Value {
    let token_count = |name: &str| usage[name].clone();
    json!({
        "input_tokens": token_count("input_tokens"), "cache_creation_input_tokens": token_count("cache_creation_input_tokens"),
        "cache_read_input_tokens": token_count("cache_read_input_tokens"), "output_tokens": token_count("output_tokens"),
        "output_tokens_details": { "thinking_tokens": 0 },
        "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 }, "service_tier": "standard",
        "cache_creation": { "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0 }, "inference_geo": "",
        "iterations": [], "speed": "standard", "fallback_credit": null,
    })
}
