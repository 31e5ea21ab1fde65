//! Tone of a sentence, and short forms of the facts in it.

use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// How a line is emphasized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStyle {
    /// An ordinary line.
    Plain,
    /// A step of the run.
    Bold,
    /// Something succeeded.
    Good,
    /// Something that the user should look at.
    Bad,
}

/// Maximum characters of a fact.
const MAX_VALUE_CHARS: usize = 200;

/// Returns a fact on one line, shortened if necessary.
pub(super) fn shorten_to_single_line(text: &str) -> String {
    truncate_end(&to_safe_single_line(text), MAX_VALUE_CHARS)
}
