//! Runs a replayed session from start to end.

mod hook_records;
mod model_requests;
mod tool_calls;
mod turn_end;

use super::arguments::Arguments;
use super::lines::{LineContext, milliseconds_since_epoch, new_uuid, timestamp_now};
use super::settings::Settings;
use super::token_usage::TokenUsage;
use super::transcript::TranscriptWriter;
use super::{ReplayResult, dashed_path, not_replayable_error};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The client compacts above about 967,000 tokens of a window of 1,000,000. Compaction was not recorded, so
/// the replay stops well below that.
const MAX_CONTEXT_TOKENS: u64 = 940_000;

/// After more consecutive Stop hook refusals the client ends the turn. A separate recording covers this.
const MAX_CONSECUTIVE_STOP_REFUSALS: u32 = 8;

/// The environment variables that were set while the client was recorded. Each test's world sets them.
const RECORDED_VARIABLES: [&str; 9] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    // Without an exporter nothing is exported, so the session does not change.
    "CLAUDE_CODE_ENABLE_TELEMETRY",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_TMPDIR",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
];

/// Returns true if the prefix of a variable's name suggests that it affects the client.
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
    /// The working directory that was last announced to the model.
    last_announced_folder: PathBuf,
    /// The context size at the last request, in tokens.
    context_tokens: u64,
    temp_folder: PathBuf,
    transcript: TranscriptWriter,
    prompt_id: Option<String>,
    last_line_id: Value,
    attachment_to_repeat: Option<Value>,
    /// The id of each tool call and of the transcript line that contains it.
    line_ids_by_call: Vec<(Value, String)>,
    /// The stop reason of the last message.
    stop_reason: Value,
    messages: Vec<Value>,
    /// Reminders from hooks since the last request, to be sent with the next one.
    pending_reminders: Vec<String>,
    token_usage: TokenUsage,
    turn_count: u64,
    permission_denials: Vec<Value>,
    started_at: Instant,
    api_time: Duration,
    /// The number of the received signal, or 0.
    received_signal: Arc<AtomicUsize>,
}

/// How a session ended.
enum SessionOutcome {
    /// The model finished; contains its last text.
    Completed(String),
    /// A hook ended the session; contains the terminal reason and the model's last text.
    StoppedByHook(&'static str, String),
    /// The limit of `--max-turns` was reached; contains the limit.
    MaxTurnsReached(u64),
    /// The API failed; contains the error's text, name, status and type.
    ApiFailed(Value),
    /// A signal arrived during a tool call or a response; contains the terminal reason.
    Interrupted(&'static str),
}

/// Runs a session and returns the client's exit code.
pub(super) fn run_session(arguments: Arguments) -> ReplayResult<u8> {
    let prompt_text = read_prompt_rejecting_slash_commands(&arguments)?;
    let mut session = Session::new_in_supported_environment(arguments)?;
    let outcome = session.start_and_run_turns_until_end(&prompt_text);
    // Drop the session even after an error, so that the transcript is complete before the program exits.
    let exit_code =
        outcome.and_then(|outcome| session.print_result_unless_killed_and_run_end_hooks(&outcome));
    drop(session);
    exit_code
}

fn read_prompt_rejecting_slash_commands(arguments: &Arguments) -> ReplayResult<String> {
    let mut text = arguments.prompt.clone().unwrap_or_default();
    let mut stdin = std::io::stdin();
    if arguments.prompt.is_none() && !stdin.is_terminal() && stdin.read_to_string(&mut text).is_err() {
        return not_replayable_error("a prompt that is no text");
    }
    match text.trim_start().chars().next() {
        None => not_replayable_error("an empty prompt"),
        Some('/') => not_replayable_error("a slash command"),
        Some(_) => Ok(text),
    }
}

fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Session {
    fn new_in_supported_environment(arguments: Arguments) -> ReplayResult<Session> {
        let is_unrecorded_variable =
            |name: &str| may_affect_client(name) && !RECORDED_VARIABLES.contains(&name);
        if let Some((name, _)) =
            std::env::vars().find(|(name, value)| !value.is_empty() && is_unrecorded_variable(name))
        {
            return not_replayable_error(format!("the variable {name}"));
        }
        let Ok(project) = std::env::current_dir() else {
            return not_replayable_error("a folder that is gone");
        };
        let home = PathBuf::from(env_variable("HOME").unwrap_or_default());
        if project.join(".mcp.json").exists() || project.join("CLAUDE.md").exists() {
            return not_replayable_error("a project with .mcp.json or CLAUDE.md");
        }
        let id = arguments.session_id.clone().unwrap_or_else(new_uuid);
        let transcript_path =
            home.join(".claude/projects").join(dashed_path(&project)).join(format!("{id}.jsonl"));
        if transcript_path.exists() {
            return not_replayable_error("a second session of the same id");
        }
        let settings = Settings::load_merged(&home, &project, arguments.settings.as_deref())?;
        let received_signal = Arc::new(AtomicUsize::new(0));
        for signal_number in [SIGINT, SIGTERM, SIGHUP] {
            let value = usize::try_from(signal_number).unwrap_or(0);
            let _ = register_usize(signal_number, Arc::clone(&received_signal), value);
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
            last_announced_folder: project.clone(),
            context_tokens: 0,
            temp_folder: env_variable("CLAUDE_CODE_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from),
            transcript: TranscriptWriter::start_delayed_writer_thread(transcript_path),
            prompt_id: None,
            last_line_id: Value::Null,
            attachment_to_repeat: None,
            line_ids_by_call: Vec::new(),
            stop_reason: Value::Null,
            messages: Vec::new(),
            pending_reminders: Vec::new(),
            token_usage: TokenUsage::default(),
            turn_count: 1,
            permission_denials: Vec::new(),
            started_at: Instant::now(),
            api_time: Duration::ZERO,
            received_signal,
            project,
            arguments,
        })
    }

    fn start_and_run_turns_until_end(&mut self, prompt: &str) -> ReplayResult<SessionOutcome> {
        self.run_start_hooks_and_submit_prompt(prompt)?;
        let (mut response_count, mut refusal_count) = (0, 0);
        let mut is_stop_hook_active = false;
        loop {
            let message = match self.request_message_with_retries()? {
                Ok(message) => message,
                Err(outcome) => return Ok(outcome),
            };
            response_count += 1;
            let calls: Vec<Value> = content_blocks_of_type(&message, "tool_use").cloned().collect();
            if !calls.is_empty() {
                refusal_count = 0;
                if let Some(outcome) = self.run_tool_calls_and_batch_hooks(&calls)? {
                    return Ok(outcome);
                }
                if self.arguments.max_turns == Some(response_count) {
                    return Ok(self.record_end_at_max_turns(response_count));
                }
                continue;
            }
            let text = content_blocks_of_type(&message, "text")
                .filter_map(|block| block["text"].as_str())
                .next_back();
            let text = text.unwrap_or_default().to_owned();
            match self.run_stop_hooks(&text, is_stop_hook_active)? {
                Some(outcome) => return Ok(outcome),
                None => refusal_count += 1,
            }
            is_stop_hook_active = true;
            if refusal_count > MAX_CONSECUTIVE_STOP_REFUSALS {
                return not_replayable_error("nine refusals in a row");
            }
        }
    }

    /// Runs the SessionStart hooks, writes the init line and submits the prompt.
    fn run_start_hooks_and_submit_prompt(&mut self, prompt: &str) -> ReplayResult<()> {
        let mut enqueued_line = self.line_context.queue_operation_or_marker_line("enqueue");
        enqueued_line["content"] = prompt.into();
        self.write_transcript_line(&enqueued_line);
        self.write_transcript_line(&self.line_context.queue_operation_or_marker_line("dequeue"));
        let hook_id = new_uuid();
        let hook_started_line = json!({
            "type": "system", "subtype": "hook_started", "hook_id": hook_id, "hook_name": "SessionStart:startup",
            "hook_event": "SessionStart", "uuid": new_uuid(), "session_id": self.line_context.session_id,
        });
        let hooks = self.settings.enabled_hooks_for("SessionStart", "startup")?;
        for _ in &hooks {
            self.write_stream_line(&hook_started_line);
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
        let mut init_line = self.line_context.recorded_part("init");
        init_line["permissionMode"] = self.permission_mode().into();
        init_line["uuid"] = new_uuid().into();
        let socket_path = self.temp_folder.join(format!("cc-socks/{}.sock", std::process::id()));
        init_line["messaging_socket_path"] = socket_path.display().to_string().into();
        self.write_stream_line(&init_line);
        self.record_nonblocking_outcomes(&outcomes, "SessionStart:startup", "SessionStart", &new_uuid());
        let start_reminders = std::mem::take(&mut self.pending_reminders);
        self.record_prompt_and_run_prompt_hooks(prompt, start_reminders)
    }

    /// Records the prompt, runs its hooks and queues the reminders for the first request.
    fn record_prompt_and_run_prompt_hooks(
        &mut self,
        prompt: &str,
        start_reminders: Vec<String>,
    ) -> ReplayResult<()> {
        self.prompt_id = Some(new_uuid());
        let line = json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": prompt },
            "permissionMode": self.permission_mode(), "promptSource": "sdk",
            "sentAtMs": milliseconds_since_epoch(), "rowSource": "local", "turnOrigin": "sdk",
            "turnPosition": { "promptIndex": 0, "turnIndex": 1 },
        });
        self.write_conversation_line(line);
        let hooks = self.settings.enabled_hooks_for("UserPromptSubmit", "")?;
        let payload = json!({ "permission_mode": self.permission_mode(), "prompt": prompt });
        let outcomes = self.run_event_hooks("UserPromptSubmit", &hooks, &payload)?;
        let (attachments_before_reminders, attachments_after_reminders) =
            self.first_turn_attachments_split_after_skills();
        for attachment in attachments_before_reminders {
            self.write_conversation_line(attachment);
        }
        self.record_nonblocking_outcomes(&outcomes, "UserPromptSubmit", "UserPromptSubmit", &new_uuid());
        self.write_transcript_line(&self.line_context.queue_operation_or_marker_line("atis-latch"));
        self.attachment_to_repeat = attachments_after_reminders.last().cloned();
        for attachment in attachments_after_reminders {
            self.write_conversation_line(attachment);
        }
        let content_texts = ["<system-reminder>\n# gitStatus\n(recorded)\n</system-reminder>", prompt];
        let text_blocks: Vec<Value> =
            content_texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        self.messages.push(json!({ "role": "user", "content": text_blocks }));
        let mut reminders = start_reminders;
        reminders.push(format!("# Environment\nYou have been invoked in the following environment: \n - Primary working directory: {}", self.line_context.project));
        reminders.append(&mut self.pending_reminders);
        reminders.push(format!("Today's date is {}.", &timestamp_now()[..10]));
        self.pending_reminders = reminders;
        Ok(())
    }

    /// Returns the recorded attachments of a first turn without the fields that differ per session. The first
    /// list ends with the skill listing and precedes the reminders from the prompt's hooks; the second follows
    /// them.
    fn first_turn_attachments_split_after_skills(&self) -> (Vec<Value>, Vec<Value>) {
        let Value::Array(recorded_attachments) = self.line_context.recorded_part("attachments") else {
            return Default::default();
        };
        let mut attachments: Vec<Value> = recorded_attachments
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
        let is_skill_listing = |line: &Value| line["attachment"]["type"] == "skill_listing";
        let split_index = attachments.iter().position(is_skill_listing).map_or(0, |index| index + 1);
        let attachments_after = attachments.split_off(split_index);
        (attachments, attachments_after)
    }

    fn permission_mode(&self) -> &'static str {
        if self.arguments.skips_permissions { "bypassPermissions" } else { "default" }
    }

    fn is_ending(&self) -> bool {
        self.received_signal.load(Ordering::SeqCst) != 0
    }
}

fn content_blocks_of_type<'a>(
    message: &'a Value,
    block_type: &'a str,
) -> impl DoubleEndedIterator<Item = &'a Value> {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter(move |block| block["type"] == block_type)
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the branch that HEAD points to, or an empty string if there is none.
fn current_branch(project: &Path) -> String {
    let head = std::fs::read_to_string(project.join(".git/HEAD")).unwrap_or_default();
    head.trim().strip_prefix("ref: refs/heads/").unwrap_or_default().to_owned()
}
