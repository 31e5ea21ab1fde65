//! Questions to the user below the items of a plan: an indented `? …` line, and the `! …` lines below it with
//! the answer.

use serde::{Deserialize, Serialize};

/// A question below an item, with its answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The text after the `?`.
    pub text: String,
    /// The text after each `!` below it.
    pub answers: Vec<String>,
}

/// An open item that waits for the user's answer, as a run's state stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenQuestion {
    pub item: String,
    /// The question, clipped to the length that is kept.
    pub question: String,
    /// The iteration that asked the question; 0 if it was in the plan before a session began.
    pub iteration: u32,
    /// True once the user was notified of the question.
    #[serde(rename = "told")]
    pub was_notified: bool,
}

/// The maximum length of a question that is kept, in characters.
const MAX_QUESTION_CHARS: usize = 500;

impl OpenQuestion {
    /// Clips a question to the length that is kept. Questions are compared in this form.
    pub fn clip_question(question: &str) -> String {
        crate::text::truncate_end(question, MAX_QUESTION_CHARS)
    }
}

/// Parses the question on a line. A line that is not indented is the user's own text.
pub(crate) fn parse_question_line(line: &str) -> Option<String> {
    text_after_mark(line, '?')
}

/// Parses the answer on an indented line.
pub(crate) fn parse_answer_line(line: &str) -> Option<String> {
    text_after_mark(line, '!')
}

// The space after the mark is required: `![…](…)` is an image, and `?x=1` part of a URL.
fn text_after_mark(line: &str, mark: char) -> Option<String> {
    let rest = line.strip_prefix([' ', '\t'])?.trim_start().strip_prefix(mark)?;
    let text = crate::text::to_safe_single_line(rest.strip_prefix([' ', '\t'])?);
    (!text.is_empty()).then_some(text)
}
