//! Writes the incidents of a segment that are neither edits nor failures.

use super::super::events::{ClientNote, Event, ToolCall};
use super::super::phrases::DecisionSentence;
use super::super::secrets_in_text::line_with_secret;
use super::super::truth::{Decision, DecisionPlace};
use super::author::Author;
use super::schedule::Incident;

impl Author {
    pub(super) fn write_incident(&mut self, incident: Incident) {
        match incident {
            Incident::EarlierRequest => self.write_earlier_request(),
            Incident::MainRequest => self.write_main_request(),
            Incident::Addition => self.write_addition(),
            Incident::ContinuePrompt => {
                let text = self.phrases.go_on_prompt();
                self.end_turn_and_write_prompt(text);
            }
            Incident::Interruption => self.write_interruption(),
            Incident::Decision => self.write_decision(),
            Incident::Edit => self.write_edit(),
            Incident::Failure => self.write_unrepaired_failure(),
            Incident::RepairOfOpenFailure => self.write_repair_of_open_failure(),
            Incident::RepairedFailure => self.write_repaired_failure(),
            Incident::RevertedEdit => self.write_reverted_edit(),
            Incident::Commit => self.write_commit(),
            Incident::FinishedItem => self.finish_current_item(),
            Incident::DoneStep => self.write_done_step(),
            Incident::Subagent => self.write_subagent(),
            Incident::ClientNote => self.write_client_note(),
            Incident::LargeRead => self.write_large_read(),
            Incident::Secret => self.write_secret(),
            Incident::Rename => self.write_rename(),
            Incident::FormatAllFiles => self.format_all_files_and_shift_last_edit(),
        }
    }

    fn write_decision(&mut self) {
        let place = self.draws.pick_weighted(&[
            (55, DecisionPlace::BeforeCall),
            (15, DecisionPlace::EndOfTurn),
            (15, DecisionPlace::Prompt),
            (10, DecisionPlace::Answer),
            (5, DecisionPlace::ApprovedPlan),
        ]);
        let DecisionSentence { sentence, choice, reason } = self.phrases.decision();
        match place {
            DecisionPlace::BeforeCall => {
                let text =
                    format!("{} {sentence} {}", self.phrases.filler_text(), self.phrases.filler_text());
                let call = self.routine_call();
                self.write_message(Some(text), vec![call]);
            }
            DecisionPlace::EndOfTurn => {
                let (before, after) = (self.phrases.filler_paragraphs(), self.phrases.filler_paragraphs());
                let text = format!("{before}\n\n{sentence}\n\n{after}");
                self.write_message(Some(text), Vec::new());
                self.events.push(Event::TurnEnd);
                let prompt = self.phrases.go_on_prompt();
                self.add_prompt(prompt, super::super::truth::PromptForm::Typed);
            }
            DecisionPlace::Prompt => {
                self.end_turn_and_write_prompt(sentence.clone());
                self.record_addition(sentence);
            }
            DecisionPlace::Answer => {
                let question = format!("Which {} shall it be, given that {reason}?", self.phrases.noun());
                let options =
                    [format!("a {} {}", self.phrases.quality(), self.phrases.noun()), choice.clone()];
                self.write_message(None, vec![ToolCall::new_question(&question, &options, &choice)]);
            }
            DecisionPlace::ApprovedPlan => {
                let steps: Vec<String> = (1..=3).map(|_| self.phrases.plan_item()).collect();
                let plan = format!("# Approach\n\n{sentence}\n\n1. {}", steps.join("\n1. "));
                self.write_message(None, vec![ToolCall::new_approved_plan(&plan)]);
            }
        }
        self.work.decisions.push(Decision { choice, reason, segment: self.segment, place });
    }

    /// Announces a step and does it.
    fn write_done_step(&mut self) {
        let path = self.random_source_path();
        let step = self.phrases.next_step(&path);
        let call = self.routine_call();
        self.write_message(Some(step.clone()), vec![call]);
        if self.edit_percent > 0 {
            self.write_edit();
        } else {
            let call = self.routine_call();
            self.write_call(call);
        }
        self.work.outdated_statements.done_steps.push(step);
    }

    fn write_subagent(&mut self) {
        let prompt = format!("Find every use of {} and report it.", self.phrases.identifier());
        let chars = self.draws.log_uniform_number(200, 6_000);
        let answer = self.log_output(chars).join("\n");
        if self.traits.has_subagent_rows {
            self.events.push(Event::Subagent { prompt: prompt.clone(), answer: answer.clone() });
        }
        self.write_call(ToolCall::new_agent("Find uses", &prompt, &answer));
    }

    fn write_client_note(&mut self) {
        let note = match self.draws.number_below(8) {
            0 => ClientNote::HookFeedback(format!("Stop hook feedback:\nlint: {}", self.phrases.log_line())),
            1 => ClientNote::LocalCommand(format!("Context Usage\n{}", self.phrases.log_line())),
            2 => ClientNote::TaskNotification(format!(
                "Background command \"{}\" completed",
                self.phrases.noun()
            )),
            3 => ClientNote::ApiError,
            4 => ClientNote::StopHookSummary,
            5 => ClientNote::FileHistorySnapshot,
            6 => ClientNote::TodoReminder,
            _ => {
                let path = self.random_source_path();
                ClientNote::ExternallyEditedFile { path, snippet: self.phrases.code_line() }
            }
        };
        self.events.push(Event::ClientNote(note));
    }

    /// Writes the output of a command that prints a secret.
    fn write_secret(&mut self) {
        let (line, secret) = line_with_secret(&mut self.draws);
        let chars = self.draws.log_uniform_number(40, 2_000);
        let mut lines = self.log_output(chars);
        let position = self.draws.number_below(lines.len() + 1);
        lines.insert(position, line);
        let command = if self.draws.bool_with_percent(50) { "env | sort" } else { "cat .env" };
        self.write_call(ToolCall::new_bash(command, &lines.join("\n")));
        self.work.secrets.push(secret);
    }
}
