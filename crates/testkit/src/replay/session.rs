//! A session from its start to its end.

use super::arguments::{Arguments, Format, MODEL};
use super::hooks::{self, Answer};
use super::lines::{Place, id, now, rendered, whole_usage};
use super::model::{self, Reply};
use super::settings::Settings;
use super::spent::Spent;
use super::tools::{self, Outcome};
use super::transcript::Transcript;
use super::{Recorded, not_recorded};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The client compacts above some 967,000 tokens of a window of a million; not so near is asked again here.
const COMPACTS: u64 = 940_000;

/// More refusals in a row than this end a turn all the same, which was recorded elsewhere.
const REFUSALS: u32 = 8;

struct Session {
    arguments: Arguments,
    settings: Settings,
    place: Place,
    project: PathBuf,
    folder: PathBuf,
    /// The folder that the model was last told of.
    told_folder: PathBuf,
    /// The tokens of the last request.
    filled: u64,
    temporary: PathBuf,
    transcript: Transcript,
    prompt_id: Option<String>,
    last: Value,
    snapshot: Option<Value>,
    /// The calls of the model, and the lines that have them.
    calls: Vec<(Value, String)>,
    /// Why the last answer ended.
    reason: Value,
    messages: Vec<Value>,
    /// What hooks have said since the last request, for the next one.
    said: Vec<String>,
    spent: Spent,
    turns: u64,
    denials: Vec<Value>,
    start: Instant,
    waited: Duration,
    /// The number of the signal that asked for the end, else 0.
    signal: Arc<AtomicUsize>,
}

/// How the work ended.
enum End {
    /// The model has done; its last text.
    Completed(String),
    /// A hook ended it, on this event; the last text.
    Stopped(&'static str, String),
    /// The API failed.
    Failed(Value),
    /// A signal came, within tools or within an answer.
    Interrupted(&'static str),
}

/// Plays a session; its exit code.
pub(super) fn play(arguments: Arguments) -> Recorded<u8> {
    let prompt = prompt(&arguments)?;
    let mut session = Session::new(arguments)?;
    let end = session.live(&prompt);
    // Whatever is missing in the recording, no process of the session is left behind.
    let code = end.and_then(|end| session.conclude(end));
    drop(session);
    code
}

fn prompt(arguments: &Arguments) -> Recorded<String> {
    let mut text = arguments.prompt.clone().unwrap_or_default();
    let mut stdin = std::io::stdin();
    if arguments.prompt.is_none() && !stdin.is_terminal() && stdin.read_to_string(&mut text).is_err() {
        return not_recorded("a prompt that is no text");
    }
    match text.trim_start().chars().next() {
        None => not_recorded("an empty prompt"),
        Some('/') => not_recorded("a slash command"),
        Some(_) => Ok(text),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Session {
    fn new(arguments: Arguments) -> Recorded<Session> {
        let unknown = [
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
            "DISABLE_AUTO_COMPACT",
            "MAX_THINKING_TOKENS",
        ];
        if let Some(name) = unknown.into_iter().find(|name| variable(name).is_some()) {
            return not_recorded(format!("the variable {name}"));
        }
        let Ok(project) = std::env::current_dir() else { return not_recorded("a folder that is gone") };
        let home = PathBuf::from(variable("HOME").unwrap_or_default());
        if project.join(".mcp.json").exists() || project.join("CLAUDE.md").exists() {
            return not_recorded("a project with .mcp.json or CLAUDE.md");
        }
        let id = arguments.session.clone().unwrap_or_else(id);
        let path = home.join(".claude/projects").join(dashed(&project)).join(format!("{id}.jsonl"));
        if path.exists() {
            return not_recorded("a second session of the same id");
        }
        let settings = Settings::read(&home, &project, arguments.settings.as_deref())?;
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let value = usize::try_from(number).unwrap_or(0);
            let _ = register_usize(number, Arc::clone(&signal), value);
        }
        let place = Place {
            session: id,
            home: home.display().to_string(),
            project: project.display().to_string(),
            dashed: dashed(&project),
            branch: branch(&project),
        };
        Ok(Session {
            settings,
            place,
            folder: project.clone(),
            told_folder: project.clone(),
            filled: 0,
            temporary: variable("CLAUDE_CODE_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from),
            transcript: Transcript::at(path),
            prompt_id: None,
            last: Value::Null,
            snapshot: None,
            calls: Vec::new(),
            reason: Value::Null,
            messages: Vec::new(),
            said: Vec::new(),
            spent: Spent::default(),
            turns: 1,
            denials: Vec::new(),
            start: Instant::now(),
            waited: Duration::ZERO,
            signal,
            project,
            arguments,
        })
    }

    fn live(&mut self, prompt: &str) -> Recorded<End> {
        self.begin(prompt)?;
        let mut refusals = 0;
        let mut is_again = false;
        loop {
            let message = match self.ask()? {
                Ok(message) => message,
                Err(end) => return Ok(end),
            };
            let calls: Vec<Value> = blocks(&message, "tool_use").cloned().collect();
            if !calls.is_empty() {
                refusals = 0;
                if let Some(end) = self.work(&calls)? {
                    return Ok(end);
                }
                continue;
            }
            let text = blocks(&message, "text").filter_map(|block| block["text"].as_str()).next_back();
            let text = text.unwrap_or_default().to_owned();
            match self.stop(&text, is_again)? {
                Some(end) => return Ok(end),
                None => refusals += 1,
            }
            is_again = true;
            if refusals > REFUSALS {
                return not_recorded("nine refusals in a row");
            }
        }
    }

    /// Starts the session and gives it its prompt.
    fn begin(&mut self, prompt: &str) -> Recorded<()> {
        let mut queued = self.place.mark("enqueue");
        queued["content"] = prompt.into();
        self.write(&queued);
        self.write(&self.place.mark("dequeue"));
        let hook = id();
        let started = json!({
            "type": "system", "subtype": "hook_started", "hook_id": hook, "hook_name": "SessionStart:startup",
            "hook_event": "SessionStart", "uuid": id(), "session_id": self.place.session,
        });
        let entries = self.settings.of("SessionStart", "startup")?;
        for _ in &entries {
            self.tell(&started);
        }
        let answers = self.hook("SessionStart", &entries, json!({ "source": "startup" }))?;
        for answer in &answers {
            self.tell(&json!({
                "type": "system", "subtype": "hook_response", "hook_id": hook,
                "hook_name": "SessionStart:startup", "hook_event": "SessionStart", "output": answer.stdout,
                "stdout": answer.stdout, "stderr": answer.stderr, "exit_code": answer.code, "outcome": "success",
                "uuid": id(), "session_id": self.place.session,
            }));
        }
        let mut init = self.place.recorded("init");
        init["permissionMode"] = self.permission_mode().into();
        init["uuid"] = id().into();
        let socket = self.temporary.join(format!("cc-socks/{}.sock", std::process::id()));
        init["messaging_socket_path"] = socket.display().to_string().into();
        self.tell(&init);
        self.keep(&answers, "SessionStart:startup", "SessionStart", &id());
        let first = std::mem::take(&mut self.said);

        self.prompt_id = Some(id());
        let line = json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": prompt },
            "permissionMode": self.permission_mode(), "promptSource": "sdk", "turnOrigin": "sdk",
            "turnPosition": { "promptIndex": 0, "turnIndex": 1 },
        });
        self.converse(line);
        let entries = self.settings.of("UserPromptSubmit", "")?;
        let payload = json!({ "permission_mode": self.permission_mode(), "prompt": prompt });
        let answers = self.hook("UserPromptSubmit", &entries, payload)?;
        let (before, after) = self.attachments();
        for attachment in before {
            self.converse(attachment);
        }
        self.keep(&answers, "UserPromptSubmit", "UserPromptSubmit", &id());
        self.write(&self.place.mark("atis-latch"));
        self.snapshot = after.last().cloned();
        for attachment in after {
            self.converse(attachment);
        }
        let context = ["<system-reminder>\n# gitStatus\n(recorded)\n</system-reminder>", prompt];
        let texts: Vec<Value> = context.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        self.messages.push(json!({ "role": "user", "content": texts }));
        let mut said = first;
        said.push(format!("# Environment\nYou have been invoked in the following environment: \n - Primary working directory: {}", self.place.project));
        said.append(&mut self.said);
        said.push(format!("Today's date is {}.", &now()[..10]));
        self.said = said;
        Ok(())
    }

    /// The recorded attachments of a first turn, before and after what the prompt's hooks have said.
    fn attachments(&self) -> (Vec<Value>, Vec<Value>) {
        let Value::Array(all) = self.place.recorded("attachments") else { return Default::default() };
        let mut all: Vec<Value> = all
            .into_iter()
            .map(|mut line| {
                for own in [
                    "parentUuid",
                    "isSidechain",
                    "uuid",
                    "timestamp",
                    "userType",
                    "entrypoint",
                    "cwd",
                    "sessionId",
                    "version",
                    "gitBranch",
                ] {
                    line.as_object_mut().map(|line| line.shift_remove(own));
                }
                line
            })
            .collect();
        let is_skills = |line: &Value| line["attachment"]["type"] == "skill_listing";
        let middle = all.iter().position(is_skills).map_or(0, |index| index + 1);
        let after = all.split_off(middle);
        (all, after)
    }

    fn permission_mode(&self) -> &'static str {
        if self.arguments.skips_permissions { "bypassPermissions" } else { "default" }
    }

    /// Asks the model, again after errors that pass.
    fn ask(&mut self) -> Recorded<Result<Value, End>> {
        if self.filled > COMPACTS {
            return not_recorded("a compaction");
        }
        if self.told_folder != self.folder {
            self.told_folder.clone_from(&self.folder);
            let snapshot = json!({ "workingDirectory": self.folder });
            self.converse(json!({
                "attachment": { "type": "environment", "snapshot": snapshot, "changes": ["workingDirectory"] },
                "type": "attachment", "rendered": rendered("# Environment"), "renderedRole": "system",
            }));
        }
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
            let reply = model::ask(&base, &body, &|| signal.load(Ordering::SeqCst) != 0)?;
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

    /// Sleeps; false when the end was asked for meanwhile.
    fn rest(&self, length: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < length && !self.is_ending() {
            sleep(Duration::from_millis(5));
        }
        !self.is_ending()
    }

    fn is_ending(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    fn request(&self) -> Value {
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
    fn take(&mut self, mut message: Value, request: &str) -> Recorded<Value> {
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

    /// The calls of one message, one after another, and what their hooks say.
    fn work(&mut self, calls: &[Value]) -> Recorded<Option<End>> {
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
                self.after("PostToolUse", name, call, &given, more)?;
            } else if let Outcome::Failed(error) = &outcome {
                let more = json!({ "error": error, "is_interrupt": false });
                self.after("PostToolUseFailure", name, call, &given, more)?;
            }
            results.push(block);
            seen.push(json!({
                "tool_name": name, "tool_input": said, "tool_use_id": call["id"], "tool_response": text,
            }));
        }
        self.messages.push(json!({ "role": "user", "content": results }));
        self.repeat();
        let entries = self.settings.of("PostToolBatch", "")?;
        let payload = self.with_effort(json!({ "tool_calls": seen }));
        let answers = self.hook("PostToolBatch", &entries, payload)?;
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
    fn repeat(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            self.converse(snapshot);
        }
    }

    /// One call with the hooks before it.
    fn call(&mut self, name: &str, call: &Value, given: &Value) -> Recorded<Outcome> {
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
            self.with_effort(json!({ "tool_name": name, "tool_input": given, "tool_use_id": call }));
        let answers = self.hook("PreToolUse", &entries, payload)?;
        self.keep(&answers, &format!("PreToolUse:{name}"), "PreToolUse", call.as_str().unwrap_or_default());
        let signal = Arc::clone(&self.signal);
        let environment = self.environment(None);
        let mut place = tools::Place {
            project: &self.project,
            folder: &mut self.folder,
            temporary: &self.temporary,
            environment: &environment,
            is_ending: &|| signal.load(Ordering::SeqCst) != 0,
        };
        tools::run(name, given, &mut place)
    }

    fn after(&mut self, event: &str, name: &str, call: &Value, given: &Value, more: Value) -> Recorded<()> {
        let entries = self.settings.of(event, name)?;
        if entries.is_empty() {
            return Ok(());
        }
        let mut payload = json!({ "tool_name": name, "tool_input": given });
        let is_failure = event == "PostToolUseFailure";
        if is_failure {
            payload["tool_use_id"] = call["id"].clone();
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload["tool_use_id"] = call["id"].clone();
        payload["duration_ms"] = 1.into();
        let payload = self.with_effort(payload);
        let answers = self.hook(event, &entries, payload)?;
        self.keep(&answers, &format!("{event}:{name}"), event, call["id"].as_str().unwrap_or_default());
        Ok(())
    }

    /// Writes and tells a result; its block for the model, and its text.
    fn result(&mut self, call: &Value, outcome: &Outcome, assistant: &Value) -> (Value, String) {
        let (text, block, response, decision) = match outcome {
            Outcome::Done { text, response } => {
                let mut block = json!({ "tool_use_id": call["id"], "type": "tool_result", "content": text });
                if call["name"] == "Bash" {
                    block["is_error"] = false.into();
                }
                (text, block, response.clone(), Some("accept"))
            }
            Outcome::Failed(text) => {
                (text, failure(call, text), json!(format!("Error: {text}")), Some("accept"))
            }
            Outcome::Refused(text) => {
                let plain = text.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
                let plain =
                    if plain.starts_with("Error: ") { plain.to_owned() } else { format!("Error: {plain}") };
                (text, failure(call, text), json!(plain), None)
            }
            Outcome::Denied(text) => {
                (text, failure(call, text), json!(format!("Error: {text}")), Some("reject"))
            }
            Outcome::Interrupted => unreachable!("an interrupted call has no result"),
        };
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
        let kind = if self.arguments.skips_permissions
            || call["name"] == "Read" && !self.arguments.allowed.iter().any(|name| name == "Read")
        {
            "mode"
        } else {
            "rule"
        };
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
        self.tell(&told);
        (block, text.clone())
    }

    /// A call that was broken off: by Ctrl-C the client says that the user rejected it, else that it was killed.
    fn interrupted(&mut self, call: &Value, assistant: &Value) -> End {
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

    /// The end of a turn: the gate's word. None: it goes on.
    fn stop(&mut self, text: &str, is_again: bool) -> Recorded<Option<End>> {
        self.repeat();
        let entries = self.settings.of("Stop", "")?;
        let mut payload = json!({ "stop_hook_active": is_again });
        if !text.is_empty() {
            payload["last_assistant_message"] = text.into();
        }
        payload["background_tasks"] = json!([]);
        payload["session_crons"] = json!([]);
        let payload = self.with_effort(payload);
        let answers = self.hook("Stop", &entries, payload)?;
        let own = id();
        let refusals: Vec<(String, String)> =
            answers.iter().filter_map(|answer| Some((answer.block.clone()?, answer.entry.line()))).collect();
        if self.is_ending() {
            return Ok(Some(End::Interrupted("aborted_streaming")));
        }
        if let [(reason, command)] = &refusals[..] {
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
            // Who refuses by its exit code is quoted once, who does it by JSON twice.
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
        } else if refusals.len() > 1 {
            return not_recorded("two refusals at once");
        }
        if !entries.is_empty() {
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
            self.keep(&answers, "Stop", "Stop", &own);
            self.converse(json!({
                "type": "system", "subtype": "stop_hook_summary", "hookCount": entries.len(), "hookInfos": infos,
                "hookErrors": refusals.iter().map(|(reason, _)| reason).collect::<Vec<_>>(),
                "failedHookErrorIndexes": [], "hookAdditionalContext": [],
                "preventedContinuation": stopped.is_some(), "stopReason": stopped.unwrap_or_default(),
                "hasOutput": answers.iter().any(Answer::has_output), "level": "suggestion",
                "toolUseID": own,
            }));
        }
        if answers.iter().any(|answer| answer.stop.is_some()) {
            return Ok(Some(End::Stopped("stop_hook_prevented", text.to_owned())));
        }
        Ok(refusals.is_empty().then(|| End::Completed(text.to_owned())))
    }

    /// The API's last error, as the client words it.
    fn fail(&mut self, status: u16, kind: &str, message: &str, request: &str) -> End {
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

    /// Tells the result, starts the last hooks, and gives the exit code.
    fn conclude(&mut self, end: End) -> Recorded<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        let is_killed = signal != 0 && i32::try_from(signal).ok() != Some(SIGINT);
        let mut code = 0;
        if let End::Failed(failure) = &end {
            code = 1;
            let entries = self.settings.of("StopFailure", "")?;
            let payload = json!({
                "effort": { "level": "medium" }, "error": failure["error"], "last_assistant_message": failure["text"],
            });
            self.hook("StopFailure", &entries, payload)?;
        }
        if let End::Interrupted(_) = &end
            && !is_killed
        {
            let text = match &end {
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
            let result = self.outcome(&end);
            match self.arguments.format {
                Format::Text => println!("{}", result["result"].as_str().unwrap_or_default()),
                Format::Json => println!("{}", without(result, "model_usage_since_last_result")),
                Format::Stream => println!("{result}"),
            }
            let _ = std::io::stdout().flush();
        }
        let entries = self.settings.of("SessionEnd", "other")?;
        self.hook("SessionEnd", &entries, json!({ "reason": "other" }))?;
        if is_killed {
            code = 128 + u8::try_from(signal).unwrap_or(0);
        }
        Ok(code)
    }

    fn outcome(&self, end: &End) -> Value {
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
            End::Interrupted(reason) => {
                let stop = self.reason.clone();
                let words = format!(
                    "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={}",
                    stop.as_str().unwrap_or("null")
                );
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
                result["terminal_reason"] = (*reason).into();
                result["stop_reason"] = stop;
                result["is_error"] = true.into();
                result["subtype"] = "error_during_execution".into();
                result["errors"] = json!([words]);
            }
        }
        result
    }

    fn with_effort(&self, rest: Value) -> Value {
        let mut payload =
            json!({ "permission_mode": self.permission_mode(), "effort": { "level": "medium" } });
        for (key, value) in rest.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload
    }

    /// Starts the hooks of an event; `rest` is what its payload has beside the usual fields.
    fn hook(&self, event: &str, entries: &[super::settings::Entry], rest: Value) -> Recorded<Vec<Answer>> {
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
    fn environment(&self, event: Option<&str>) -> Vec<(String, String)> {
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
    fn keep(&mut self, answers: &[Answer], name: &str, event: &str, call: &str) {
        for answer in answers {
            if answer.block.is_some() {
                continue;
            }
            let mut about = json!({ "hookName": name, "toolUseID": call, "hookEvent": event });
            if event == "PostToolBatch" {
                about["accountMemoryBatch"] = false.into();
            }
            let attach = |kind: &str, more: &Value| {
                let mut attachment = json!({ "type": kind });
                for part in [more, &about] {
                    for (key, value) in part.as_object().into_iter().flatten() {
                        attachment[key] = value.clone();
                    }
                }
                json!({ "attachment": attachment, "type": "attachment" })
            };
            let may_talk = matches!(event, "SessionStart" | "UserPromptSubmit");
            let is_silent = matches!(event, "UserPromptSubmit" | "Stop") && answer.plain.is_none();
            let is_kept = !answer.stdout.trim().is_empty() && (!is_silent || answer.stop.is_some());
            if is_kept {
                let mut line = attach(
                    "hook_success",
                    &json!({
                        "content": answer.plain.clone().unwrap_or_default(), "stdout": answer.stdout,
                        "stderr": answer.stderr, "exitCode": answer.code, "command": answer.entry.line(),
                        "durationMs": millis(answer.elapsed),
                    }),
                );
                if let Some(plain) = answer.plain.as_ref().filter(|_| may_talk) {
                    line["rendered"] = rendered(&format!("{name} hook success: {plain}"));
                    line["renderedRole"] = "system".into();
                }
                self.converse(line);
            }
            if let Some(plain) = answer.plain.as_ref().filter(|_| may_talk) {
                self.said.push(format!("{name} hook success: {plain}"));
            }
            if let Some(message) = &answer.message {
                let own = self.converse(attach("hook_system_message", &json!({ "content": message })));
                if event != "SessionStart" {
                    self.tell(&json!({
                        "type": "system", "subtype": "informational", "content": format!("{name} says: {message}"),
                        "level": "notice", "uuid": own, "session_id": self.place.session,
                    }));
                }
            }
            if let Some(context) = &answer.context {
                let name = if event == "SessionStart" { "SessionStart" } else { name };
                let words = format!("{name} hook additional context: {context}");
                let mut line = attach("hook_additional_context", &json!({ "content": [context] }));
                line["attachment"]["hookName"] = name.into();
                match event {
                    "SessionStart" => line["attachment"]["toolUseID"] = "SessionStart".into(),
                    "UserPromptSubmit" => line["attachment"]["toolUseID"] = format!("hook-{}", id()).into(),
                    _ => {}
                }
                line["rendered"] = rendered(&words);
                line["renderedRole"] = "system".into();
                self.converse(line);
                self.said.push(words);
            }
        }
    }

    /// Writes a line of the conversation after the last one; its id.
    fn converse(&mut self, mut rest: Value) -> String {
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

    fn write(&self, line: &Value) {
        self.transcript.write(line.to_string());
    }

    /// A line of the stream.
    fn tell(&self, line: &Value) {
        if self.arguments.format == Format::Stream {
            let mut stdout = std::io::stdout().lock();
            // A reader that is gone does not end the client.
            let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        }
    }
}

fn without(mut value: Value, field: &str) -> Value {
    value.as_object_mut().map(|fields| fields.shift_remove(field));
    value
}

/// What was sent of a message, in tokens.
fn tokens(usage: &Value) -> u64 {
    let kinds = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    kinds.iter().map(|name| usage[*name].as_u64().unwrap_or(0)).sum()
}

fn failure(call: &Value, text: &str) -> Value {
    json!({ "type": "tool_result", "content": text, "is_error": true, "tool_use_id": call["id"] })
}

fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    let all = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(move |block| block["type"] == kind)
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

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A folder's path as the client names things after it.
fn dashed(folder: &Path) -> String {
    let path = folder.display().to_string();
    path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// The branch that HEAD names.
fn branch(project: &Path) -> String {
    let head = std::fs::read_to_string(project.join(".git/HEAD")).unwrap_or_default();
    head.trim().strip_prefix("ref: refs/heads/").unwrap_or_default().to_owned()
}
