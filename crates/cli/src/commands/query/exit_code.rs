//! The exit code of a query, which depends on the outputs of its filter.

use super::engine::FilterOutput;
use jaq_core::ValT;

/// Exit code for wrong usage, a document that is missing or not JSON, and output that cannot be written.
pub(super) const EXIT_USAGE_OR_INPUT_ERROR: u8 = 2;
/// Exit code for a filter that does not compile.
pub(super) const EXIT_COMPILE_ERROR: u8 = 3;
const EXIT_FALSE_OR_NULL: u8 = 1;
const EXIT_NO_OUTPUT: u8 = 4;
const EXIT_FILTER_ERROR: u8 = 5;

/// The properties of a filter's outputs that determine the exit code.
#[derive(Debug, Default)]
pub(super) struct OutputSummary {
    is_last_value_truthy: Option<bool>,
    has_filter_error: bool,
    halt_code: Option<i32>,
}

impl OutputSummary {
    pub(super) fn record(&mut self, output: &FilterOutput) {
        match output {
            FilterOutput::Value(value) => self.is_last_value_truthy = Some(value.as_bool()),
            FilterOutput::Error(_) => self.has_filter_error = true,
            FilterOutput::Halt(code) => self.halt_code = Some(*code),
        }
    }

    /// Returns the exit code. Unlike in jq 1.6, an error on any input counts, not only on the last one.
    pub(super) fn exit_code(&self, depends_on_last_output: bool, has_input_error: bool) -> u8 {
        match (self.halt_code, self.is_last_value_truthy) {
            // The operating system keeps only the lowest eight bits of an exit code.
            (Some(code), _) => code.to_le_bytes()[0],
            _ if has_input_error => EXIT_USAGE_OR_INPUT_ERROR,
            _ if self.has_filter_error => EXIT_FILTER_ERROR,
            (_, None) if depends_on_last_output => EXIT_NO_OUTPUT,
            (_, Some(false)) if depends_on_last_output => EXIT_FALSE_OR_NULL,
            _ => 0,
        }
    }
}
