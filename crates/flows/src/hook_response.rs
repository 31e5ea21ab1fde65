//! A hook's response to its three readers: one JSON object for the client and the model, a marker in it for
//! people and scripts, and the exit code for a shell. The exit code is never 2, which means "block" to the
//! client.

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

/// The output of a hook and its exit status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookResponse {
    output: HookOutput,
    pub stderr_lines: Vec<String>,
    /// Success or failure; never 2.
    pub exit_status: ExitStatus,
}

impl HookResponse {
    /// A response that shows nothing and changes nothing.
    pub fn empty() -> HookResponse {
        HookResponse::from_reply(&HookReply::default())
    }

    /// A response with one JSON object.
    pub fn from_reply(reply: &HookReply) -> HookResponse {
        HookResponse { output: HookOutput::Reply(Box::new(reply.clone())), ..HookResponse::default() }
    }

    /// A response with plain text: the client reads only PreCompact's output and the status line as text.
    pub fn from_text(text: Option<String>) -> HookResponse {
        HookResponse { output: text.map_or(HookOutput::Nothing, HookOutput::Text), ..HookResponse::default() }
    }

    pub fn stdout(&self) -> Option<String> {
        match &self.output {
            HookOutput::Nothing => None,
            HookOutput::Text(text) => Some(text.clone()),
            // Nothing but the object: with one line before or after it, the client treats all of it as plain
            // text (2.1.329).
            HookOutput::Reply(reply) => Some(reply.to_json_line()),
        }
    }

    /// Returns true if the response has no effect on the client.
    pub fn is_empty(&self) -> bool {
        match &self.output {
            HookOutput::Nothing => true,
            HookOutput::Text(_) => false,
            HookOutput::Reply(reply) => **reply == HookReply::default(),
        }
    }

    pub fn ends_session(&self) -> bool {
        matches!(&self.output, HookOutput::Reply(reply) if reply.should_continue == Some(false))
    }

    /// Returns how many UTF-16 units may still be added for the model. The client shows only a preview of a
    /// longer text.
    pub fn remaining_context_units(&self) -> usize {
        let HookOutput::Reply(reply) = &self.output else { return MAX_ENTRY_UTF16_UNITS };
        let used_units = reply.model_context().map_or(0, |text| text.encode_utf16().count() + 1);
        MAX_ENTRY_UTF16_UNITS.saturating_sub(used_units)
    }

    /// Appends text for the model. An empty text adds nothing.
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

    /// A response for a fault of our own: one line on standard error, and an object that changes nothing.
    pub fn from_fault(error: impl std::fmt::Display) -> HookResponse {
        HookResponse::empty().with_stderr_line(Some(error.to_string()))
    }

    /// Returns the response to an input that is not an event of a session that Plimsoll measures. An event of
    /// another client is not a fault, and nothing is recorded.
    pub fn for_input_error(error: &InputError) -> HookResponse {
        match error {
            InputError::OtherClient { .. } => HookResponse::empty(),
            other => HookResponse::from_fault(other),
        }
    }

    pub fn with_exit_status(mut self, status: ExitStatus) -> HookResponse {
        // For shells only: valid JSON is honored with exit code 1 too (seen on 1.0.128 to 2.1.329).
        self.exit_status = status;
        self
    }

    /// Adds a line to standard error.
    pub fn with_stderr_line(mut self, message: Option<impl std::fmt::Display>) -> HookResponse {
        self.stderr_lines
            .extend(message.map(|message| plimsoll_domain::text::to_single_line(&message.to_string())));
        self
    }
}
