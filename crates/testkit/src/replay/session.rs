//! A session from start to end.

mod hook_records;
mod model_requests;
mod tool_calls;
mod turn_end;

use super::arguments::Arguments;
use super::lines::{LineContext, new_uuid, timestamp_now};
use super::settings::Settings;
use super::token_usage::TokenUsage;
use super::transcript::TranscriptWriter;
use super::{ReplayResult, dashed_path, not_recorded};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The client compacts above about 967,000 tokens of a window of a million. Compaction was not recorded, so
/// the replay stops well before.
const MAX_CONTEXT_TOKENS: u64 = 940_000;

/// More refusals by Stop hooks in a row end a turn in the client. This is covered by a separate recording.
const MAX_STOP_REFUSALS: u32 = 8;

/// The environment variables that the client was recorded with. The world of every test sets them.
const RECORDED_VARIABLES: [&str; 9] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    // Without an exporter nothing is exported, and the session is the same.
    "CLAUDE_CODE_ENABLE_TELEMETRY",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_TMPDIR",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
];

/// Returns true if the name of a variable suggests that it may change what the client does.
fn may_affect_client(name: &str) -> bool {
    let prefixes = ["ANTHROPIC_", "API_", "BASH_", "CLAUDE", "DISABLE_", "ENABLE_", "MAX_", "MCP_"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

struct Session {
    arguments: Arguments,
    settings: Settings,
    line_context: LineContext,
    project: PathBuf,
    working_folder: PathBuf,
    /// The working directory that the model was last told.
    announced_folder: PathBuf,
    /// The context size at the last request, in tokens.
    context_tokens: u64,
    temp_folder: PathBuf,
    transcript: TranscriptWriter,
    prompt_id: Option<String>,
    last_line_id: Value,
    snapshot: Option<Value>,
    /// The model's tool calls: the id of the call and the id of the line that has it.
    call_lines: Vec<(Value, String)>,
    /// The stop reason of the last message.
    stop_reason: Value,
    messages: Vec<Value>,
    /// Reminders from hooks since the last request, to be sent with the next one.
    pending_reminders: Vec<String>,
    token_usage: TokenUsage,
    turn_count: u64,
    denials: Vec<Value>,
    started_at: Instant,
    api_time: Duration,
    /// The number of the signal that asked for the end, else 0.
    signal: Arc<AtomicUsize>,
}

/// How the session's work ended.
enum WorkEnd {
    /// The model has finished; its last text.
    Completed(String),
    /// A hook ended it: the reason in the result, and the last text.
    StoppedByHook(&'static str, String),
    /// `--max-turns` was reached.
    OutOfTurns(u64),
    /// The API failed.
    ApiFailed(Value),
    /// A signal came during a tool call or a response; the reason in the result.
    Interrupted(&'static str),
}

/// Runs a session and returns its exit code.
pub(super) fn run_session(arguments: Arguments) -> ReplayResult<u8> {
    let prompt_text = read_prompt(&arguments)?;
    let mut session = Session::new(arguments)?;
    let end = session.run_turns(&prompt_text);
    // Even if something was not recorded, no process of the session is left behind.
    let exit_code = end.and_then(|end| session.finish(&end));
    drop(session);
    exit_code
}

fn read_prompt(arguments: &Arguments) -> ReplayResult<String> {
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

fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Session {
    fn new(arguments: Arguments) -> ReplayResult<Session> {
        let is_unknown = |name: &str| may_affect_client(name) && !RECORDED_VARIABLES.contains(&name);
        if let Some((name, _)) = std::env::vars().find(|(name, value)| !value.is_empty() && is_unknown(name))
        {
            return not_recorded(format!("the variable {name}"));
        }
        let Ok(project) = std::env::current_dir() else { return not_recorded("a folder that is gone") };
        let home = PathBuf::from(env_variable("HOME").unwrap_or_default());
        if project.join(".mcp.json").exists() || project.join("CLAUDE.md").exists() {
            return not_recorded("a project with .mcp.json or CLAUDE.md");
        }
        let id = arguments.session_id.clone().unwrap_or_else(new_uuid);
        let path = home.join(".claude/projects").join(dashed_path(&project)).join(format!("{id}.jsonl"));
        if path.exists() {
            return not_recorded("a second session of the same id");
        }
        let settings = Settings::load(&home, &project, arguments.settings.as_deref())?;
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let value = usize::try_from(number).unwrap_or(0);
            let _ = register_usize(number, Arc::clone(&signal), value);
        }
        let line_context = LineContext {
            session_id: id,
            home: home.display().to_string(),
            project: project.display().to_string(),
            dashed_project: dashed_path(&project),
            branch: current_branch(&project),
        };
        Ok(Session {
            settings,
            line_context,
            working_folder: project.clone(),
            announced_folder: project.clone(),
            context_tokens: 0,
            temp_folder: env_variable("CLAUDE_CODE_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from),
            transcript: TranscriptWriter::start(path),
            prompt_id: None,
            last_line_id: Value::Null,
            snapshot: None,
            call_lines: Vec::new(),
            stop_reason: Value::Null,
            messages: Vec::new(),
            pending_reminders: Vec::new(),
            token_usage: TokenUsage::default(),
            turn_count: 1,
            denials: Vec::new(),
            started_at: Instant::now(),
            api_time: Duration::ZERO,
            signal,
            project,
            arguments,
        })
    }

    fn run_turns(&mut self, prompt: &str) -> ReplayResult<WorkEnd> {
        self.start_with_prompt(prompt)?;
        let (mut response_count, mut refusal_count) = (0, 0);
        let mut is_stop_hook_active = false;
        loop {
            let message = match self.request_message()? {
                Ok(message) => message,
                Err(end) => return Ok(end),
            };
            response_count += 1;
            let calls: Vec<Value> = content_blocks(&message, "tool_use").cloned().collect();
            if !calls.is_empty() {
                refusal_count = 0;
                if let Some(end) = self.run_tool_calls(&calls)? {
                    return Ok(end);
                }
                if self.arguments.max_turns == Some(response_count) {
                    return Ok(self.end_at_max_turns(response_count));
                }
                continue;
            }
            let text =
                content_blocks(&message, "text").filter_map(|block| block["text"].as_str()).next_back();
            let text = text.unwrap_or_default().to_owned();
            match self.run_stop_hooks(&text, is_stop_hook_active)? {
                Some(end) => return Ok(end),
                None => refusal_count += 1,
            }
            is_stop_hook_active = true;
            if refusal_count > MAX_STOP_REFUSALS {
                return not_recorded("nine refusals in a row");
            }
        }
    }

    /// Starts the session and submits the prompt.
    fn start_with_prompt(&mut self, prompt: &str) -> ReplayResult<()> {
        let mut queued = self.line_context.marker_line("enqueue");
        queued["content"] = prompt.into();
        self.write_transcript_line(&queued);
        self.write_transcript_line(&self.line_context.marker_line("dequeue"));
        let hook_id = new_uuid();
        let started = json!({
            "type": "system", "subtype": "hook_started", "hook_id": hook_id, "hook_name": "SessionStart:startup",
            "hook_event": "SessionStart", "uuid": new_uuid(), "session_id": self.line_context.session_id,
        });
        let hooks = self.settings.hooks_for("SessionStart", "startup")?;
        for _ in &hooks {
            self.write_stream_line(&started);
        }
        let outcomes = self.run_event_hooks("SessionStart", &hooks, &json!({ "source": "startup" }))?;
        for outcome in &outcomes {
            self.write_stream_line(&json!({
                "type": "system", "subtype": "hook_response", "hook_id": hook_id,
                "hook_name": "SessionStart:startup", "hook_event": "SessionStart", "output": outcome.stdout,
                "stdout": outcome.stdout, "stderr": outcome.stderr, "exit_code": outcome.exit_code, "outcome": "success",
                "uuid": new_uuid(), "session_id": self.line_context.session_id,
            }));
        }
        let mut init = self.line_context.recorded_part("init");
        init["permissionMode"] = self.permission_mode().into();
        init["uuid"] = new_uuid().into();
        let socket = self.temp_folder.join(format!("cc-socks/{}.sock", std::process::id()));
        init["messaging_socket_path"] = socket.display().to_string().into();
        self.write_stream_line(&init);
        self.record_outcomes(&outcomes, "SessionStart:startup", "SessionStart", &new_uuid());
        let start_reminders = std::mem::take(&mut self.pending_reminders);
        self.submit_prompt(prompt, start_reminders)
    }

    /// Submits the prompt together with the reminders from the SessionStart hooks.
    fn submit_prompt(&mut self, prompt: &str, start_reminders: Vec<String>) -> ReplayResult<()> {
        self.prompt_id = Some(new_uuid());
        let line = json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": prompt },
            "permissionMode": self.permission_mode(), "promptSource": "sdk", "turnOrigin": "sdk",
            "turnPosition": { "promptIndex": 0, "turnIndex": 1 },
        });
        self.write_conversation_line(line);
        let hooks = self.settings.hooks_for("UserPromptSubmit", "")?;
        let payload = json!({ "permission_mode": self.permission_mode(), "prompt": prompt });
        let outcomes = self.run_event_hooks("UserPromptSubmit", &hooks, &payload)?;
        let (before, after) = self.first_turn_attachments();
        for attachment in before {
            self.write_conversation_line(attachment);
        }
        self.record_outcomes(&outcomes, "UserPromptSubmit", "UserPromptSubmit", &new_uuid());
        self.write_transcript_line(&self.line_context.marker_line("atis-latch"));
        self.snapshot = after.last().cloned();
        for attachment in after {
            self.write_conversation_line(attachment);
        }
        let context = ["<system-reminder>\n# gitStatus\n(recorded)\n</system-reminder>", prompt];
        let texts: Vec<Value> = context.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        self.messages.push(json!({ "role": "user", "content": texts }));
        let mut reminders = start_reminders;
        reminders.push(format!("# Environment\nYou have been invoked in the following environment: \n - Primary working directory: {}", self.line_context.project));
        reminders.append(&mut self.pending_reminders);
        reminders.push(format!("Today's date is {}.", &timestamp_now()[..10]));
        self.pending_reminders = reminders;
        Ok(())
    }

    /// Returns the recorded attachments of a first turn: those before and those after the reminders from the
    /// prompt's hooks.
    fn first_turn_attachments(&self) -> (Vec<Value>, Vec<Value>) {
        let Value::Array(recorded) = self.line_context.recorded_part("attachments") else {
            return Default::default();
        };
        let mut attachments: Vec<Value> = recorded
            .into_iter()
            .map(|mut line| {
                for field in [
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
                    line.as_object_mut().map(|line| line.shift_remove(field));
                }
                line
            })
            .collect();
        let is_skills = |line: &Value| line["attachment"]["type"] == "skill_listing";
        let first_after = attachments.iter().position(is_skills).map_or(0, |index| index + 1);
        let after = attachments.split_off(first_after);
        (attachments, after)
    }

    fn permission_mode(&self) -> &'static str {
        if self.arguments.skips_permissions { "bypassPermissions" } else { "default" }
    }

    fn is_ending(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }
}

fn content_blocks<'a>(message: &'a Value, block_type: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter(move |block| block["type"] == block_type)
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the branch that HEAD names.
fn current_branch(project: &Path) -> String {
    let head = std::fs::read_to_string(project.join(".git/HEAD")).unwrap_or_default();
    head.trim().strip_prefix("ref: refs/heads/").unwrap_or_default().to_owned()
}
