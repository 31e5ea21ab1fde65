//! What runs a filter. There are two of them so that each can be held to the other's answers.

use super::inputs::Inputs;
use jaq_json::{Val, read};
use std::ops::ControlFlow;

/// Why a filter does not compile.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompileError {
    /// What is wrong in it and where, in the engine's words or in ours of what it found.
    #[error("{0}")]
    Filter(String),
    /// The value of a variable is JSON, and still not for this engine.
    #[error("${name}: {why}")]
    Variable {
        /// The variable, without `$`.
        name: String,
        /// The engine's words.
        why: read::Error,
    },
}

/// Where the answers go; it may want no more of them.
pub(super) type Take<'t> = &'t mut dyn FnMut(Answer) -> ControlFlow<()>;

/// A compiled filter.
pub(super) trait Engine {
    /// Gives the filter each input, or once null, and hands on what comes of it.
    fn run(&mut self, inputs: Inputs, null_input: bool, take: Take<'_>);
}

/// One thing that comes of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// A value that is JSON.
    Value(Val),
    /// Why the filter gave up on its input.
    Error(String),
    /// The filter has ended the program with this code.
    Halt(i32),
}

impl Answer {
    /// The error that was raised with a value, which is mostly a text.
    pub(super) fn of_error(value: Val) -> Answer {
        Answer::Error(match value {
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
