//! The tools for files and commands of the project, behind `--workspace`.

use crate::call::{ToolCall, ToolResult};
use crate::tool_error::ToolError;
use plimsoll_domain::text::truncate_middle;
use plimsoll_launcher::CommandOutcome;
use plimsoll_store::confined_folder::{ConfinedError, ConfinedFolder};
use std::path::Path;
use std::time::Duration;

const MAX_FILE_CHARS: usize = 10_000;
const MAX_LISTED_ENTRIES: usize = 500;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of each output stream of a command in the result, in characters.
const MAX_STREAM_CHARS: usize = 8_000;

fn open_project_folder(call: &ToolCall) -> Result<ConfinedFolder, ConfinedError> {
    ConfinedFolder::open(call.project.root())
}

pub(crate) fn read_start_of_text_file(call: &ToolCall) -> ToolResult {
    let path = call.arguments.text_or_empty("path");
    // A UTF-8 character has at most four bytes. The four additional bytes show whether the file is longer.
    let max_bytes = 4 * MAX_FILE_CHARS as u64 + 4;
    let (bytes, size) = open_project_folder(call)?.read_start_and_file_size(&path, max_bytes)?;
    // A zero byte means binary, as in git.
    if bytes.contains(&0) {
        return Err(ToolError::NotText { path, size });
    }
    if bytes.is_empty() {
        return Ok("[the file is empty]".to_owned());
    }
    let text = String::from_utf8_lossy(&bytes);
    match text.char_indices().nth(MAX_FILE_CHARS) {
        None => Ok(text.into_owned()),
        Some((end_index, _)) => {
            Ok(format!("{}\n[the first {MAX_FILE_CHARS} characters of {size} bytes]", &text[..end_index]))
        }
    }
}

pub(crate) fn write_file(call: &ToolCall) -> ToolResult {
    let (path, content) = (call.arguments.text_or_empty("path"), call.arguments.text_or_empty("content"));
    let is_new = open_project_folder(call)?.create_or_replace(&path, content.as_bytes())?;
    Ok(format!("ok, {} bytes, {}", content.len(), if is_new { "a new file" } else { "replaced" }))
}

pub(crate) fn list_folder_with_types_and_sizes(call: &ToolCall) -> ToolResult {
    let entries = open_project_folder(call)?.list_sorted_by_name(&call.arguments.text_or_empty("path"))?;
    if entries.is_empty() {
        return Ok("the folder is empty".to_owned());
    }
    let size_text = |size: Option<u64>| size.map(|size| format!("  {size}")).unwrap_or_default();
    let mut lines: Vec<String> = entries
        .iter()
        .take(MAX_LISTED_ENTRIES)
        // Escaped, because a name that contains a line break would look like two names.
        .map(|entry| format!("{}{}{}", entry.name.escape_debug(), entry.type_suffix, size_text(entry.size)))
        .collect();
    if entries.len() > MAX_LISTED_ENTRIES {
        lines.push(format!("[the first {MAX_LISTED_ENTRIES} of {} names]", entries.len()));
    }
    Ok(lines.join("\n"))
}

pub(crate) fn run_command_in_project_folder(call: &ToolCall) -> ToolResult {
    run_shell_command_or_fail(
        &call.arguments.text_or_empty("command"),
        call.project.root(),
        COMMAND_TIMEOUT,
        &call.is_canceled,
    )
}

fn run_shell_command_or_fail(
    command_line: &str,
    folder: &Path,
    timeout: Duration,
    is_canceled: &dyn Fn() -> bool,
) -> ToolResult {
    let outcome = plimsoll_launcher::run_project_shell_command(command_line, folder, timeout, is_canceled);
    let output = render_truncated_stdout_and_stderr(&outcome);
    let status_text = match (&outcome.start_error, outcome.exit_code) {
        (Some(start_error), _) => format!("sh cannot be started: {start_error}"),
        _ if outcome.was_canceled => "ended: the caller no longer waits for it".to_owned(),
        _ if outcome.timed_out => {
            format!("ended after {} seconds, with all that it had started in its group", timeout.as_secs())
        }
        (_, Some(code)) => format!("exit {code}"),
        (_, None) => "ended by a signal".to_owned(),
    };
    let text = format!("{status_text}{output}");
    if outcome.succeeded() { Ok(text) } else { Err(ToolError::CommandFailed(text)) }
}

/// Renders standard output and standard error. The middle of a long stream is cut out.
fn render_truncated_stdout_and_stderr(outcome: &CommandOutcome) -> String {
    let render_stream = |bytes: &[u8], label: &str| {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        let char_count = text.chars().count();
        let truncation_note = if char_count > MAX_STREAM_CHARS {
            format!(" (cut in the middle: {char_count} characters)")
        } else {
            String::new()
        };
        if text.is_empty() {
            String::new()
        } else {
            format!("\n{label}{truncation_note}:\n{}", truncate_middle(text, MAX_STREAM_CHARS))
        }
    };
    render_stream(&outcome.stdout, "stdout") + &render_stream(&outcome.stderr, "stderr")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test looks at what a command left behind")]
mod tests {
    use super::*;
    use crate::tools::all_tools;
    use std::thread::sleep;
    use std::time::Instant;

    #[test]
    fn timeout_ends_a_command_and_all_its_child_processes() {
        let folder = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let command_line = "echo begun; (sleep 3; echo late > late) & sleep 60";
        let error_text =
            run_shell_command_or_fail(command_line, folder.path(), Duration::from_secs(1), &|| false)
                .unwrap_err()
                .to_string();
        let elapsed = start.elapsed();
        let expected = "ended after 1 seconds, with all that it had started in its group\nstdout:\nbegun";
        assert_eq!(error_text, expected);
        assert!(elapsed >= Duration::from_secs(1) && elapsed < Duration::from_secs(20), "{elapsed:?}");
        sleep(Duration::from_secs(4).saturating_sub(start.elapsed()));
        assert!(!folder.path().join("late").exists(), "processes that it started are still running");
    }

    #[test]
    fn run_command_description_names_its_timeout() {
        let tools = all_tools(true);
        let tool = tools.iter().find(|tool| tool.name == "run_command").unwrap();
        assert!(
            tool.description.contains(&format!("at most {} seconds", COMMAND_TIMEOUT.as_secs())),
            "{}",
            tool.description
        );
    }
}
