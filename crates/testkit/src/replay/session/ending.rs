//! The end of a turn and of the session.

use super::{End, Session, millis};
use crate::replay::arguments::{Format, MODEL};
use crate::replay::hooks::Answer;
use crate::replay::lines::{id, now, reminder, rendered};
use crate::replay::{Recorded, not_recorded};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use std::io::Write;
use std::sync::atomic::Ordering;

/// Why a hook refuses the end of a turn, and its command.
type Refusal = (String, String);

impl Session {
    /// Ends a turn: runs the Stop hooks. None if they let the session continue.
    pub(super) fn stop(&mut self, text: &str, is_again: bool) -> Recorded<Option<End>> {
        self.repeat();
        let entries = self.settings.of("Stop", "")?;
        let mut payload = json!({ "stop_hook_active": is_again });
        if !text.is_empty() {
            payload["last_assistant_message"] = text.into();
        }
        payload["background_tasks"] = json!([]);
        payload["session_crons"] = json!([]);
        let payload = self.with_effort(&payload);
        let answers = self.hook("Stop", &entries, &payload)?;
        let own = id();
        let refusals: Vec<Refusal> =
            answers.iter().filter_map(|answer| Some((answer.block.clone()?, answer.entry.line()))).collect();
        if self.is_ending() {
            return Ok(Some(End::Interrupted("aborted_streaming")));
        }
        match &refusals[..] {
            [] => {}
            [refusal] => self.go_on(refusal, &own),
            _ => return not_recorded("two refusals at once"),
        }
        if !entries.is_empty() {
            self.sum_up(&answers, &refusals, &own)?;
        }
        if answers.iter().any(|answer| answer.stop.is_some()) {
            return Ok(Some(End::Stopped("stop_hook_prevented", text.to_owned())));
        }
        let goes_on = !refusals.is_empty() || answers.iter().any(|answer| answer.context.is_some());
        Ok((!goes_on).then(|| End::Completed(text.to_owned())))
    }

    /// A hook has refused the end: the reason becomes the user's next message.
    fn go_on(&mut self, (reason, command): &Refusal, own: &str) {
        let feedback = format!("Stop hook feedback:\n{reason}");
        let line = self.converse(json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": feedback },
            "isMeta": true,
        }));
        self.tell(&json!({
            "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": feedback }] },
            "parent_tool_use_id": null, "session_id": self.place.session, "uuid": line, "timestamp": now(),
            "isSynthetic": true,
        }));
        self.tell(&json!({
            "type": "system", "subtype": "notification", "key": "stop-hook-error",
            "text": "stop hook problem · ctrl+o to see", "priority": "immediate",
            "session_id": self.place.session, "uuid": id(),
        }));
        self.messages.push(json!({ "role": "user", "content": feedback }));
        // A hook that refuses with its exit code is quoted once, one that refuses with JSON twice.
        if !reason.starts_with('[') {
            let words = format!("Stop hook blocking error from command: \"{command}\": {reason}");
            self.converse(json!({
                "attachment": {
                    "type": "hook_blocking_error", "hookName": "Stop", "toolUseID": own, "hookEvent": "Stop",
                    "blockingError": { "blockingError": reason, "command": command },
                },
                "type": "attachment", "rendered": rendered(&words), "renderedRole": "system",
            }));
            self.said.push(words);
        }
        self.turns += 1;
    }

    /// What the hooks at the end of a turn said and did.
    fn sum_up(&mut self, answers: &[Answer], refusals: &[Refusal], own: &str) -> Recorded<()> {
        let infos: Vec<Value> = answers
            .iter()
            .map(|answer| {
                let mut info = json!({ "command": answer.entry.line() });
                if answer.block.is_none() {
                    info["durationMs"] = millis(answer.elapsed).into();
                }
                info
            })
            .collect();
        let stopped = answers.iter().find_map(|answer| answer.stop.clone());
        let told: Vec<_> = answers.iter().filter_map(|answer| answer.context.as_ref()).collect();
        if let Some(reason) = &stopped {
            let words = format!("Stop hook stopped continuation: {reason}");
            self.converse(json!({
                "attachment": {
                    "type": "hook_stopped_continuation", "message": reason, "hookName": "Stop",
                    "toolUseID": own, "hookEvent": "Stop",
                },
                "type": "attachment", "rendered": rendered(&words), "renderedRole": "system",
            }));
        }
        self.keep(answers, "Stop", "Stop", own);
        if !told.is_empty() {
            // Unlike with other events, it becomes the user's next message.
            let [words] = &std::mem::take(&mut self.said)[..] else {
                return not_recorded("two words for the model at the end of a turn");
            };
            self.messages.push(json!({ "role": "user", "content": reminder(words) }));
        }
        self.converse(json!({
            "type": "system", "subtype": "stop_hook_summary", "hookCount": infos.len(), "hookInfos": infos,
            "hookErrors": refusals.iter().map(|(reason, _)| reason).collect::<Vec<_>>(),
            "failedHookErrorIndexes": [], "hookAdditionalContext": told,
            "preventedContinuation": stopped.is_some(), "stopReason": stopped.unwrap_or_default(),
            "hasOutput": answers.iter().any(Answer::has_output), "level": "suggestion",
            "toolUseID": own,
        }));
        Ok(())
    }

    /// The end by `--max-turns`, when the tools of the last answer have run.
    pub(super) fn run_out(&mut self, answers: u64) -> End {
        self.converse(json!({
            "attachment": {
                "type": "max_turns_reached", "maxTurns": answers, "turnCount": answers + 1, "exitCommitted": false,
            },
            "type": "attachment",
        }));
        End::OutOfTurns(answers)
    }

    /// Reports the result, runs the last hooks, and returns the exit code.
    pub(super) fn conclude(&mut self, end: &End) -> Recorded<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        let is_killed = signal != 0 && i32::try_from(signal).ok() != Some(SIGINT);
        let mut code = u8::from(matches!(end, End::Failed(_) | End::OutOfTurns(_)));
        if let End::Failed(failure) = end {
            let entries = self.settings.of("StopFailure", "")?;
            let payload = json!({
                "effort": { "level": "medium" }, "error": failure["error"], "last_assistant_message": failure["text"],
            });
            self.hook("StopFailure", &entries, &payload)?;
        }
        if let End::Interrupted(_) = end
            && !is_killed
        {
            let text = match end {
                End::Interrupted("aborted_tools") => "[Request interrupted by user for tool use]",
                _ => "[Request interrupted by user]",
            };
            let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
            let own =
                self.converse(json!({ "promptId": self.prompt_id, "type": "user", "message": message }));
            self.tell(&json!({
                "type": "user", "message": message, "parent_tool_use_id": null,
                "session_id": self.place.session, "uuid": own, "timestamp": now(),
            }));
            self.turns += 1;
        }
        if !is_killed {
            let result = self.outcome(end);
            match self.arguments.format {
                Format::Text => println!("{}", result["result"].as_str().unwrap_or_default()),
                Format::Json => println!("{}", without(result, "model_usage_since_last_result")),
                Format::Stream => println!("{result}"),
            }
            let _ = std::io::stdout().flush();
        }
        let entries = self.settings.of("SessionEnd", "other")?;
        self.hook("SessionEnd", &entries, &json!({ "reason": "other" }))?;
        if is_killed {
            code = 128 + u8::try_from(signal).unwrap_or(0);
        }
        Ok(code)
    }

    pub(super) fn outcome(&self, end: &End) -> Value {
        let mut result =
            self.place.recorded(if let End::Failed(_) = end { "error_result" } else { "result" });
        result["duration_api_ms"] = millis(self.waited).into();
        result["duration_ms"] = millis(self.start.elapsed()).into();
        result["total_cost_usd"] = self.spent.dollars().into();
        self.spent.fill(&mut result["usage"]);
        result["modelUsage"] = self.spent.by_model(MODEL);
        result["model_usage_since_last_result"] = self.spent.by_model(MODEL);
        result["permission_denials"] = self.denials.clone().into();
        result["num_turns"] = self.turns.into();
        result["uuid"] = id().into();
        match end {
            End::Completed(text) => result["result"] = text.clone().into(),
            End::Stopped(reason, text) => {
                result["terminal_reason"] = (*reason).into();
                result["result"] = text.clone().into();
                if *reason == "hook_stopped" {
                    result["stop_reason"] = "tool_use".into();
                }
            }
            End::Failed(failure) => {
                result["result"] = failure["text"].clone();
                result["api_error_status"] = failure["status"].clone();
                result["api_error_type"] = failure["kind"].clone();
            }
            End::OutOfTurns(turns) => {
                let words = format!("Reached maximum number of turns ({turns})");
                self.breaks_off(&mut result, "error_max_turns", "max_turns", &words);
            }
            End::Interrupted(reason) => {
                let stop = self.reason.as_str().unwrap_or("null");
                let words =
                    format!("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={stop}");
                self.breaks_off(&mut result, "error_during_execution", reason, &words);
            }
        }
        result
    }

    /// The result of a session that was interrupted.
    fn breaks_off(&self, result: &mut Value, kind: &str, reason: &str, words: &str) {
        for gone in [
            "api_error_status",
            "result",
            "ttft_ms",
            "ttft_stream_ms",
            "time_to_request_ms",
            "first_content_frame_ms",
        ] {
            result.as_object_mut().map(|result| result.shift_remove(gone));
        }
        result["terminal_reason"] = reason.into();
        result["stop_reason"] = self.reason.clone();
        result["is_error"] = true.into();
        result["subtype"] = kind.into();
        result["errors"] = json!([words]);
    }
}

fn without(mut value: Value, field: &str) -> Value {
    value.as_object_mut().map(|fields| fields.shift_remove(field));
    value
}
