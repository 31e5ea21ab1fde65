//! What sentences are made of: how they sound, and facts that fit into one.

use plimsoll_domain::text::{clip, one_line};

/// How a line sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As most do.
    Plain,
    /// A step of the run.
    Bold,
    /// It went well.
    Good,
    /// The user should look.
    Bad,
}

/// No fact needs more room.
const LONGEST: usize = 200;

/// A fact on one line, and not too long.
pub(super) fn brief(words: &str) -> String {
    clip(&one_line(words), LONGEST)
}
