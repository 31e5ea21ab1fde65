//! Lines of the transcript and of the stream, on the patterns of the recording.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// What of the client's own words is always the same: its init line, a result, the attachments of a first turn.
static RECORDED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("recorded.json")).expect("the recording is JSON"));

/// Now, as the client writes it.
pub(super) fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// A new random id.
pub(super) fn id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// What is in every line.
#[derive(Clone, Debug)]
pub(super) struct LineContext {
    pub(super) session: String,
    pub(super) home: String,
    pub(super) project: String,
    pub(super) dashed: String,
    pub(super) branch: String,
}

impl LineContext {
    /// A part of the recording, with this session's values in it.
    pub(super) fn recorded(&self, part: &str) -> Value {
        self.filled(&RECORDED[part])
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let text = text.replace("<session>", &self.session).replace("<project>", &self.project);
                let text = text.replace("<home>", &self.home).replace("<dashed>", &self.dashed);
                text.replace("<today>", &now()[..10]).into()
            }
            Value::Array(values) => values.iter().map(|value| self.filled(value)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.filled(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    /// The end of each line of the conversation.
    pub(super) fn close(&self, line: &mut Value, folder: &Path) {
        line["userType"] = "external".into();
        line["entrypoint"] = "sdk-cli".into();
        line["cwd"] = folder.display().to_string().into();
        line["sessionId"] = self.session.clone().into();
        line["version"] = crate::client::CLIENT_VERSION.into();
        line["gitBranch"] = self.branch.clone().into();
    }

    /// A line that belongs to no conversation.
    pub(super) fn mark(&self, kind: &str) -> Value {
        match kind {
            "enqueue" | "dequeue" => json!({
                "type": "queue-operation", "operation": kind, "timestamp": now(), "sessionId": self.session,
            }),
            _ => json!({ "type": kind, "atis": "", "sessionId": self.session }),
        }
    }
}

/// A reminder as the transcript keeps it.
pub(super) fn rendered(text: &str) -> Value {
    json!([{ "content": reminder(text) }])
}

/// A reminder as the model reads it.
pub(super) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// The usage of a message as the transcript has it.
pub(super) fn whole_usage(usage: &Value) -> Value {
    let number = |name: &str| usage[name].clone();
    json!({
        "input_tokens": number("input_tokens"), "cache_creation_input_tokens": number("cache_creation_input_tokens"),
        "cache_read_input_tokens": number("cache_read_input_tokens"), "output_tokens": number("output_tokens"),
        "output_tokens_details": { "thinking_tokens": 0 },
        "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 }, "service_tier": "standard",
        "cache_creation": { "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0 }, "inference_geo": "",
        "iterations": [], "speed": "standard", "fallback_credit": null,
    })
}
