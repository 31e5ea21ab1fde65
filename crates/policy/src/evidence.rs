//! The evidence about a session on which verdicts are based.

use crate::breaker::SessionObservation;
use plimsoll_domain::journal::VerifyResult;
use plimsoll_domain::{RunState, SessionEnding, Timestamp, TodoList};

/// The evidence about one session on which the gate bases its verdict.
#[derive(Debug, Clone, Default)]
pub struct SessionEvidence {
    /// How the session ended.
    pub ending: SessionEnding,
    /// The item that the session worked on last; `None` if it is the item planned for its iteration.
    pub last_item: Option<String>,
    /// When the usage limit that ended the session resets, RFC 3339 UTC.
    pub limit_resets_at: Option<Timestamp>,
    /// The last assistant message, as the client passed it to the hook.
    pub last_message: Option<String>,
    /// True if the root frame of the run's working memory was popped, which counts like the promise line.
    pub is_root_frame_popped: bool,
    /// The plan; `None` if the run has none or its file is missing.
    pub todo: Option<TodoList>,
    /// Results of the verify commands; empty before they have run.
    pub verify_outcomes: Vec<VerifyOutcome>,
    /// Changes to protected files; empty in the Stop hook, which does not read them.
    pub protected_file_changes: Vec<String>,
    /// True if no session can undo one of these changes.
    pub only_user_can_restore_protected: bool,
    /// The figures that the circuit breaker counts; `None` in the Stop hook, where it is too early to count.
    pub observation: Option<SessionObservation>,
    /// True if usage was at L2 or above before the session did any work.
    pub started_at_or_above_l2: bool,
    /// The current time, RFC 3339 UTC in whole seconds.
    pub now: Timestamp,
    /// The current time in seconds since the Unix epoch.
    pub now_seconds: i64,
}

impl SessionEvidence {
    /// Returns the item that the session worked on last, by default the one planned for its iteration.
    pub fn item_worked_on<'a>(&'a self, state: &'a RunState) -> Option<&'a String> {
        self.last_item.as_ref().or(state.iteration_record.item.as_ref())
    }
}

/// The result of one verify command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyOutcome {
    pub command: String,
    /// True if the command exited with 0 within its timeout.
    pub passed: bool,
    /// How the command ended and what it printed, shortened.
    pub summary: String,
    pub seconds: u64,
    /// True if the command could not be started, or was ended at the run's deadline. It neither passed nor failed.
    pub is_inconclusive: bool,
}

impl VerifyOutcome {
    /// Converts the outcome to the type that the journal records.
    pub fn to_verify_result(&self) -> VerifyResult {
        VerifyResult {
            command: self.command.clone(),
            passed: self.passed,
            output_tail: self.summary.clone(),
            seconds: Some(self.seconds),
        }
    }
}
