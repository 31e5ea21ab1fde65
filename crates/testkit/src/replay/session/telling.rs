//! Hooks, and the lines of transcript and stream.

use super::{Session, millis, variable};
use crate::replay::arguments::Format;
use crate::replay::hooks::Answer;
use crate::replay::lines::{id, now, rendered};
use crate::replay::settings::HookCommand;
use crate::replay::{Recorded, dashed, hooks};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Which hook spoke, and at which call.
struct About<'a> {
    name: &'a str,
    event: &'a str,
    call: &'a str,
}

impl About<'_> {
    /// The line that keeps what it said.
    fn attachment(&self, kind: &str, more: &Value) -> Value {
        let mut attachment = json!({ "type": kind });
        for (key, value) in more.as_object().into_iter().flatten() {
            attachment[key] = value.clone();
        }
        attachment["hookName"] = self.name.into();
        attachment["toolUseID"] = self.call.into();
        attachment["hookEvent"] = self.event.into();
        if self.event == "PostToolBatch" {
            attachment["accountMemoryBatch"] = false.into();
        }
        json!({ "attachment": attachment, "type": "attachment" })
    }
}

impl Session {
    pub(super) fn with_effort(&self, rest: &Value) -> Value {
        let mut payload =
            json!({ "permission_mode": self.permission_mode(), "effort": { "level": "medium" } });
        for (key, value) in rest.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload
    }

    /// Starts the hooks of an event; `rest` is what its payload has beside the usual fields.
    pub(super) fn hook(&self, event: &str, entries: &[HookCommand], rest: &Value) -> Recorded<Vec<Answer>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut payload = json!({
            "session_id": self.place.session, "transcript_path": self.transcript.path(), "cwd": self.folder,
        });
        if let Some(prompt) = &self.prompt_id {
            payload["prompt_id"] = prompt.clone().into();
        }
        let before = ["permission_mode", "effort"];
        let fields = || rest.as_object().into_iter().flatten();
        for (key, value) in fields().filter(|(key, _)| before.contains(&key.as_str())) {
            payload[key] = value.clone();
        }
        payload["hook_event_name"] = event.into();
        for (key, value) in fields().filter(|(key, _)| !before.contains(&key.as_str())) {
            payload[key] = value.clone();
        }
        let signal = Arc::clone(&self.signal);
        let is_ending = move || signal.load(Ordering::SeqCst) != 0;
        let event = hooks::Event {
            name: event,
            payload: &payload,
            environment: &self.environment(Some(event)),
            project: &self.project,
            folder: &self.folder,
            is_ending: &is_ending,
        };
        hooks::run(event, entries)
    }

    /// What a hook of this event, or a command, finds beside the client's own environment.
    pub(super) fn environment(&self, event: Option<&str>) -> Vec<(String, String)> {
        let pid = std::process::id();
        let project = self.project.display().to_string();
        let user = rustix::process::getuid().as_raw();
        let own = format!("claude-{user}/{}/{}", dashed(&self.project), self.place.session);
        let own = self.temporary.join(own);
        let mut all: Vec<(String, String)> = [
            ("CLAUDECODE", "1".to_owned()),
            ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli".to_owned()),
            ("CLAUDE_CODE_SESSION_ATTENDED", "0".to_owned()),
            ("CLAUDE_CODE_CHILD_SESSION", "1".to_owned()),
            ("CLAUDE_CODE_CHILD_NOTES_DIR", own.join("started").display().to_string()),
            ("COREPACK_ENABLE_AUTO_PIN", "0".to_owned()),
            ("NoDefaultCurrentDirectoryInExePath", "1".to_owned()),
            ("CLAUDE_PID", pid.to_string()),
            ("CLAUDE_CODE_SESSION_ID", self.place.session.clone()),
            ("PWD", self.folder.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        if event != Some("SessionEnd") {
            let socket = self.temporary.join(format!("cc-socks/{pid}.sock"));
            all.push(("CLAUDE_CODE_MESSAGING_TOKEN".to_owned(), "0".repeat(32)));
            all.push(("CLAUDE_CODE_MESSAGING_SOCKET".to_owned(), socket.display().to_string()));
        }
        all.extend(self.settings.environment.iter().cloned());
        let version = crate::client::CLIENT_VERSION.replace('.', "-");
        match event {
            Some(event) => {
                all.push(("AI_AGENT".to_owned(), format!("claude-code_{version}_harness")));
                all.push(("CLAUDE_PROJECT_DIR".to_owned(), project));
                if event == "SessionStart" {
                    let file = PathBuf::from(variable("HOME").unwrap_or_default())
                        .join(".claude/session-env")
                        .join(&self.place.session)
                        .join("sessionstart-hook-0.sh");
                    all.push(("CLAUDE_ENV_FILE".to_owned(), file.display().to_string()));
                }
            }
            None => {
                all.push(("AI_AGENT".to_owned(), format!("claude-code_{version}_agent")));
                all.push(("GIT_EDITOR".to_owned(), "true".to_owned()));
            }
        }
        if !matches!(event, Some("SessionStart" | "UserPromptSubmit" | "SessionEnd")) {
            all.push(("CLAUDE_EFFORT".to_owned(), "medium".to_owned()));
        }
        all
    }

    /// Keeps what hooks said: in the transcript, for the user, and for the next request.
    pub(super) fn keep(&mut self, answers: &[Answer], name: &str, event: &str, call: &str) {
        let about = About { name, event, call };
        for answer in answers.iter().filter(|answer| answer.block.is_none()) {
            self.keep_output(answer, &about);
            self.keep_message(answer, &about);
            self.keep_context(answer, &about);
        }
    }

    /// What a hook printed.
    fn keep_output(&mut self, answer: &Answer, about: &About<'_>) {
        let About { name, event, .. } = about;
        let plain = answer.plain.as_ref().map(|plain| format!("{name} hook success: {plain}"));
        let told = if matches!(*event, "SessionStart" | "UserPromptSubmit") { plain } else { None };
        let is_silent = matches!(*event, "UserPromptSubmit" | "Stop") && answer.plain.is_none();
        let says_something = answer.stop.is_some() || *event == "Stop" && answer.context.is_some();
        if !answer.stdout.trim().is_empty() && (!is_silent || says_something) {
            let mut line = about.attachment(
                "hook_success",
                &json!({
                    "content": answer.plain.clone().unwrap_or_default(), "stdout": answer.stdout,
                    "stderr": answer.stderr, "exitCode": answer.code, "command": answer.entry.line(),
                    "durationMs": millis(answer.elapsed),
                }),
            );
            if let Some(told) = &told {
                line["rendered"] = rendered(told);
                line["renderedRole"] = "system".into();
            }
            self.converse(line);
        }
        self.said.extend(told);
    }

    /// What a hook says to the user.
    fn keep_message(&mut self, answer: &Answer, about: &About<'_>) {
        let Some(message) = &answer.message else { return };
        let own = self.converse(about.attachment("hook_system_message", &json!({ "content": message })));
        if about.event != "SessionStart" {
            self.tell(&json!({
                "type": "system", "subtype": "informational",
                "content": format!("{} says: {message}", about.name),
                "level": "notice", "uuid": own, "session_id": self.place.session,
            }));
        }
    }

    /// What a hook says to the model.
    fn keep_context(&mut self, answer: &Answer, about: &About<'_>) {
        let Some(context) = &answer.context else { return };
        let name = if about.event == "SessionStart" { "SessionStart" } else { about.name };
        let words = format!("{name} hook additional context: {context}");
        let mut line = about.attachment("hook_additional_context", &json!({ "content": [context] }));
        line["attachment"]["hookName"] = name.into();
        match about.event {
            "SessionStart" => line["attachment"]["toolUseID"] = "SessionStart".into(),
            "UserPromptSubmit" => line["attachment"]["toolUseID"] = format!("hook-{}", id()).into(),
            _ => {}
        }
        line["rendered"] = rendered(&words);
        line["renderedRole"] = "system".into();
        self.converse(line);
        self.said.push(words);
    }

    /// Writes a line of the conversation after the last one; its id.
    pub(super) fn converse(&mut self, mut rest: Value) -> String {
        let own = id();
        let mut line = json!({ "parentUuid": self.last, "isSidechain": false });
        for (key, value) in rest.as_object_mut().into_iter().flat_map(std::mem::take) {
            line[key] = value;
        }
        line["uuid"] = own.clone().into();
        line["timestamp"] = now().into();
        self.place.close(&mut line, &self.folder);
        self.write(&line);
        self.last = own.clone().into();
        own
    }

    pub(super) fn write(&self, line: &Value) {
        self.transcript.write(line.to_string());
    }

    /// A line of the stream.
    pub(super) fn tell(&self, line: &Value) {
        if self.arguments.format == Format::Stream {
            let mut stdout = std::io::stdout().lock();
            // A reader that is gone does not end the client.
            let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        }
    }
}
