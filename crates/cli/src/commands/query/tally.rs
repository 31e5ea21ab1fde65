//! What an exit code says of the answers.

use super::engine::Answer;
use jaq_core::ValT;

/// Wrong usage, or a document that is not available or is no JSON.
pub(super) const UNUSABLE: u8 = 2;
/// The filter does not compile.
pub(super) const NOT_COMPILED: u8 = 3;
const FALSE_OR_NULL: u8 = 1;
const NO_ANSWER: u8 = 4;
const FAILED: u8 = 5;

/// The answers as far as the exit code depends on them.
#[derive(Debug, Default)]
pub(super) struct Tally {
    last: Option<bool>,
    has_failed: bool,
    halted: Option<i32>,
}

impl Tally {
    /// Counts an answer.
    pub(super) fn count(&mut self, answer: &Answer) {
        match answer {
            Answer::Value(value) => self.last = Some(value.as_bool()),
            Answer::Error(_) => self.has_failed = true,
            Answer::Halt(code) => self.halted = Some(*code),
        }
    }

    /// The exit code. Unlike in jq 1.6 an error counts wherever it was, not only on the last input.
    pub(super) fn exit_code(&self, of_last_answer: bool, input_is_faulty: bool) -> u8 {
        match (self.halted, self.last) {
            // As the system does: the lowest eight bits.
            (Some(code), _) => code.to_le_bytes()[0],
            _ if input_is_faulty => UNUSABLE,
            _ if self.has_failed => FAILED,
            (_, None) if of_last_answer => NO_ANSWER,
            (_, Some(false)) if of_last_answer => FALSE_OR_NULL,
            _ => 0,
        }
    }
}
