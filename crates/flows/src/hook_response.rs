//! A hook's response: one JSON object for the client and the model, which contains a marker for people and scripts, and
//! the exit code for a shell. The exit code is never 2, which the client treats as "block".

use crate::hook_invocation::InputError;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::memory::render::MAX_ENTRY_UTF16_UNITS;
use plimsoll_protocol::HookReply;

/// The output of a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum HookOutput {
    #[default]
    Nothing,
    /// Plain text: the client reads only PreCompact's output and the status line as text.
    Text(String),
    Reply(Box<HookReply>),
}

/// A hook's output on standard output and standard error, and its exit status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookResponse {
    output: HookOutput,
    pub stderr_lines: Vec<String>,
    /// Success or failure; never 2.
    pub exit_status: ExitStatus,
}

impl HookResponse {
    /// Returns a response with an empty JSON object, which shows nothing and changes nothing.
    pub fn empty() -> HookResponse {
        HookResponse::from_reply(&HookReply::default())
    }

    /// Returns a response with one JSON object.
    pub fn from_reply(reply: &HookReply) -> HookResponse {
        HookResponse { output: HookOutput::Reply(Box::new(reply.clone())), ..HookResponse::default() }
    }

    /// Returns a response with plain text, for PreCompact and the status line only. `None` prints nothing.
    pub fn from_text(text: Option<String>) -> HookResponse {
        HookResponse { output: text.map_or(HookOutput::Nothing, HookOutput::Text), ..HookResponse::default() }
    }

    pub fn render_stdout(&self) -> Option<String> {
        match &self.output {
            HookOutput::Nothing => None,
            HookOutput::Text(text) => Some(text.clone()),
            // Only the object: with a line before or after it, the client treats all of the output as plain text
            // (2.1.329).
            HookOutput::Reply(reply) => Some(reply.to_sanitized_json()),
        }
    }

    /// Returns true if the client ignores the response: no output, or an empty JSON object.
    pub fn has_no_effect_on_client(&self) -> bool {
        match &self.output {
            HookOutput::Nothing => true,
            HookOutput::Text(_) => false,
            HookOutput::Reply(reply) => **reply == HookReply::default(),
        }
    }

    pub fn ends_session(&self) -> bool {
        matches!(&self.output, HookOutput::Reply(reply) if reply.should_continue == Some(false))
    }

    /// Returns how many UTF-16 units can still be added for the model. The client truncates a longer text to a preview.
    pub fn remaining_context_units(&self) -> usize {
        let HookOutput::Reply(reply) = &self.output else { return MAX_ENTRY_UTF16_UNITS };
        let used_units = reply.model_context().map_or(0, |text| text.encode_utf16().count() + 1);
        MAX_ENTRY_UTF16_UNITS.saturating_sub(used_units)
    }

    /// Appends text for the model, and replaces plain-text output. An empty text adds nothing.
    pub fn append_model_context(self, event_name: &str, text: &str) -> HookResponse {
        let reply = match self.output {
            HookOutput::Reply(reply) => *reply,
            HookOutput::Nothing | HookOutput::Text(_) => HookReply::default(),
        };
        HookResponse {
            output: HookOutput::Reply(Box::new(reply.append_model_context(event_name, text))),
            ..self
        }
    }

    /// Returns the response to an error in Plimsoll: one line on standard error, and an empty JSON object.
    pub fn from_error(error: impl std::fmt::Display) -> HookResponse {
        HookResponse::empty().with_stderr_line(Some(error.to_string()))
    }

    /// Returns the response to an input that cannot be handled. An event of another client is not an error, so the
    /// response is empty and nothing is recorded.
    pub fn for_input_error(error: &InputError) -> HookResponse {
        match error {
            InputError::OtherClient { .. } => HookResponse::empty(),
            other => HookResponse::from_error(other),
        }
    }

    pub fn with_exit_status(mut self, status: ExitStatus) -> HookResponse {
        // For shells only: the client also honors valid JSON with exit code 1 (observed on 1.0.128 to 2.1.329).
        self.exit_status = status;
        self
    }

    /// Adds a line to standard error.
    pub fn with_stderr_line(mut self, message: Option<impl std::fmt::Display>) -> HookResponse {
        self.stderr_lines
            .extend(message.map(|message| plimsoll_domain::text::to_safe_single_line(&message.to_string())));
        self
    }
}
