//! The agent's changes to files: steps, ticks and commits.

use super::agent::{Agent, Phase, commit_command};
use super::ledger::{EditMethod, LedgerEvent};
use super::style::{CommitTiming, EditTools, InterruptionKind, InterruptionPoint};
use super::work::Operation;
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;

impl Agent {
    /// Performs a step, with the commit or the interruption that is planned for it.
    pub(super) fn perform_step_with_commit_and_interruption(&mut self, item: usize, step: usize) -> Step {
        self.session.performed_step_count += 1;
        let interruption_kind = self.session.script.interruption_kind;
        let is_interrupted = self
            .trigger_planned_interruption_once(InterruptionPoint::Step(self.session.performed_step_count));
        if is_interrupted && interruption_kind == InterruptionKind::UsageLimit {
            self.session.next_step -= 1;
            return self.start_usage_limit();
        }
        let use_client_edit_tools = match self.style.edit_tools {
            EditTools::Shell => false,
            EditTools::Tools => true,
            EditTools::Both => self.rng.random_bool_for_name(&format!("tool for {item} {step}"), 50),
        };
        let (mut tool_calls, edit_method) = self.tool_calls_for_step(item, step, use_client_edit_tools);
        self.ledger.events.push(LedgerEvent::StepPerformed { item, step, edit_method });
        let commits_each_step = self.style.commits == CommitTiming::AfterEachStep;
        let interruption_prevents_commit = is_interrupted
            && matches!(
                interruption_kind,
                InterruptionKind::L2 | InterruptionKind::L3 | InterruptionKind::Crash
            );
        let is_interruption_after_commit =
            matches!(self.session.script.interruption_point, InterruptionPoint::AfterCommitOfStep(_));
        if commits_each_step && (!interruption_prevents_commit || is_interruption_after_commit) {
            let message = self.commit_message(item, Some(step));
            tool_calls = tool_calls.with_tool_call(
                "Bash",
                json!({ "command": commit_command(&message), "description": "Commit" }),
            );
            self.ledger.events.push(LedgerEvent::Committed);
        }
        if is_interrupted
            && matches!(interruption_kind, InterruptionKind::EarlyEnd | InterruptionKind::ManualCheckpoint)
        {
            self.session.phase = Phase::Stopping;
        }
        if is_interrupted && interruption_kind == InterruptionKind::Crash {
            self.session_end_label = "crash";
            let kill_command = "sleep 0.3; kill -9 ${CLAUDE_PID:-$PPID}; sleep 5";
            tool_calls =
                tool_calls.with_tool_call("Bash", json!({ "command": kill_command, "description": "Test" }));
        }
        tool_calls
    }

    pub(super) fn commit_message(&self, item: usize, step: Option<usize>) -> String {
        let name = &self.work.items[item].name;
        match step {
            _ if self.style.has_wip_messages => format!("wip: {name}"),
            Some(step) => format!("{name}: part {}", step + 1),
            None => name.clone(),
        }
    }

    pub(super) fn tool_calls_for_step(
        &self,
        item: usize,
        step: usize,
        use_client_edit_tools: bool,
    ) -> (Step, EditMethod) {
        let path = |file: &str| self.ledger.file_path(file).display().to_string();
        match &self.work.items[item].steps[step] {
            Operation::Edit { .. } => self.tool_calls_for_edit(item, step, use_client_edit_tools),
            Operation::Create { file } => {
                let file_text = self.work.new_file_text(item, step, file);
                if use_client_edit_tools {
                    let input = json!({ "file_path": path(file), "content": file_text });
                    return (Step::default().with_tool_call("Write", input), EditMethod::ClientTool);
                }
                (
                    Step::bash_call(format!(
                        "mkdir -p \"$(dirname {file})\" && cat > '{file}' <<'END'\n{file_text}END"
                    )),
                    EditMethod::Shell,
                )
            }
            Operation::Rename { from, to } => {
                let move_command = if self.rng.random_bool_for_name(&format!("git mv {item} {step}"), 50) {
                    format!("git mv '{from}' '{to}' 2>/dev/null || mv '{from}' '{to}'")
                } else {
                    format!("mv '{from}' '{to}'")
                };
                (
                    Step::bash_call(format!("mkdir -p \"$(dirname {to})\" && ({move_command})")),
                    EditMethod::Shell,
                )
            }
            Operation::Delete { file } => (Step::bash_call(format!("rm -f '{file}'")), EditMethod::Shell),
        }
    }

    fn tool_calls_for_edit(
        &self,
        item: usize,
        step: usize,
        use_client_edit_tools: bool,
    ) -> (Step, EditMethod) {
        let file = self.ledger.current_file_of_step(&self.work, item, step).unwrap_or_default();
        let text = self.ledger.read_file(&file).unwrap_or_default();
        let Some(change) = self.work.text_change_of_edit_step(item, step, &text) else {
            return (Step::bash_call(format!("tail -3 '{file}'")), EditMethod::Shell);
        };
        if use_client_edit_tools {
            let path = self.ledger.file_path(&file).display().to_string();
            let text_above = function_text_above_line(&text, change.first_line);
            let (old_string, new_string) =
                (text_above.clone() + &change.old_text, text_above + &change.new_text);
            let edit_input = json!({ "file_path": path, "old_string": old_string, "new_string": new_string });
            let read_input = json!({ "file_path": path });
            return (
                Step::default().with_tool_call("Read", read_input).with_tool_call("Edit", edit_input),
                EditMethod::ClientTool,
            );
        }
        let new_text = change.new_text.replace('\n', "\\\n");
        (
            Step::bash_call(format!(
                "sed -i '{},{}c\\\n{new_text}' '{file}'",
                change.first_line, change.last_line
            )),
            EditMethod::Shell,
        )
    }

    /// Ticks an item and commits. If the script says that the tick is forgotten, only commits and stops.
    pub(super) fn tick_unless_forgotten_and_commit_item(&mut self, item: usize) -> Step {
        self.session.phase = Phase::Ticked;
        let name = &self.work.items[item].name;
        let does_agent_commit = self.style.commits != CommitTiming::Never;
        if self.session.script.forgets_tick && !self.items_with_forgotten_tick.contains(&item) {
            self.items_with_forgotten_tick.push(item);
            self.session.phase = Phase::Stopping;
            self.session.script.interruption_kind = InterruptionKind::EarlyEnd;
            let message = self.commit_message(item, None);
            self.ledger.events.extend(does_agent_commit.then_some(LedgerEvent::Committed));
            return Step::bash_call(if does_agent_commit {
                commit_command(&message)
            } else {
                "ls src".to_owned()
            });
        }
        let tick_command = format!("sed -i 's/^- \\[ \\] {name} *$/- [x] {name}/' fix_plan.md");
        self.ledger.events.push(LedgerEvent::ItemTicked);
        self.trigger_planned_interruption_once(InterruptionPoint::Tick);
        if does_agent_commit && !self.style.ticks_uncommitted {
            self.ledger.events.push(LedgerEvent::Committed);
            return Step::bash_call(format!(
                "{tick_command}; {}",
                commit_command(&self.commit_message(item, None))
            ));
        }
        Step::bash_call(format!("{tick_command}; tail -3 fix_plan.md"))
    }
}

/// Returns the lines from the start of the function to the change. They make the text to replace unique.
fn function_text_above_line(text: &str, first_line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(first_line - 1).collect();
    let start = lines.iter().rposition(|line| line.is_empty()).map_or(0, |index| index + 1);
    lines[start..].iter().map(|line| format!("{line}\n")).collect()
}
