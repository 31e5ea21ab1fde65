//! Bash, Read, Write and Edit, as far as they were recorded.

use super::{ReplayResult, not_recorded, patch};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The largest output that reaches the model in full.
const MAX_OUTPUT_BYTES: usize = 30_000;

/// The outcome of a tool call.
#[derive(Debug)]
pub(super) enum ToolOutcome {
    /// It ran: the text for the model, and the response for hooks and transcript.
    Done { text: String, response: Value },
    /// It ran and failed, with this error text.
    Failed(String),
    /// It was rejected with this text before its hooks started.
    RejectedBeforeHooks(String),
    /// The client denied the permission after its hooks had run.
    PermissionDenied(String),
    /// The client received a signal to end during the call.
    Interrupted,
}

/// The surroundings in which a tool call runs.
pub(super) struct ToolContext<'a> {
    pub(super) project: &'a Path,
    pub(super) working_folder: &'a mut PathBuf,
    pub(super) temp_folder: &'a Path,
    pub(super) environment: &'a [(String, String)],
    pub(super) is_ending: &'a dyn Fn() -> bool,
}

/// Returns the error with which a call is rejected before any hook starts, or `None` if it may run.
pub(super) fn input_error(name: &str, input: &Value) -> ReplayResult<Option<String>> {
    let tool_use_error = |text: String| Ok(Some(format!("<tool_use_error>{text}</tool_use_error>")));
    match name {
        "Bash" | "Read" | "Write" => Ok(None),
        "Edit" => {
            let Some(text) = file_path(input).and_then(|path| fs::read_to_string(path).ok()) else {
                return not_recorded("an edit of a file that cannot be read");
            };
            let old = input["old_string"].as_str().unwrap_or_default();
            match text.matches(old).count() {
                _ if old.is_empty() => not_recorded("an edit of nothing"),
                0 => tool_use_error(format!("String to replace not found in file.\nString: {old}")),
                1 => Ok(None),
                _ if input["replace_all"] == true => Ok(None),
                _ => not_recorded("an edit of what stands in several places"),
            }
        }
        "Nonesuch" => tool_use_error(format!("Error: No such tool available: {name}")),
        other => not_recorded(format!("the tool {other}")),
    }
}

/// Returns the input with the client's defaults filled in, for the conversation and for the hooks. The two
/// differ in the order of their fields.
pub(super) fn fill_in_defaults(name: &str, input: &Value) -> (Value, Value) {
    if name != "Edit" || input.get("replace_all").is_some() {
        return (input.clone(), input.clone());
    }
    let mut conversation_input = json!({ "replace_all": false });
    let mut hook_input = input.clone();
    for (key, value) in input.as_object().into_iter().flatten() {
        conversation_input[key] = value.clone();
    }
    hook_input["replace_all"] = false.into();
    (conversation_input, hook_input)
}

pub(super) fn run_tool(
    name: &str,
    input: &Value,
    context: &mut ToolContext<'_>,
) -> ReplayResult<ToolOutcome> {
    match name {
        "Bash" => run_bash(input, context),
        "Read" => read_file(input, context),
        "Write" => write_file(input),
        _ => edit_file(input),
    }
}

fn file_path(input: &Value) -> Option<&Path> {
    input["file_path"].as_str().map(Path::new)
}

const FILE_STATE_NOTE: &str = "(file state is current in your context — no need to Read it back)";

fn read_file(input: &Value, context: &ToolContext<'_>) -> ReplayResult<ToolOutcome> {
    let path = file_path(input).unwrap_or(Path::new(""));
    if input.as_object().is_some_and(|fields| fields.len() > 1) {
        return not_recorded("reading a part of a file");
    }
    let Ok(text) = fs::read_to_string(path) else {
        let folder = context.working_folder.display();
        return Ok(ToolOutcome::Failed(format!(
            "File does not exist. Note: your current working directory is {folder}."
        )));
    };
    if text.is_empty() || text.len() > MAX_OUTPUT_BYTES {
        return not_recorded("reading an empty or a large file");
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let numbered_lines: Vec<String> =
        lines.iter().enumerate().map(|(index, line)| format!("{}\t{line}", index + 1)).collect();
    let file = json!({
        "filePath": path, "content": text, "numLines": lines.len(), "startLine": 1, "totalLines": lines.len(),
    });
    Ok(ToolOutcome::Done {
        text: numbered_lines.join("\n"),
        response: json!({ "type": "text", "file": file }),
    })
}

fn write_file(input: &Value) -> ReplayResult<ToolOutcome> {
    let path = file_path(input).unwrap_or(Path::new(""));
    let content = input["content"].as_str().unwrap_or_default();
    let old = fs::read_to_string(path).ok();
    let folder = path.parent().unwrap_or(path);
    if fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).is_err() {
        return not_recorded("a file that cannot be written");
    }
    let (kind, text) = match &old {
        None => ("create", format!("File created successfully at: {} {FILE_STATE_NOTE}", path.display())),
        Some(_) => (
            "update",
            format!("The file {} has been updated successfully. {FILE_STATE_NOTE}", path.display()),
        ),
    };
    let hunks = old.as_ref().map_or(json!([]), |old| patch::structured_patch(old, content));
    let response = json!({
        "type": kind, "filePath": path, "content": content, "structuredPatch": hunks, "originalFile": old,
        "userModified": false,
    });
    Ok(ToolOutcome::Done { text, response })
}

fn edit_file(input: &Value) -> ReplayResult<ToolOutcome> {
    let path = file_path(input).unwrap_or(Path::new(""));
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let replaces_all = input["replace_all"] == true;
    let Ok(before) = fs::read_to_string(path) else { return not_recorded("a file that went away") };
    let after = if replaces_all {
        before.replace(text("old_string"), text("new_string"))
    } else {
        before.replacen(text("old_string"), text("new_string"), 1)
    };
    if fs::write(path, &after).is_err() {
        return not_recorded("a file that cannot be written");
    }
    let response = json!({
        "filePath": path, "oldString": text("old_string"), "newString": text("new_string"), "originalFile": before,
        "structuredPatch": patch::structured_patch(&before, &after), "userModified": false, "replaceAll": replaces_all,
    });
    Ok(ToolOutcome::Done {
        text: format!("The file {} has been updated successfully. {FILE_STATE_NOTE}", path.display()),
        response,
    })
}

/// Returns the reason if the client denies a command. Only `echo WORD > FILE` with a file in one of these
/// folders was recorded: the client may deny a longer command or not.
fn denial_reason(command: &str, context: &ToolContext<'_>) -> ReplayResult<Option<String>> {
    let mut redirect_targets =
        command.split('>').skip(1).map(|rest| rest.trim_start_matches(['>', '|', ' ']));
    let protected_target = |target: &str| {
        let target = target
            .split([' ', ';', '&', '|', '\n', ')'])
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\'']);
        let target = target.trim_start_matches("./");
        (target.starts_with(".claude/") || target.starts_with(".git/")).then(|| target.to_owned())
    };
    if let Some(target) = redirect_targets.find_map(protected_target) {
        if !command.starts_with("echo ") || command.contains([';', '&', '|', '\n', '$', '`', '\'', '"', '('])
        {
            return not_recorded(format!("a command that writes into {target}"));
        }
        let path = context.working_folder.join(target);
        return Ok(Some(format!(
            "Claude requested permissions to edit {} which is a sensitive file.",
            path.display()
        )));
    }
    Ok(None)
}

fn run_bash(input: &Value, context: &mut ToolContext<'_>) -> ReplayResult<ToolOutcome> {
    let command_line = input["command"].as_str().unwrap_or_default();
    if input["run_in_background"] == true {
        return not_recorded("a command in the background");
    }
    if let Some(reason) = denial_reason(command_line, context)? {
        return Ok(ToolOutcome::PermissionDenied(reason));
    }
    let folder_file = context.temp_folder.join(format!("claude-{}-cwd", std::process::id()));
    let Some((status, output)) = run_shell(command_line, &folder_file, context)? else {
        return Ok(ToolOutcome::Interrupted);
    };
    let new_folder = fs::read_to_string(&folder_file).map(|folder| PathBuf::from(folder.trim_end()));
    let _ = fs::remove_file(&folder_file);
    if !status.success() {
        let code = status.code().unwrap_or(137);
        let error = if output.is_empty() {
            format!("Exit code {code}")
        } else {
            format!("Exit code {code}\n{output}")
        };
        return Ok(ToolOutcome::Failed(error));
    }
    let mut reset_note = String::new();
    if let Ok(folder) = new_folder {
        if folder.starts_with(context.project) {
            *context.working_folder = folder;
        } else {
            reset_note = format!("\nShell cwd was reset to {}", context.project.display());
            *context.working_folder = context.project.to_path_buf();
        }
    }
    let text = format!("{output}{reset_note}").trim().to_owned();
    let text = if text.is_empty() { "(Bash completed with no output)".to_owned() } else { text };
    let response = json!({
        "stdout": output, "stderr": reset_note, "interrupted": false, "isImage": false, "noOutputExpected": false,
    });
    Ok(ToolOutcome::Done { text, response })
}

/// Runs a command line that writes its final working directory into `note`. Returns its exit status and
/// output, or `None` if it was interrupted.
fn run_shell(
    command_line: &str,
    folder_file: &Path,
    context: &ToolContext<'_>,
) -> ReplayResult<Option<(ExitStatus, String)>> {
    let mut command = Command::new("/bin/bash");
    command
        .args(["-c", "eval \"$1\" < /dev/null && pwd -P >| \"$2\"", "bash", command_line])
        .arg(folder_file)
        .current_dir(&*context.working_folder)
        .envs(context.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());
    let Ok(mut output) = tempfile::tempfile() else { return not_recorded("a full disk") };
    let (Ok(first), Ok(second)) = (output.try_clone(), output.try_clone()) else {
        return not_recorded("a full disk");
    };
    let started = command.stdout(first).stderr(second).process_group(0).spawn();
    let Ok(mut child) = started else { return not_recorded("a shell that does not start") };
    let status = loop {
        if let Ok(Some(status)) = child.try_wait() {
            break status;
        }
        if (context.is_ending)() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            return Ok(None);
        }
        sleep(Duration::from_millis(2));
    };
    let mut bytes = Vec::new();
    let result = std::io::Seek::rewind(&mut output).and_then(|()| output.read_to_end(&mut bytes));
    if result.is_err() || bytes.len() > MAX_OUTPUT_BYTES {
        return not_recorded("an output of more than 30,000 characters");
    }
    Ok(Some((status, String::from_utf8_lossy(&bytes).trim_end().to_owned())))
}
