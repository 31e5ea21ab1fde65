//! What is known of a session when it is judged.

use crate::breaker::Observation;
use plimsoll_domain::journal::Verification;
use plimsoll_domain::{Ending, RunState, Timestamp, TodoList};

/// What is known when the gate judges.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// How the session ended.
    pub ending: Ending,
    /// The item that it worked on last; none for the one that its iteration was planned with.
    pub item: Option<String>,
    /// When the limit that ended it resets, RFC 3339 UTC.
    pub resets_at: Option<Timestamp>,
    /// The last assistant message, as the client handed it over.
    pub last_message: Option<String>,
    /// True when the root frame of the run's working memory has popped: as good as the promise line.
    pub root_popped: bool,
    /// The plan; none when the run has none or its file is missing.
    pub todo: Option<TodoList>,
    /// What the verify commands said; empty before they have run.
    pub verify: Vec<VerifyOutcome>,
    /// The changes of protected files; none at Stop, where they are not read.
    pub changed_protected: Vec<String>,
    /// True if no session can undo one of these changes.
    pub protected_needs_user: bool,
    /// What the session came to; none at Stop, where it is too early to count.
    pub observation: Option<Observation>,
    /// True when the session's fill stood at L2 or above before any work.
    pub started_above: bool,
    /// Now: RFC 3339 UTC, whole seconds.
    pub now: Timestamp,
    /// Now, in seconds since 1970.
    pub now_seconds: i64,
}

impl Evidence {
    /// The item that the session worked on last.
    pub fn own_item<'a>(&'a self, state: &'a RunState) -> Option<&'a String> {
        self.item.as_ref().or(state.iteration_record.item.as_ref())
    }
}

/// What one verify command said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyOutcome {
    /// The command.
    pub command: String,
    /// True when it exited with 0 in time.
    pub passed: bool,
    /// How it ended and what it printed, shortened.
    pub words: String,
    /// How long it took.
    pub seconds: u64,
    /// True if it could not be started, or was ended at the run's deadline: it did not pass, and did not fail either.
    pub is_undecided: bool,
}

impl VerifyOutcome {
    /// As the journal has it.
    pub fn fact(&self) -> Verification {
        Verification {
            command: self.command.clone(),
            passed: self.passed,
            words: self.words.clone(),
            seconds: Some(self.seconds),
        }
    }
}
