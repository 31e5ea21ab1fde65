//! The last messages before a compaction: the next step, and a result that the model has not used yet.

use super::super::events::{Event, ToolCall};
use super::super::truth::{PromptForm, UnprocessedResult};
use super::ListKind;
use super::author::{AnnouncedStep, Author, CurrentRequest, TrackedFailure};
use super::calls::insert_line_at_end_or_anywhere;

/// The longest result that is open at a compaction, in characters.
const MAX_OPEN_RESULT_CHARS: usize = 30_000;
/// How often the decisive line of an open result is its last one.
const LAST_LINE_PERCENT: usize = 80;

#[derive(Clone, Copy)]
enum OpenResultKind {
    Command,
    FailedCommand,
    Read,
    Search,
    Agent,
    Mcp,
    FetchedPage,
}

impl Author {
    pub(super) fn write_ending(&mut self) {
        let has_items = self.traits.list_kind != ListKind::None && self.work.list.current_item().is_some();
        let announces_step = !has_items || self.draws.bool_with_percent(50);
        self.work.announced_step = None;
        if self.draws.bool_with_percent(16) {
            return self.write_ending_with_prompt(announces_step);
        }
        if announces_step {
            self.write_next_step_and_later_messages();
        }
        self.write_unprocessed_result();
    }

    /// The turn ends, and the client compacts before it answers the user's next prompt.
    fn write_ending_with_prompt(&mut self, announces_step: bool) {
        let mut text = self.phrases.filler_paragraphs();
        let step = announces_step.then(|| self.draw_next_step());
        if let Some(step) = &step {
            text = format!("{text}\n\n{step}");
        }
        self.write_message(Some(text), Vec::new());
        self.events.push(Event::TurnEnd);
        match self.draws.number_below(100) {
            0..60 => {
                let addition = self.phrases.request_addition();
                self.add_prompt(addition.clone(), PromptForm::Typed);
                self.record_addition(addition);
            }
            60..75 => {
                let encouragement = self.phrases.go_on_prompt();
                self.add_prompt(encouragement, PromptForm::Typed);
            }
            _ => return self.replace_request_at_the_end(step),
        }
        self.work.announced_step =
            step.map(|text| AnnouncedStep { text, message_number: self.message_count });
    }

    /// The last row is a new request: nobody has said a next step, and no list has been made for it.
    fn replace_request_at_the_end(&mut self, announced_step: Option<String>) {
        self.work.outdated_statements.done_steps.extend(announced_step);
        self.work.has_unstarted_request = true;
        let old_request = self.work.request.take();
        let text = self.phrases.request_sentence();
        self.add_prompt(text.clone(), PromptForm::Typed);
        if let Some(request) = &old_request
            && request.proposal.is_none()
        {
            self.work.outdated_statements.finished_requests.push(request.text.clone());
        }
        self.work.request = Some(CurrentRequest::typed(text, self.segment));
    }

    fn draw_next_step(&mut self) -> String {
        let last_path = self.work.last_edit.as_ref().map(|edit| edit.path.clone());
        let path = match last_path {
            Some(path) if self.draws.bool_with_percent(50) => path,
            _ => self.random_source_path(),
        };
        self.phrases.next_step(&path)
    }

    fn write_next_step_and_later_messages(&mut self) {
        let step = self.draw_next_step();
        let text = match self.draws.number_below(3) {
            0 => step.clone(),
            1 => format!("{} {step}", self.phrases.filler_text()),
            _ => format!("{}\n\n{step}", self.phrases.filler_text()),
        };
        let later_messages = match self.draws.number_below(100) {
            0..50 => 0,
            50..85 => self.draws.number_between(1, 4),
            _ => self.draws.number_between(5, 15),
        };
        if later_messages == 0 {
            // The message that says the step also has the call whose result is open.
            return self.write_open_result_with_text(Some(text), step);
        }
        let call = self.routine_call();
        self.write_message(Some(text), vec![call]);
        self.work.announced_step = Some(AnnouncedStep { text: step, message_number: self.message_count });
        for _ in 1..later_messages {
            let call = self.routine_call();
            self.write_call(call);
        }
    }

    fn write_open_result_with_text(&mut self, text: Option<String>, step: String) {
        let calls = self.draw_calls_with_unprocessed_result();
        self.write_message(text, calls);
        self.work.announced_step = Some(AnnouncedStep { text: step, message_number: self.message_count });
    }

    fn write_unprocessed_result(&mut self) {
        if self.work.unprocessed_result.is_some() {
            return;
        }
        let calls = self.draw_calls_with_unprocessed_result();
        let text = self.draws.bool_with_percent(50).then(|| self.phrases.filler_text());
        self.write_message(text, calls);
    }

    /// Returns the calls of the last message, and records which line of their results matters.
    fn draw_calls_with_unprocessed_result(&mut self) -> Vec<ToolCall> {
        let kind = self.draws.pick_weighted(&[
            (40, OpenResultKind::Command),
            (15, OpenResultKind::FailedCommand),
            (18, OpenResultKind::Read),
            (10, OpenResultKind::Search),
            (10, OpenResultKind::Agent),
            (4, OpenResultKind::Mcp),
            (3, OpenResultKind::FetchedPage),
        ]);
        let (call, line, is_last_line) = self.draw_call_with_unprocessed_result(kind);
        self.work.unprocessed_result = Some(UnprocessedResult {
            line,
            tool: call.name.to_owned(),
            is_last_line,
            result_chars: call.result_text.chars().count(),
        });
        let mut calls = vec![call];
        if self.draws.bool_with_percent(20) {
            for _ in 0..self.draws.number_between(1, 2) {
                let position = self.draws.number_below(calls.len() + 1);
                let other_call = self.routine_call();
                calls.insert(position, other_call);
            }
        }
        calls
    }

    fn draw_call_with_unprocessed_result(&mut self, kind: OpenResultKind) -> (ToolCall, String, bool) {
        if let OpenResultKind::FailedCommand = kind {
            let (call, failure) = self.failed_call();
            let is_last_line = call.result_text.ends_with(&failure.error_line);
            let line = failure.error_line.trim().to_owned();
            self.work.failure = Some(TrackedFailure { call_number: self.call_count + 1, ..failure });
            return (call, line, is_last_line);
        }
        if let OpenResultKind::Read | OpenResultKind::Search = kind {
            let (call, shown_lines) = match kind {
                OpenResultKind::Read => self.read_of_source_file(),
                _ => self.search_with_matches(),
            };
            if !shown_lines.is_empty() {
                let is_last_line = self.draws.bool_with_percent(LAST_LINE_PERCENT);
                let last_index = shown_lines.len() - 1;
                let index =
                    if is_last_line { last_index } else { self.draws.number_below(shown_lines.len()) };
                return (call, shown_lines[index].trim().to_owned(), index == last_index);
            }
        }
        let line = self.phrases.decisive_line();
        let chars = self.draws.log_uniform_number(60, MAX_OPEN_RESULT_CHARS - 200);
        let mut lines = self.log_output(chars);
        let is_last_line =
            insert_line_at_end_or_anywhere(&mut self.draws, &mut lines, &line, LAST_LINE_PERCENT);
        let output = lines.join("\n");
        let call = match kind {
            OpenResultKind::Agent => {
                let prompt = format!("Report on {}.", self.phrases.identifier());
                ToolCall::new_agent("Report", &prompt, &output)
            }
            OpenResultKind::Mcp => ToolCall::new_mcp(&output),
            OpenResultKind::FetchedPage => {
                ToolCall::new_web_fetch("https://docs.example.org/limits", "Which limits are there?", &output)
            }
            _ => ToolCall::new_bash(&self.passing_command(), &output),
        };
        (call, line, is_last_line)
    }
}
