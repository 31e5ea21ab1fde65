//! A hook's answer to its three readers: one JSON object for the client and the model, the marker in it for
//! people and scripts, the exit code for a shell. Never exit code 2: that means "block" to the client.

use protocol::Reply;

/// What a hook prints, and how it exits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signal {
    /// Standard output.
    pub stdout: Option<String>,
    /// Lines for standard error.
    pub complaints: Vec<String>,
    /// 0 or 1.
    pub exit: u8,
}

impl Signal {
    /// Says nothing and changes nothing.
    pub fn quiet() -> Signal {
        Signal::reply(&Reply::default())
    }

    /// One JSON object.
    pub fn reply(reply: &Reply) -> Signal {
        Signal { stdout: Some(reply.to_line()), ..Signal::default() }
    }

    /// Plain text: only PreCompact's output is read so.
    pub fn text(text: Option<String>) -> Signal {
        Signal { stdout: text, ..Signal::default() }
    }

    /// A fault of our own: one line for a person, a reply that changes nothing.
    pub fn fault(complaint: impl std::fmt::Display) -> Signal {
        Signal::quiet().with_complaint(Some(complaint.to_string()))
    }

    /// Sets the exit code.
    pub fn exit(mut self, code: u8) -> Signal {
        self.exit = code;
        self
    }

    /// Adds a line for a person.
    pub fn with_complaint(mut self, complaint: Option<impl std::fmt::Display>) -> Signal {
        self.complaints.extend(complaint.map(|complaint| session::text::one_line(&complaint.to_string())));
        self
    }
}
