//! Writes the events of a conversation as the client's transcript does. The fields, their order and the texts are
//! those of `tests/fixtures/transcripts` (2.1.329) and of recordings of 2.1.332.

use super::events::{ClientNote, Event, PROJECT_PLACEHOLDER, ToolCall};
use super::random_draws::Draws;
use super::truth::PromptForm;
use serde_json::{Value, json};

pub const MODEL: &str = "claude-opus-5-5";
/// Tokens of the system prompt and the tools.
const BASE_TOKENS: usize = 20_000;
/// Tokens at which the client compacts a window of 200,000 by itself.
pub const AUTO_COMPACT_TOKENS: usize = 167_000;

/// Composes the rows of one session's transcript.
#[derive(Debug)]
pub struct TranscriptRows {
    session_id: String,
    client_version: &'static str,
    project_folder: String,
    draws: Draws,
    parent_uuid: Option<String>,
    prompt_id: String,
    prompt_count: usize,
    message_count: usize,
    milliseconds: u64,
    /// Bytes of the segment so far and in all, from which the usage is computed.
    segment_bytes: usize,
    total_segment_bytes: usize,
    last_tool_use_id: Option<String>,
    lines: Vec<String>,
}

impl TranscriptRows {
    pub fn new(
        session_id: String,
        client_version: &'static str,
        project_folder: String,
        draws: Draws,
        start_milliseconds: u64,
    ) -> TranscriptRows {
        TranscriptRows {
            session_id,
            client_version,
            project_folder,
            draws,
            parent_uuid: None,
            prompt_id: String::new(),
            prompt_count: 0,
            message_count: 0,
            milliseconds: start_milliseconds,
            segment_bytes: 0,
            total_segment_bytes: 1,
            last_tool_use_id: None,
            lines: Vec::new(),
        }
    }

    pub fn last_tool_use_id(&self) -> Option<&str> {
        self.last_tool_use_id.as_deref()
    }

    /// The tokens of the conversation, which reach the auto-compact threshold at the end of a segment.
    pub fn context_tokens(&self) -> usize {
        let share = self.segment_bytes.min(self.total_segment_bytes) as f64 / self.total_segment_bytes as f64;
        BASE_TOKENS + ((AUTO_COMPACT_TOKENS - BASE_TOKENS) as f64 * share) as usize
    }

    /// Returns the rows of a segment, each with its line end.
    pub fn rows_of_segment(&mut self, events: &[Event], byte_count: usize) -> Vec<String> {
        (self.segment_bytes, self.total_segment_bytes) = (0, byte_count.max(1));
        for event in events {
            self.add_event(event);
        }
        self.segment_bytes = self.total_segment_bytes;
        std::mem::take(&mut self.lines)
    }

    /// Returns the rows that the client writes when a module has answered a compaction with this text.
    pub fn rows_of_answered_compaction(&mut self, text: &str) -> Vec<String> {
        let logical_parent = self.parent_uuid.take();
        let (tokens, text_tokens) = (self.context_tokens(), text.len() / 4);
        self.add_row(json!({
            "parentUuid": null, "logicalParentUuid": logical_parent, "isSidechain": false, "type": "system",
            "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info",
            "compactMetadata": {
                "trigger": "auto", "preTokens": tokens, "postTokens": text_tokens,
                "cumulativeDroppedTokens": tokens.saturating_sub(text_tokens), "durationMs": 180,
                "preCompactOrganizationsCoverStart": false, "runningTurnPrompt": {},
            },
        }));
        let prompt_id = self.prompt_id.clone();
        self.add_row(json!({
            "parentUuid": null, "isSidechain": false, "promptId": prompt_id, "type": "user",
            "message": { "role": "user", "content": text }, "rowSource": "hook",
        }));
        self.add_context_attachments();
        std::mem::take(&mut self.lines)
    }

    /// Returns the row with what a SessionStart hook said after a compaction.
    pub fn row_of_hook_context(&mut self, context: &str) -> Vec<String> {
        let attachment = json!({
            "type": "hook_additional_context", "content": [context], "hookName": "SessionStart",
            "toolUseID": "SessionStart", "hookEvent": "SessionStart",
        });
        self.add_attachment(attachment, Some(context), "user");
        std::mem::take(&mut self.lines)
    }

    fn add_event(&mut self, event: &Event) {
        match event {
            Event::Prompt { text, form } => self.add_prompt(text, *form),
            Event::Message { thinking, text, calls } => self.add_message(*thinking, text.as_deref(), calls),
            Event::TurnEnd => self.add_turn_end(),
            Event::Interruption { rejected_call } => self.add_interruption(rejected_call.as_ref()),
            Event::Subagent { prompt, answer } => self.add_subagent_rows(prompt, answer),
            Event::ClientNote(note) => self.add_client_note(note),
        }
    }

    fn timestamp(&mut self) -> String {
        self.milliseconds += 300 + self.draws.number_below(9_000) as u64;
        format_timestamp(self.milliseconds)
    }

    /// Adds a row of the conversation: its parent, its id, its time and the fields that all have.
    fn add_row(&mut self, mut row: Value) {
        let (uuid, timestamp) = (self.draws.uuid(), self.timestamp());
        row["parentUuid"] = self.parent_uuid.clone().map_or(Value::Null, Value::String);
        row["uuid"] = uuid.clone().into();
        row["timestamp"] = timestamp.into();
        row["userType"] = "external".into();
        row["entrypoint"] = "cli".into();
        row["cwd"] = PROJECT_PLACEHOLDER.into();
        row["sessionId"] = self.session_id.clone().into();
        row["version"] = self.client_version.into();
        row["gitBranch"] = "main".into();
        self.add_line(&row);
        if row["isSidechain"] != true {
            self.parent_uuid = Some(uuid);
        }
        let is_user_row = row["type"] == "user" && row["isSidechain"] != true;
        if self.client_version == "2.1.329" && is_user_row {
            // This version repeats what it sends to the model.
            let hash = format!("{}{}", self.draws.uuid(), self.draws.uuid()).replace('-', "");
            let line = json!({
                "type": "api-request-blob", "sessionId": self.session_id, "hash": hash, "message": row["message"],
            });
            self.add_line(&line);
        }
    }

    fn add_line(&mut self, row: &Value) {
        self.lines.push(row.to_string().replace(PROJECT_PLACEHOLDER, &self.project_folder) + "\n");
    }

    fn add_attachment(&mut self, attachment: Value, rendered: Option<&str>, role: &str) {
        let mut row = json!({ "parentUuid": null, "isSidechain": false, "attachment": attachment, "type": "attachment" });
        if let Some(rendered) = rendered {
            let content = format!("<system-reminder>\n{rendered}\n</system-reminder>");
            row["rendered"] = json!([{ "content": content }]);
            row["renderedRole"] = role.into();
        }
        self.add_row(row);
    }

    fn add_context_attachments(&mut self) {
        self.add_attachment(json!({ "type": "session_context", "context": {} }), None, "user");
        let date = &format_timestamp(self.milliseconds)[..10];
        let text = format!("Today's date is {date}.");
        self.add_attachment(json!({ "type": "date", "date": date }), Some(&text), "system");
    }

    fn add_prompt(&mut self, text: &str, form: PromptForm) {
        self.segment_bytes += text.len();
        let timestamp = format_timestamp(self.milliseconds);
        let enqueue = json!({
            "type": "queue-operation", "operation": "enqueue", "timestamp": timestamp, "sessionId": self.session_id,
            "content": text,
        });
        if form == PromptForm::Queued {
            self.add_line(&enqueue);
            self.add_line(&json!({
                "type": "queue-operation", "operation": "remove", "timestamp": timestamp, "sessionId": self.session_id,
            }));
            let attachment = json!({ "type": "queued_command", "prompt": text, "commandMode": "prompt" });
            let rendered = format!("The user sent a new message while you were working:\n{text}");
            return self.add_attachment(attachment, Some(&rendered), "user");
        }
        self.prompt_id = self.draws.uuid();
        self.prompt_count += 1;
        let content = match form {
            PromptForm::Typed | PromptForm::Queued => json!(text),
            PromptForm::Blocks => json!([{ "type": "text", "text": text }]),
            PromptForm::WithImage => json!([
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } },
                { "type": "text", "text": text },
            ]),
            PromptForm::SlashCommand => json!(format!(
                "<command-message>change is running…</command-message>\n<command-name>/change</command-name>\n<command-args>{text}</command-args>"
            )),
        };
        let is_first = self.prompt_count == 1;
        self.add_user_row(
            content,
            json!({ "permissionMode": "default", "promptSource": "cli", "turnOrigin": "cli" }),
        );
        if form == PromptForm::SlashCommand {
            let expanded =
                format!("Make the change that is described here, with tests.\n\nARGUMENTS: {text}");
            self.add_user_row(json!([{ "type": "text", "text": expanded }]), json!({ "isMeta": true }));
        }
        if is_first {
            self.add_context_attachments();
        }
        self.add_line(&json!({ "type": "last-prompt", "lastPrompt": text, "sessionId": self.session_id }));
    }

    fn add_user_row(&mut self, content: Value, more_fields: Value) {
        let mut row = json!({
            "parentUuid": null, "isSidechain": false, "promptId": self.prompt_id, "type": "user",
            "message": { "role": "user", "content": content },
        });
        for (name, value) in more_fields.as_object().into_iter().flatten() {
            row[name] = value.clone();
        }
        self.add_row(row);
    }

    /// Adds a row for each part of a message, as the client does, and then the results of its calls.
    fn add_message(&mut self, thinking: bool, text: Option<&str>, calls: &[ToolCall]) {
        self.message_count += 1;
        let mut blocks = Vec::new();
        if thinking {
            blocks.push(json!({ "type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl" }));
        }
        blocks.extend(text.map(|text| json!({ "type": "text", "text": text })));
        let first_call_number = blocks.len();
        for (index, call) in calls.iter().enumerate() {
            let id = format!("toolu_{:04}_{index}", self.message_count);
            blocks.push(json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.input }));
        }
        let stop_reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
        self.segment_bytes += text.map_or(0, str::len);
        let mut call_rows = Vec::new();
        for (index, block) in blocks.into_iter().enumerate() {
            self.add_assistant_block(block, index, stop_reason);
            if index >= first_call_number {
                call_rows.push(self.parent_uuid.clone());
            }
        }
        for (index, call) in calls.iter().enumerate() {
            let id = format!("toolu_{:04}_{index}", self.message_count);
            self.add_tool_result(&id, call, call_rows[index].as_deref());
            self.last_tool_use_id = Some(id);
        }
    }

    fn add_assistant_block(&mut self, block: Value, block_index: usize, stop_reason: &str) {
        let number = self.message_count;
        let tokens = self.context_tokens();
        self.add_row(json!({
            "parentUuid": null, "isSidechain": false,
            "message": {
                "id": format!("msg_{number:04}"), "type": "message", "role": "assistant", "model": MODEL,
                "content": [block], "stop_reason": stop_reason, "stop_sequence": null, "usage": usage(tokens),
                "stop_details": null,
            },
            "apiBlockIndex": block_index, "requestId": format!("req_{number:04}"), "requestedModel": MODEL,
            "promptCacheRequested": "5m", "type": "assistant", "effort": "medium", "madeBy": "model",
        }));
    }

    fn add_tool_result(&mut self, id: &str, call: &ToolCall, call_row: Option<&str>) {
        self.segment_bytes += call.byte_count();
        let text = &call.result_text;
        let block = match call.name {
            _ if call.is_error => {
                json!({ "type": "tool_result", "content": text, "is_error": true, "tool_use_id": id })
            }
            "Bash" => json!({ "tool_use_id": id, "type": "tool_result", "content": text, "is_error": false }),
            "Agent" | "mcp__tracker__get_issue" => json!({
                "tool_use_id": id, "type": "tool_result", "content": [{ "type": "text", "text": text }],
            }),
            _ => json!({ "tool_use_id": id, "type": "tool_result", "content": text }),
        };
        let more_fields = json!({
            "toolUseResult": call.result_detail, "sourceToolAssistantUUID": call_row,
            "permissionDecision": { "decision": "accept", "source": "config", "reasonType": "mode" },
        });
        self.add_user_row(json!([block]), more_fields);
    }

    fn add_turn_end(&mut self) {
        self.add_row(json!({
            "parentUuid": null, "isSidechain": false, "type": "system", "subtype": "turn_duration", "durationMs": 41_760,
            "messageCount": self.message_count, "isMeta": false,
        }));
    }

    fn add_interruption(&mut self, rejected_call: Option<&ToolCall>) {
        let Some(call) = rejected_call else {
            let block = json!([{ "type": "text", "text": "[Request interrupted by user]" }]);
            return self.add_user_row(block, json!({}));
        };
        self.message_count += 1;
        let id = format!("toolu_{:04}_0", self.message_count);
        let block = json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.input });
        self.add_assistant_block(block, 0, "tool_use");
        let text = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file \
                    edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to \
                    tell you how to proceed.";
        let result = json!({ "type": "tool_result", "content": text, "is_error": true, "tool_use_id": id });
        self.add_user_row(json!([result]), json!({ "toolUseResult": "User rejected tool use" }));
        let block = json!([{ "type": "text", "text": "[Request interrupted by user for tool use]" }]);
        self.add_user_row(block, json!({}));
    }

    fn add_subagent_rows(&mut self, prompt: &str, answer: &str) {
        self.add_row(json!({
            "isSidechain": true, "promptId": self.prompt_id, "agentId": "a60bf2aa187041951", "type": "user",
            "message": { "role": "user", "content": prompt },
        }));
        self.add_row(json!({
            "isSidechain": true, "agentId": "a60bf2aa187041951",
            "message": {
                "id": "msg_side", "type": "message", "role": "assistant", "model": MODEL,
                "content": [{ "type": "text", "text": answer }], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": usage(9_000),
            },
            "requestId": "req_side", "type": "assistant",
        }));
    }

    fn add_client_note(&mut self, note: &ClientNote) {
        match note {
            ClientNote::HookFeedback(text) => self.add_user_row(json!(text), json!({ "isMeta": true })),
            ClientNote::LocalCommand(output) => {
                let command = "<command-name>/context</command-name>\n<command-message>context</command-message>\n<command-args></command-args>";
                self.add_user_row(json!(command), json!({}));
                let stdout = format!("<local-command-stdout>{output}</local-command-stdout>");
                self.add_user_row(json!(stdout), json!({}));
            }
            ClientNote::TaskNotification(text) => {
                let notification = format!(
                    "<task-notification>\n<task-id>bgtzxe6sb</task-id>\n<status>completed</status>\n<summary>{text}</summary>\n</task-notification>"
                );
                self.add_user_row(json!(notification), json!({ "origin": { "kind": "task-notification" } }));
            }
            ClientNote::ApiError => self.add_row(json!({
                "isSidechain": false, "type": "system", "subtype": "api_error", "level": "error",
                "error": { "message": "529 overloaded_error", "status": 529, "formatted": "529 Overloaded" },
                "retryInMs": 572, "retryAttempt": 1, "maxRetries": 10, "source": "request_retry",
            })),
            ClientNote::StopHookSummary => self.add_row(json!({
                "isSidechain": false, "type": "system", "subtype": "stop_hook_summary", "hookCount": 1,
                "hookInfos": [{ "command": "lint", "durationMs": 72 }], "hookErrors": [], "preventedContinuation": false,
                "stopReason": "", "hasOutput": false, "level": "suggestion",
            })),
            ClientNote::FileHistorySnapshot => {
                let (id, time) = (self.draws.uuid(), format_timestamp(self.milliseconds));
                let snapshot = json!({ "messageId": id, "trackedFileBackups": {}, "timestamp": time });
                self.add_line(&json!({
                    "type": "file-history-snapshot", "messageId": id, "snapshot": snapshot, "isSnapshotUpdate": false,
                }));
            }
            ClientNote::TodoReminder => {
                let text = "The TodoWrite tool hasn't been used recently.";
                self.add_attachment(json!({ "type": "todo_reminder", "content": [], "itemCount": 0 }), Some(text), "system");
            }
            ClientNote::ExternallyEditedFile { path, snippet } => {
                let filename = format!("{PROJECT_PLACEHOLDER}/{path}");
                let text = format!("Note: {filename} was modified, either by the user or by a linter.\n{snippet}");
                let attachment = json!({ "type": "edited_text_file", "filename": filename, "snippet": snippet });
                self.add_attachment(attachment, Some(&text), "system");
            }
        }
    }
}

fn usage(context_tokens: usize) -> Value {
    json!({
        "input_tokens": 12, "cache_creation_input_tokens": 900,
        "cache_read_input_tokens": context_tokens.saturating_sub(912), "output_tokens": 180,
        "output_tokens_details": { "thinking_tokens": 0 },
        "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 }, "service_tier": "standard",
        "cache_creation": { "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 900 }, "inference_geo": "",
        "iterations": [], "speed": "standard", "fallback_credit": null,
    })
}

/// Formats milliseconds since 1970 in the client's form, in UTC.
pub fn format_timestamp(milliseconds: u64) -> String {
    let (seconds, millis) = (milliseconds / 1_000, milliseconds % 1_000);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    // The algorithm of Howard Hinnant for days since 0000-03-01.
    let shifted_days = days + 719_468;
    let (era, day_of_era) = (shifted_days / 146_097, shifted_days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day % 3_600 / 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_the_calendar() {
        assert_eq!(format_timestamp(1_795_918_688_083), "2026-11-29T02:18:08.083Z");
        assert_eq!(format_timestamp(1_709_164_800_000), "2024-02-29T00:00:00.000Z");
    }

    #[test]
    fn a_message_becomes_one_row_for_each_block_and_one_for_each_result() {
        let mut rows = TranscriptRows::new(
            "s".into(),
            "2.1.332",
            "/home/u/p".into(),
            Draws::new(1, "rows"),
            1_795_918_688_083,
        );
        let calls = vec![ToolCall::new_bash("ls", "a"), ToolCall::new_failed_bash("make", 2, "broken")];
        let events = [
            Event::Prompt { text: "Fix it.".into(), form: PromptForm::Typed },
            Event::Message { thinking: false, text: Some("Looking.".into()), calls },
        ];
        let lines = rows.rows_of_segment(&events, 1_000);
        let values: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let kinds: Vec<&str> = values.iter().filter_map(|row| row["type"].as_str()).collect();
        assert_eq!(
            kinds,
            [
                "user",
                "attachment",
                "attachment",
                "last-prompt",
                "assistant",
                "assistant",
                "assistant",
                "user",
                "user"
            ]
        );
        assert_eq!(values[8]["message"]["content"][0]["is_error"], true);
        assert_eq!(values[0]["cwd"], "/home/u/p");
        assert_eq!(
            (rows.context_tokens(), rows.last_tool_use_id()),
            (AUTO_COMPACT_TOKENS, Some("toolu_0001_1"))
        );
        let compaction = rows.rows_of_answered_compaction("Handoff");
        let boundary: Value = serde_json::from_str(&compaction[0]).expect("JSON");
        let message: Value = serde_json::from_str(&compaction[1]).expect("JSON");
        assert_eq!(
            (&boundary["parentUuid"], &boundary["logicalParentUuid"]),
            (&Value::Null, &values[8]["uuid"])
        );
        assert_eq!(
            (&message["parentUuid"], &message["message"]["content"]),
            (&boundary["uuid"], &json!("Handoff"))
        );
    }
}
