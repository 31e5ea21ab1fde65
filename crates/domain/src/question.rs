//! Questions to the user below the items of a plan: an indented `? …` line, and the `! …` lines below it that answer it.

use serde::{Deserialize, Serialize};

/// One question below an item, with the lines that answer it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The words behind the `?`.
    pub text: String,
    /// The words behind each `!` below it.
    pub answers: Vec<String>,
}

/// An open item that waits for the user's answer, as a run's state knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenQuestion {
    /// The item.
    pub item: String,
    /// The question, clipped.
    pub question: String,
    /// The iteration that asked it; 0 if it was there before a session began.
    pub iteration: u32,
    /// True once the user was notified of it.
    pub told: bool,
}

/// How much of a question is kept.
const KEPT: usize = 500;

impl OpenQuestion {
    /// As much of a question as is kept; by it the question is known again.
    pub fn kept(question: &str) -> String {
        crate::text::clip(question, KEPT)
    }
}

/// The question on a line; a line that is not indented is the user's own text.
pub(crate) fn question(line: &str) -> Option<String> {
    behind(line, '?')
}

/// The answer on a line.
pub(crate) fn answer(line: &str) -> Option<String> {
    behind(line, '!')
}

// The blank behind the mark is required: `![…](…)` is a picture, and `?x=1` part of an address.
fn behind(line: &str, mark: char) -> Option<String> {
    let rest = line.strip_prefix([' ', '\t'])?.trim_start().strip_prefix(mark)?;
    let text = crate::text::one_line(rest.strip_prefix([' ', '\t'])?);
    (!text.is_empty()).then_some(text)
}
