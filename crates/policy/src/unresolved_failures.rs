//! The commands of a conversation that failed and did not pass later, wherever in the conversation they ran.

use crate::checks::failure_lines_or_last_line;
use plimsoll_domain::text::{to_line_for_backticks, to_safe_single_line, truncate_end};
use plimsoll_protocol::transcript_content::{TranscriptLine, TranscriptLineKind};
use serde_json::Value;

/// The newest failures are the most likely to be open.
const MAX_FAILURES: usize = 6;
const MAX_ERROR_LINES: usize = 4;
const MAX_COMMAND_CHARS: usize = 200;
const MAX_ERROR_CHARS: usize = 240;

struct FailedCommand {
    command: String,
    output: String,
}

/// Lists the commands whose last run failed, oldest first, each with its error lines. A command that was stopped or denied
/// did not fail. `redact` removes secrets from the full text, because a cut could hide a secret from the search.
pub fn render_unresolved_failures(lines: &[TranscriptLine], redact: &dyn Fn(&str) -> String) -> String {
    let mut started_commands: Vec<(String, String)> = Vec::new();
    let mut failures: Vec<FailedCommand> = Vec::new();
    for line in lines.iter().filter(|line| !line.is_sidechain) {
        match &line.kind {
            TranscriptLineKind::Response(response) => {
                let blocks =
                    response.blocks.iter().filter_map(|block| serde_json::from_str(block.get()).ok());
                started_commands.extend(blocks.filter_map(|block: Value| id_and_command(&block)));
            }
            TranscriptLineKind::ToolResults(results) => {
                for result in results.iter().filter(|result| !result.denied && !result.stopped_by_user) {
                    let Some(index) = started_commands.iter().position(|(id, _)| *id == result.tool_use_id)
                    else {
                        continue;
                    };
                    let (_, command) = started_commands.swap_remove(index);
                    failures.retain(|failure| failure.command != command);
                    if result.is_error {
                        failures.push(FailedCommand { command, output: result.content_as_text() });
                    }
                }
            }
            _ => {}
        }
    }
    let first_shown = failures.len().saturating_sub(MAX_FAILURES);
    failures[first_shown..].iter().map(|failure| render_failure(failure, redact)).collect()
}

fn id_and_command(block: &Value) -> Option<(String, String)> {
    let command = block["input"]["command"].as_str().filter(|_| block["type"] == "tool_use")?;
    Some((block["id"].as_str()?.to_owned(), command.to_owned()))
}

fn render_failure(failure: &FailedCommand, redact: &dyn Fn(&str) -> String) -> String {
    let command = to_line_for_backticks(&redact(&failure.command), MAX_COMMAND_CHARS);
    let error_lines = failure_lines_or_last_line(&redact(&failure.output));
    let rows = error_lines
        .iter()
        .take(MAX_ERROR_LINES)
        .map(|line| format!("  - {}\n", truncate_end(&to_safe_single_line(line), MAX_ERROR_CHARS)));
    format!("- `{command}`\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(id: &str, command: &str, output: &str, is_error: bool) -> [TranscriptLine; 2] {
        let call = json!({"type": "assistant", "message": {"id": id, "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]}});
        let result = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error}]}});
        [call, result]
            .map(|line| TranscriptLine::parse_utf8_lossy(line.to_string().as_bytes()).expect("a line"))
    }

    #[test]
    fn only_commands_whose_last_run_failed_are_listed_with_their_error() {
        let lines = [
            run("a", "make check", "Exit code 2\nerror: SECRET missing", true),
            run("b", "cargo test", "Exit code 101\nerror: first", true),
            run("c", "cargo test", "ok", false),
            run("d", "ls", "a.txt", false),
        ]
        .concat();
        let text = render_unresolved_failures(&lines, &|text| text.replace("SECRET", "[redacted]"));
        assert!(text.starts_with("- `make check`\n") && text.contains("error: [redacted] missing"), "{text}");
        assert!(!text.contains("cargo test") && !text.contains("ls"), "{text}");
        assert_eq!(render_unresolved_failures(&[], &str::to_owned), "");
    }

    #[test]
    fn the_newest_failures_are_kept() {
        let lines: Vec<TranscriptLine> = (0..10)
            .flat_map(|number| run(&format!("t{number}"), &format!("run {number}"), "bad", true))
            .collect();
        let text = render_unresolved_failures(&lines, &str::to_owned);
        assert!(!text.contains("run 3`") && text.contains("run 4`") && text.contains("run 9`"), "{text}");
    }
}
