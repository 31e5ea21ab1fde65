//! Verified facts about a session: what git sees, what the transcript holds, what the batch at hand changed.

mod ordinary;

use crate::checkpoint::handoff;
use crate::checkpoint::work;
use crate::checkpoint::work::{Question, is_edit};
use plimsoll_domain::handoff::{CommandFact, Handoff};
use plimsoll_domain::item_notes::ItemNotes;
use plimsoll_domain::promise;
use plimsoll_domain::state::{Cause, Check};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, SessionRecord, TodoList};
use plimsoll_launcher::git;
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_protocol::transcript::{Block, Line};
use plimsoll_store::{Project, clock, disk, tail};
use std::path::Path;
use std::time::SystemTime;

/// How much of the transcript's end is read for commands and words.
const LOOK_BACK: u64 = 512 * 1024;
/// How many commands are remembered at most.
const COMMANDS: usize = 8;
/// How many checks are named at most.
const CHECKS: usize = 3;

/// The plan of a run; none when it has none or the file is missing. A list that has been emptied is as
/// good as missing.
pub fn todo(project: &Project, run: &RunState) -> Option<TodoList> {
    todo_with_text(project, run).map(|(_, todo)| todo)
}

/// The same with the text of its file.
pub fn todo_with_text(project: &Project, run: &RunState) -> Option<(String, TodoList)> {
    let file = run.options.todo_file.as_ref()?;
    let text = disk::read_text(&project.root().join(file)).ok().flatten()?;
    let todo = TodoList::parse(&text);
    (!is_emptied(&todo, run)).then_some((text, todo))
}

/// True if all items were removed from a run's plan.
pub(crate) fn is_emptied(todo: &TodoList, run: &RunState) -> bool {
    todo.items.is_empty() && todo.unclear.is_empty() && !run.items.known_items.is_empty()
}

/// What the sessions before noted in its plan.
pub fn noted(project: &Project, run: &RunState) -> ItemNotes {
    todo(project, run).map(|todo| ItemNotes::of(&todo, item_in_hand(run))).unwrap_or_default()
}

/// True when the root frame of the run's working memory has popped since the session's prompt.
pub fn root_popped(project: &Project, run: &RunState) -> bool {
    let by_its_session =
        || run.session_id.as_ref().is_some_and(|id| plimsoll_store::memory::seen(project, id).done);
    run.options.memory
        && by_its_session()
        && plimsoll_store::memory::load(project).is_ok_and(|memory| memory.done.is_some())
}

/// `fix_plan.md`, where a session outside a run has one.
pub fn default_todo(project: &Project) -> Option<TodoList> {
    disk::read_text(&project.root().join(DEFAULT_PLAN)).ok().flatten().map(|text| TodoList::parse(&text))
}

/// What is asked about a session.
pub(crate) struct Asked<'a> {
    pub(crate) project: &'a Project,
    pub(crate) transcript: Option<&'a Path>,
    pub(crate) record: &'a SessionRecord,
    pub(crate) run: Option<&'a RunState>,
    /// Why it is asked.
    pub(crate) cause: Cause,
    /// The tool calls of the message at hand: not yet in the transcript.
    pub(crate) calls: &'a [ToolCall],
}

/// The facts of a session: repository, items, the work on the current one, last commands, last words.
pub(crate) fn of_session(asked: &Asked<'_>) -> Handoff {
    let Asked { project, record, run, cause, calls, .. } = *asked;
    // Git works while the transcript is read.
    let git = git::begin(project.root());
    let lines = asked.transcript.and_then(|path| tail::last_lines(path, LOOK_BACK).ok()).unwrap_or_default();
    let todo = match run {
        Some(run) => todo(project, run),
        None => default_todo(project),
    };
    let question = Question { project, record, run, todo: todo.as_ref(), cause, lines: &lines, calls };
    let found = work::of_session(&question, git);
    let offered_at =
        record.continuation.as_ref().and_then(|offer| clock::moment(&offer.at)).map(SystemTime::from);
    let of_item = lines_after(&lines, found.ticked_at.max(offered_at));
    let mut run_for_item = commands(of_item, calls);
    // A session that goes on reads it yet.
    if cause.is_after_the_session() {
        run_for_item.iter_mut().for_each(Ran::keep_what_was_not_read);
    }
    let verify = run.map(|run| run.options.commands()).unwrap_or_default();
    let mut work = found.work;
    // What was run and said belongs to the item that is done: the next session would take it for its own item's.
    let is_about_item = work.is_begun || run.is_none();
    work.checks = if is_about_item {
        checks(&run_for_item, &verify).iter().map(handoff::safe_check).collect()
    } else {
        Vec::new()
    };
    let commands = run_for_item.iter().map(|run| handoff::safe_command(&run.fact));
    let words = last_words(of_item).map(|words| promise::without_lines(&plimsoll_secrets::without(&words)));
    let facts = Handoff {
        cause,
        git: found.git,
        files: found.files,
        current_item: found.item,
        commands: if is_about_item { commands.collect() } else { Vec::new() },
        last_words: words.filter(|_| is_about_item),
        work,
        ..Handoff::default()
    };
    match run {
        Some(run) => {
            let TodoLists { done, open } = lists(todo.as_ref(), run);
            let plan = run.options.todo_file.clone().filter(|_| todo.is_some());
            Handoff { done, open, plan, ..facts }
        }
        None => ordinary::with_conversation(facts, asked.transcript, todo.as_ref()),
    }
}

struct TodoLists {
    done: Vec<String>,
    open: Vec<String>,
}

/// The file's items; where it is gone, those the state remembers.
fn lists(todo: Option<&TodoList>, run: &RunState) -> TodoLists {
    match todo {
        Some(todo) => TodoLists { done: todo.done(), open: todo.open() },
        None => TodoLists { done: run.items.completed_items.clone(), open: run.items.todo_items.clone() },
    }
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
    Some(plimsoll_domain::text::clip_start(&words, 4_000))
}

/// The lines that were written after a moment.
fn lines_after(lines: &[Line], moment: Option<SystemTime>) -> &[Line] {
    let is_before = |line: &Line| {
        let written = line.timestamp.as_deref().and_then(clock::parse).map(SystemTime::from);
        written.zip(moment).is_some_and(|(written, moment)| written <= moment)
    };
    lines.iter().rposition(is_before).map_or(lines, |place| &lines[place + 1..])
}

/// A command of the session, with all that it printed.
struct Ran {
    id: String,
    fact: CommandFact,
    output: String,
    /// An answer came after it.
    is_read: bool,
    /// The session edited a file after it.
    is_before_edit: bool,
}

impl Ran {
    fn new(id: String, command: &str) -> Ran {
        let fact = CommandFact { command: command.to_owned(), ..CommandFact::default() };
        Ran { id, fact, output: String::new(), is_read: false, is_before_edit: false }
    }

    fn end(&mut self, ok: Option<bool>, output: String) {
        (self.fact.ok, self.fact.has_ended) = (ok, true);
        self.fact.last_line = output.trim_end().lines().last().unwrap_or_default().to_owned();
        self.output = output;
    }

    fn keep_what_was_not_read(&mut self) {
        if !self.is_read {
            self.fact.unread = CommandFact::excerpt(&self.output);
        }
    }
}

fn commands(lines: &[Line], calls: &[ToolCall]) -> Vec<Ran> {
    let mut known: Vec<Ran> = Vec::new();
    for line in lines.iter().filter(|line| !line.is_sidechain) {
        // The model's next message has read what was printed before it.
        if line.kind.as_deref() == Some("assistant") && !line.is_api_error_message {
            known.iter_mut().for_each(|ran| ran.is_read = true);
        }
        for block in line.message.blocks() {
            if block.kind.as_deref() == Some("tool_use") && is_edit(block.name.as_deref()) {
                known.iter_mut().for_each(|ran| ran.is_before_edit = true);
            }
            match (block.kind.as_deref(), &block.input.command) {
                (Some("tool_use"), Some(command)) => {
                    known.push(Ran::new(block.id.clone().unwrap_or_default(), command));
                }
                (Some("tool_result"), _) => settle(&mut known, block),
                _ => {}
            }
        }
    }
    for call in calls {
        if is_edit(call.tool_name.as_deref()) {
            known.iter_mut().for_each(|ran| ran.is_before_edit = true);
        }
        let (Some(id), Some(command)) = (&call.tool_use_id, &call.tool_input.command) else { continue };
        if !known.iter().any(|ran| ran.id == *id) {
            known.push(Ran::new(id.clone(), command));
        }
        let ran = known.iter_mut().find(|ran| ran.id == *id && ran.fact.ok.is_none());
        if let (Some(ran), Some(output)) = (ran, call.output()) {
            // The client says nothing else of the exit code here; a command that was denied has an answer, too (2.1.329).
            let has_failed = output.starts_with("Exit code ");
            ran.end(has_failed.then_some(false), output);
        }
    }
    let skipped = known.len().saturating_sub(COMMANDS);
    known.split_off(skipped)
}

fn settle(known: &mut [Ran], result: &Block) {
    let Some(id) = &result.tool_use_id else { return };
    if let Some(ran) = known.iter_mut().find(|ran| ran.id == *id) {
        ran.end(Some(!result.is_error), without_reminders(&result.result_text()));
    }
}

/// What the checks said last, each command once, the newest last.
fn checks(commands: &[Ran], verify: &[String]) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for ran in commands.iter().filter(|ran| plimsoll_policy::checks::is_check(&ran.fact.command, verify)) {
        let Some(passed) = ran.fact.ok else { continue };
        let failures = if passed { Vec::new() } else { plimsoll_policy::checks::failures(&ran.output) };
        checks.retain(|known| known.command != ran.fact.command);
        let is_before_edit = ran.is_before_edit;
        checks.push(Check { command: ran.fact.command.clone(), passed, failures, is_before_edit });
    }
    let skipped = checks.len().saturating_sub(CHECKS);
    checks.split_off(skipped)
}

/// The tool's own words. For older models, such as Haiku 4.5, the client (2.1.329) appends its reminders and hooks' messages to
/// the text of the last result.
fn without_reminders(text: &str) -> String {
    let mut parts = text.split("<system-reminder>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once("</system-reminder>")).fold(first, |text, (_, rest)| text + rest)
}

/// The last message of the session, if it is text alone: a session that continues ends with another.
pub fn last_message(transcript: &Path) -> Option<String> {
    let lines = tail::last_lines(transcript, LOOK_BACK).ok()?;
    // An API error is an assistant's line as well (2.1.329), and no word of the model's.
    let last = lines.iter().rev().find(|line| {
        line.kind.as_deref() == Some("assistant") && !line.is_sidechain && !line.is_api_error_message
    })?;
    let blocks = last.message.blocks();
    blocks.last().and_then(|block| block.text.clone())
}

fn last_words(lines: &[Line]) -> Option<String> {
    let spoken = lines.iter().rev().filter(|line| {
        line.kind.as_deref() == Some("assistant") && !line.is_sidechain && !line.is_api_error_message
    });
    spoken
        .flat_map(|line| line.message.blocks())
        .filter_map(|block| block.text.as_ref())
        .find(|text| !text.trim().is_empty())
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_said_last_is_its_own_word_and_not_the_clients_reminder() -> serde_json::Result<()> {
        let use_line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"wc -l a"}}]}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"one\n12 a\n\n<system-reminder>\n14974772 tokens left\n</system-reminder>"}]}}"#;
        let lines = vec![serde_json::from_str(use_line)?, serde_json::from_str(result)?];
        let known = commands(&lines, &[]);
        assert_eq!((known[0].fact.ok, known[0].fact.last_line.as_str()), (Some(true), "12 a"));
        Ok(())
    }

    /// The hook of a batch comes before the client has written the results down.
    #[test]
    fn a_command_of_the_batch_at_hand_has_the_outcome_that_the_client_tells() -> serde_json::Result<()> {
        let call = |id: &str, response: &str| {
            let text = format!(
                r#"{{"tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"make {id}"}},"tool_response":{response}}}"#
            );
            serde_json::from_str::<ToolCall>(&text)
        };
        let used = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"one","name":"Bash","input":{"command":"make one"}}]}}"#;
        let answered = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"one","content":"Exit code 3"}]}}"#;
        let calls = [call("one", "\"Exit code 3\"")?, call("two", "\"a\\nb\"")?, call("three", "null")?];
        let outcomes = |lines: &[&str]| -> serde_json::Result<Vec<_>> {
            let lines =
                lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<Vec<Line>, _>>()?;
            let known = commands(&lines, &calls);
            Ok(known.into_iter().map(|ran| (ran.fact.ok, ran.fact.has_ended, ran.fact.last_line)).collect())
        };
        let rest = [(None, true, "b".to_owned()), (None, false, String::new())];
        let failed = (Some(false), true, "Exit code 3".to_owned());
        assert_eq!(outcomes(&[used])?, [&[failed], &rest[..]].concat());
        // What the transcript has is surer: the command printed this, and passed.
        let passed = (Some(true), true, "Exit code 3".to_owned());
        assert_eq!(outcomes(&[used, answered])?, [&[passed], &rest[..]].concat());
        Ok(())
    }

    #[test]
    fn an_output_that_no_answer_followed_is_unread() -> serde_json::Result<()> {
        let used = |id: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"make {id}"}}}}]}}}}"#
            )
        };
        let printed = |id: &str| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"port 4711\nbuilt"}}]}}}}"#
            )
        };
        let failure = r#"{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error"}]}}"#;
        let texts = [used("one"), printed("one"), used("two"), printed("two"), failure.to_owned()];
        let lines = texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Line>, _>>()?;
        let mut known = commands(&lines, &[]);
        known.iter_mut().for_each(Ran::keep_what_was_not_read);
        let unread: Vec<&str> = known.iter().map(|ran| ran.fact.unread.as_str()).collect();
        assert_eq!(unread, ["", "port 4711\nbuilt"]);
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
        let known = |moment: Option<&str>| -> Vec<String> {
            let moment = moment.and_then(clock::parse).map(SystemTime::from);
            commands(lines_after(&lines, moment), &[]).into_iter().map(|ran| ran.fact.command).collect()
        };
        assert_eq!(known(Some("2026-01-07T10:00:01.500Z")), ["make two"]);
        assert_eq!(known(Some("2026-01-07T10:00:09.000Z")), [""; 0]);
        assert_eq!(known(None), ["make one", "make two"]);
        Ok(())
    }
}
