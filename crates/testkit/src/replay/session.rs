//! A session from its start to its end.

mod asking;
mod ending;
mod telling;
mod working;

use super::arguments::Arguments;
use super::lines::{LineContext, id, now};
use super::settings::Settings;
use super::spent::Spent;
use super::transcript::Transcript;
use super::{Recorded, dashed, not_recorded};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The client compacts above some 967,000 tokens of a window of a million; not so near is asked again here.
const COMPACTS: u64 = 940_000;

/// More refusals in a row than this end a turn all the same, which was recorded elsewhere.
const REFUSALS: u32 = 8;

/// The variables that it was recorded with: every world of a test sets them.
const VARIABLES: [&str; 9] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    // Where no exporter is named, nothing is exported, and the session is the same.
    "CLAUDE_CODE_ENABLE_TELEMETRY",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_TMPDIR",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
];

/// By its name: whatever else such a variable is, it may change what the client does.
fn is_for_the_client(name: &str) -> bool {
    let beginnings = ["ANTHROPIC_", "API_", "BASH_", "CLAUDE", "DISABLE_", "ENABLE_", "MAX_", "MCP_"];
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}

struct Session {
    arguments: Arguments,
    settings: Settings,
    place: LineContext,
    project: PathBuf,
    folder: PathBuf,
    /// The working directory that the model was last shown.
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
    /// The client's own bound on the model's answers.
    OutOfTurns(u64),
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
    let code = end.and_then(|end| session.conclude(&end));
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
        let is_unknown = |name: &str| is_for_the_client(name) && !VARIABLES.contains(&name);
        if let Some((name, _)) = std::env::vars().find(|(name, value)| !value.is_empty() && is_unknown(name))
        {
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
        let place = LineContext {
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
        let (mut answers, mut refusals) = (0, 0);
        let mut is_again = false;
        loop {
            let message = match self.ask()? {
                Ok(message) => message,
                Err(end) => return Ok(end),
            };
            answers += 1;
            let calls: Vec<Value> = blocks(&message, "tool_use").cloned().collect();
            if !calls.is_empty() {
                refusals = 0;
                if let Some(end) = self.work(&calls)? {
                    return Ok(end);
                }
                if self.arguments.max_turns == Some(answers) {
                    return Ok(self.run_out(answers));
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
        let answers = self.hook("SessionStart", &entries, &json!({ "source": "startup" }))?;
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
        self.hand_in(prompt, first)
    }

    /// Gives it its prompt, with what the hooks at its start have said.
    fn hand_in(&mut self, prompt: &str, first: Vec<String>) -> Recorded<()> {
        self.prompt_id = Some(id());
        let line = json!({
            "promptId": self.prompt_id, "type": "user", "message": { "role": "user", "content": prompt },
            "permissionMode": self.permission_mode(), "promptSource": "sdk", "turnOrigin": "sdk",
            "turnPosition": { "promptIndex": 0, "turnIndex": 1 },
        });
        self.converse(line);
        let entries = self.settings.of("UserPromptSubmit", "")?;
        let payload = json!({ "permission_mode": self.permission_mode(), "prompt": prompt });
        let answers = self.hook("UserPromptSubmit", &entries, &payload)?;
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

    fn is_ending(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }
}

fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    let all = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(move |block| block["type"] == kind)
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The branch that HEAD names.
fn branch(project: &Path) -> String {
    let head = std::fs::read_to_string(project.join(".git/HEAD")).unwrap_or_default();
    head.trim().strip_prefix("ref: refs/heads/").unwrap_or_default().to_owned()
}
