//! Sends requests to the model and records its messages.

use super::{MAX_CONTEXT_TOKENS, Session, SessionOutcome, env_variable};
use crate::replay::arguments::{MODEL, OutputFormat};
use crate::replay::lines::{new_uuid, system_reminder_for_transcript, timestamp_now, transcript_usage};
use crate::replay::model::ModelReply;
use crate::replay::{ReplayResult, model, not_replayable_error, tools};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

impl Session {
    /// Sends the next request and retries recorded API errors. The inner error is the outcome of a session that
    /// ends here.
    pub(super) fn request_message_with_retries(&mut self) -> ReplayResult<Result<Value, SessionOutcome>> {
        if self.context_tokens > MAX_CONTEXT_TOKENS {
            return not_replayable_error("a compaction");
        }
        self.record_working_folder_if_changed();
        if !self.pending_reminders.is_empty() {
            let text = self.pending_reminders.join("\n\n");
            self.pending_reminders.clear();
            self.messages.push(json!({ "role": "system", "content": [{ "type": "text", "text": text }] }));
        }
        let request_body = self.build_request_body();
        let base_url = env_variable("ANTHROPIC_BASE_URL").unwrap_or_default();
        let max_retries =
            env_variable("CLAUDE_CODE_MAX_RETRIES").and_then(|number| number.parse().ok()).unwrap_or(10);
        let mut attempt = 1;
        loop {
            let started_at = Instant::now();
            let signal = Arc::clone(&self.received_signal);
            let reply =
                model::send_request_once(&base_url, &self.line_context.session_id, &request_body, &|| {
                    signal.load(Ordering::SeqCst) != 0
                })?;
            self.api_time += started_at.elapsed();
            match reply {
                ModelReply::Interrupted => return Ok(Err(SessionOutcome::Interrupted("aborted_streaming"))),
                ModelReply::Message(message, request_id) => {
                    return Ok(Ok(self.record_message_with_default_tool_inputs(message, &request_id)?));
                }
                ModelReply::Error {
                    status,
                    error_type: api_error_type,
                    message,
                    body,
                    request_id: failed_request_id,
                    rate_limit_reset,
                } => {
                    let Some(error_name) = recorded_error_name_for_status(status) else {
                        return not_replayable_error(format!("the error {status} of the API"));
                    };
                    if attempt > max_retries {
                        return Ok(Err(self.record_api_failure(
                            status,
                            &api_error_type,
                            &message,
                            &failed_request_id,
                        )));
                    }
                    let delay_ms = 500_u64 << (attempt - 1).min(6);
                    self.write_stream_line(&json!({
                        "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": max_retries,
                        "retry_delay_ms": delay_ms, "error_status": status, "error": error_name,
                        "session_id": self.line_context.session_id, "uuid": new_uuid(),
                    }));
                    let rate_limit =
                        rate_limit_reset.map(|(limit_name, resets_at_seconds)| json!({ "rateLimitType": limit_name, "resetsAt": resets_at_seconds }));
                    self.write_conversation_line(json!({
                        "type": "system", "subtype": "api_error", "level": "error",
                        "error": {
                            "message": format!("{status} {body}"), "status": status, "requestId": failed_request_id,
                            "formatted": format!("{status} {message}"), "connection": null, "isNetworkDown": false,
                            "rateLimits": rate_limit, "noResponse": null,
                        },
                        "retryInMs": delay_ms, "retryAttempt": attempt, "maxRetries": max_retries, "source": "request_retry",
                    }));
                    if !self.sleep_or_return_false_if_ending(Duration::from_millis(delay_ms)) {
                        return Ok(Err(SessionOutcome::Interrupted("aborted_streaming")));
                    }
                    attempt += 1;
                }
            }
        }
    }

    /// Records the working directory if a command has changed it since it was last announced.
    fn record_working_folder_if_changed(&mut self) {
        if self.last_announced_folder == self.working_folder {
            return;
        }
        self.last_announced_folder.clone_from(&self.working_folder);
        let environment_snapshot = json!({ "workingDirectory": self.working_folder });
        self.write_conversation_line(json!({
            "attachment": { "type": "environment", "snapshot": environment_snapshot, "changes": ["workingDirectory"] },
            "type": "attachment", "rendered": system_reminder_for_transcript("# Environment"), "renderedRole": "system",
        }));
    }

    /// Sleeps for `duration`. Returns false if a signal to end was received.
    pub(super) fn sleep_or_return_false_if_ending(&self, duration: Duration) -> bool {
        let started_at = Instant::now();
        while started_at.elapsed() < duration && !self.is_ending() {
            sleep(Duration::from_millis(5));
        }
        !self.is_ending()
    }

    pub(super) fn build_request_body(&self) -> Value {
        let system_texts: Vec<String> =
            serde_json::from_value(self.line_context.recorded_part("system_texts")).unwrap_or_default();
        let mut system: Vec<Value> =
            system_texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        if let (Some(appended_text), Some(last_block)) = (&self.arguments.system_prompt, system.last_mut()) {
            let text = format!("{}\n\n{appended_text}", last_block["text"].as_str().unwrap_or_default());
            last_block["text"] = text.into();
        }
        let tool_names: Vec<String> =
            serde_json::from_value(self.line_context.recorded_part("tools")).unwrap_or_default();
        let tools: Vec<Value> = tool_names
            .iter()
            .map(|name| json!({ "name": name, "description": "", "input_schema": { "type": "object" } }))
            .collect();
        let thinking_display =
            if self.arguments.output_format == OutputFormat::StreamJson { "updates" } else { "omitted" };
        let user_id =
            json!({ "device_id": "0", "account_uuid": "", "session_id": self.line_context.session_id })
                .to_string();
        json!({
            "model": MODEL, "messages": self.messages, "system": system, "tools": tools,
            "metadata": { "user_id": user_id }, "max_tokens": 128_000,
            "thinking": { "type": "adaptive", "display": thinking_display },
            "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] },
            "output_config": { "effort": "medium" }, "stream": true,
        })
    }

    /// Records a message in the transcript and the stream, one line per content block. Returns it with the default
    /// values of its tool inputs filled in.
    pub(super) fn record_message_with_default_tool_inputs(
        &mut self,
        mut message: Value,
        request_id: &str,
    ) -> ReplayResult<Value> {
        self.token_usage.add_usage(&message["usage"]);
        self.stop_reason = message["stop_reason"].clone();
        if self.arguments.max_budget_usd.is_some_and(|budget| self.token_usage.cost_usd() > budget) {
            return not_replayable_error("a budget that is used up");
        }
        self.context_tokens = input_tokens_including_cache(&message["usage"]);
        for block in message["content"].as_array_mut().into_iter().flatten() {
            if block["type"] == "tool_use" {
                let name = block["name"].as_str().unwrap_or_default().to_owned();
                block["input"] = tools::conversation_and_hook_inputs_with_defaults(&name, &block["input"]).0;
            }
        }
        let (usage, request_reference) = (transcript_usage(&message["usage"]), new_uuid());
        let mut stream_usage = message["usage"].clone();
        stream_usage["output_tokens"] = 1.into();
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            let single_block_message = |stop_reason: &Value, usage: &Value| {
                json!({
                    "id": message["id"], "type": "message", "role": "assistant", "model": message["model"],
                    "content": [block], "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
                })
            };
            let mut stream_message = single_block_message(&Value::Null, &stream_usage);
            stream_message["context_management"] = Value::Null;
            let mut transcript_message = single_block_message(&message["stop_reason"], &usage);
            transcript_message["stop_details"] = Value::Null;
            let mut line = json!({ "message": transcript_message });
            if block["type"] == "tool_use" {
                line["toolInputStreamMs"] = 1.into();
            }
            for (name, value) in [
                ("apiBlockIndex", json!(index)),
                ("requestId", json!(request_id)),
                ("requestRef", json!(request_reference)),
                ("requestedModel", json!(MODEL)),
                ("promptCacheRequested", json!("5m")),
                ("type", json!("assistant")),
                ("effort", json!("medium")),
                ("perTurnEffort", json!("medium")),
                ("madeBy", json!("model")),
            ] {
                line[name] = value;
            }
            let line_id = self.write_conversation_line(line);
            if block["type"] == "tool_use" {
                self.line_ids_by_call.push((block["id"].clone(), line_id.clone()));
            }
            self.write_stream_line(&json!({
                "type": "assistant", "message": stream_message, "parent_tool_use_id": null,
                "session_id": self.line_context.session_id, "uuid": line_id, "timestamp": timestamp_now(), "request_id": request_id,
            }));
        }
        self.messages.push(json!({ "role": "assistant", "content": message["content"] }));
        Ok(message)
    }

    /// Records an API error after the last retry, with the client's error message.
    pub(super) fn record_api_failure(
        &mut self,
        status: u16,
        error_type: &str,
        message: &str,
        request_id: &str,
    ) -> SessionOutcome {
        let base_url = env_variable("ANTHROPIC_BASE_URL").unwrap_or_default();
        let gateway_address = base_url.trim_start_matches("http://");
        let (error_name, text) = match status {
            401 => ("authentication_failed", "Invalid API key · Fix external API key".to_owned()),
            429 => ("rate_limit", format!("API Error: Request rejected (429) · {message}")),
            _ => (
                "server_error",
                format!(
                    "API Error: {status} {message}. This is a server-side issue, usually temporary — try again in a moment. \
                 If it persists, check your inference gateway ({gateway_address})."
                ),
            ),
        };
        let mut stream_line = self.line_context.recorded_part("synthetic");
        stream_line["message"]["id"] = new_uuid().into();
        stream_line["message"]["content"][0]["text"] = text.clone().into();
        let mut line = json!({
            "type": "assistant", "message": stream_line["message"], "requestId": request_id, "error": error_name,
            "isApiErrorMessage": true, "apiErrorStatus": status, "apiErrorType": error_type, "perTurnEffort": "medium",
            "failedResponseHadNoToolCall": true, "madeBy": "model",
        });
        if status == 429 {
            line["apiErrorIsTransient"] = false.into();
        }
        stream_line["uuid"] = self.write_conversation_line(line).into();
        stream_line["timestamp"] = timestamp_now().into();
        stream_line["error"] = error_name.into();
        stream_line["request_id"] = request_id.into();
        stream_line["api_error_status"] = status.into();
        stream_line["api_error_type"] = error_type.into();
        self.write_stream_line(&stream_line);
        SessionOutcome::ApiFailed(
            json!({ "text": text, "error": error_name, "status": status, "kind": error_type }),
        )
    }
}

/// Returns the input tokens of a message, including cache reads and writes.
fn input_tokens_including_cache(usage: &Value) -> u64 {
    let fields = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    fields.iter().map(|name| usage[*name].as_u64().unwrap_or(0)).sum()
}

/// Returns the client's name for an API error, or `None` if the error was not recorded.
fn recorded_error_name_for_status(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("authentication_failed"),
        429 => Some("rate_limit"),
        500 => Some("server_error"),
        529 => Some("overloaded"),
        _ => None,
    }
}
