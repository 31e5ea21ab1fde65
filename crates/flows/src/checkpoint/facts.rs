//! Verified facts about a session: the state of git, the contents of the transcript, and what the current
//! tool calls changed.

mod ordinary_session;

use crate::checkpoint::handoff;
use crate::checkpoint::item_work;
use crate::checkpoint::item_work::{WorkInput, is_edit_tool};
use plimsoll_domain::handoff::{CommandFact, Handoff};
use plimsoll_domain::item_notes::ItemNotes;
use plimsoll_domain::promise;
use plimsoll_domain::state::{CheckResult, CheckpointCause};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, SessionRecord, TodoList};
use plimsoll_launcher::git;
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_protocol::transcript::{ContentBlock, TranscriptEntry};
use plimsoll_store::{Project, clock, disk, tail};
use std::path::Path;
use std::time::SystemTime;

/// How many bytes at the end of the transcript are searched for commands and messages.
const MAX_TRANSCRIPT_TAIL_BYTES: u64 = 512 * 1024;
const MAX_COMMANDS: usize = 8;
const MAX_CHECKS: usize = 3;

/// Loads the plan of a run. Returns `None` if the run has no plan, the file is missing, or all its items were
/// removed.
pub fn load_plan(project: &Project, run: &RunState) -> Option<TodoList> {
    load_plan_with_text(project, run).map(|(_, plan)| plan)
}

/// Loads the plan of a run like [`load_plan`], together with the text of its file.
pub fn load_plan_with_text(project: &Project, run: &RunState) -> Option<(String, TodoList)> {
    let file = run.options.todo_file.as_ref()?;
    let text = disk::read_text(&project.root().join(file)).ok().flatten()?;
    let plan = TodoList::parse(&text);
    (!was_plan_emptied(&plan, run)).then_some((text, plan))
}

/// Returns true if all items were removed from a run's plan.
pub(crate) fn was_plan_emptied(plan: &TodoList, run: &RunState) -> bool {
    plan.items.is_empty() && plan.unclear_lines.is_empty() && !run.plan_items.known_items.is_empty()
}

/// Loads the notes that earlier sessions left in the plan about the current item.
pub fn load_item_notes(project: &Project, run: &RunState) -> ItemNotes {
    load_plan(project, run)
        .map(|plan| ItemNotes::collect_notes_and_current_item_answers(&plan, current_unparked_item(run)))
        .unwrap_or_default()
}

/// Returns true if the run's session has popped the root frame of the working memory since its prompt.
pub fn has_session_popped_root_frame(project: &Project, run: &RunState) -> bool {
    let popped_by_session = || {
        run.session_id
            .as_ref()
            .is_some_and(|id| plimsoll_store::memory::load_shown_memory_state(project, id).is_root_popped)
    };
    run.options.uses_working_memory
        && popped_by_session()
        && plimsoll_store::memory::load_memory(project).is_ok_and(|memory| memory.root_result.is_some())
}

/// Loads `fix_plan.md` of a session outside a run, if it exists.
pub fn load_default_plan(project: &Project) -> Option<TodoList> {
    disk::read_text(&project.root().join(DEFAULT_PLAN)).ok().flatten().map(|text| TodoList::parse(&text))
}

/// Input of [`build_handoff_from_git_plan_and_transcript`].
pub(crate) struct HandoffInput<'a> {
    pub(crate) project: &'a Project,
    pub(crate) transcript_path: Option<&'a Path>,
    pub(crate) record: &'a SessionRecord,
    pub(crate) run: Option<&'a RunState>,
    pub(crate) cause: CheckpointCause,
    /// Tool calls of the current message, which are not in the transcript yet.
    pub(crate) pending_calls: &'a [ToolCall],
}

/// Collects the facts of a session: repository, items, work on the current item, last commands and last
/// message.
pub(crate) fn build_handoff_from_git_plan_and_transcript(input: &HandoffInput<'_>) -> Handoff {
    let HandoffInput { project, record, run, cause, pending_calls: calls, .. } = *input;
    // Git runs in the background while the transcript is read.
    let git_query = git::start_filter_and_subject_queries(project.root());
    let lines = input
        .transcript_path
        .and_then(|path| tail::read_last_entries(path, MAX_TRANSCRIPT_TAIL_BYTES).ok())
        .unwrap_or_default();
    let plan = match run {
        Some(run) => load_plan(project, run),
        None => load_default_plan(project),
    };
    let work_input =
        WorkInput { project, record, run, plan: plan.as_ref(), cause, lines: &lines, pending_calls: calls };
    let session_work = item_work::determine_session_work(&work_input, git_query);
    let continuation_sent_at = record
        .continuation
        .as_ref()
        .and_then(|notice| clock::parse_timestamp(&notice.sent_at))
        .map(SystemTime::from);
    let item_lines = lines_written_after(&lines, session_work.last_tick_at.max(continuation_sent_at));
    let mut item_commands = extract_last_commands(item_lines, calls);
    // A session that continues reads the output itself.
    if cause.is_written_after_session_end() {
        item_commands.iter_mut().for_each(ExecutedCommand::save_excerpt_of_unread_output);
    }
    let verify_commands = run.map(|run| run.options.unique_verify_and_check_commands()).unwrap_or_default();
    let mut item_work = session_work.item_work;
    // If a run's current item has not been started, the commands and messages belong to the finished item, and
    // the next session would attribute them to its own item.
    let concerns_current_item = item_work.is_begun || run.is_none();
    item_work.checks = if concerns_current_item {
        latest_result_of_each_check_command(&item_commands, &verify_commands)
            .iter()
            .map(handoff::redact_check)
            .collect()
    } else {
        Vec::new()
    };
    let command_facts = item_commands.iter().map(|command| handoff::redact_command(&command.fact));
    let last_message = last_nonempty_assistant_text(item_lines)
        .map(|text| promise::replace_promises_with_blocked_reasons(&plimsoll_secrets::redact(&text)));
    let common_handoff = Handoff {
        cause,
        git: session_work.git_facts,
        changed_files: session_work.changed_files,
        current_item: session_work.current_item,
        commands: if concerns_current_item { command_facts.collect() } else { Vec::new() },
        last_message: last_message.filter(|_| concerns_current_item),
        item_work,
        ..Handoff::default()
    };
    match run {
        Some(run) => {
            let DoneAndOpenItems { done, open } = done_and_open_items_of_plan_or_run(plan.as_ref(), run);
            let plan_path = run.options.todo_file.clone().filter(|_| plan.is_some());
            Handoff { done_items: done, open_items: open, plan_path, ..common_handoff }
        }
        None => ordinary_session::add_requests_and_tasks_else_open_plan_items(
            common_handoff,
            input.transcript_path,
            plan.as_ref(),
        ),
    }
}

struct DoneAndOpenItems {
    done: Vec<String>,
    open: Vec<String>,
}

/// Returns the done and open items of the plan file; without the file, those in the run's state.
fn done_and_open_items_of_plan_or_run(plan: Option<&TodoList>, run: &RunState) -> DoneAndOpenItems {
    match plan {
        Some(plan) => DoneAndOpenItems { done: plan.ticked_items(), open: plan.open_items() },
        None => DoneAndOpenItems {
            done: run.plan_items.completed_items.clone(),
            open: run.plan_items.todo_items.clone(),
        },
    }
}

/// Returns the output of the last command that failed and did not pass later in the same session. Returns
/// `None` if there is no such command.
pub fn output_of_last_unresolved_failure(transcript_path: &Path) -> Option<String> {
    let lines = tail::read_last_entries(transcript_path, MAX_TRANSCRIPT_TAIL_BYTES).ok()?;
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut unresolved_failures: Vec<(String, String)> = Vec::new();
    for block in lines.iter().filter(|line| !line.is_sidechain).flat_map(|line| line.message.blocks()) {
        if let (Some("tool_use"), Some(command)) = (block.kind.as_deref(), &block.input.command) {
            commands.push((block.id.clone().unwrap_or_default(), command.clone()));
        }
        if block.kind.as_deref() != Some("tool_result") {
            continue;
        }
        let Some((_, command)) = commands.iter().find(|(id, _)| Some(id) == block.tool_use_id.as_ref())
        else {
            continue;
        };
        unresolved_failures.retain(|(failed_command, _)| failed_command != command);
        if block.is_error {
            unresolved_failures.push((command.clone(), remove_system_reminders(&block.result_text())));
        }
    }
    let (command, output) = unresolved_failures.pop()?;
    // A bare exit code is the same for `grep` and `git diff`, so the command is added to tell them apart.
    let is_exit_code_only =
        output.trim().strip_prefix("Exit code ").is_some_and(|exit_code_text| !exit_code_text.contains('\n'));
    let output = if is_exit_code_only { format!("{command}: {output}") } else { output };
    Some(plimsoll_domain::text::truncate_start(&output, 4_000))
}

fn lines_written_after(lines: &[TranscriptEntry], cutoff_time: Option<SystemTime>) -> &[TranscriptEntry] {
    let is_not_after_cutoff = |line: &TranscriptEntry| {
        let written_at = line.timestamp.as_deref().and_then(clock::parse_rfc3339).map(SystemTime::from);
        written_at.zip(cutoff_time).is_some_and(|(line_time, cutoff)| line_time <= cutoff)
    };
    lines.iter().rposition(is_not_after_cutoff).map_or(lines, |index| &lines[index + 1..])
}

/// A command of the session with its complete output.
struct ExecutedCommand {
    id: String,
    fact: CommandFact,
    output: String,
    /// True if the model responded after the result.
    was_read_by_model: bool,
    /// True if the session edited a file after the command.
    is_before_edit: bool,
}

impl ExecutedCommand {
    fn new(id: String, command: &str) -> ExecutedCommand {
        let fact = CommandFact { command: command.to_owned(), ..CommandFact::default() };
        ExecutedCommand { id, fact, output: String::new(), was_read_by_model: false, is_before_edit: false }
    }

    fn set_result(&mut self, passed: Option<bool>, output: String) {
        (self.fact.passed, self.fact.has_ended) = (passed, true);
        self.fact.last_output_line = output.trim_end().lines().last().unwrap_or_default().to_owned();
        self.output = output;
    }

    fn save_excerpt_of_unread_output(&mut self) {
        if !self.was_read_by_model {
            self.fact.unread_output = CommandFact::excerpt_unread_output(&self.output);
        }
    }
}

fn extract_last_commands(lines: &[TranscriptEntry], pending_calls: &[ToolCall]) -> Vec<ExecutedCommand> {
    let mut commands: Vec<ExecutedCommand> = Vec::new();
    for line in lines.iter().filter(|line| !line.is_sidechain) {
        // A response of the model means that it has read all earlier output.
        if line.kind.as_deref() == Some("assistant") && !line.is_api_error_message {
            commands.iter_mut().for_each(|command| command.was_read_by_model = true);
        }
        for block in line.message.blocks() {
            if block.kind.as_deref() == Some("tool_use") && is_edit_tool(block.name.as_deref()) {
                commands.iter_mut().for_each(|command| command.is_before_edit = true);
            }
            match (block.kind.as_deref(), &block.input.command) {
                (Some("tool_use"), Some(command)) => {
                    commands.push(ExecutedCommand::new(block.id.clone().unwrap_or_default(), command));
                }
                (Some("tool_result"), _) => record_command_result(&mut commands, block),
                _ => {}
            }
        }
    }
    for call in pending_calls {
        if is_edit_tool(call.tool_name.as_deref()) {
            commands.iter_mut().for_each(|command| command.is_before_edit = true);
        }
        let (Some(id), Some(command)) = (&call.tool_use_id, &call.tool_input.command) else { continue };
        if !commands.iter().any(|command| command.id == *id) {
            commands.push(ExecutedCommand::new(id.clone(), command));
        }
        let executed_command =
            commands.iter_mut().find(|candidate| candidate.id == *id && candidate.fact.passed.is_none());
        if let (Some(executed_command), Some(output)) = (executed_command, call.response_text()) {
            // In the hook's payload, the client reports failures only by this text, and a denied command also has
            // an output (2.1.329). With any other output, success is unknown.
            let has_failed = output.starts_with("Exit code ");
            executed_command.set_result(has_failed.then_some(false), output);
        }
    }
    let excess_count = commands.len().saturating_sub(MAX_COMMANDS);
    commands.split_off(excess_count)
}

fn record_command_result(commands: &mut [ExecutedCommand], result_block: &ContentBlock) {
    let Some(id) = &result_block.tool_use_id else { return };
    if let Some(executed_command) = commands.iter_mut().find(|candidate| candidate.id == *id) {
        executed_command
            .set_result(Some(!result_block.is_error), remove_system_reminders(&result_block.result_text()));
    }
}

/// Returns the last result of each check, the newest last.
fn latest_result_of_each_check_command(
    commands: &[ExecutedCommand],
    verify_commands: &[String],
) -> Vec<CheckResult> {
    let mut checks: Vec<CheckResult> = Vec::new();
    for executed_command in commands.iter().filter(|executed_command| {
        plimsoll_policy::checks::is_check_command(&executed_command.fact.command, verify_commands)
    }) {
        let Some(passed) = executed_command.fact.passed else { continue };
        let failures = if passed {
            Vec::new()
        } else {
            plimsoll_policy::checks::failure_lines_or_last_line(&executed_command.output)
        };
        checks.retain(|check| check.command != executed_command.fact.command);
        let is_before_edit = executed_command.is_before_edit;
        checks.push(CheckResult {
            command: executed_command.fact.command.clone(),
            passed,
            failures,
            is_before_edit,
        });
    }
    let excess_count = checks.len().saturating_sub(MAX_CHECKS);
    checks.split_off(excess_count)
}

/// Removes the client's reminders and hook messages, which it (2.1.329) appends to the text of the last
/// result for older models such as Haiku 4.5.
fn remove_system_reminders(text: &str) -> String {
    let mut parts = text.split("<system-reminder>");
    let text_before_reminders = parts.next().unwrap_or_default().to_owned();
    parts
        .filter_map(|part| part.split_once("</system-reminder>"))
        .fold(text_before_reminders, |text, (_, text_after_reminder)| text + text_after_reminder)
}

/// Returns the text of the session's last message, if the message ends with text. A session that continues
/// ends with a tool call.
pub fn last_message_text_unless_tool_call(transcript_path: &Path) -> Option<String> {
    let lines = tail::read_last_entries(transcript_path, MAX_TRANSCRIPT_TAIL_BYTES).ok()?;
    // The client also records an API error as an assistant line (2.1.329), which is not the model's text.
    let last_line = lines.iter().rev().find(|line| {
        line.kind.as_deref() == Some("assistant") && !line.is_sidechain && !line.is_api_error_message
    })?;
    let blocks = last_line.message.blocks();
    blocks.last().and_then(|block| block.text.clone())
}

/// Returns the last text that the model wrote in this transcript, even if tool calls follow it.
pub fn read_last_assistant_text(transcript_path: &Path) -> Option<String> {
    last_nonempty_assistant_text(&tail::read_last_entries(transcript_path, MAX_TRANSCRIPT_TAIL_BYTES).ok()?)
}

fn last_nonempty_assistant_text(lines: &[TranscriptEntry]) -> Option<String> {
    let assistant_lines = lines.iter().rev().filter(|line| {
        line.kind.as_deref() == Some("assistant") && !line.is_sidechain && !line.is_api_error_message
    });
    assistant_lines
        .flat_map(|line| line.message.blocks())
        .filter_map(|block| block.text.as_ref())
        .find(|text| !text.trim().is_empty())
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_output_line_ignores_the_clients_reminder() -> serde_json::Result<()> {
        let call_line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"wc -l a"}}]}}"#;
        let result_line = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"one\n12 a\n\n<system-reminder>\n14974772 tokens left\n</system-reminder>"}]}}"#;
        let lines = vec![serde_json::from_str(call_line)?, serde_json::from_str(result_line)?];
        let commands = extract_last_commands(&lines, &[]);
        assert_eq!(
            (commands[0].fact.passed, commands[0].fact.last_output_line.as_str()),
            (Some(true), "12 a")
        );
        Ok(())
    }

    /// The hook of a batch runs before the client has written the results to the transcript.
    #[test]
    fn a_command_of_the_current_batch_has_the_result_from_the_payload() -> serde_json::Result<()> {
        let call = |id: &str, response: &str| {
            let text = format!(
                r#"{{"tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"make {id}"}},"tool_response":{response}}}"#
            );
            serde_json::from_str::<ToolCall>(&text)
        };
        let call_line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"one","name":"Bash","input":{"command":"make one"}}]}}"#;
        let result_line = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"one","content":"Exit code 3"}]}}"#;
        let calls = [call("one", "\"Exit code 3\"")?, call("two", "\"a\\nb\"")?, call("three", "null")?];
        let outcomes = |lines: &[&str]| -> serde_json::Result<Vec<_>> {
            let lines = lines
                .iter()
                .map(|line| serde_json::from_str(line))
                .collect::<Result<Vec<TranscriptEntry>, _>>()?;
            let commands = extract_last_commands(&lines, &calls);
            Ok(commands
                .into_iter()
                .map(|command| (command.fact.passed, command.fact.has_ended, command.fact.last_output_line))
                .collect())
        };
        let remaining = [(None, true, "b".to_owned()), (None, false, String::new())];
        let failed = (Some(false), true, "Exit code 3".to_owned());
        assert_eq!(outcomes(&[call_line])?, [&[failed], &remaining[..]].concat());
        // The transcript is more reliable: the command printed this text and passed.
        let passed = (Some(true), true, "Exit code 3".to_owned());
        assert_eq!(outcomes(&[call_line, result_line])?, [&[passed], &remaining[..]].concat());
        Ok(())
    }

    #[test]
    fn output_without_a_later_response_is_unread() -> serde_json::Result<()> {
        let call_line = |id: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"make {id}"}}}}]}}}}"#
            )
        };
        let result_line = |id: &str| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"port 4711\nbuilt"}}]}}}}"#
            )
        };
        let api_error_line = r#"{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error"}]}}"#;
        let texts = [
            call_line("one"),
            result_line("one"),
            call_line("two"),
            result_line("two"),
            api_error_line.to_owned(),
        ];
        let lines = texts
            .iter()
            .map(|text| serde_json::from_str(text))
            .collect::<Result<Vec<TranscriptEntry>, _>>()?;
        let mut commands = extract_last_commands(&lines, &[]);
        commands.iter_mut().for_each(ExecutedCommand::save_excerpt_of_unread_output);
        let unread: Vec<&str> = commands.iter().map(|command| command.fact.unread_output.as_str()).collect();
        assert_eq!(unread, ["", "port 4711\nbuilt"]);
        Ok(())
    }

    #[test]
    fn commands_before_the_current_item_are_left_out() -> serde_json::Result<()> {
        let call_line = |id: &str, seconds: &str| {
            format!(
                r#"{{"type":"assistant","timestamp":"2026-01-07T10:00:0{seconds}Z","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"make {id}"}}}}]}}}}"#
            )
        };
        let texts = [call_line("one", "1.100"), call_line("two", "1.900")];
        let lines = texts
            .iter()
            .map(|text| serde_json::from_str(text))
            .collect::<Result<Vec<TranscriptEntry>, _>>()?;
        let commands_after = |moment: Option<&str>| -> Vec<String> {
            let moment = moment.and_then(clock::parse_rfc3339).map(SystemTime::from);
            extract_last_commands(lines_written_after(&lines, moment), &[])
                .into_iter()
                .map(|command| command.fact.command)
                .collect()
        };
        assert_eq!(commands_after(Some("2026-01-07T10:00:01.500Z")), ["make two"]);
        assert_eq!(commands_after(Some("2026-01-07T10:00:09.000Z")), [""; 0]);
        assert_eq!(commands_after(None), ["make one", "make two"]);
        Ok(())
    }
}
