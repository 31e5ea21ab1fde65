//! What the user writes.

use super::super::events::{Event, PROJECT_PLACEHOLDER, ToolCall};
use super::super::phrases::Language;
use super::super::secrets_in_text::pasted_token;
use super::super::truth::PromptForm;
use super::author::{Author, CurrentRequest};

/// How long a request is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestLength {
    /// An answer such as "yes" to a proposal of the assistant.
    Answer,
    Sentence,
    Paragraph,
    SeveralLines,
    PastedText,
}

impl Author {
    /// Ends the turn of the request before, which is done, and writes a new request.
    pub(super) fn write_main_request(&mut self) {
        let length = self.draws.pick_weighted(&[
            (6, RequestLength::Answer),
            (26, RequestLength::Sentence),
            (38, RequestLength::Paragraph),
            (24, RequestLength::SeveralLines),
            (6, RequestLength::PastedText),
        ]);
        let form = self.request_form(length);
        self.finish_current_request(form);
        let path = self.random_source_path();
        let proposal = (length == RequestLength::Answer).then(|| self.phrases.proposal(&path));
        if let Some(proposal) = &proposal {
            let question = self.phrases.request_sentence();
            self.add_prompt(question.clone(), PromptForm::Typed);
            self.work.outdated_statements.finished_requests.push(question);
            let call = self.routine_call();
            self.write_call(call);
            let text = format!("{}\n\n{proposal}", self.phrases.filler_paragraphs());
            self.write_message(Some(text), Vec::new());
            self.events.push(Event::TurnEnd);
        }
        let mut text = self.request_text(length);
        let needs_secret = self.traits.has_secret_in_request && length != RequestLength::Answer;
        let secret = needs_secret.then(|| pasted_token(&mut self.draws));
        if let Some(secret) = &secret {
            text += &format!("\nUse the token {secret} for the staging server.");
            self.work.secrets.push(secret.clone());
        }
        self.add_prompt(text.clone(), form);
        let segment = self.segment;
        self.work.request =
            Some(CurrentRequest { secret, form, proposal, ..CurrentRequest::typed(text, segment) });
        self.start_list_for_request();
    }

    fn request_form(&mut self, length: RequestLength) -> PromptForm {
        let may_be_queued = self.message_count > 2 && length != RequestLength::Answer;
        let form = self.draws.pick_weighted(&[
            (72, PromptForm::Typed),
            (10, PromptForm::Blocks),
            (4, PromptForm::WithImage),
            (9, PromptForm::Queued),
            (5, PromptForm::SlashCommand),
        ]);
        match form {
            PromptForm::Queued if !may_be_queued => PromptForm::Typed,
            PromptForm::SlashCommand if length == RequestLength::Answer => PromptForm::Typed,
            form => form,
        }
    }

    /// Writes the request that is done before the main request begins.
    pub(super) fn write_earlier_request(&mut self) {
        let text = self.request_text(RequestLength::Paragraph);
        self.add_prompt(text.clone(), PromptForm::Typed);
        self.work.request = Some(CurrentRequest::typed(text, self.segment));
    }

    /// Finishes the current request. If the next one is queued, the turn goes on.
    fn finish_current_request(&mut self, next_form: PromptForm) {
        let Some(request) = self.work.request.take() else { return };
        if next_form != PromptForm::Queued {
            let text = format!("Done: {}", self.phrases.filler_paragraphs());
            self.write_message(Some(text), Vec::new());
            self.events.push(Event::TurnEnd);
        }
        // An answer such as "yes" cannot be told from others.
        if request.proposal.is_none() {
            self.work.outdated_statements.finished_requests.push(request.text);
        }
        self.finish_announced_step();
    }

    pub(super) fn add_prompt(&mut self, text: String, form: PromptForm) {
        self.segment_bytes += text.len();
        self.events.push(Event::Prompt { text, form });
    }

    fn request_text(&mut self, length: RequestLength) -> String {
        match length {
            RequestLength::Answer => {
                (*self.draws.pick(&["yes", "do it", "2", "y", "ok, the second", "ja", "go ahead 👍"]))
                    .to_owned()
            }
            RequestLength::Sentence => self.phrases.request_sentence(),
            RequestLength::Paragraph => {
                let sentences: Vec<String> =
                    (0..self.draws.number_between(2, 4)).map(|_| self.phrases.request_sentence()).collect();
                sentences.join(" ")
            }
            RequestLength::SeveralLines => self.request_of_several_lines(),
            RequestLength::PastedText => {
                let wish = self.phrases.request_sentence();
                let chars = self.draws.number_between(1_500, 4_000);
                format!("{wish}\n\n```\n{}\n```", self.log_output(chars).join("\n"))
            }
        }
    }

    fn request_of_several_lines(&mut self) -> String {
        let opening = self.phrases.request_sentence();
        let wishes: Vec<String> =
            (0..self.draws.number_between(2, 4)).map(|_| self.phrases.request_sentence()).collect();
        match self.draws.number_below(4) {
            0 => format!("{opening}\n\n- {}", wishes.join("\n- ")),
            1 => format!("# Task\n\n{opening}\n\n## Details\n\n1. {}", wishes.join("\n2. ")),
            2 => {
                let path = self.random_source_path();
                let error = self.phrases.error_line(&path);
                format!(
                    "{opening}\n\nI get this:\n\n```\n$ run {}\n    {error}\n```\n\n{}",
                    self.phrases.noun(),
                    wishes.join("\n")
                )
            }
            _ => {
                let path = self.random_source_path();
                format!(
                    "{opening}\n> {}\n\nsee {PROJECT_PLACEHOLDER}/{path}\n{}",
                    self.phrases.filler_text(),
                    wishes.join("\n\n")
                )
            }
        }
    }

    /// Writes a prompt that adds something to the current request.
    pub(super) fn write_addition(&mut self) {
        let text = self.phrases.request_addition();
        self.end_turn_and_write_prompt(text.clone());
        self.record_addition(text);
    }

    pub(super) fn record_addition(&mut self, text: String) {
        if let Some(request) = &mut self.work.request {
            request.additions.push(text);
        }
    }

    /// Writes a prompt, either queued while the model works or after the end of a turn.
    pub(super) fn end_turn_and_write_prompt(&mut self, text: String) {
        if self.traits.queues_prompts && self.draws.bool_with_percent(60) {
            return self.add_prompt(text, PromptForm::Queued);
        }
        let last_words = format!("{} {}", self.phrases.filler_paragraphs(), self.closing_words());
        self.write_message(Some(last_words), Vec::new());
        self.events.push(Event::TurnEnd);
        self.add_prompt(text, PromptForm::Typed);
    }

    fn closing_words(&mut self) -> &'static str {
        if self.phrases.language == Language::German { "Soll ich weitermachen?" } else { "Shall I continue?" }
    }

    /// Interrupts the model, and says what it shall do instead.
    pub(super) fn write_interruption(&mut self) {
        let rejected_call = self.draws.bool_with_percent(50).then(|| {
            let command = format!("rm -rf build/{}", self.phrases.noun());
            ToolCall::new_bash(&command, "")
        });
        self.events.push(Event::Interruption { rejected_call });
        let text = self.phrases.request_addition();
        self.add_prompt(text.clone(), PromptForm::Typed);
        self.record_addition(text);
    }
}
