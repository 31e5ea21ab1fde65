//! Runs the tool calls of one message and their hooks.

use super::{Session, SessionOutcome};
use crate::replay::lines::{new_uuid, system_reminder_for_transcript, timestamp_now};
use crate::replay::tools::ToolOutcome;
use crate::replay::{ReplayResult, not_replayable_error, tools};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// Runs the tool calls of one message in sequence, then the PostToolBatch hooks. Returns the session's outcome
    /// if the session ends here, else `None`.
    pub(super) fn run_tool_calls_and_batch_hooks(
        &mut self,
        calls: &[Value],
    ) -> ReplayResult<Option<SessionOutcome>> {
        let mut result_blocks = Vec::new();
        let mut batch_calls = Vec::new();
        for call in calls {
            let name = call["name"].as_str().unwrap_or_default();
            let line_id = self
                .line_ids_by_call
                .iter()
                .find(|(call_id, _)| *call_id == call["id"])
                .map(|(_, line_id)| line_id.clone());
            let assistant_line_id = Value::from(line_id.unwrap_or_default());
            let (conversation_input, hook_input) =
                tools::conversation_and_hook_inputs_with_defaults(name, &call["input"]);
            let outcome = self.reject_invalid_or_run_pre_hooks_and_tool(name, &call["id"], &hook_input)?;
            if let ToolOutcome::Interrupted = outcome {
                return Ok(Some(self.record_call_as_rejected_on_sigint_or_killed(call, &assistant_line_id)));
            }
            let (block, text) =
                self.record_tool_result_returning_block_and_text(call, &outcome, &assistant_line_id);
            if let ToolOutcome::Succeeded { response, .. } = &outcome {
                let extra_fields = json!({ "tool_response": response });
                self.run_and_record_hooks_after_tool("PostToolUse", name, call, &hook_input, &extra_fields)?;
            } else if let ToolOutcome::Failed(error) = &outcome {
                let extra_fields = json!({ "error": error, "is_interrupt": false });
                self.run_and_record_hooks_after_tool(
                    "PostToolUseFailure",
                    name,
                    call,
                    &hook_input,
                    &extra_fields,
                )?;
            }
            result_blocks.push(block);
            batch_calls.push(json!({
                "tool_name": name, "tool_input": conversation_input, "tool_use_id": call["id"], "tool_response": text,
            }));
        }
        self.messages.push(json!({ "role": "user", "content": result_blocks }));
        self.write_repeated_attachment();
        let hooks = self.settings.enabled_hooks_for("PostToolBatch", "")?;
        let payload = self.with_permission_mode_and_effort(&json!({ "tool_calls": batch_calls }));
        let outcomes = self.run_event_hooks("PostToolBatch", &hooks, &payload)?;
        let tool_use_id = format!("hook-{}", new_uuid());
        self.record_nonblocking_outcomes(&outcomes, "PostToolBatch", "PostToolBatch", &tool_use_id);
        if let Some(reason) = outcomes.iter().find_map(|outcome| outcome.stop_reason.clone()) {
            let text = format!("PostToolBatch hook stopped continuation: {reason}");
            self.write_conversation_line(json!({
                "attachment": {
                    "type": "hook_stopped_continuation", "message": reason, "hookName": "PostToolBatch",
                    "toolUseID": tool_use_id, "hookEvent": "PostToolBatch", "accountMemoryBatch": false,
                },
                "type": "attachment", "rendered": system_reminder_for_transcript(&text), "renderedRole": "system",
            }));
            return Ok(Some(SessionOutcome::StoppedByHook("hook_stopped", String::new())));
        }
        if self.is_ending() {
            return Ok(Some(SessionOutcome::Interrupted("aborted_tools")));
        }
        Ok(None)
    }

    /// Writes the first turn's last attachment once more, as the client does after the first message. Later calls
    /// do nothing.
    pub(super) fn write_repeated_attachment(&mut self) {
        if let Some(attachment) = self.attachment_to_repeat.take() {
            self.write_conversation_line(attachment);
        }
    }

    /// Runs the PreToolUse hooks and the tool. An invalid input is rejected before the hooks run.
    pub(super) fn reject_invalid_or_run_pre_hooks_and_tool(
        &mut self,
        tool_name: &str,
        call_id: &Value,
        input: &Value,
    ) -> ReplayResult<ToolOutcome> {
        if let Some(error_text) = tools::input_error_before_hooks(tool_name, input)? {
            return Ok(ToolOutcome::RejectedBeforeHooks(error_text));
        }
        let is_allowed = self.arguments.skips_permissions
            || tool_name == "Read"
            || self.arguments.allowed_tools.iter().any(|tool| tool == tool_name);
        if !is_allowed {
            return not_replayable_error(format!("{tool_name} without permission"));
        }
        let hooks = self.settings.enabled_hooks_for("PreToolUse", tool_name)?;
        let payload = self.with_permission_mode_and_effort(
            &json!({ "tool_name": tool_name, "tool_input": input, "tool_use_id": call_id }),
        );
        let outcomes = self.run_event_hooks("PreToolUse", &hooks, &payload)?;
        self.record_nonblocking_outcomes(
            &outcomes,
            &format!("PreToolUse:{tool_name}"),
            "PreToolUse",
            call_id.as_str().unwrap_or_default(),
        );
        let signal = Arc::clone(&self.received_signal);
        let environment = self.environment_for_hook_or_tool(None);
        let mut context = tools::ToolContext {
            project: &self.project,
            working_folder: &mut self.working_folder,
            temp_folder: &self.temp_folder,
            environment: &environment,
            is_ending: &|| signal.load(Ordering::SeqCst) != 0,
        };
        tools::run_bash_read_or_write_else_edit(tool_name, input, &mut context)
    }

    pub(super) fn run_and_record_hooks_after_tool(
        &mut self,
        event: &str,
        tool_name: &str,
        call: &Value,
        input: &Value,
        extra_fields: &Value,
    ) -> ReplayResult<()> {
        let hooks = self.settings.enabled_hooks_for(event, tool_name)?;
        if hooks.is_empty() {
            return Ok(());
        }
        let mut payload = json!({ "tool_name": tool_name, "tool_input": input });
        for (key, value) in extra_fields.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload["tool_use_id"] = call["id"].clone();
        payload["duration_ms"] = 1.into();
        let payload = self.with_permission_mode_and_effort(&payload);
        let outcomes = self.run_event_hooks(event, &hooks, &payload)?;
        self.record_nonblocking_outcomes(
            &outcomes,
            &format!("{event}:{tool_name}"),
            event,
            call["id"].as_str().unwrap_or_default(),
        );
        Ok(())
    }

    /// Records a tool result in the transcript and the stream. Returns its content block and its text.
    pub(super) fn record_tool_result_returning_block_and_text(
        &mut self,
        call: &Value,
        outcome: &ToolOutcome,
        assistant_line_id: &Value,
    ) -> (Value, String) {
        let ToolResultForms { text, block, response, decision } = tool_result_forms(call, outcome);
        let permission_source = self.permission_mode_or_rule(call);
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
        self.add_decision_to_stream_and_denials(call, text, decision, permission_source, &mut stream_line);
        self.write_stream_line(&stream_line);
        (block, text.to_owned())
    }

    /// Returns what permits a call: `mode` for the permission mode, `rule` for `--allowedTools`.
    fn permission_mode_or_rule(&self, call: &Value) -> &'static str {
        let is_read_without_rule =
            call["name"] == "Read" && !self.arguments.allowed_tools.iter().any(|name| name == "Read");
        if self.arguments.skips_permissions || is_read_without_rule { "mode" } else { "rule" }
    }

    /// Adds the permission decision to the stream line, and records a denial. `decision` is `None` if no permission
    /// check took place.
    fn add_decision_to_stream_and_denials(
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
                self.permission_denials.push(json!({
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

    /// Records a call that a signal interrupted: after SIGINT as rejected by the user, after another signal as
    /// killed.
    pub(super) fn record_call_as_rejected_on_sigint_or_killed(
        &mut self,
        call: &Value,
        assistant_line_id: &Value,
    ) -> SessionOutcome {
        if self.received_signal.load(Ordering::SeqCst) != usize::try_from(SIGINT).unwrap_or(0) {
            self.record_tool_result_returning_block_and_text(
                call,
                &ToolOutcome::Failed("Exit code 137".to_owned()),
                assistant_line_id,
            );
            return SessionOutcome::Interrupted("aborted_tools");
        }
        let message = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a \
            file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to \
            tell you how to proceed.";
        let block = error_result_block(call, message);
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
        self.write_repeated_attachment();
        SessionOutcome::Interrupted("aborted_tools")
    }
}

/// The result of a tool call as text, content block and transcript value.
struct ToolResultForms<'a> {
    text: &'a str,
    /// The content block for the model.
    block: Value,
    /// The `toolUseResult` for the transcript.
    response: Value,
    /// The permission decision, or `None` if no permission check took place.
    decision: Option<&'static str>,
}

fn tool_result_forms<'a>(call: &Value, outcome: &'a ToolOutcome) -> ToolResultForms<'a> {
    match outcome {
        ToolOutcome::Succeeded { text, response } => {
            let mut block = json!({ "tool_use_id": call["id"], "type": "tool_result", "content": text });
            if call["name"] == "Bash" {
                block["is_error"] = false.into();
            }
            ToolResultForms { text, block, response: response.clone(), decision: Some("accept") }
        }
        ToolOutcome::Failed(text) => {
            let response = json!(format!("Error: {text}"));
            ToolResultForms {
                text,
                block: error_result_block(call, text),
                response,
                decision: Some("accept"),
            }
        }
        ToolOutcome::RejectedBeforeHooks(text) => {
            let message = text.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
            let message =
                if message.starts_with("Error: ") { message.to_owned() } else { format!("Error: {message}") };
            ToolResultForms {
                text,
                block: error_result_block(call, text),
                response: json!(message),
                decision: None,
            }
        }
        ToolOutcome::PermissionDenied(text) => {
            let response = json!(format!("Error: {text}"));
            ToolResultForms {
                text,
                block: error_result_block(call, text),
                response,
                decision: Some("reject"),
            }
        }
        ToolOutcome::Interrupted => unreachable!("an interrupted call has no result"),
    }
}

fn error_result_block(call: &Value, text: &str) -> Value {
    json!({ "type": "tool_result", "content": text, "is_error": true, "tool_use_id": call["id"] })
}
