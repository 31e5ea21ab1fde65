//! The interface of the engines that run a filter. There are two engines, so that tests can compare their output.

use super::inputs::Inputs;
use jaq_json::{Val, read};
use std::ops::ControlFlow;

/// The reason why a filter does not compile.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompileError {
    /// The rendered error message, with its position if it is known.
    #[error("{0}")]
    Filter(String),
    /// The value of a variable is valid JSON, but this engine cannot read it.
    #[error("${name}: {error}")]
    Variable {
        /// The variable, without `$`.
        name: String,
        /// The error of the engine.
        error: read::Error,
    },
}

/// The callback that receives each output. It can stop the filter with `Break`.
pub(super) type OutputHandler<'t> = &'t mut dyn FnMut(FilterOutput) -> ControlFlow<()>;

/// A compiled filter.
pub(super) trait Engine {
    /// Runs the filter on each input, or once on null, and passes each output to the callback.
    fn run(&mut self, inputs: Inputs, null_input: bool, on_output: OutputHandler<'_>);
}

/// One output of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FilterOutput {
    /// A value that is JSON.
    Value(Val),
    /// The error with which the filter ended for its current input.
    Error(String),
    /// The filter ended the program with this exit code.
    Halt(i32),
}

impl FilterOutput {
    /// Converts the value that a filter raised as an error, usually a string.
    pub(super) fn from_error_value(value: Val) -> FilterOutput {
        FilterOutput::Error(match value {
            Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
            value => format!("(not a string): {value}"),
        })
    }
}

/// The engines by name.
#[cfg(feature = "libjq")]
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Choice {
    /// In Rust, always there.
    Jaq,
    /// jq 1.6 itself.
    Libjq,
}
