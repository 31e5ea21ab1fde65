//! The tools for files and commands of the project, behind `--workspace`.

use crate::call::{Answer, Call};
use crate::tool_error::ToolError;
use plimsoll_domain::text::truncate_middle;
use plimsoll_launcher::CommandOutcome;
use plimsoll_store::confined_folder::{ConfinedError, ConfinedFolder};
use std::path::Path;
use std::time::Duration;

/// How many characters of a file are read at most.
const FILE: usize = 10_000;
/// How many names of a folder are listed at most.
const NAMES: usize = 500;
/// How long a command may run.
const LIMIT: Duration = Duration::from_secs(30);
/// So many characters of what a command printed are told, of each stream.
const PRINTED: usize = 8_000;

fn confined(call: &Call) -> Result<ConfinedFolder, ConfinedError> {
    ConfinedFolder::open(call.project.root())
}

pub(crate) fn read_file(call: &Call) -> Answer {
    let path = call.given.words("path");
    // A character has at most four bytes.
    let most = 4 * FILE as u64 + 4;
    let (bytes, size) = confined(call)?.read(&path, most)?;
    // What git, too, takes for binary.
    if bytes.contains(&0) {
        return Err(ToolError::NotText { path, size });
    }
    if bytes.is_empty() {
        return Ok("[the file is empty]".to_owned());
    }
    let text = String::from_utf8_lossy(&bytes);
    match text.char_indices().nth(FILE) {
        None => Ok(text.into_owned()),
        Some((end, _)) => Ok(format!("{}\n[the first {FILE} characters of {size} bytes]", &text[..end])),
    }
}

pub(crate) fn write_file(call: &Call) -> Answer {
    let (path, content) = (call.given.words("path"), call.given.words("content"));
    let is_new = confined(call)?.write(&path, content.as_bytes())?;
    Ok(format!("ok, {} bytes, {}", content.len(), if is_new { "a new file" } else { "replaced" }))
}

pub(crate) fn list_files(call: &Call) -> Answer {
    let found = confined(call)?.list(&call.given.words("path"))?;
    if found.is_empty() {
        return Ok("the folder is empty".to_owned());
    }
    let size = |size: Option<u64>| size.map(|size| format!("  {size}")).unwrap_or_default();
    let mut lines: Vec<String> = found
        .iter()
        .take(NAMES)
        // Escaped: a name may hold a line break, and must not pass for two.
        .map(|entry| format!("{}{}{}", entry.name.escape_debug(), entry.kind_mark, size(entry.size)))
        .collect();
    if found.len() > NAMES {
        lines.push(format!("[the first {NAMES} of {} names]", found.len()));
    }
    Ok(lines.join("\n"))
}

pub(crate) fn run_command(call: &Call) -> Answer {
    run(&call.given.words("command"), call.project.root(), LIMIT, &call.is_given_up)
}

fn run(line: &str, folder: &Path, limit: Duration, is_given_up: &dyn Fn() -> bool) -> Answer {
    let outcome = plimsoll_launcher::run_project_shell_command(line, folder, limit, is_given_up);
    let words = printed(&outcome);
    let ended = match (&outcome.start_error, outcome.exit_code) {
        (Some(trouble), _) => format!("sh cannot be started: {trouble}"),
        _ if outcome.was_canceled => "ended: the caller no longer waits for it".to_owned(),
        _ if outcome.timed_out => {
            format!("ended after {} seconds, with all that it had started in its group", limit.as_secs())
        }
        (_, Some(code)) => format!("exit {code}"),
        (_, None) => "ended by a signal".to_owned(),
    };
    let text = format!("{ended}{words}");
    if outcome.succeeded() { Ok(text) } else { Err(ToolError::Command(text)) }
}

/// Both streams, the middle left out of what is long.
fn printed(outcome: &CommandOutcome) -> String {
    let stream = |bytes: &[u8], label: &str| {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        let length = text.chars().count();
        let cut = if length > PRINTED {
            format!(" (cut in the middle: {length} characters)")
        } else {
            String::new()
        };
        if text.is_empty() {
            String::new()
        } else {
            format!("\n{label}{cut}:\n{}", truncate_middle(text, PRINTED))
        }
    };
    stream(&outcome.stdout, "stdout") + &stream(&outcome.stderr, "stderr")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test looks at what a command left behind")]
mod tests {
    use super::*;
    use crate::tools::all;
    use std::thread::sleep;
    use std::time::Instant;

    #[test]
    fn a_command_is_ended_at_the_limit_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let line = "echo begun; (sleep 3; echo late > late) & sleep 60";
        let told = run(line, folder.path(), Duration::from_secs(1), &|| false).unwrap_err().to_string();
        let took = start.elapsed();
        let expected = "ended after 1 seconds, with all that it had started in its group\nstdout:\nbegun";
        assert_eq!(told, expected);
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(20), "{took:?}");
        sleep(Duration::from_secs(4).saturating_sub(start.elapsed()));
        assert!(!folder.path().join("late").exists(), "what it had started lives on");
    }

    #[test]
    fn the_tool_says_its_limit() {
        let tools = all(true);
        let tool = tools.iter().find(|tool| tool.name == "run_command").unwrap();
        assert!(tool.about.contains(&format!("at most {} seconds", LIMIT.as_secs())), "{}", tool.about);
    }
}
