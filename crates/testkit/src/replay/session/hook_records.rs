//! Runs hooks, records their outcomes, and writes lines to the transcript and the stream.

use super::{Session, env_variable, to_millis};
use crate::replay::arguments::OutputFormat;
use crate::replay::hooks::HookOutcome;
use crate::replay::lines::{new_uuid, system_reminder_for_transcript, timestamp_now};
use crate::replay::settings::HookCommand;
use crate::replay::{ReplayResult, dashed_path, hooks};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The hook name, event and tool call that an outcome belongs to.
struct HookOrigin<'a> {
    hook_name: &'a str,
    event: &'a str,
    tool_use_id: &'a str,
}

impl HookOrigin<'_> {
    /// Returns an attachment line of this type for the transcript.
    fn attachment_line(&self, attachment_type: &str, fields: &Value) -> Value {
        let mut attachment = json!({ "type": attachment_type });
        for (key, value) in fields.as_object().into_iter().flatten() {
            attachment[key] = value.clone();
        }
        attachment["hookName"] = self.hook_name.into();
        attachment["toolUseID"] = self.tool_use_id.into();
        attachment["hookEvent"] = self.event.into();
        if self.event == "PostToolBatch" {
            attachment["accountMemoryBatch"] = false.into();
        }
        json!({ "attachment": attachment, "type": "attachment" })
    }
}

impl Session {
    pub(super) fn with_permission_mode_and_effort(&self, payload_fields: &Value) -> Value {
        let mut payload =
            json!({ "permission_mode": self.permission_mode(), "effort": { "level": "medium" } });
        for (key, value) in payload_fields.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload
    }

    /// Runs the hooks of an event. `payload_fields` are added to the fields that all payloads share.
    pub(super) fn run_event_hooks(
        &self,
        event: &str,
        hooks: &[HookCommand],
        payload_fields: &Value,
    ) -> ReplayResult<Vec<HookOutcome>> {
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        let mut payload = json!({
            "session_id": self.line_context.session_id, "transcript_path": self.transcript.path(), "cwd": self.working_folder,
        });
        if let Some(prompt_id) = &self.prompt_id {
            payload["prompt_id"] = prompt_id.clone().into();
        }
        let leading_fields = ["permission_mode", "effort"];
        let payload_entries = || payload_fields.as_object().into_iter().flatten();
        for (key, value) in payload_entries().filter(|(key, _)| leading_fields.contains(&key.as_str())) {
            payload[key] = value.clone();
        }
        payload["hook_event_name"] = event.into();
        for (key, value) in payload_entries().filter(|(key, _)| !leading_fields.contains(&key.as_str())) {
            payload[key] = value.clone();
        }
        let signal = Arc::clone(&self.received_signal);
        let is_ending = move || signal.load(Ordering::SeqCst) != 0;
        let hook_event = hooks::HookEvent {
            name: event,
            payload: &payload,
            environment: &self.environment_for_hook_or_tool(Some(event)),
            project: &self.project,
            working_folder: &self.working_folder,
            is_ending: &is_ending,
        };
        hooks::run_hooks_in_parallel_sorted_by_end(hook_event, hooks)
    }

    /// Returns the environment variables that the client adds for a hook of this event, or for the command of a
    /// tool call if `event` is `None`.
    pub(super) fn environment_for_hook_or_tool(&self, event: Option<&str>) -> Vec<(String, String)> {
        let pid = std::process::id();
        let project = self.project.display().to_string();
        let user_id = rustix::process::getuid().as_raw();
        let relative_session_path =
            format!("claude-{user_id}/{}/{}", dashed_path(&self.project), self.line_context.session_id);
        let session_folder = self.temp_folder.join(relative_session_path);
        let mut variables: Vec<(String, String)> = [
            ("CLAUDECODE", "1".to_owned()),
            ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli".to_owned()),
            ("CLAUDE_CODE_SESSION_ATTENDED", "0".to_owned()),
            ("CLAUDE_CODE_CHILD_SESSION", "1".to_owned()),
            ("CLAUDE_CODE_CHILD_NOTES_DIR", session_folder.join("started").display().to_string()),
            ("COREPACK_ENABLE_AUTO_PIN", "0".to_owned()),
            ("NoDefaultCurrentDirectoryInExePath", "1".to_owned()),
            ("CLAUDE_PID", pid.to_string()),
            ("CLAUDE_CODE_SESSION_ID", self.line_context.session_id.clone()),
            ("PWD", self.working_folder.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        if event != Some("SessionEnd") {
            let socket_path = self.temp_folder.join(format!("cc-socks/{pid}.sock"));
            variables.push(("CLAUDE_CODE_MESSAGING_TOKEN".to_owned(), "0".repeat(32)));
            variables.push(("CLAUDE_CODE_MESSAGING_SOCKET".to_owned(), socket_path.display().to_string()));
        }
        variables.extend(self.settings.environment.iter().cloned());
        let version = crate::client::CLIENT_VERSION.replace('.', "-");
        match event {
            Some(event) => {
                variables.push(("AI_AGENT".to_owned(), format!("claude-code_{version}_harness")));
                variables.push(("CLAUDE_PROJECT_DIR".to_owned(), project));
                if event == "SessionStart" {
                    let env_file = PathBuf::from(env_variable("HOME").unwrap_or_default())
                        .join(".claude/session-env")
                        .join(&self.line_context.session_id)
                        .join("sessionstart-hook-0.sh");
                    variables.push(("CLAUDE_ENV_FILE".to_owned(), env_file.display().to_string()));
                }
            }
            None => {
                variables.push(("AI_AGENT".to_owned(), format!("claude-code_{version}_agent")));
                variables.push(("GIT_EDITOR".to_owned(), "true".to_owned()));
            }
        }
        if !matches!(event, Some("SessionStart" | "UserPromptSubmit" | "SessionEnd")) {
            variables.push(("CLAUDE_EFFORT".to_owned(), "medium".to_owned()));
        }
        variables
    }

    /// Records the outcomes of hooks that did not block: their output, messages and context.
    pub(super) fn record_nonblocking_outcomes(
        &mut self,
        outcomes: &[HookOutcome],
        hook_name: &str,
        event: &str,
        tool_use_id: &str,
    ) {
        let origin = HookOrigin { hook_name, event, tool_use_id };
        for outcome in outcomes.iter().filter(|outcome| outcome.block_reason.is_none()) {
            self.record_stdout_and_remind_at_start_or_prompt(outcome, &origin);
            self.record_hook_message_for_user(outcome, &origin);
            self.record_context_and_queue_reminder(outcome, &origin);
        }
    }

    /// Records a hook's stdout. The plain text of a SessionStart or UserPromptSubmit hook also becomes a reminder
    /// for the model.
    fn record_stdout_and_remind_at_start_or_prompt(
        &mut self,
        outcome: &HookOutcome,
        origin: &HookOrigin<'_>,
    ) {
        let HookOrigin { hook_name, event, .. } = origin;
        let hook_success_text =
            outcome.plain_text.as_ref().map(|plain| format!("{hook_name} hook success: {plain}"));
        let reminder =
            if matches!(*event, "SessionStart" | "UserPromptSubmit") { hook_success_text } else { None };
        let omits_json_output = matches!(*event, "UserPromptSubmit" | "Stop") && outcome.plain_text.is_none();
        let has_decision = outcome.stop_reason.is_some() || *event == "Stop" && outcome.context.is_some();
        if !outcome.stdout.trim().is_empty() && (!omits_json_output || has_decision) {
            let mut line = origin.attachment_line(
                "hook_success",
                &json!({
                    "content": outcome.plain_text.clone().unwrap_or_default(), "stdout": outcome.stdout,
                    "stderr": outcome.stderr, "exitCode": outcome.exit_code, "command": outcome.hook.command_line(),
                    "durationMs": to_millis(outcome.elapsed),
                }),
            );
            if let Some(reminder) = &reminder {
                line["rendered"] = system_reminder_for_transcript(reminder);
                line["renderedRole"] = "system".into();
            }
            self.write_conversation_line(line);
        }
        self.pending_reminders.extend(reminder);
    }

    /// Records a hook's message for the user in the transcript and, except at SessionStart, in the stream.
    fn record_hook_message_for_user(&mut self, outcome: &HookOutcome, origin: &HookOrigin<'_>) {
        let Some(message) = &outcome.user_message else { return };
        let line_id = self.write_conversation_line(
            origin.attachment_line("hook_system_message", &json!({ "content": message })),
        );
        if origin.event != "SessionStart" {
            self.write_stream_line(&json!({
                "type": "system", "subtype": "informational",
                "content": format!("{} says: {message}", origin.hook_name),
                "level": "notice", "uuid": line_id, "session_id": self.line_context.session_id,
            }));
        }
    }

    /// Records a hook's context for the model and queues it as a reminder.
    fn record_context_and_queue_reminder(&mut self, outcome: &HookOutcome, origin: &HookOrigin<'_>) {
        let Some(context) = &outcome.context else { return };
        let hook_name = if origin.event == "SessionStart" { "SessionStart" } else { origin.hook_name };
        let reminder = format!("{hook_name} hook additional context: {context}");
        let mut line = origin.attachment_line("hook_additional_context", &json!({ "content": [context] }));
        line["attachment"]["hookName"] = hook_name.into();
        match origin.event {
            "SessionStart" => line["attachment"]["toolUseID"] = "SessionStart".into(),
            "UserPromptSubmit" => line["attachment"]["toolUseID"] = format!("hook-{}", new_uuid()).into(),
            _ => {}
        }
        line["rendered"] = system_reminder_for_transcript(&reminder);
        line["renderedRole"] = "system".into();
        self.write_conversation_line(line);
        self.pending_reminders.push(reminder);
    }

    /// Writes a line with the previous line as its parent, and returns the new line's id.
    pub(super) fn write_conversation_line(&mut self, mut fields: Value) -> String {
        let line_id = new_uuid();
        let mut line = json!({ "parentUuid": self.last_line_id, "isSidechain": false });
        for (key, value) in fields.as_object_mut().into_iter().flat_map(std::mem::take) {
            line[key] = value;
        }
        line["uuid"] = line_id.clone().into();
        line["timestamp"] = timestamp_now().into();
        self.line_context.add_common_fields(&mut line, &self.working_folder);
        self.write_transcript_line(&line);
        self.last_line_id = line_id.clone().into();
        line_id
    }

    pub(super) fn write_transcript_line(&self, line: &Value) {
        self.transcript.write_line(line.to_string());
    }

    /// Writes a line to stdout if the output format is the event stream.
    pub(super) fn write_stream_line(&self, line: &Value) {
        if self.arguments.output_format == OutputFormat::StreamJson {
            let mut stdout = std::io::stdout().lock();
            // Like the client, continue if the reader has closed stdout.
            let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        }
    }
}
