//! The calls of one answer, with the hooks around them.

use super::{End, Session};
use crate::replay::lines::{id, now, rendered};
use crate::replay::tools::Outcome;
use crate::replay::{Recorded, not_recorded, tools};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// The calls of one message, one after another, and what their hooks say.
    pub(super) fn work(&mut self, calls: &[Value]) -> Recorded<Option<End>> {
        let mut results = Vec::new();
        let mut seen = Vec::new();
        for call in calls {
            let name = call["name"].as_str().unwrap_or_default();
            let asked = self.calls.iter().find(|(id, _)| *id == call["id"]).map(|(_, line)| line.clone());
            let assistant = Value::from(asked.unwrap_or_default());
            let (said, given) = tools::filled(name, &call["input"]);
            let outcome = self.call(name, &call["id"], &given)?;
            if let Outcome::Interrupted = outcome {
                return Ok(Some(self.interrupted(call, &assistant)));
            }
            let (block, text) = self.result(call, &outcome, &assistant);
            if let Outcome::Done { response, .. } = &outcome {
                let more = json!({ "tool_response": response });
                self.after("PostToolUse", name, call, &given, &more)?;
            } else if let Outcome::Failed(error) = &outcome {
                let more = json!({ "error": error, "is_interrupt": false });
                self.after("PostToolUseFailure", name, call, &given, &more)?;
            }
            results.push(block);
            seen.push(json!({
                "tool_name": name, "tool_input": said, "tool_use_id": call["id"], "tool_response": text,
            }));
        }
        self.messages.push(json!({ "role": "user", "content": results }));
        self.repeat();
        let entries = self.settings.of("PostToolBatch", "")?;
        let payload = self.with_effort(&json!({ "tool_calls": seen }));
        let answers = self.hook("PostToolBatch", &entries, &payload)?;
        let own = format!("hook-{}", id());
        self.keep(&answers, "PostToolBatch", "PostToolBatch", &own);
        if let Some(reason) = answers.iter().find_map(|answer| answer.stop.clone()) {
            let text = format!("PostToolBatch hook stopped continuation: {reason}");
            self.converse(json!({
                "attachment": {
                    "type": "hook_stopped_continuation", "message": reason, "hookName": "PostToolBatch",
                    "toolUseID": own, "hookEvent": "PostToolBatch", "accountMemoryBatch": false,
                },
                "type": "attachment", "rendered": rendered(&text), "renderedRole": "system",
            }));
            return Ok(Some(End::Stopped("hook_stopped", String::new())));
        }
        if self.is_ending() {
            return Ok(Some(End::Interrupted("aborted_tools")));
        }
        Ok(None)
    }

    /// What the client sends beside the conversation it writes once more after the first answer.
    pub(super) fn repeat(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            self.converse(snapshot);
        }
    }

    /// One call with the hooks before it.
    pub(super) fn call(&mut self, name: &str, call: &Value, given: &Value) -> Recorded<Outcome> {
        if let Some(reason) = tools::refusal(name, given)? {
            return Ok(Outcome::Refused(reason));
        }
        let is_allowed = self.arguments.skips_permissions
            || name == "Read"
            || self.arguments.allowed.iter().any(|allowed| allowed == name);
        if !is_allowed {
            return not_recorded(format!("{name} without permission"));
        }
        let entries = self.settings.of("PreToolUse", name)?;
        let payload =
            self.with_effort(&json!({ "tool_name": name, "tool_input": given, "tool_use_id": call }));
        let answers = self.hook("PreToolUse", &entries, &payload)?;
        self.keep(&answers, &format!("PreToolUse:{name}"), "PreToolUse", call.as_str().unwrap_or_default());
        let signal = Arc::clone(&self.signal);
        let environment = self.environment(None);
        let mut place = tools::ToolContext {
            project: &self.project,
            folder: &mut self.folder,
            temporary: &self.temporary,
            environment: &environment,
            is_ending: &|| signal.load(Ordering::SeqCst) != 0,
        };
        tools::run(name, given, &mut place)
    }

    pub(super) fn after(
        &mut self,
        event: &str,
        name: &str,
        call: &Value,
        given: &Value,
        more: &Value,
    ) -> Recorded<()> {
        let entries = self.settings.of(event, name)?;
        if entries.is_empty() {
            return Ok(());
        }
        let mut payload = json!({ "tool_name": name, "tool_input": given });
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload["tool_use_id"] = call["id"].clone();
        payload["duration_ms"] = 1.into();
        let payload = self.with_effort(&payload);
        let answers = self.hook(event, &entries, &payload)?;
        self.keep(&answers, &format!("{event}:{name}"), event, call["id"].as_str().unwrap_or_default());
        Ok(())
    }

    /// Writes and tells a result; its block for the model, and its text.
    pub(super) fn result(&mut self, call: &Value, outcome: &Outcome, assistant: &Value) -> (Value, String) {
        let ToolResult { text, block, response, decision } = result_of(call, outcome);
        let kind = self.kind_of_leave(call);
        self.turns += 1;
        self.last = assistant.clone();
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
        line["sourceToolAssistantUUID"] = assistant.clone();
        if decision == Some("accept") {
            line["permissionDecision"] =
                json!({ "decision": "accept", "source": "config", "reasonType": kind });
            if kind == "rule" {
                line["permissionDecision"]["ruleSource"] = "cliArg".into();
            }
        }
        let own = self.converse(line);
        let mut told = json!({
            "type": "user", "message": { "role": "user", "content": [block] }, "parent_tool_use_id": null,
            "session_id": self.place.session, "uuid": own, "timestamp": now(), "tool_use_result": response,
        });
        self.tell_decision(call, text, decision, kind, &mut told);
        self.tell(&told);
        (block, text.to_owned())
    }

    /// Whether a call may run by the session's mode or by a rule.
    fn kind_of_leave(&self, call: &Value) -> &'static str {
        let reads_freely =
            call["name"] == "Read" && !self.arguments.allowed.iter().any(|name| name == "Read");
        if self.arguments.skips_permissions || reads_freely { "mode" } else { "rule" }
    }

    /// What became of the question whether a call may run; none where it was not asked.
    fn tell_decision(
        &mut self,
        call: &Value,
        text: &str,
        decision: Option<&str>,
        kind: &str,
        told: &mut Value,
    ) {
        match decision {
            Some("accept") => {
                let decision = json!({ "decision": "accept", "source": "config", "reason_type": kind });
                told["tool_result_meta"] = json!([{ "id": call["id"], "permission_decision": decision }]);
            }
            Some(_) => {
                self.denials.push(json!({
                    "tool_name": call["name"], "tool_use_id": call["id"], "tool_input": call["input"],
                }));
                self.tell(&json!({
                    "type": "system", "subtype": "permission_denied", "tool_name": call["name"],
                    "tool_use_id": call["id"], "decision_reason_type": "safetyCheck", "decision_reason": text,
                    "message": text, "uuid": id(), "session_id": self.place.session,
                }));
                told["tool_result_meta"] = json!([{
                    "id": call["id"], "non_execution_kind": "user-rejected",
                    "permission_decision": { "decision": "reject", "source": "config" },
                }]);
            }
            None => {}
        }
    }

    /// A call that was broken off: by Ctrl-C the client says that the user rejected it, else that it was killed.
    pub(super) fn interrupted(&mut self, call: &Value, assistant: &Value) -> End {
        if self.signal.load(Ordering::SeqCst) != usize::try_from(SIGINT).unwrap_or(0) {
            self.result(call, &Outcome::Failed("Exit code 137".to_owned()), assistant);
            return End::Interrupted("aborted_tools");
        }
        let words = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a \
            file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to \
            tell you how to proceed.";
        let block = failure(call, words);
        self.last = assistant.clone();
        let own = self.converse(json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": [block] },
            "toolUseResult": "User rejected tool use", "toolDenialKind": "user-rejected",
            "sourceToolAssistantUUID": assistant,
        }));
        self.tell(&json!({
            "type": "user", "message": { "role": "user", "content": [block] }, "parent_tool_use_id": null,
            "session_id": self.place.session, "uuid": own, "timestamp": now(),
            "tool_use_result": "User rejected tool use",
            "tool_result_meta": [{ "id": call["id"], "non_execution_kind": "user-rejected" }],
        }));
        self.turns += 1;
        self.repeat();
        End::Interrupted("aborted_tools")
    }
}

/// What a call came to.
struct ToolResult<'a> {
    text: &'a str,
    /// For the model.
    block: Value,
    /// For the transcript.
    response: Value,
    /// Whether it was allowed to run; none where that was not asked.
    decision: Option<&'static str>,
}

fn result_of<'a>(call: &Value, outcome: &'a Outcome) -> ToolResult<'a> {
    match outcome {
        Outcome::Done { text, response } => {
            let mut block = json!({ "tool_use_id": call["id"], "type": "tool_result", "content": text });
            if call["name"] == "Bash" {
                block["is_error"] = false.into();
            }
            ToolResult { text, block, response: response.clone(), decision: Some("accept") }
        }
        Outcome::Failed(text) => {
            let response = json!(format!("Error: {text}"));
            ToolResult { text, block: failure(call, text), response, decision: Some("accept") }
        }
        Outcome::Refused(text) => {
            let plain = text.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
            let plain =
                if plain.starts_with("Error: ") { plain.to_owned() } else { format!("Error: {plain}") };
            ToolResult { text, block: failure(call, text), response: json!(plain), decision: None }
        }
        Outcome::Denied(text) => {
            let response = json!(format!("Error: {text}"));
            ToolResult { text, block: failure(call, text), response, decision: Some("reject") }
        }
        Outcome::Interrupted => unreachable!("an interrupted call has no result"),
    }
}

fn failure(call: &Value, text: &str) -> Value {
    json!({ "type": "tool_result", "content": text, "is_error": true, "tool_use_id": call["id"] })
}
