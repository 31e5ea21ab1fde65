//! Which handoff `/handoff continue` continues from.

/// Who wrote a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffOrigin {
    /// A session of this user: the user's own state, or the session that asks, says so.
    OwnSession,
    /// Somebody; the file may have come with a clone, and a model would follow what it says.
    Unknown,
}

/// The choice, by places in the list that was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffChoice {
    /// The newest that a session of this user wrote.
    pub newest: Option<usize>,
    /// Newer ones of unknown origin: they are shown and not followed.
    pub passed_over: Vec<usize>,
}

/// So many of unknown origin are shown.
const SHOWN: usize = 3;

/// Chooses from handoffs that are listed newest first.
pub fn choose(origins: &[HandoffOrigin]) -> HandoffChoice {
    let newest = origins.iter().position(|origin| *origin == HandoffOrigin::OwnSession);
    let unknown_count = newest.unwrap_or(origins.len()).min(SHOWN);
    HandoffChoice { newest, passed_over: (0..unknown_count).collect() }
}

#[cfg(test)]
mod tests {
    use super::HandoffOrigin::{OwnSession, Unknown};
    use super::*;

    #[test]
    fn a_handoff_of_unknown_origin_is_shown_and_never_chosen() {
        for (origins, newest, passed_over) in [
            (&[][..], None, &[][..]),
            (&[OwnSession, Unknown, OwnSession], Some(0), &[]),
            (&[Unknown, OwnSession], Some(1), &[0]),
            (&[Unknown; 5], None, &[0, 1, 2]),
        ] {
            let expected = HandoffChoice { newest, passed_over: passed_over.to_vec() };
            assert_eq!(choose(origins), expected, "{origins:?}");
        }
    }
}
