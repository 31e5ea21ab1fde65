//! A hook's answer to its three readers: one JSON object for the client and the model, the marker in it for
//! people and scripts, the exit code for a shell. Never exit code 2: that means "block" to the client.

use plimsoll_protocol::Reply;

/// What a hook prints, and how it exits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookResponse {
    /// Standard output.
    pub stdout: Option<String>,
    /// Lines for standard error.
    pub complaints: Vec<String>,
    /// 0 or 1.
    pub exit: u8,
}

impl HookResponse {
    /// Says nothing and changes nothing.
    pub fn quiet() -> HookResponse {
        HookResponse::reply(&Reply::default())
    }

    /// One JSON object.
    pub fn reply(reply: &Reply) -> HookResponse {
        // Nothing but the object: one line before or after it makes the client take all of it for plain text (2.1.329).
        HookResponse { stdout: Some(reply.to_line()), ..HookResponse::default() }
    }

    /// Plain text: only PreCompact's output is read so.
    pub fn text(text: Option<String>) -> HookResponse {
        HookResponse { stdout: text, ..HookResponse::default() }
    }

    /// A fault of our own: one line for the user, a reply that changes nothing.
    pub fn fault(complaint: impl std::fmt::Display) -> HookResponse {
        HookResponse::quiet().with_complaint(Some(complaint.to_string()))
    }

    /// Sets the exit code.
    pub fn exit(mut self, code: u8) -> HookResponse {
        // For shells only: valid JSON is honoured with exit code 1 too (seen on 1.0.128 to 2.1.329).
        self.exit = code;
        self
    }

    /// Adds a line for the user.
    pub fn with_complaint(mut self, complaint: Option<impl std::fmt::Display>) -> HookResponse {
        self.complaints
            .extend(complaint.map(|complaint| plimsoll_domain::text::one_line(&complaint.to_string())));
        self
    }
}
