//! Why a parallel run begins nothing new any more.

use plimsoll_domain::Status;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::verdict::PauseKind;

/// Why nothing new is begun any more.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Closing {
    /// Ctrl-C.
    Interrupted,
    /// `plimsoll stop`.
    Cancelled,
    /// The run is over.
    Stop(Status, String),
    /// It goes on when the user says so.
    Pause(PauseKind, String),
}

impl Closing {
    /// Why no new item starts, for people.
    pub(super) fn reason(&self) -> String {
        match self {
            Closing::Interrupted => "Ctrl-C".to_owned(),
            Closing::Cancelled => "plimsoll stop".to_owned(),
            Closing::Stop(_, reason) | Closing::Pause(_, reason) => clip(&one_line(reason), 200),
        }
    }

    /// Returns true if the sessions that are running are ended at once, and do not come to their own end.
    pub(super) fn ends_at_once(&self) -> bool {
        matches!(self, Closing::Cancelled | Closing::Stop(Status::Cancelled, _))
    }
}
