//! Starting what an event asks for, all at once, and reading what it says.

use super::settings::HookCommand;
use super::{Recorded, not_recorded};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Without a limit of its own an entry has this long; SessionEnd has 1.5 s, UserPromptSubmit 30 s.
fn usual_limit(event: &str) -> Duration {
    match event {
        "SessionEnd" => Duration::from_millis(1500),
        "UserPromptSubmit" => Duration::from_secs(30),
        _ => Duration::from_secs(600),
    }
}

/// From the request to end to the force.
const GRACE: Duration = Duration::from_millis(1200);
/// The most that reaches the model as it is.
const LARGEST_CONTEXT: usize = 10_000;

/// What one hook did and said.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) entry: HookCommand,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// None when it was cancelled.
    pub(super) code: Option<i32>,
    pub(super) elapsed: Duration,
    /// For the model.
    pub(super) context: Option<String>,
    /// What it says in plain text.
    pub(super) plain: Option<String>,
    /// For the user.
    pub(super) message: Option<String>,
    /// It refuses, for this reason.
    pub(super) block: Option<String>,
    /// It ends the session, for this reason.
    pub(super) stop: Option<String>,
}

impl HookCommand {
    /// As the client names it.
    pub(super) fn line(&self) -> String {
        match &self.arguments {
            Some(arguments) if !arguments.is_empty() => format!("{} {}", self.command, arguments.join(" ")),
            _ => self.command.clone(),
        }
    }
}

impl Answer {
    /// Whether it said anything at all.
    pub(super) fn has_output(&self) -> bool {
        !self.stdout.trim().is_empty() || !self.stderr.trim().is_empty()
    }
}

/// What all hooks of one event share.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) name: &'a str,
    pub(super) payload: &'a Value,
    pub(super) environment: &'a [(String, String)],
    pub(super) project: &'a Path,
    pub(super) folder: &'a Path,
    /// True once the client has been told to end.
    pub(super) is_ending: &'a (dyn Fn() -> bool + Sync),
}

/// Runs them side by side; the answers come in the order in which they ended.
pub(super) fn run(event: Event<'_>, entries: &[HookCommand]) -> Recorded<Vec<Answer>> {
    let mut answers = thread::scope(|scope| {
        let started: Vec<_> = entries.iter().map(|entry| scope.spawn(move || one(event, entry))).collect();
        started.into_iter().filter_map(|thread| thread.join().ok()).collect::<Recorded<Vec<_>>>()
    })?;
    answers.sort_by_key(|(ended, _)| *ended);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

fn one(event: Event<'_>, entry: &HookCommand) -> Recorded<(Instant, Answer)> {
    let start = Instant::now();
    let mut answer = Answer {
        entry: entry.clone(),
        stdout: String::new(),
        stderr: String::new(),
        code: None,
        elapsed: Duration::ZERO,
        context: None,
        plain: None,
        message: None,
        block: None,
        stop: None,
    };
    let Ok(mut child) = command(event, entry).spawn() else {
        return not_recorded(format!("a hook that does not start: {}", entry.line()));
    };
    let stdout = gather(child.stdout.take());
    let stderr = gather(child.stderr.take());
    if let Some(mut stdin) = child.stdin.take() {
        let payload = format!("{}\n", event.payload);
        thread::spawn(move || drop(stdin.write_all(payload.as_bytes())));
    }
    answer.code = wait(event, &mut child, entry.limit.unwrap_or_else(|| usual_limit(event.name)));
    answer.stdout = stdout.join().unwrap_or_default();
    answer.stderr = stderr.join().unwrap_or_default();
    answer.elapsed = start.elapsed();
    understand(event.name, &mut answer)?;
    Ok((Instant::now(), answer))
}

fn command(event: Event<'_>, entry: &HookCommand) -> Command {
    let project = event.project.display().to_string();
    let place = |word: &str| word.replace("${CLAUDE_PROJECT_DIR}", &project);
    let mut command = match &entry.arguments {
        Some(arguments) => {
            let mut command = Command::new(place(&entry.command));
            command.args(arguments.iter().map(|word| place(word)));
            command
        }
        None => {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &entry.command]);
            command
        }
    };
    command
        .current_dir(event.folder)
        .envs(event.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The client gives it a session of its own; a group of its own is as near as safe Rust comes.
        .process_group(0);
    command
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Its exit code; none when it took too long or the client was told to end.
fn wait(event: Event<'_>, child: &mut Child, limit: Duration) -> Option<i32> {
    let start = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return if asked.is_some() { None } else { status.code() };
        }
        match asked {
            Some(at) if at.elapsed() > GRACE => drop(child.kill()),
            None if start.elapsed() > limit || (event.name != "SessionEnd" && (event.is_ending)()) => {
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
                asked = Some(Instant::now());
            }
            _ => {}
        }
        sleep(Duration::from_millis(1));
    }
}

/// Reads an answer: JSON when it begins and ends with a brace, else plain text.
fn understand(event: &str, answer: &mut Answer) -> Recorded<()> {
    let said = answer.stdout.trim_start_matches('\u{feff}').trim().to_owned();
    let reply = (said.starts_with('{') && said.ends_with('}')).then(|| serde_json::from_str::<Value>(&said));
    match (answer.code, reply) {
        (None, _) => Ok(()),
        (_, Some(Ok(reply))) => obey(event, &reply, answer),
        (_, Some(Err(error))) => not_recorded(format!("a reply that is no JSON ({error})")),
        (Some(0), None) => {
            answer.plain = Some(said).filter(|said| !said.is_empty());
            Ok(())
        }
        (Some(2), None) if event == "Stop" => {
            answer.block = Some(format!("[{}]: {}", answer.entry.line(), answer.stderr));
            Ok(())
        }
        (Some(2), None) => not_recorded(format!("exit code 2 of a hook on {event}")),
        (Some(code), None) => not_recorded(format!("a hook on {event} that ends with {code}")),
    }
}

fn obey(event: &str, reply: &Value, answer: &mut Answer) -> Recorded<()> {
    const KNOWN: [&str; 7] = [
        "continue",
        "stopReason",
        "systemMessage",
        "suppressOutput",
        "decision",
        "reason",
        "hookSpecificOutput",
    ];
    let keys = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    if let Some(key) = keys(reply).unwrap_or_default().iter().find(|key| !KNOWN.contains(&key.as_str())) {
        return not_recorded(format!("a reply's {key}"));
    }
    let specific = &reply["hookSpecificOutput"];
    for key in keys(specific).unwrap_or_default() {
        if !["hookEventName", "additionalContext"].contains(&key.as_str()) {
            return not_recorded(format!("a reply's {key}"));
        }
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    answer.message = text(&reply["systemMessage"]);
    answer.context = text(&specific["additionalContext"]).filter(|context| !context.is_empty());
    if answer.context.as_ref().is_some_and(|context| context.chars().count() > LARGEST_CONTEXT) {
        return not_recorded("more than 10,000 characters from a hook");
    }
    if reply["decision"] == "block" {
        if event != "Stop" {
            return not_recorded(format!("a refusal on {event}"));
        }
        answer.block = text(&reply["reason"]);
    }
    if reply["continue"] == false {
        match event {
            "PostToolBatch" | "Stop" => answer.stop = Some(text(&reply["stopReason"]).unwrap_or_default()),
            "SessionStart" | "SessionEnd" => {}
            _ => return not_recorded(format!("an end by a hook on {event}")),
        }
    }
    if event == "Stop" && answer.context.is_some() && (answer.block.is_some() || answer.stop.is_some()) {
        return not_recorded("context and a decision of a hook on Stop");
    }
    Ok(())
}
