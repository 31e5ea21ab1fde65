//! The end of a turn and of the session.

use super::{Session, WorkEnd, to_millis};
use crate::replay::arguments::{MODEL, OutputFormat};
use crate::replay::hooks::HookOutcome;
use crate::replay::lines::{new_uuid, rendered_reminder, system_reminder, timestamp_now};
use crate::replay::{ReplayResult, not_recorded};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use std::io::Write;
use std::sync::atomic::Ordering;

/// The reason why a Stop hook blocks the end of a turn, and the hook's command line.
type StopRefusal = (String, String);

impl Session {
    /// Runs the Stop hooks. Returns the end of the session's work, or `None` if the session continues because
    /// of a hook.
    pub(super) fn run_stop_hooks(
        &mut self,
        text: &str,
        is_stop_hook_active: bool,
    ) -> ReplayResult<Option<WorkEnd>> {
        self.repeat_snapshot();
        let hooks = self.settings.hooks_for("Stop", "")?;
        let mut payload = json!({ "stop_hook_active": is_stop_hook_active });
        if !text.is_empty() {
            payload["last_assistant_message"] = text.into();
        }
        payload["background_tasks"] = json!([]);
        payload["session_crons"] = json!([]);
        let payload = self.with_mode_and_effort(&payload);
        let outcomes = self.run_event_hooks("Stop", &hooks, &payload)?;
        let tool_use_id = new_uuid();
        let refusals: Vec<StopRefusal> = outcomes
            .iter()
            .filter_map(|outcome| Some((outcome.block_reason.clone()?, outcome.hook.command_line())))
            .collect();
        if self.is_ending() {
            return Ok(Some(WorkEnd::Interrupted("aborted_streaming")));
        }
        match &refusals[..] {
            [] => {}
            [refusal] => self.continue_after_refusal(refusal, &tool_use_id),
            _ => return not_recorded("two refusals at once"),
        }
        if !hooks.is_empty() {
            self.record_stop_summary(&outcomes, &refusals, &tool_use_id)?;
        }
        if outcomes.iter().any(|answer| answer.stop_reason.is_some()) {
            return Ok(Some(WorkEnd::StoppedByHook("stop_hook_prevented", text.to_owned())));
        }
        let continues = !refusals.is_empty() || outcomes.iter().any(|answer| answer.context.is_some());
        Ok((!continues).then(|| WorkEnd::Completed(text.to_owned())))
    }

    /// Continues after a Stop hook has blocked the end: the reason becomes the next user message.
    fn continue_after_refusal(&mut self, (reason, command): &StopRefusal, tool_use_id: &str) {
        let feedback = format!("Stop hook feedback:\n{reason}");
        let line_id = self.write_conversation_line(json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": feedback },
            "isMeta": true,
        }));
        self.write_stream_line(&json!({
            "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": feedback }] },
            "parent_tool_use_id": null, "session_id": self.line_context.session_id, "uuid": line_id, "timestamp": timestamp_now(),
            "isSynthetic": true,
        }));
        self.write_stream_line(&json!({
            "type": "system", "subtype": "notification", "key": "stop-hook-error",
            "text": "stop hook problem · ctrl+o to see", "priority": "immediate",
            "session_id": self.line_context.session_id, "uuid": new_uuid(),
        }));
        self.messages.push(json!({ "role": "user", "content": feedback }));
        // The client quotes a hook that blocks with its exit code once, and one that blocks with JSON twice.
        if !reason.starts_with('[') {
            let message = format!("Stop hook blocking error from command: \"{command}\": {reason}");
            self.write_conversation_line(json!({
                "attachment": {
                    "type": "hook_blocking_error", "hookName": "Stop", "toolUseID": tool_use_id, "hookEvent": "Stop",
                    "blockingError": { "blockingError": reason, "command": command },
                },
                "type": "attachment", "rendered": rendered_reminder(&message), "renderedRole": "system",
            }));
            self.pending_reminders.push(message);
        }
        self.turn_count += 1;
    }

    /// Records the outcomes of the Stop hooks.
    fn record_stop_summary(
        &mut self,
        outcomes: &[HookOutcome],
        refusals: &[StopRefusal],
        tool_use_id: &str,
    ) -> ReplayResult<()> {
        let infos: Vec<Value> = outcomes
            .iter()
            .map(|outcome| {
                let mut info = json!({ "command": outcome.hook.command_line() });
                if outcome.block_reason.is_none() {
                    info["durationMs"] = to_millis(outcome.elapsed).into();
                }
                info
            })
            .collect();
        let stop_reason = outcomes.iter().find_map(|answer| answer.stop_reason.clone());
        let contexts: Vec<_> = outcomes.iter().filter_map(|answer| answer.context.as_ref()).collect();
        if let Some(reason) = &stop_reason {
            let message = format!("Stop hook stopped continuation: {reason}");
            self.write_conversation_line(json!({
                "attachment": {
                    "type": "hook_stopped_continuation", "message": reason, "hookName": "Stop",
                    "toolUseID": tool_use_id, "hookEvent": "Stop",
                },
                "type": "attachment", "rendered": rendered_reminder(&message), "renderedRole": "system",
            }));
        }
        self.record_outcomes(outcomes, "Stop", "Stop", tool_use_id);
        if !contexts.is_empty() {
            // Unlike with other events, the context becomes the next user message.
            let [context] = &std::mem::take(&mut self.pending_reminders)[..] else {
                return not_recorded("two words for the model at the end of a turn");
            };
            self.messages.push(json!({ "role": "user", "content": system_reminder(context) }));
        }
        self.write_conversation_line(json!({
            "type": "system", "subtype": "stop_hook_summary", "hookCount": infos.len(), "hookInfos": infos,
            "hookErrors": refusals.iter().map(|(reason, _)| reason).collect::<Vec<_>>(),
            "failedHookErrorIndexes": [], "hookAdditionalContext": contexts,
            "preventedContinuation": stop_reason.is_some(), "stopReason": stop_reason.unwrap_or_default(),
            "hasOutput": outcomes.iter().any(HookOutcome::has_output), "level": "suggestion",
            "toolUseID": tool_use_id,
        }));
        Ok(())
    }

    /// Records the end by `--max-turns`, after the tools of the last message have run.
    pub(super) fn end_at_max_turns(&mut self, response_count: u64) -> WorkEnd {
        self.write_conversation_line(json!({
            "attachment": {
                "type": "max_turns_reached", "maxTurns": response_count, "turnCount": response_count + 1, "exitCommitted": false,
            },
            "type": "attachment",
        }));
        WorkEnd::OutOfTurns(response_count)
    }

    /// Prints the result, runs the SessionEnd hooks and returns the exit code.
    pub(super) fn finish(&mut self, end: &WorkEnd) -> ReplayResult<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        let is_terminated = signal != 0 && i32::try_from(signal).ok() != Some(SIGINT);
        let mut exit_code = u8::from(matches!(end, WorkEnd::ApiFailed(_) | WorkEnd::OutOfTurns(_)));
        if let WorkEnd::ApiFailed(failure) = end {
            let hooks = self.settings.hooks_for("StopFailure", "")?;
            let payload = json!({
                "effort": { "level": "medium" }, "error": failure["error"], "last_assistant_message": failure["text"],
            });
            self.run_event_hooks("StopFailure", &hooks, &payload)?;
        }
        if let WorkEnd::Interrupted(_) = end
            && !is_terminated
        {
            let text = match end {
                WorkEnd::Interrupted("aborted_tools") => "[Request interrupted by user for tool use]",
                _ => "[Request interrupted by user]",
            };
            let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
            let line_id = self.write_conversation_line(
                json!({ "promptId": self.prompt_id, "type": "user", "message": message }),
            );
            self.write_stream_line(&json!({
                "type": "user", "message": message, "parent_tool_use_id": null,
                "session_id": self.line_context.session_id, "uuid": line_id, "timestamp": timestamp_now(),
            }));
            self.turn_count += 1;
        }
        if !is_terminated {
            let result = self.result_json(end);
            match self.arguments.output_format {
                OutputFormat::Text => println!("{}", result["result"].as_str().unwrap_or_default()),
                OutputFormat::Json => println!("{}", without_field(result, "model_usage_since_last_result")),
                OutputFormat::Stream => println!("{result}"),
            }
            let _ = std::io::stdout().flush();
        }
        let hooks = self.settings.hooks_for("SessionEnd", "other")?;
        self.run_event_hooks("SessionEnd", &hooks, &json!({ "reason": "other" }))?;
        if is_terminated {
            exit_code = 128 + u8::try_from(signal).unwrap_or(0);
        }
        Ok(exit_code)
    }

    pub(super) fn result_json(&self, end: &WorkEnd) -> Value {
        let mut result = self.line_context.recorded_part(if let WorkEnd::ApiFailed(_) = end {
            "error_result"
        } else {
            "result"
        });
        result["duration_api_ms"] = to_millis(self.api_time).into();
        result["duration_ms"] = to_millis(self.started_at.elapsed()).into();
        result["total_cost_usd"] = self.token_usage.cost_usd().into();
        self.token_usage.write_into(&mut result["usage"]);
        result["modelUsage"] = self.token_usage.model_usage(MODEL);
        result["model_usage_since_last_result"] = self.token_usage.model_usage(MODEL);
        result["permission_denials"] = self.denials.clone().into();
        result["num_turns"] = self.turn_count.into();
        result["uuid"] = new_uuid().into();
        match end {
            WorkEnd::Completed(text) => result["result"] = text.clone().into(),
            WorkEnd::StoppedByHook(reason, text) => {
                result["terminal_reason"] = (*reason).into();
                result["result"] = text.clone().into();
                if *reason == "hook_stopped" {
                    result["stop_reason"] = "tool_use".into();
                }
            }
            WorkEnd::ApiFailed(failure) => {
                result["result"] = failure["text"].clone();
                result["api_error_status"] = failure["status"].clone();
                result["api_error_type"] = failure["kind"].clone();
            }
            WorkEnd::OutOfTurns(max_turns) => {
                let error = format!("Reached maximum number of turns ({max_turns})");
                self.mark_as_cut_short(&mut result, "error_max_turns", "max_turns", &error);
            }
            WorkEnd::Interrupted(reason) => {
                let stop_reason = self.stop_reason.as_str().unwrap_or("null");
                let error = format!(
                    "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={stop_reason}"
                );
                self.mark_as_cut_short(&mut result, "error_during_execution", reason, &error);
            }
        }
        result
    }

    /// Turns a result into that of a session that was cut short.
    fn mark_as_cut_short(&self, result: &mut Value, subtype: &str, reason: &str, error: &str) {
        for field in [
            "api_error_status",
            "result",
            "ttft_ms",
            "ttft_stream_ms",
            "time_to_request_ms",
            "first_content_frame_ms",
        ] {
            result.as_object_mut().map(|result| result.shift_remove(field));
        }
        result["terminal_reason"] = reason.into();
        result["stop_reason"] = self.stop_reason.clone();
        result["is_error"] = true.into();
        result["subtype"] = subtype.into();
        result["errors"] = json!([error]);
    }
}

fn without_field(mut value: Value, field: &str) -> Value {
    value.as_object_mut().map(|fields| fields.shift_remove(field));
    value
}
