//! Bash, Read, Write and Edit, as far as they were recorded.

use super::{Recorded, not_recorded, patch};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The largest output that reaches the model whole.
const LARGEST_OUTPUT: usize = 30_000;

/// The outcome of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It ran: what the model reads, and what hooks and transcript get.
    Done { text: String, response: Value },
    /// It ran and failed, in these words.
    Failed(String),
    /// It was refused, with this text, before any of its hooks was started.
    Refused(String),
    /// The client refused it after its hooks had run.
    Denied(String),
    /// The client was asked to end during the call.
    Interrupted,
}

/// Where a call runs.
pub(super) struct ToolContext<'a> {
    pub(super) project: &'a Path,
    pub(super) folder: &'a mut PathBuf,
    pub(super) temporary: &'a Path,
    pub(super) environment: &'a [(String, String)],
    pub(super) is_ending: &'a dyn Fn() -> bool,
}

/// What a call is refused for before any hook is started.
pub(super) fn refusal(name: &str, input: &Value) -> Recorded<Option<String>> {
    let words = |text: String| Ok(Some(format!("<tool_use_error>{text}</tool_use_error>")));
    match name {
        "Bash" | "Read" | "Write" => Ok(None),
        "Edit" => {
            let Some(text) = path(input).and_then(|path| fs::read_to_string(path).ok()) else {
                return not_recorded("an edit of a file that cannot be read");
            };
            let old = input["old_string"].as_str().unwrap_or_default();
            match text.matches(old).count() {
                _ if old.is_empty() => not_recorded("an edit of nothing"),
                0 => words(format!("String to replace not found in file.\nString: {old}")),
                1 => Ok(None),
                _ if input["replace_all"] == true => Ok(None),
                _ => not_recorded("an edit of what stands in several places"),
            }
        }
        "Nonesuch" => words(format!("Error: No such tool available: {name}")),
        other => not_recorded(format!("the tool {other}")),
    }
}

/// The input as the client fills it in: in the conversation and in the hooks it has another order.
pub(super) fn filled(name: &str, input: &Value) -> (Value, Value) {
    if name != "Edit" || input.get("replace_all").is_some() {
        return (input.clone(), input.clone());
    }
    let mut said = json!({ "replace_all": false });
    let mut given = input.clone();
    for (key, value) in input.as_object().into_iter().flatten() {
        said[key] = value.clone();
    }
    given["replace_all"] = false.into();
    (said, given)
}

/// Runs a call.
pub(super) fn run(name: &str, input: &Value, place: &mut ToolContext<'_>) -> Recorded<Outcome> {
    match name {
        "Bash" => bash(input, place),
        "Read" => read(input, place),
        "Write" => write(input),
        _ => edit(input),
    }
}

fn path(input: &Value) -> Option<&Path> {
    input["file_path"].as_str().map(Path::new)
}

const STATE: &str = "(file state is current in your context — no need to Read it back)";

fn read(input: &Value, place: &ToolContext<'_>) -> Recorded<Outcome> {
    let path = path(input).unwrap_or(Path::new(""));
    if input.as_object().is_some_and(|fields| fields.len() > 1) {
        return not_recorded("reading a part of a file");
    }
    let Ok(text) = fs::read_to_string(path) else {
        let folder = place.folder.display();
        return Ok(Outcome::Failed(format!(
            "File does not exist. Note: your current working directory is {folder}."
        )));
    };
    if text.is_empty() || text.len() > LARGEST_OUTPUT {
        return not_recorded("reading an empty or a large file");
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let shown: Vec<String> =
        lines.iter().enumerate().map(|(index, line)| format!("{}\t{line}", index + 1)).collect();
    let file = json!({
        "filePath": path, "content": text, "numLines": lines.len(), "startLine": 1, "totalLines": lines.len(),
    });
    Ok(Outcome::Done { text: shown.join("\n"), response: json!({ "type": "text", "file": file }) })
}

fn write(input: &Value) -> Recorded<Outcome> {
    let path = path(input).unwrap_or(Path::new(""));
    let content = input["content"].as_str().unwrap_or_default();
    let old = fs::read_to_string(path).ok();
    let folder = path.parent().unwrap_or(path);
    if fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).is_err() {
        return not_recorded("a file that cannot be written");
    }
    let (kind, text) = match &old {
        None => ("create", format!("File created successfully at: {} {STATE}", path.display())),
        Some(_) => ("update", format!("The file {} has been updated successfully. {STATE}", path.display())),
    };
    let hunks = old.as_ref().map_or(json!([]), |old| patch::between(old, content));
    let response = json!({
        "type": kind, "filePath": path, "content": content, "structuredPatch": hunks, "originalFile": old,
        "userModified": false,
    });
    Ok(Outcome::Done { text, response })
}

fn edit(input: &Value) -> Recorded<Outcome> {
    let path = path(input).unwrap_or(Path::new(""));
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let all = input["replace_all"] == true;
    let Ok(before) = fs::read_to_string(path) else { return not_recorded("a file that went away") };
    let after = if all {
        before.replace(text("old_string"), text("new_string"))
    } else {
        before.replacen(text("old_string"), text("new_string"), 1)
    };
    if fs::write(path, &after).is_err() {
        return not_recorded("a file that cannot be written");
    }
    let response = json!({
        "filePath": path, "oldString": text("old_string"), "newString": text("new_string"), "originalFile": before,
        "structuredPatch": patch::between(&before, &after), "userModified": false, "replaceAll": all,
    });
    Ok(Outcome::Done {
        text: format!("The file {} has been updated successfully. {STATE}", path.display()),
        response,
    })
}

/// `echo WORD > FILE` with a file in one of these folders is the one denial that was recorded: a longer command may be
/// denied or not.
fn denied(command: &str, place: &ToolContext<'_>) -> Recorded<Option<String>> {
    let mut words = command.split('>').skip(1).map(|rest| rest.trim_start_matches(['>', '|', ' ']));
    let into = |target: &str| {
        let target = target
            .split([' ', ';', '&', '|', '\n', ')'])
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\'']);
        let target = target.trim_start_matches("./");
        (target.starts_with(".claude/") || target.starts_with(".git/")).then(|| target.to_owned())
    };
    if let Some(target) = words.find_map(into) {
        if !command.starts_with("echo ") || command.contains([';', '&', '|', '\n', '$', '`', '\'', '"', '('])
        {
            return not_recorded(format!("a command that writes into {target}"));
        }
        let path = place.folder.join(target);
        return Ok(Some(format!(
            "Claude requested permissions to edit {} which is a sensitive file.",
            path.display()
        )));
    }
    Ok(None)
}

fn bash(input: &Value, place: &mut ToolContext<'_>) -> Recorded<Outcome> {
    let line = input["command"].as_str().unwrap_or_default();
    if input["run_in_background"] == true {
        return not_recorded("a command in the background");
    }
    if let Some(reason) = denied(line, place)? {
        return Ok(Outcome::Denied(reason));
    }
    let note = place.temporary.join(format!("claude-{}-cwd", std::process::id()));
    let Some((status, said)) = shell(line, &note, place)? else { return Ok(Outcome::Interrupted) };
    let moved = fs::read_to_string(&note).map(|folder| PathBuf::from(folder.trim_end()));
    let _ = fs::remove_file(&note);
    if !status.success() {
        let code = status.code().unwrap_or(137);
        let words =
            if said.is_empty() { format!("Exit code {code}") } else { format!("Exit code {code}\n{said}") };
        return Ok(Outcome::Failed(words));
    }
    let mut complaint = String::new();
    if let Ok(folder) = moved {
        if folder.starts_with(place.project) {
            *place.folder = folder;
        } else {
            complaint = format!("\nShell cwd was reset to {}", place.project.display());
            *place.folder = place.project.to_path_buf();
        }
    }
    let text = format!("{said}{complaint}").trim().to_owned();
    let text = if text.is_empty() { "(Bash completed with no output)".to_owned() } else { text };
    let response = json!({
        "stdout": said, "stderr": complaint, "interrupted": false, "isImage": false, "noOutputExpected": false,
    });
    Ok(Outcome::Done { text, response })
}

/// Runs a command line, which reports its working directory at the end. Returns its exit and output; none if it was
/// interrupted.
fn shell(line: &str, note: &Path, place: &ToolContext<'_>) -> Recorded<Option<(ExitStatus, String)>> {
    let mut command = Command::new("/bin/bash");
    command
        .args(["-c", "eval \"$1\" < /dev/null && pwd -P >| \"$2\"", "bash", line])
        .arg(note)
        .current_dir(&*place.folder)
        .envs(place.environment.iter().map(|(name, value)| (name, value)))
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
        if (place.is_ending)() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            return Ok(None);
        }
        sleep(Duration::from_millis(2));
    };
    let mut said = Vec::new();
    let read = std::io::Seek::rewind(&mut output).and_then(|()| output.read_to_end(&mut said));
    if read.is_err() || said.len() > LARGEST_OUTPUT {
        return not_recorded("an output of more than 30,000 characters");
    }
    Ok(Some((status, String::from_utf8_lossy(&said).trim_end().to_owned())))
}
