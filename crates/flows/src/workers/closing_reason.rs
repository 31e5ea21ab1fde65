//! The reason why a parallel run starts no more items.

use plimsoll_domain::RunStatus;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::PauseKind;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClosingReason {
    /// Ctrl-C.
    Interrupted,
    /// `plimsoll stop`.
    Canceled,
    /// The run ends with this status and reason.
    Stop(RunStatus, String),
    /// The run pauses until the user resumes it.
    Pause(PauseKind, String),
}

impl ClosingReason {
    /// Describes, for the user, why no new item starts.
    pub(super) fn describe(&self) -> String {
        match self {
            ClosingReason::Interrupted => "Ctrl-C".to_owned(),
            ClosingReason::Canceled => "plimsoll stop".to_owned(),
            ClosingReason::Stop(_, reason) | ClosingReason::Pause(_, reason) => {
                truncate_end(&to_safe_single_line(reason), 200)
            }
        }
    }

    /// Returns true if running sessions are ended immediately instead of being allowed to finish.
    pub(super) fn should_end_sessions_immediately(&self) -> bool {
        matches!(self, ClosingReason::Canceled | ClosingReason::Stop(RunStatus::Canceled, _))
    }
}
