//! Runs the hooks of an event in parallel and interprets their output.

use super::settings::HookCommand;
use super::{ReplayResult, not_replayable_error};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Returns the timeout of a hook that does not configure one.
fn default_timeout(event_name: &str) -> Duration {
    match event_name {
        "SessionEnd" => Duration::from_millis(1500),
        "UserPromptSubmit" => Duration::from_secs(30),
        _ => Duration::from_secs(600),
    }
}

/// The time between SIGTERM and SIGKILL.
const KILL_GRACE_PERIOD: Duration = Duration::from_millis(1200);
/// Maximum length of a context that the client passes to the model unchanged.
const MAX_CONTEXT_CHARS: usize = 10_000;

/// The result of one hook.
#[derive(Clone, Debug)]
pub(super) struct HookOutcome {
    pub(super) hook: HookCommand,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The exit code; `None` if the hook was canceled.
    pub(super) exit_code: Option<i32>,
    pub(super) elapsed: Duration,
    /// Additional context for the model.
    pub(super) context: Option<String>,
    /// The output, if it is plain text and not JSON.
    pub(super) plain_text: Option<String>,
    /// A message for the user.
    pub(super) user_message: Option<String>,
    /// The reason for blocking; `None` if the hook does not block.
    pub(super) block_reason: Option<String>,
    /// The reason for ending the session; `None` if the hook does not end it.
    pub(super) stop_reason: Option<String>,
}

impl HookCommand {
    /// Returns the command line in the format that the client reports.
    pub(super) fn command_line(&self) -> String {
        match &self.arguments {
            Some(arguments) if !arguments.is_empty() => format!("{} {}", self.command, arguments.join(" ")),
            _ => self.command.clone(),
        }
    }
}

impl HookOutcome {
    pub(super) fn has_output(&self) -> bool {
        !self.stdout.trim().is_empty() || !self.stderr.trim().is_empty()
    }
}

/// The data that all hooks of one event share.
#[derive(Clone, Copy)]
pub(super) struct HookEvent<'a> {
    pub(super) name: &'a str,
    pub(super) payload: &'a Value,
    pub(super) environment: &'a [(String, String)],
    pub(super) project: &'a Path,
    pub(super) working_folder: &'a Path,
    /// Returns true once the client has received a termination signal.
    pub(super) is_ending: &'a (dyn Fn() -> bool + Sync),
}

/// Runs the hooks in parallel and returns their outcomes in the order in which the hooks ended.
pub(super) fn run_hooks_in_parallel_sorted_by_end(
    event: HookEvent<'_>,
    hooks: &[HookCommand],
) -> ReplayResult<Vec<HookOutcome>> {
    let mut outcomes = thread::scope(|scope| {
        let threads: Vec<_> = hooks.iter().map(|hook| scope.spawn(move || run_hook(event, hook))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<ReplayResult<Vec<_>>>()
    })?;
    outcomes.sort_by_key(|(ended_at, _)| *ended_at);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn run_hook(event: HookEvent<'_>, hook: &HookCommand) -> ReplayResult<(Instant, HookOutcome)> {
    let start = Instant::now();
    let mut outcome = HookOutcome {
        hook: hook.clone(),
        stdout: String::new(),
        stderr: String::new(),
        exit_code: None,
        elapsed: Duration::ZERO,
        context: None,
        plain_text: None,
        user_message: None,
        block_reason: None,
        stop_reason: None,
    };
    let Ok(mut child) = build_hook_command(event, hook).spawn() else {
        return not_replayable_error(format!("a hook that does not start: {}", hook.command_line()));
    };
    let stdout_reader = spawn_pipe_reader(child.stdout.take());
    let stderr_reader = spawn_pipe_reader(child.stderr.take());
    if let Some(mut stdin) = child.stdin.take() {
        let payload = format!("{}\n", event.payload);
        thread::spawn(move || drop(stdin.write_all(payload.as_bytes())));
    }
    outcome.exit_code = wait_for_exit_or_terminate_hook(
        event,
        &mut child,
        hook.timeout.unwrap_or_else(|| default_timeout(event.name)),
    );
    outcome.stdout = stdout_reader.join().unwrap_or_default();
    outcome.stderr = stderr_reader.join().unwrap_or_default();
    outcome.elapsed = start.elapsed();
    apply_output_and_exit_code(event.name, &mut outcome)?;
    Ok((Instant::now(), outcome))
}

fn build_hook_command(event: HookEvent<'_>, hook: &HookCommand) -> Command {
    let project = event.project.display().to_string();
    let expand_project_dir = |argument: &str| argument.replace("${CLAUDE_PROJECT_DIR}", &project);
    let mut command = match &hook.arguments {
        Some(arguments) => {
            let mut command = Command::new(expand_project_dir(&hook.command));
            command.args(arguments.iter().map(|argument| expand_project_dir(argument)));
            command
        }
        None => {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &hook.command]);
            command
        }
    };
    command
        .current_dir(event.working_folder)
        .envs(event.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The client starts each hook in its own session. A separate process group is the closest equivalent in safe
        // Rust.
        .process_group(0);
    command
}

fn spawn_pipe_reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the hook to exit and returns its exit code. Terminates the hook after `timeout`, or when the client has
/// received a termination signal (except on SessionEnd), and then returns `None`.
fn wait_for_exit_or_terminate_hook(
    event: HookEvent<'_>,
    child: &mut Child,
    timeout: Duration,
) -> Option<i32> {
    let start = Instant::now();
    let mut terminated_at: Option<Instant> = None;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return if terminated_at.is_some() { None } else { status.code() };
        }
        match terminated_at {
            Some(terminated_at) if terminated_at.elapsed() > KILL_GRACE_PERIOD => drop(child.kill()),
            None if start.elapsed() > timeout || (event.name != "SessionEnd" && (event.is_ending)()) => {
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
                terminated_at = Some(Instant::now());
            }
            _ => {}
        }
        sleep(Duration::from_millis(1));
    }
}

/// Interprets the output and the exit code. The output is JSON if it starts and ends with a brace, else plain text.
fn apply_output_and_exit_code(event_name: &str, outcome: &mut HookOutcome) -> ReplayResult<()> {
    let output = outcome.stdout.trim_start_matches('\u{feff}').trim().to_owned();
    let json_reply =
        (output.starts_with('{') && output.ends_with('}')).then(|| serde_json::from_str::<Value>(&output));
    match (outcome.exit_code, json_reply) {
        (None, _) => Ok(()),
        (_, Some(Ok(reply))) => apply_supported_json_reply(event_name, &reply, outcome),
        (_, Some(Err(error))) => not_replayable_error(format!("a reply that is no JSON ({error})")),
        (Some(0), None) => {
            outcome.plain_text = Some(output).filter(|text| !text.is_empty());
            Ok(())
        }
        (Some(2), None) if event_name == "Stop" => {
            outcome.block_reason = Some(format!("[{}]: {}", outcome.hook.command_line(), outcome.stderr));
            Ok(())
        }
        (Some(2), None) => not_replayable_error(format!("exit code 2 of a hook on {event_name}")),
        (Some(code), None) => not_replayable_error(format!("a hook on {event_name} that ends with {code}")),
    }
}

fn apply_supported_json_reply(
    event_name: &str,
    reply: &Value,
    outcome: &mut HookOutcome,
) -> ReplayResult<()> {
    const SUPPORTED_FIELDS: [&str; 7] = [
        "continue",
        "stopReason",
        "systemMessage",
        "suppressOutput",
        "decision",
        "reason",
        "hookSpecificOutput",
    ];
    let object_keys =
        |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    if let Some(key) =
        object_keys(reply).unwrap_or_default().iter().find(|key| !SUPPORTED_FIELDS.contains(&key.as_str()))
    {
        return not_replayable_error(format!("a reply's {key}"));
    }
    let hook_output = &reply["hookSpecificOutput"];
    for key in object_keys(hook_output).unwrap_or_default() {
        if !["hookEventName", "additionalContext"].contains(&key.as_str()) {
            return not_replayable_error(format!("a reply's {key}"));
        }
    }
    let to_text = |value: &Value| value.as_str().map(str::to_owned);
    outcome.user_message = to_text(&reply["systemMessage"]);
    outcome.context = to_text(&hook_output["additionalContext"]).filter(|context| !context.is_empty());
    if outcome.context.as_ref().is_some_and(|context| context.chars().count() > MAX_CONTEXT_CHARS) {
        return not_replayable_error("more than 10,000 characters from a hook");
    }
    if reply["decision"] == "block" {
        if event_name != "Stop" {
            return not_replayable_error(format!("a refusal on {event_name}"));
        }
        outcome.block_reason = to_text(&reply["reason"]);
    }
    if reply["continue"] == false {
        match event_name {
            "PostToolBatch" | "Stop" => {
                outcome.stop_reason = Some(to_text(&reply["stopReason"]).unwrap_or_default());
            }
            "SessionStart" | "SessionEnd" => {}
            _ => return not_replayable_error(format!("an end by a hook on {event_name}")),
        }
    }
    if event_name == "Stop"
        && outcome.context.is_some()
        && (outcome.block_reason.is_some() || outcome.stop_reason.is_some())
    {
        return not_replayable_error("context and a decision of a hook on Stop");
    }
    Ok(())
}
