//! The exit code of a query, which depends on the outputs of its filter.

use super::engine::FilterOutput;
use jaq_core::ValT;

/// Exit code for wrong usage, and for a document that is missing or not JSON.
pub(super) const EXIT_USAGE: u8 = 2;
/// Exit code for a filter that does not compile.
pub(super) const EXIT_NOT_COMPILED: u8 = 3;
const EXIT_FALSE_OR_NULL: u8 = 1;
const EXIT_NO_OUTPUT: u8 = 4;
const EXIT_FILTER_ERROR: u8 = 5;

/// Records what the exit code needs to know about the outputs.
#[derive(Debug, Default)]
pub(super) struct OutputSummary {
    is_last_output_true: Option<bool>,
    has_error: bool,
    halt_code: Option<i32>,
}

impl OutputSummary {
    /// Records an output.
    pub(super) fn record(&mut self, output: &FilterOutput) {
        match output {
            FilterOutput::Value(value) => self.is_last_output_true = Some(value.as_bool()),
            FilterOutput::Error(_) => self.has_error = true,
            FilterOutput::Halt(code) => self.halt_code = Some(*code),
        }
    }

    /// Returns the exit code. Unlike in jq 1.6, an error on any input counts, not only on the last one.
    pub(super) fn exit_code(&self, depends_on_last_output: bool, is_input_faulty: bool) -> u8 {
        match (self.halt_code, self.is_last_output_true) {
            // The system keeps only the lowest eight bits of an exit code.
            (Some(code), _) => code.to_le_bytes()[0],
            _ if is_input_faulty => EXIT_USAGE,
            _ if self.has_error => EXIT_FILTER_ERROR,
            (_, None) if depends_on_last_output => EXIT_NO_OUTPUT,
            (_, Some(false)) if depends_on_last_output => EXIT_FALSE_OR_NULL,
            _ => 0,
        }
    }
}
