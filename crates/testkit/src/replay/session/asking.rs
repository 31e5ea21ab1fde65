//! Asking the model, and taking its answer.

use super::{COMPACTS, End, Session, variable};
use crate::replay::arguments::{Format, MODEL};
use crate::replay::lines::{id, now, rendered, whole_usage};
use crate::replay::model::Reply;
use crate::replay::{Recorded, model, not_recorded, tools};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

impl Session {
    /// Asks the model, again after errors that pass.
    pub(super) fn ask(&mut self) -> Recorded<Result<Value, End>> {
        if self.filled > COMPACTS {
            return not_recorded("a compaction");
        }
        self.note_folder();
        if !self.said.is_empty() {
            let text = self.said.join("\n\n");
            self.said.clear();
            self.messages.push(json!({ "role": "system", "content": [{ "type": "text", "text": text }] }));
        }
        let body = self.request();
        let base = variable("ANTHROPIC_BASE_URL").unwrap_or_default();
        let retries =
            variable("CLAUDE_CODE_MAX_RETRIES").and_then(|number| number.parse().ok()).unwrap_or(10);
        let mut attempt = 1;
        loop {
            let start = Instant::now();
            let signal = Arc::clone(&self.signal);
            let reply =
                model::ask(&base, &self.place.session, &body, &|| signal.load(Ordering::SeqCst) != 0)?;
            self.waited += start.elapsed();
            match reply {
                Reply::Interrupted => return Ok(Err(End::Interrupted("aborted_streaming"))),
                Reply::Message(message, request) => return Ok(Ok(self.take(message, &request)?)),
                Reply::Error { status, kind, message, body, request, resets_at } => {
                    let Some(name) = short(status) else {
                        return not_recorded(format!("the error {status} of the API"));
                    };
                    if attempt > retries {
                        return Ok(Err(self.fail(status, &kind, &message, &request)));
                    }
                    let delay = 500_u64 << (attempt - 1).min(6);
                    self.tell(&json!({
                        "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": retries,
                        "retry_delay_ms": delay, "error_status": status, "error": name,
                        "session_id": self.place.session, "uuid": id(),
                    }));
                    let limits =
                        resets_at.map(|(claim, at)| json!({ "rateLimitType": claim, "resetsAt": at }));
                    self.converse(json!({
                        "type": "system", "subtype": "api_error", "level": "error",
                        "error": {
                            "message": format!("{status} {body}"), "status": status, "requestId": request,
                            "formatted": format!("{status} {message}"), "connection": null, "isNetworkDown": false,
                            "rateLimits": limits, "noResponse": null,
                        },
                        "retryInMs": delay, "retryAttempt": attempt, "maxRetries": retries, "source": "request_retry",
                    }));
                    if !self.rest(Duration::from_millis(delay)) {
                        return Ok(Err(End::Interrupted("aborted_streaming")));
                    }
                    attempt += 1;
                }
            }
        }
    }

    /// The working directory, where the last command has left another one.
    fn note_folder(&mut self) {
        if self.told_folder == self.folder {
            return;
        }
        self.told_folder.clone_from(&self.folder);
        let snapshot = json!({ "workingDirectory": self.folder });
        self.converse(json!({
            "attachment": { "type": "environment", "snapshot": snapshot, "changes": ["workingDirectory"] },
            "type": "attachment", "rendered": rendered("# Environment"), "renderedRole": "system",
        }));
    }

    /// Sleeps; false when the end was asked for meanwhile.
    pub(super) fn rest(&self, length: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < length && !self.is_ending() {
            sleep(Duration::from_millis(5));
        }
        !self.is_ending()
    }

    pub(super) fn request(&self) -> Value {
        let texts: Vec<String> =
            serde_json::from_value(self.place.recorded("system_texts")).unwrap_or_default();
        let mut system: Vec<Value> =
            texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        if let (Some(extra), Some(last)) = (&self.arguments.system_prompt, system.last_mut()) {
            let text = format!("{}\n\n{extra}", last["text"].as_str().unwrap_or_default());
            last["text"] = text.into();
        }
        let names: Vec<String> = serde_json::from_value(self.place.recorded("tools")).unwrap_or_default();
        let tools: Vec<Value> = names
            .iter()
            .map(|name| json!({ "name": name, "description": "", "input_schema": { "type": "object" } }))
            .collect();
        let display = if self.arguments.format == Format::Stream { "updates" } else { "omitted" };
        let user =
            json!({ "device_id": "0", "account_uuid": "", "session_id": self.place.session }).to_string();
        json!({
            "model": MODEL, "messages": self.messages, "system": system, "tools": tools,
            "metadata": { "user_id": user }, "max_tokens": 128_000,
            "thinking": { "type": "adaptive", "display": display },
            "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] },
            "output_config": { "effort": "medium" }, "stream": true,
        })
    }

    /// Writes and tells an answer, a line for each of its blocks.
    pub(super) fn take(&mut self, mut message: Value, request: &str) -> Recorded<Value> {
        self.spent.add(&message["usage"]);
        self.reason = message["stop_reason"].clone();
        if self.arguments.budget.is_some_and(|budget| self.spent.dollars() > budget) {
            return not_recorded("a budget that is used up");
        }
        self.filled = tokens(&message["usage"]);
        for block in message["content"].as_array_mut().into_iter().flatten() {
            if block["type"] == "tool_use" {
                let name = block["name"].as_str().unwrap_or_default().to_owned();
                block["input"] = tools::filled(&name, &block["input"]).0;
            }
        }
        let (usage, reference) = (whole_usage(&message["usage"]), id());
        let mut early = message["usage"].clone();
        early["output_tokens"] = 1.into();
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            let head = |stop: &Value, usage: &Value| {
                json!({
                    "id": message["id"], "type": "message", "role": "assistant", "model": message["model"],
                    "content": [block], "stop_reason": stop, "stop_sequence": null, "usage": usage,
                })
            };
            let mut told = head(&Value::Null, &early);
            told["context_management"] = Value::Null;
            let mut kept = head(&message["stop_reason"], &usage);
            kept["stop_details"] = Value::Null;
            let mut line = json!({ "message": kept });
            if block["type"] == "tool_use" {
                line["toolInputStreamMs"] = 1.into();
            }
            for (name, value) in [
                ("apiBlockIndex", json!(index)),
                ("requestId", json!(request)),
                ("requestRef", json!(reference)),
                ("requestedModel", json!(MODEL)),
                ("promptCacheRequested", json!("5m")),
                ("type", json!("assistant")),
                ("effort", json!("medium")),
                ("perTurnEffort", json!("medium")),
                ("madeBy", json!("model")),
            ] {
                line[name] = value;
            }
            let own = self.converse(line);
            if block["type"] == "tool_use" {
                self.calls.push((block["id"].clone(), own.clone()));
            }
            self.tell(&json!({
                "type": "assistant", "message": told, "parent_tool_use_id": null,
                "session_id": self.place.session, "uuid": own, "timestamp": now(), "request_id": request,
            }));
        }
        self.messages.push(json!({ "role": "assistant", "content": message["content"] }));
        Ok(message)
    }

    /// The API's last error, as the client words it.
    pub(super) fn fail(&mut self, status: u16, kind: &str, message: &str, request: &str) -> End {
        let gateway = variable("ANTHROPIC_BASE_URL").unwrap_or_default();
        let gateway = gateway.trim_start_matches("http://");
        let (error, text) = match status {
            401 => ("authentication_failed", "Invalid API key · Fix external API key".to_owned()),
            429 => ("rate_limit", format!("API Error: Request rejected (429) · {message}")),
            _ => (
                "server_error",
                format!(
                    "API Error: {status} {message}. This is a server-side issue, usually temporary — try again in a moment. \
                 If it persists, check your inference gateway ({gateway})."
                ),
            ),
        };
        let mut told = self.place.recorded("synthetic");
        told["message"]["id"] = id().into();
        told["message"]["content"][0]["text"] = text.clone().into();
        let mut line = json!({
            "type": "assistant", "message": told["message"], "requestId": request, "error": error,
            "isApiErrorMessage": true, "apiErrorStatus": status, "apiErrorType": kind, "perTurnEffort": "medium",
            "failedResponseHadNoToolCall": true, "madeBy": "model",
        });
        if status == 429 {
            line["apiErrorIsTransient"] = false.into();
        }
        told["uuid"] = self.converse(line).into();
        told["timestamp"] = now().into();
        told["error"] = error.into();
        told["request_id"] = request.into();
        told["api_error_status"] = status.into();
        told["api_error_type"] = kind.into();
        self.tell(&told);
        End::Failed(json!({ "text": text, "error": error, "status": status, "kind": kind }))
    }
}

/// What was sent of a message, in tokens.
fn tokens(usage: &Value) -> u64 {
    let kinds = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    kinds.iter().map(|name| usage[*name].as_u64().unwrap_or(0)).sum()
}

/// The errors whose course was recorded, by the name that a retry has.
fn short(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("authentication_failed"),
        429 => Some("rate_limit"),
        500 => Some("server_error"),
        529 => Some("overloaded"),
        _ => None,
    }
}
