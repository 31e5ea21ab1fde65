//! The agent's closing messages: notes for the next session, and the completion promise.

use super::agent::{Agent, Phase};
use super::ledger::LedgerEvent;
use super::style::{InterruptionKind, MessageForm, PromiseFlaw};
use super::work::Operation;
use plimsoll_testkit::scripted_model::Step;

impl Agent {
    pub(super) fn write_closing_message_or_checkpoint(
        &mut self,
        interruption_kind: InterruptionKind,
    ) -> Step {
        let (next_step, names_location) = self.next_step_text_and_names_location();
        let number = self.session.number;
        let (note_number, item) = (self.rng.random_number_for_name("word", 900) + 100, self.session.item);
        let is_ticked = item.is_some_and(|item| self.ledger.is_item_ticked(&self.work, item));
        let summary = format!("the forms are kept apart by kind, note {note_number}.{number}");
        let progress =
            if is_ticked { "finished".to_owned() } else { format!("{} parts", self.session.next_step) };
        let was_asked_to_stop = interruption_kind == InterruptionKind::L2;
        let has_only_plain_sentence = next_step.is_none()
            || (interruption_kind == InterruptionKind::EarlyEnd && number.is_multiple_of(2));
        if interruption_kind == InterruptionKind::ManualCheckpoint && !self.session.has_committed {
            self.session.has_committed = true;
            let next_step = next_step.unwrap_or_default();
            self.ledger.events.push(LedgerEvent::ClosingMessage {
                item,
                next_step: Some(next_step.clone()).filter(|text| !text.is_empty()),
                names_location,
                summary: Some(summary.clone()),
            });
            let next_argument =
                if next_step.is_empty() { String::new() } else { format!(" --next '{next_step}'") };
            return Step::bash_call(format!(
                "plimsoll checkpoint --summary '{summary}' --progress '{progress}'{next_argument}"
            ));
        }
        self.session.phase = Phase::Ended;
        self.session_end_label = match interruption_kind {
            InterruptionKind::L2 if is_ticked => "L2 after a tick",
            InterruptionKind::L2 => "L2",
            InterruptionKind::ManualCheckpoint => "checkpoint on demand",
            _ => "end of the turn",
        };
        if interruption_kind == InterruptionKind::ManualCheckpoint {
            return Step::from_text("I leave it here.");
        }
        if has_only_plain_sentence {
            self.ledger.events.push(LedgerEvent::ClosingMessage {
                item,
                next_step: None,
                names_location: false,
                summary: None,
            });
            let sentence = if was_asked_to_stop {
                "The window is full, I stop here."
            } else {
                "This is what I could do now."
            };
            return Step::from_text(sentence);
        }
        let next_step = next_step.unwrap_or_default();
        self.ledger.events.push(LedgerEvent::ClosingMessage {
            item,
            next_step: Some(next_step.clone()),
            names_location,
            summary: Some(summary.clone()),
        });
        Step::from_text(format!(
            "I stop here.\n\nSummary: {summary}\nProgress on the item: {progress}\nNext step: {next_step}"
        ))
    }

    /// Returns the next step as the agent would describe it, and whether the text names a file and line.
    pub(super) fn next_step_text_and_names_location(&self) -> (Option<String>, bool) {
        let unique_suffix =
            format!("{}.{}", self.rng.random_number_for_name("word", 900) + 100, self.session.number);
        let Some(item) = self.session.item else { return (None, false) };
        let name = self.work.items[item].name.to_lowercase();
        match self.session.script.message_form {
            MessageForm::PlainSentence => (None, false),
            _ if self.ledger.is_item_ticked(&self.work, item) => {
                (Some(format!("look once more over \"{name}\" ({unique_suffix})")), false)
            }
            MessageForm::NamesLocation => {
                let truth = self.ground_truth_for_next_session().filter(|truth| truth.item == item);
                match truth.and_then(|truth| Some((truth.last_edited_file?, truth.last_edit_lines?.1 + 1))) {
                    Some((file, line)) => {
                        (Some(format!("{file} line {line}, the rest of the forms ({unique_suffix})")), true)
                    }
                    None => (Some(format!("begin with the forms of \"{name}\" ({unique_suffix})")), false),
                }
            }
            MessageForm::DescribesWork => {
                let steps = &self.work.items[item].steps;
                let first_pending_step = (0..steps.len())
                    .find(|step| self.ledger.is_step_pending_and_possible(&self.work, item, *step));
                let description = match first_pending_step.map(|step| &steps[step]) {
                    Some(Operation::Edit { file, function, .. }) => {
                        format!("give {function} of {file} its new form")
                    }
                    Some(Operation::Create { file }) => format!("write {file}"),
                    Some(Operation::Rename { from, to }) => format!("move {from} to {to}"),
                    Some(Operation::Delete { file }) => format!("take {file} away"),
                    None => "tick it".to_owned(),
                };
                (Some(format!("{description} ({unique_suffix})")), false)
            }
        }
    }

    /// Ends the session with the completion promise, which has a flaw the first time if the style says so.
    pub(super) fn end_session_with_correct_or_flawed_promise(&mut self) -> Step {
        self.session.phase = Phase::Ended;
        self.session_end_label = "promise";
        let promise = self.session.prompt.promise_line.clone().unwrap_or_default();
        let was_flawed_promise_refused =
            self.has_made_flawed_promise && self.session.prompt.was_promise_refused;
        let text = match self.style.promise_flaw {
            Some(flaw) if !was_flawed_promise_refused => {
                self.has_made_flawed_promise = true;
                match flaw {
                    PromiseFlaw::Bold => format!("**{promise}**"),
                    PromiseFlaw::TrailingText => format!("{promise}\n\nIt was a pleasure."),
                    PromiseFlaw::WithoutCode => "<promise>COMPLETE</promise>".to_owned(),
                }
            }
            _ => promise,
        };
        Step::from_text(format!("All is done.\n\n{text}"))
    }
}
