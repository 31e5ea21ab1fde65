//! Reasons why a segment is hidden. They are not errors: most segments have nothing to show most of the time.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why a segment is hidden. `plimsoll statusline explain` and the editor print its `Display` text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenReason {
    /// The client does not report the value.
    NotReported(&'static str),
    /// There is nothing to show, for this reason.
    NothingToShow(&'static str),
    /// The terminal has fewer columns than the segment's `min_columns`.
    TerminalTooNarrow {
        min_columns: usize,
        /// The columns of the terminal.
        columns: usize,
    },
    /// Its line is too long for the terminal, and the segments that are shown take precedence.
    LineTooLong {
        /// The columns of the terminal.
        columns: usize,
    },
    /// The client's payload has no value at this JSON pointer of a user-defined segment.
    NoValueAtPointer(String),
    /// The command of a user-defined segment took longer than this.
    CommandTimedOut(Duration),
    /// The command could not be run; the text is the system's error message.
    CommandNotRun(String),
    /// The command exited with this code, which is not 0.
    CommandExitedWithError(i32),
    /// A signal ended the command.
    CommandKilled,
}

impl Display for HiddenReason {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            HiddenReason::NotReported(value_name) => write!(formatter, "Claude Code reports no {value_name}"),
            HiddenReason::NothingToShow(reason) => formatter.write_str(reason),
            HiddenReason::TerminalTooNarrow { min_columns, columns } => {
                write!(formatter, "it needs {min_columns} columns, and there are {columns}")
            }
            HiddenReason::LineTooLong { columns } => {
                write!(formatter, "the line is too long for {columns} columns")
            }
            HiddenReason::NoValueAtPointer(pointer) => {
                write!(formatter, "Claude Code reports nothing at {pointer}")
            }
            HiddenReason::CommandTimedOut(timeout) => {
                write!(formatter, "it took longer than {} ms", timeout.as_millis())
            }
            HiddenReason::CommandNotRun(error) => formatter.write_str(error),
            HiddenReason::CommandExitedWithError(code) => write!(formatter, "it exited with {code}"),
            HiddenReason::CommandKilled => formatter.write_str("a signal ended it"),
        }
    }
}
