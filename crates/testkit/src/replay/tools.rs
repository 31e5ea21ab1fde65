//! The recorded behavior of the tools Bash, Read, Write and Edit.

use super::{ReplayResult, not_replayable_error, patch};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The largest output that the client sends to the model in full.
const MAX_OUTPUT_BYTES: usize = 30_000;

/// The outcome of a tool call.
#[derive(Debug)]
pub(super) enum ToolOutcome {
    /// The tool succeeded: the text for the model, and the response for hooks and transcript.
    Succeeded { text: String, response: Value },
    /// The tool failed with this error text.
    Failed(String),
    /// The call was rejected with this text before its hooks ran.
    RejectedBeforeHooks(String),
    /// The client denied permission with this text after the hooks had run.
    PermissionDenied(String),
    /// The client received a signal to end during the call.
    Interrupted,
}

/// The folders and environment in which a tool call runs.
pub(super) struct ToolContext<'a> {
    pub(super) project: &'a Path,
    pub(super) working_folder: &'a mut PathBuf,
    pub(super) temp_folder: &'a Path,
    pub(super) environment: &'a [(String, String)],
    pub(super) is_ending: &'a dyn Fn() -> bool,
}

/// Returns the error that rejects a call before its hooks run, or `None` if the call may run.
pub(super) fn input_error_before_hooks(tool_name: &str, input: &Value) -> ReplayResult<Option<String>> {
    let tool_use_error = |text: String| Ok(Some(format!("<tool_use_error>{text}</tool_use_error>")));
    match tool_name {
        "Bash" | "Read" | "Write" => Ok(None),
        "Edit" => {
            let Some(text) = file_path(input).and_then(|path| fs::read_to_string(path).ok()) else {
                return not_replayable_error("an edit of a file that cannot be read");
            };
            let old_string = input["old_string"].as_str().unwrap_or_default();
            match text.matches(old_string).count() {
                _ if old_string.is_empty() => not_replayable_error("an edit of nothing"),
                0 => tool_use_error(format!("String to replace not found in file.\nString: {old_string}")),
                1 => Ok(None),
                _ if input["replace_all"] == true => Ok(None),
                _ => not_replayable_error("an edit of what stands in several places"),
            }
        }
        "Nonesuch" => tool_use_error(format!("Error: No such tool available: {tool_name}")),
        other => not_replayable_error(format!("the tool {other}")),
    }
}

/// Returns the input with the client's default values, for the conversation and for the hooks. The two differ
/// in the order of their fields.
pub(super) fn conversation_and_hook_inputs_with_defaults(tool_name: &str, input: &Value) -> (Value, Value) {
    if tool_name != "Edit" || input.get("replace_all").is_some() {
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

pub(super) fn run_bash_read_or_write_else_edit(
    tool_name: &str,
    input: &Value,
    context: &mut ToolContext<'_>,
) -> ReplayResult<ToolOutcome> {
    match tool_name {
        "Bash" => run_bash_and_update_working_folder(input, context),
        "Read" => read_whole_file_with_line_numbers(input, context),
        "Write" => create_or_overwrite_file(input),
        _ => replace_first_or_all_occurrences_in_file(input),
    }
}

fn file_path(input: &Value) -> Option<&Path> {
    input["file_path"].as_str().map(Path::new)
}

const FILE_STATE_NOTE: &str = "(file state is current in your context — no need to Read it back)";

fn read_whole_file_with_line_numbers(input: &Value, context: &ToolContext<'_>) -> ReplayResult<ToolOutcome> {
    let path = file_path(input).unwrap_or(Path::new(""));
    if input.as_object().is_some_and(|fields| fields.len() > 1) {
        return not_replayable_error("reading a part of a file");
    }
    let Ok(text) = fs::read_to_string(path) else {
        let folder = context.working_folder.display();
        return Ok(ToolOutcome::Failed(format!(
            "File does not exist. Note: your current working directory is {folder}."
        )));
    };
    if text.is_empty() || text.len() > MAX_OUTPUT_BYTES {
        return not_replayable_error("reading an empty or a large file");
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let numbered_lines: Vec<String> =
        lines.iter().enumerate().map(|(index, line)| format!("{}\t{line}", index + 1)).collect();
    let file = json!({
        "filePath": path, "content": text, "numLines": lines.len(), "startLine": 1, "totalLines": lines.len(),
    });
    Ok(ToolOutcome::Succeeded {
        text: numbered_lines.join("\n"),
        response: json!({ "type": "text", "file": file }),
    })
}

fn create_or_overwrite_file(input: &Value) -> ReplayResult<ToolOutcome> {
    let path = file_path(input).unwrap_or(Path::new(""));
    let content = input["content"].as_str().unwrap_or_default();
    let old_content = fs::read_to_string(path).ok();
    let folder = path.parent().unwrap_or(path);
    if fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).is_err() {
        return not_replayable_error("a file that cannot be written");
    }
    let (change_type, text) = match &old_content {
        None => ("create", format!("File created successfully at: {} {FILE_STATE_NOTE}", path.display())),
        Some(_) => (
            "update",
            format!("The file {} has been updated successfully. {FILE_STATE_NOTE}", path.display()),
        ),
    };
    let hunks = old_content
        .as_ref()
        .map_or(json!([]), |old_content| patch::structured_patch_hunks(old_content, content));
    let response = json!({
        "type": change_type, "filePath": path, "content": content, "structuredPatch": hunks, "originalFile": old_content,
        "userModified": false,
    });
    Ok(ToolOutcome::Succeeded { text, response })
}

fn replace_first_or_all_occurrences_in_file(input: &Value) -> ReplayResult<ToolOutcome> {
    let path = file_path(input).unwrap_or(Path::new(""));
    let input_string = |name: &str| input[name].as_str().unwrap_or_default();
    let replaces_all = input["replace_all"] == true;
    let Ok(old_content) = fs::read_to_string(path) else {
        return not_replayable_error("a file that went away");
    };
    let new_content = if replaces_all {
        old_content.replace(input_string("old_string"), input_string("new_string"))
    } else {
        old_content.replacen(input_string("old_string"), input_string("new_string"), 1)
    };
    if fs::write(path, &new_content).is_err() {
        return not_replayable_error("a file that cannot be written");
    }
    let response = json!({
        "filePath": path, "oldString": input_string("old_string"), "newString": input_string("new_string"), "originalFile": old_content,
        "structuredPatch": patch::structured_patch_hunks(&old_content, &new_content), "userModified": false, "replaceAll": replaces_all,
    });
    Ok(ToolOutcome::Succeeded {
        text: format!("The file {} has been updated successfully. {FILE_STATE_NOTE}", path.display()),
        response,
    })
}

/// Returns the client's reason to deny a command that redirects output into `.claude` or `.git`, else `None`.
/// Only `echo TEXT > FILE` was recorded; any other command that does so is an error.
fn denial_message_for_protected_redirect(
    command: &str,
    context: &ToolContext<'_>,
) -> ReplayResult<Option<String>> {
    let mut redirect_targets =
        command.split('>').skip(1).map(|remaining| remaining.trim_start_matches(['>', '|', ' ']));
    let find_protected_target = |target: &str| {
        let target = target
            .split([' ', ';', '&', '|', '\n', ')'])
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\'']);
        let target = target.trim_start_matches("./");
        (target.starts_with(".claude/") || target.starts_with(".git/")).then(|| target.to_owned())
    };
    if let Some(target) = redirect_targets.find_map(find_protected_target) {
        if !command.starts_with("echo ") || command.contains([';', '&', '|', '\n', '$', '`', '\'', '"', '('])
        {
            return not_replayable_error(format!("a command that writes into {target}"));
        }
        let path = context.working_folder.join(target);
        return Ok(Some(format!(
            "Claude requested permissions to edit {} which is a sensitive file.",
            path.display()
        )));
    }
    Ok(None)
}

fn run_bash_and_update_working_folder(
    input: &Value,
    context: &mut ToolContext<'_>,
) -> ReplayResult<ToolOutcome> {
    let command_line = input["command"].as_str().unwrap_or_default();
    if input["run_in_background"] == true {
        return not_replayable_error("a command in the background");
    }
    if let Some(reason) = denial_message_for_protected_redirect(command_line, context)? {
        return Ok(ToolOutcome::PermissionDenied(reason));
    }
    let final_working_folder_file = context.temp_folder.join(format!("claude-{}-cwd", std::process::id()));
    let Some((status, output)) =
        run_shell_or_none_if_ending(command_line, &final_working_folder_file, context)?
    else {
        return Ok(ToolOutcome::Interrupted);
    };
    let new_folder =
        fs::read_to_string(&final_working_folder_file).map(|folder| PathBuf::from(folder.trim_end()));
    let _ = fs::remove_file(&final_working_folder_file);
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
    Ok(ToolOutcome::Succeeded { text, response })
}

/// Runs a command line and writes its final working directory to `final_working_folder_file`. Returns its
/// exit status and output, or `None` if a signal to end arrived and the command was killed.
fn run_shell_or_none_if_ending(
    command_line: &str,
    final_working_folder_file: &Path,
    context: &ToolContext<'_>,
) -> ReplayResult<Option<(ExitStatus, String)>> {
    let mut command = Command::new("/bin/bash");
    command
        .args(["-c", "eval \"$1\" < /dev/null && pwd -P >| \"$2\"", "bash", command_line])
        .arg(final_working_folder_file)
        .current_dir(&*context.working_folder)
        .envs(context.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());
    let Ok(mut output) = tempfile::tempfile() else { return not_replayable_error("a full disk") };
    let (Ok(stdout_file), Ok(stderr_file)) = (output.try_clone(), output.try_clone()) else {
        return not_replayable_error("a full disk");
    };
    let spawn_result = command.stdout(stdout_file).stderr(stderr_file).process_group(0).spawn();
    let Ok(mut child) = spawn_result else { return not_replayable_error("a shell that does not start") };
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
    let read_result = std::io::Seek::rewind(&mut output).and_then(|()| output.read_to_end(&mut bytes));
    if read_result.is_err() || bytes.len() > MAX_OUTPUT_BYTES {
        return not_replayable_error("an output of more than 30,000 characters");
    }
    Ok(Some((status, String::from_utf8_lossy(&bytes).trim_end().to_owned())))
}
