//! Runs the tool calls of one message, with the hooks around them.

use super::{Session, WorkEnd};
use crate::replay::lines::{new_uuid, rendered_reminder, timestamp_now};
use crate::replay::tools::ToolOutcome;
use crate::replay::{ReplayResult, not_recorded, tools};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// Runs the tool calls of one message one after another, then the PostToolBatch hooks. Returns the end of
    /// the session's work if it ends here.
    pub(super) fn run_tool_calls(&mut self, calls: &[Value]) -> ReplayResult<Option<WorkEnd>> {
        let mut results = Vec::new();
        let mut batch_calls = Vec::new();
        for call in calls {
            let name = call["name"].as_str().unwrap_or_default();
            let line_id = self
                .call_lines
                .iter()
                .find(|(call_id, _)| *call_id == call["id"])
                .map(|(_, line_id)| line_id.clone());
            let assistant_line_id = Value::from(line_id.unwrap_or_default());
            let (conversation_input, hook_input) = tools::fill_in_defaults(name, &call["input"]);
            let outcome = self.run_tool_call(name, &call["id"], &hook_input)?;
            if let ToolOutcome::Interrupted = outcome {
                return Ok(Some(self.record_interrupted_call(call, &assistant_line_id)));
            }
            let (block, text) = self.record_tool_result(call, &outcome, &assistant_line_id);
            if let ToolOutcome::Done { response, .. } = &outcome {
                let extra_fields = json!({ "tool_response": response });
                self.run_hooks_after_tool("PostToolUse", name, call, &hook_input, &extra_fields)?;
            } else if let ToolOutcome::Failed(error) = &outcome {
                let extra_fields = json!({ "error": error, "is_interrupt": false });
                self.run_hooks_after_tool("PostToolUseFailure", name, call, &hook_input, &extra_fields)?;
            }
            results.push(block);
            batch_calls.push(json!({
                "tool_name": name, "tool_input": conversation_input, "tool_use_id": call["id"], "tool_response": text,
            }));
        }
        self.messages.push(json!({ "role": "user", "content": results }));
        self.repeat_snapshot();
        let hooks = self.settings.hooks_for("PostToolBatch", "")?;
        let payload = self.with_mode_and_effort(&json!({ "tool_calls": batch_calls }));
        let outcomes = self.run_event_hooks("PostToolBatch", &hooks, &payload)?;
        let tool_use_id = format!("hook-{}", new_uuid());
        self.record_outcomes(&outcomes, "PostToolBatch", "PostToolBatch", &tool_use_id);
        if let Some(reason) = outcomes.iter().find_map(|answer| answer.stop_reason.clone()) {
            let text = format!("PostToolBatch hook stopped continuation: {reason}");
            self.write_conversation_line(json!({
                "attachment": {
                    "type": "hook_stopped_continuation", "message": reason, "hookName": "PostToolBatch",
                    "toolUseID": tool_use_id, "hookEvent": "PostToolBatch", "accountMemoryBatch": false,
                },
                "type": "attachment", "rendered": rendered_reminder(&text), "renderedRole": "system",
            }));
            return Ok(Some(WorkEnd::StoppedByHook("hook_stopped", String::new())));
        }
        if self.is_ending() {
            return Ok(Some(WorkEnd::Interrupted("aborted_tools")));
        }
        Ok(None)
    }

    /// Writes the first turn's last attachment once more, as the client does after the first message.
    pub(super) fn repeat_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            self.write_conversation_line(snapshot);
        }
    }

    /// Runs one tool call after its PreToolUse hooks.
    pub(super) fn run_tool_call(
        &mut self,
        tool_name: &str,
        call_id: &Value,
        input: &Value,
    ) -> ReplayResult<ToolOutcome> {
        if let Some(reason) = tools::input_error(tool_name, input)? {
            return Ok(ToolOutcome::RejectedBeforeHooks(reason));
        }
        let is_allowed = self.arguments.skips_permissions
            || tool_name == "Read"
            || self.arguments.allowed_tools.iter().any(|tool| tool == tool_name);
        if !is_allowed {
            return not_recorded(format!("{tool_name} without permission"));
        }
        let hooks = self.settings.hooks_for("PreToolUse", tool_name)?;
        let payload = self.with_mode_and_effort(
            &json!({ "tool_name": tool_name, "tool_input": input, "tool_use_id": call_id }),
        );
        let outcomes = self.run_event_hooks("PreToolUse", &hooks, &payload)?;
        self.record_outcomes(
            &outcomes,
            &format!("PreToolUse:{tool_name}"),
            "PreToolUse",
            call_id.as_str().unwrap_or_default(),
        );
        let signal = Arc::clone(&self.signal);
        let environment = self.child_environment(None);
        let mut context = tools::ToolContext {
            project: &self.project,
            working_folder: &mut self.working_folder,
            temp_folder: &self.temp_folder,
            environment: &environment,
            is_ending: &|| signal.load(Ordering::SeqCst) != 0,
        };
        tools::run_tool(tool_name, input, &mut context)
    }

    pub(super) fn run_hooks_after_tool(
        &mut self,
        event: &str,
        tool_name: &str,
        call: &Value,
        input: &Value,
        extra_fields: &Value,
    ) -> ReplayResult<()> {
        let hooks = self.settings.hooks_for(event, tool_name)?;
        if hooks.is_empty() {
            return Ok(());
        }
        let mut payload = json!({ "tool_name": tool_name, "tool_input": input });
        for (key, value) in extra_fields.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload["tool_use_id"] = call["id"].clone();
        payload["duration_ms"] = 1.into();
        let payload = self.with_mode_and_effort(&payload);
        let outcomes = self.run_event_hooks(event, &hooks, &payload)?;
        self.record_outcomes(
            &outcomes,
            &format!("{event}:{tool_name}"),
            event,
            call["id"].as_str().unwrap_or_default(),
        );
        Ok(())
    }

    /// Records a tool result in transcript and stream. Returns its block for the model and its text.
    pub(super) fn record_tool_result(
        &mut self,
        call: &Value,
        outcome: &ToolOutcome,
        assistant_line_id: &Value,
    ) -> (Value, String) {
        let ToolResult { text, block, response, decision } = tool_result_from_outcome(call, outcome);
        let permission_source = self.permission_source(call);
        self.turn_count += 1;
        self.last_line_id = assistant_line_id.clone();
        let mut line = json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": [block] },
            "toolUseResult": response,
        });
        if call["name"] == "Bash" && decision == Some("accept") {
            line["sandboxed"] = false.into();
        }
        if decision == Some("reject") {
            line["toolDenialKind"] = "user-rejected".into();
            line["permissionDecision"] =
                json!({ "decision": "reject", "source": "config", "reasonCode": "safetyCheck" });
        }
        line["sourceToolAssistantUUID"] = assistant_line_id.clone();
        if decision == Some("accept") {
            line["permissionDecision"] =
                json!({ "decision": "accept", "source": "config", "reasonType": permission_source });
            if permission_source == "rule" {
                line["permissionDecision"]["ruleSource"] = "cliArg".into();
            }
        }
        let line_id = self.write_conversation_line(line);
        let mut stream_line = json!({
            "type": "user", "message": { "role": "user", "content": [block] }, "parent_tool_use_id": null,
            "session_id": self.line_context.session_id, "uuid": line_id, "timestamp": timestamp_now(), "tool_use_result": response,
        });
        self.report_permission_decision(call, text, decision, permission_source, &mut stream_line);
        self.write_stream_line(&stream_line);
        (block, text.to_owned())
    }

    /// Returns what allows a call to run: the permission mode or a rule.
    fn permission_source(&self, call: &Value) -> &'static str {
        let is_unlisted_read =
            call["name"] == "Read" && !self.arguments.allowed_tools.iter().any(|name| name == "Read");
        if self.arguments.skips_permissions || is_unlisted_read { "mode" } else { "rule" }
    }

    /// Adds the permission decision to the stream. `decision` is `None` if permission was not asked for.
    fn report_permission_decision(
        &mut self,
        call: &Value,
        text: &str,
        decision: Option<&str>,
        permission_source: &str,
        stream_line: &mut Value,
    ) {
        match decision {
            Some("accept") => {
                let permission_decision =
                    json!({ "decision": "accept", "source": "config", "reason_type": permission_source });
                stream_line["tool_result_meta"] =
                    json!([{ "id": call["id"], "permission_decision": permission_decision }]);
            }
            Some(_) => {
                self.denials.push(json!({
                    "tool_name": call["name"], "tool_use_id": call["id"], "tool_input": call["input"],
                }));
                self.write_stream_line(&json!({
                    "type": "system", "subtype": "permission_denied", "tool_name": call["name"],
                    "tool_use_id": call["id"], "decision_reason_type": "safetyCheck", "decision_reason": text,
                    "message": text, "uuid": new_uuid(), "session_id": self.line_context.session_id,
                }));
                stream_line["tool_result_meta"] = json!([{
                    "id": call["id"], "non_execution_kind": "user-rejected",
                    "permission_decision": { "decision": "reject", "source": "config" },
                }]);
            }
            None => {}
        }
    }

    /// Records a call that a signal interrupted. After Ctrl-C the client says that the user rejected it,
    /// otherwise that it was killed.
    pub(super) fn record_interrupted_call(&mut self, call: &Value, assistant_line_id: &Value) -> WorkEnd {
        if self.signal.load(Ordering::SeqCst) != usize::try_from(SIGINT).unwrap_or(0) {
            self.record_tool_result(
                call,
                &ToolOutcome::Failed("Exit code 137".to_owned()),
                assistant_line_id,
            );
            return WorkEnd::Interrupted("aborted_tools");
        }
        let message = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a \
            file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to \
            tell you how to proceed.";
        let block = error_block(call, message);
        self.last_line_id = assistant_line_id.clone();
        let line_id = self.write_conversation_line(json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": [block] },
            "toolUseResult": "User rejected tool use", "toolDenialKind": "user-rejected",
            "sourceToolAssistantUUID": assistant_line_id,
        }));
        self.write_stream_line(&json!({
            "type": "user", "message": { "role": "user", "content": [block] }, "parent_tool_use_id": null,
            "session_id": self.line_context.session_id, "uuid": line_id, "timestamp": timestamp_now(),
            "tool_use_result": "User rejected tool use",
            "tool_result_meta": [{ "id": call["id"], "non_execution_kind": "user-rejected" }],
        }));
        self.turn_count += 1;
        self.repeat_snapshot();
        WorkEnd::Interrupted("aborted_tools")
    }
}

/// The result of a tool call in its three forms.
struct ToolResult<'a> {
    text: &'a str,
    /// The content block for the model.
    block: Value,
    /// The value for the transcript.
    response: Value,
    /// The permission decision; `None` if permission was not asked for.
    decision: Option<&'static str>,
}

fn tool_result_from_outcome<'a>(call: &Value, outcome: &'a ToolOutcome) -> ToolResult<'a> {
    match outcome {
        ToolOutcome::Done { text, response } => {
            let mut block = json!({ "tool_use_id": call["id"], "type": "tool_result", "content": text });
            if call["name"] == "Bash" {
                block["is_error"] = false.into();
            }
            ToolResult { text, block, response: response.clone(), decision: Some("accept") }
        }
        ToolOutcome::Failed(text) => {
            let response = json!(format!("Error: {text}"));
            ToolResult { text, block: error_block(call, text), response, decision: Some("accept") }
        }
        ToolOutcome::RejectedBeforeHooks(text) => {
            let message = text.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
            let message =
                if message.starts_with("Error: ") { message.to_owned() } else { format!("Error: {message}") };
            ToolResult { text, block: error_block(call, text), response: json!(message), decision: None }
        }
        ToolOutcome::PermissionDenied(text) => {
            let response = json!(format!("Error: {text}"));
            ToolResult { text, block: error_block(call, text), response, decision: Some("reject") }
        }
        ToolOutcome::Interrupted => unreachable!("an interrupted call has no result"),
    }
}

fn error_block(call: &Value, text: &str) -> Value {
    json!({ "type": "tool_result", "content": text, "is_error": true, "tool_use_id": call["id"] })
}
