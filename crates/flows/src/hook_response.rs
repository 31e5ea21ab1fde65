//! A hook's answer to its three readers: one JSON object for the client and the model, the marker in it for
//! people and scripts, the exit code for a shell. Never exit code 2: that means "block" to the client.

use crate::hook_invocation::InputError;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::memory::render::ENTRY_UNITS;
use plimsoll_protocol::Reply;

/// What a hook prints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Output {
    /// Nothing.
    #[default]
    Nothing,
    /// Plain text: only PreCompact's output and the status line are read so.
    Text(String),
    /// One JSON object.
    Reply(Box<Reply>),
}

/// What a hook prints, and how it exits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookResponse {
    output: Output,
    /// Lines for standard error.
    pub complaints: Vec<String>,
    /// 0 or 1.
    pub exit: ExitStatus,
}

impl HookResponse {
    /// Says nothing and changes nothing.
    pub fn quiet() -> HookResponse {
        HookResponse::reply(&Reply::default())
    }

    /// One JSON object.
    pub fn reply(reply: &Reply) -> HookResponse {
        HookResponse { output: Output::Reply(Box::new(reply.clone())), ..HookResponse::default() }
    }

    /// Plain text: only PreCompact's output and the status line are read so.
    pub fn text(text: Option<String>) -> HookResponse {
        HookResponse { output: text.map_or(Output::Nothing, Output::Text), ..HookResponse::default() }
    }

    /// Standard output.
    pub fn stdout(&self) -> Option<String> {
        match &self.output {
            Output::Nothing => None,
            Output::Text(text) => Some(text.clone()),
            // Nothing but the object: one line before or after it makes the client take all of it for plain text (2.1.329).
            Output::Reply(reply) => Some(reply.to_line()),
        }
    }

    /// True if it says nothing, to nobody.
    pub fn is_quiet(&self) -> bool {
        match &self.output {
            Output::Nothing => true,
            Output::Text(_) => false,
            Output::Reply(reply) => **reply == Reply::default(),
        }
    }

    /// True if it ends the session.
    pub fn ends_session(&self) -> bool {
        matches!(&self.output, Output::Reply(reply) if reply.continues == Some(false))
    }

    /// How much may be added for the model, in UTF-16 units: of more than one reply may say the client shows a preview only.
    pub fn room(&self) -> usize {
        let Output::Reply(reply) = &self.output else { return ENTRY_UNITS };
        let said = reply.context().map_or(0, |text| text.encode_utf16().count() + 1);
        ENTRY_UNITS.saturating_sub(said)
    }

    /// Adds text for the model behind what is there. An empty text adds nothing.
    pub fn also_telling(self, event: &str, text: &str) -> HookResponse {
        let reply = match self.output {
            Output::Reply(reply) => *reply,
            Output::Nothing | Output::Text(_) => Reply::default(),
        };
        HookResponse { output: Output::Reply(Box::new(reply.also_tell_model(event, text))), ..self }
    }

    /// A fault of our own: one line for the user, a reply that changes nothing.
    pub fn fault(complaint: impl std::fmt::Display) -> HookResponse {
        HookResponse::quiet().with_complaint(Some(complaint.to_string()))
    }

    /// Answers to an input that is not an event of a session that Plimsoll measures. Another client's is no fault, and nothing is
    /// recorded of it.
    pub fn for_input_error(error: &InputError) -> HookResponse {
        match error {
            InputError::OtherClient { .. } => HookResponse::quiet(),
            other => HookResponse::fault(other),
        }
    }

    /// Sets the exit code.
    pub fn exit(mut self, status: ExitStatus) -> HookResponse {
        // For shells only: valid JSON is honoured with exit code 1 too (seen on 1.0.128 to 2.1.329).
        self.exit = status;
        self
    }

    /// Adds a line for the user.
    pub fn with_complaint(mut self, complaint: Option<impl std::fmt::Display>) -> HookResponse {
        self.complaints
            .extend(complaint.map(|complaint| plimsoll_domain::text::one_line(&complaint.to_string())));
        self
    }
}
