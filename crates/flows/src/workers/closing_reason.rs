//! The reason why a parallel run begins no more items.

use plimsoll_domain::RunStatus;
use plimsoll_domain::text::{to_single_line, truncate_end};
use plimsoll_domain::verdict::PauseKind;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClosingReason {
    /// Ctrl-C.
    Interrupted,
    /// `plimsoll stop`.
    Cancelled,
    /// The run ends with this status and reason.
    Stop(RunStatus, String),
    /// The run pauses until the user resumes it.
    Pause(PauseKind, String),
}

impl ClosingReason {
    /// Describes for people why no new item starts.
    pub(super) fn describe(&self) -> String {
        match self {
            ClosingReason::Interrupted => "Ctrl-C".to_owned(),
            ClosingReason::Cancelled => "plimsoll stop".to_owned(),
            ClosingReason::Stop(_, reason) | ClosingReason::Pause(_, reason) => {
                truncate_end(&to_single_line(reason), 200)
            }
        }
    }

    /// Returns true if running sessions are ended at once instead of being allowed to finish.
    pub(super) fn ends_sessions_at_once(&self) -> bool {
        matches!(self, ClosingReason::Cancelled | ClosingReason::Stop(RunStatus::Canceled, _))
    }
}
