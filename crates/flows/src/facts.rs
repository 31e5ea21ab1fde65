//! Verified facts about a session: what git sees, what the transcript holds, what the batch at hand changed.

use protocol::tool::ToolCall;
use protocol::transcript::{Block, Line};
use session::handoff::{CommandFact, Handoff};
use session::noted::Noted;
use session::state::FileInProgress;
use session::{RunState, SessionRecord, TodoList};
use std::path::Path;
use store::{Project, clock, disk, tail};

/// So much of the transcript's end is read for commands and words.
const LOOK_BACK: u64 = 512 * 1024;
/// So many commands are remembered.
const COMMANDS: usize = 8;
/// So many files are named.
const FILES: usize = 200;

/// The to-do list of a run; none when it has none or the file is missing. A list that has been emptied is as
/// good as missing.
pub fn todo(project: &Project, run: &RunState) -> Option<TodoList> {
    let file = run.todo_file.as_ref()?;
    let text = disk::read_text(&project.root().join(file)).ok().flatten()?;
    Some(TodoList::parse(&text)).filter(|todo| !todo.items.is_empty() || run.known_items.is_empty())
}

/// What the sessions before noted in its to-do list.
pub fn noted(project: &Project, run: &RunState) -> Noted {
    todo(project, run).map(|todo| Noted::of(&todo, run.item_in_hand())).unwrap_or_default()
}

/// True when the root frame of the run's working memory has popped since the session's prompt.
pub fn root_popped(project: &Project, run: &RunState) -> bool {
    let by_its_session = || run.session_id.as_ref().is_some_and(|id| store::memory::seen(project, id).done);
    run.memory && by_its_session() && store::memory::load(project).is_ok_and(|memory| memory.done.is_some())
}

/// `fix_plan.md`, where a session of no run has one.
pub fn default_todo(project: &Project) -> Option<TodoList> {
    disk::read_text(&project.root().join("fix_plan.md")).ok().flatten().map(|text| TodoList::parse(&text))
}

/// The facts of a session: repository, files in progress, last commands, last words.
pub fn of_session(
    project: &Project,
    transcript: Option<&Path>,
    record: &SessionRecord,
    run: Option<&RunState>,
    calls: &[ToolCall],
) -> Handoff {
    let lines = transcript.and_then(|path| tail::last_lines(path, LOOK_BACK).ok()).unwrap_or_default();
    // An agent may have cleaned the record away; the run knows what its session began from.
    let planned_on = || run?.iteration_record.footing.as_ref()?.head.as_deref();
    let since = record.head_at_start.as_deref().or_else(planned_on);
    let (git, files) = match launcher::git::facts(project.root(), since) {
        Some((git, files)) => (Some(git), files),
        None => (None, files_outside_git(project, record, &lines, calls)),
    };
    let of_item = of_this_item(&lines, record);
    Handoff {
        git,
        files: files.into_iter().filter(|file| !is_ours(&file.path)).take(FILES).collect(),
        commands: commands(of_item, calls),
        last_words: last_words(of_item),
        ..Handoff::default()
    }
}

/// Our own files are never work in progress.
pub fn is_ours(path: &str) -> bool {
    let ours = [
        ".claude/plimsoll",
        ".claude/handoffs/",
        ".claude/ralph-state.json",
        ".claude/settings",
        ".claude/commands/ralph.md",
        ".claude/commands/handoff.md",
        ".claude/agents/frame.md",
        ".claude/mcp.json.plimsoll-backup",
    ];
    ours.iter().any(|start| path.starts_with(start))
        || matches!(path, "PROMPT.md" | "progress.txt" | ".mcp.json")
}

/// Outside git: what changed on the disk since the session began, whoever changed it, with the lines that Edit
/// and Write reported.
fn files_outside_git(
    project: &Project,
    record: &SessionRecord,
    lines: &[Line],
    calls: &[ToolCall],
) -> Vec<FileInProgress> {
    let since = record.started_at.as_deref().and_then(clock::parse);
    let mut files: Vec<FileInProgress> = since
        .map(|since| disk::changed_since(project.root(), since.into(), FILES))
        .unwrap_or_default()
        .into_iter()
        .map(|path| FileInProgress {
            path: project.relative(&path),
            lines: String::new(),
            description: "changed in this session".into(),
        })
        .collect();
    for (path, ranges) in edits(lines, calls) {
        let path = project.relative(Path::new(&path));
        let place = match files.iter().position(|file| file.path == path) {
            Some(place) => place,
            None => {
                files.push(FileInProgress { path, ..FileInProgress::default() });
                files.len() - 1
            }
        };
        files[place].lines = launcher::git::join(&ranges);
        files[place].description = "edited in this session".into();
    }
    files
}

type Ranges = Vec<(u64, u64)>;

fn edits(lines: &[Line], calls: &[ToolCall]) -> Vec<(String, Ranges)> {
    let mut edits: Vec<(String, Ranges)> = Vec::new();
    let mut note = |path: String, ranges: Ranges| match edits.iter_mut().find(|(known, _)| *known == path) {
        Some((_, known)) => known.extend(ranges),
        None => edits.push((path, ranges)),
    };
    for change in lines.iter().filter_map(Line::file_change) {
        let ranges = change.structured_patch.iter().filter_map(|hunk| {
            let start = hunk.new_start?;
            Some((start, start + hunk.new_lines.unwrap_or(1).saturating_sub(1)))
        });
        note(change.file_path.clone().unwrap_or_default(), ranges.collect());
    }
    // The batch at hand is not in the transcript yet: its edits are found where the new text stands.
    let is_edit = |call: &&ToolCall| {
        matches!(call.tool_name.as_deref(), Some("Edit" | "Write" | "MultiEdit" | "NotebookEdit"))
    };
    for call in calls.iter().filter(is_edit) {
        let Some(path) = &call.tool_input.file_path else { continue };
        let text = disk::read_text(Path::new(path)).ok().flatten().unwrap_or_default();
        let new = call.tool_input.new_string.as_ref().or(call.tool_input.content.as_ref());
        note(path.clone(), new.and_then(|new| place_of(new, &text)).into_iter().collect());
    }
    edits
}

/// The lines where a text stands in a file.
fn place_of(text: &str, file: &str) -> Option<(u64, u64)> {
    let start = file.find(text.trim_end_matches('\n')).filter(|_| !text.is_empty())?;
    let first = file[..start].matches('\n').count() as u64 + 1;
    Some((first, first + text.trim_end_matches('\n').matches('\n').count() as u64))
}

/// What the last command printed that failed and did not pass later in the same session; none if all is well.
pub fn standing_error(transcript: &Path) -> Option<String> {
    let lines = tail::last_lines(transcript, LOOK_BACK).ok()?;
    let mut asked: Vec<(String, String)> = Vec::new();
    let mut failed: Vec<(String, String)> = Vec::new();
    for block in lines.iter().filter(|line| !line.is_sidechain).flat_map(|line| line.message.blocks()) {
        if let (Some("tool_use"), Some(command)) = (block.kind.as_deref(), &block.input.command) {
            asked.push((block.id.clone().unwrap_or_default(), command.clone()));
        }
        if block.kind.as_deref() != Some("tool_result") {
            continue;
        }
        let Some((_, command)) = asked.iter().find(|(id, _)| Some(id) == block.tool_use_id.as_ref()) else {
            continue;
        };
        failed.retain(|(known, _)| known != command);
        if block.is_error {
            failed.push((command.clone(), without_reminders(&block.result_text())));
        }
    }
    let (command, words) = failed.pop()?;
    // An exit code alone is the same for `grep` and for `git diff`: then the command makes the difference.
    let is_bare = words.trim().strip_prefix("Exit code ").is_some_and(|rest| !rest.contains('\n'));
    let words = if is_bare { format!("{command}: {words}") } else { words };
    Some(session::text::clip_start(&words, 4_000))
}

/// What was run and said before a session was told to go on is about the item before.
fn of_this_item<'a>(lines: &'a [Line], record: &SessionRecord) -> &'a [Line] {
    let told_at = record.continuation.as_ref().and_then(|told| clock::parse(&told.at));
    let written_at = |line: &Line| clock::parse(line.timestamp.as_deref()?);
    let is_before = |line: &Line| written_at(line).zip(told_at).is_some_and(|(written, told)| written < told);
    lines.iter().rposition(is_before).map_or(lines, |place| &lines[place + 1..])
}

fn commands(lines: &[Line], calls: &[ToolCall]) -> Vec<CommandFact> {
    let mut known: Vec<(String, CommandFact)> = Vec::new();
    for block in lines.iter().filter(|line| !line.is_sidechain).flat_map(|line| line.message.blocks()) {
        match (block.kind.as_deref(), &block.input.command) {
            (Some("tool_use"), Some(command)) => {
                let fact = CommandFact { command: command.clone(), ..CommandFact::default() };
                known.push((block.id.clone().unwrap_or_default(), fact));
            }
            (Some("tool_result"), _) => settle(&mut known, &block),
            _ => {}
        }
    }
    for call in calls {
        let (Some(id), Some(command)) = (&call.tool_use_id, &call.tool_input.command) else { continue };
        if !known.iter().any(|(known, _)| known == id) {
            let fact = CommandFact { command: command.clone(), ..CommandFact::default() };
            known.push((id.clone(), fact));
        }
    }
    let skipped = known.len().saturating_sub(COMMANDS);
    known.into_iter().skip(skipped).map(|(_, fact)| fact).collect()
}

fn settle(known: &mut [(String, CommandFact)], result: &Block) {
    let Some(id) = &result.tool_use_id else { return };
    if let Some((_, fact)) = known.iter_mut().find(|(known, _)| known == id) {
        fact.ok = Some(!result.is_error);
        let words = without_reminders(&result.result_text());
        fact.last_line = words.trim_end().lines().last().unwrap_or_default().to_owned();
    }
}

/// What the client adds to a tool's result for the model (PROTOCOL §0) is none of the tool's words.
fn without_reminders(text: &str) -> String {
    let mut parts = text.split("<system-reminder>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once("</system-reminder>")).fold(first, |text, (_, rest)| text + rest)
}

/// The last message of the session, if it is text alone: a session that goes on ends with another.
pub fn last_message(transcript: &Path) -> Option<String> {
    let lines = tail::last_lines(transcript, LOOK_BACK).ok()?;
    let last = lines.iter().rev().find(|line| {
        line.kind.as_deref() == Some("assistant") && !line.is_sidechain && !line.is_api_error_message
    })?;
    let blocks = last.message.blocks();
    blocks.into_iter().next_back().and_then(|block| block.text)
}

fn last_words(lines: &[Line]) -> Option<String> {
    let spoken = lines.iter().rev().filter(|line| {
        line.kind.as_deref() == Some("assistant") && !line.is_sidechain && !line.is_api_error_message
    });
    spoken
        .flat_map(|line| line.message.blocks())
        .filter_map(|block| block.text)
        .find(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::record::Continuation;

    #[test]
    fn what_a_command_said_last_is_its_own_word_and_not_the_clients_reminder() -> serde_json::Result<()> {
        let use_line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"wc -l a"}}]}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"one\n12 a\n\n<system-reminder>\n14974772 tokens left\n</system-reminder>"}]}}"#;
        let lines = vec![serde_json::from_str(use_line)?, serde_json::from_str(result)?];
        let known = commands(&lines, &[]);
        assert_eq!((known[0].ok, known[0].last_line.as_str()), (Some(true), "12 a"));
        Ok(())
    }

    #[test]
    fn what_was_run_for_the_item_before_is_not_this_items() -> serde_json::Result<()> {
        let ran = |id: &str, at: &str| {
            format!(
                r#"{{"type":"assistant","timestamp":"2026-01-07T10:00:0{at}Z","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"make {id}"}}}}]}}}}"#
            )
        };
        let texts = [ran("one", "1.100"), ran("two", "1.900")];
        let lines = texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Line>, _>>()?;
        let told = |at: &str| SessionRecord {
            continuation: Some(Continuation { at: at.to_owned(), ..Continuation::default() }),
            ..SessionRecord::default()
        };
        let known = |record: &SessionRecord| -> Vec<String> {
            commands(of_this_item(&lines, record), &[]).into_iter().map(|fact| fact.command).collect()
        };
        assert_eq!(known(&told("2026-01-07T10:00:01.500Z")), ["make two"]);
        assert_eq!(known(&told("2026-01-07T10:00:09.000Z")), [""; 0]);
        assert_eq!(known(&told("")), ["make one", "make two"], "an older record has no time");
        assert_eq!(known(&SessionRecord::default()), ["make one", "make two"]);
        Ok(())
    }
}
