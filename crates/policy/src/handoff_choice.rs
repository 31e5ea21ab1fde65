//! Chooses the handoff that `/handoff continue` continues from.

/// The author of a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffOrigin {
    /// A session of this user, according to the user's own state or to the session that asks.
    OwnSession,
    /// Unknown: the file may have come with a clone, and a model would follow its instructions.
    Unknown,
}

/// The chosen handoff, and the newer ones that were not chosen, as indexes into the given list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffChoice {
    /// The newest handoff that a session of this user wrote.
    pub newest_own: Option<usize>,
    /// Newer handoffs of unknown origin, which are shown and not followed.
    pub newer_unknown: Vec<usize>,
}

/// At most this many handoffs of unknown origin are shown.
const MAX_SHOWN_UNKNOWN: usize = 3;

/// Chooses from handoffs that are listed newest first.
pub fn choose_handoff(origins: &[HandoffOrigin]) -> HandoffChoice {
    let newest_own = origins.iter().position(|origin| *origin == HandoffOrigin::OwnSession);
    let unknown_count = newest_own.unwrap_or(origins.len()).min(MAX_SHOWN_UNKNOWN);
    HandoffChoice { newest_own, newer_unknown: (0..unknown_count).collect() }
}

#[cfg(test)]
mod tests {
    use super::HandoffOrigin::{OwnSession, Unknown};
    use super::*;

    #[test]
    fn a_handoff_of_unknown_origin_is_shown_and_never_chosen() {
        for (origins, newest_own, newer_unknown) in [
            (&[][..], None, &[][..]),
            (&[OwnSession, Unknown, OwnSession], Some(0), &[]),
            (&[Unknown, OwnSession], Some(1), &[0]),
            (&[Unknown; 5], None, &[0, 1, 2]),
        ] {
            let expected = HandoffChoice { newest_own, newer_unknown: newer_unknown.to_vec() };
            assert_eq!(choose_handoff(origins), expected, "{origins:?}");
        }
    }
}
