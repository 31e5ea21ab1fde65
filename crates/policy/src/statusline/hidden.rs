//! Why a segment is hidden. That is no error: most segments have nothing to show for most of the time.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why a segment is hidden, as `plimsoll statusline explain` and the editor say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hidden {
    /// The client does not report what it shows.
    NotReported(&'static str),
    /// There is nothing to show, for a reason that is the same every time.
    Nothing(&'static str),
    /// The terminal has fewer columns than its `min_columns`.
    TooNarrow {
        /// `min_columns`.
        wanted: usize,
        /// How many there are.
        columns: usize,
    },
    /// Its line is too long for so many columns, and other segments matter more.
    NoRoom {
        /// How many there are.
        columns: usize,
    },
    /// What the client reports has nothing at the pointer of the user's own segment.
    NothingAt(String),
    /// The command of the user's own segment took longer than this.
    TookLonger(Duration),
    /// The command could not be run, in the system's words.
    NotRun(String),
    /// The command exited with this code.
    Exited(i32),
    /// A signal ended the command.
    Signalled,
}

impl Display for Hidden {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Hidden::NotReported(what) => write!(formatter, "the client reports no {what}"),
            Hidden::Nothing(why) => formatter.write_str(why),
            Hidden::TooNarrow { wanted, columns } => {
                write!(formatter, "it needs {wanted} columns, and there are {columns}")
            }
            Hidden::NoRoom { columns } => write!(formatter, "the line is too long for {columns} columns"),
            Hidden::NothingAt(pointer) => write!(formatter, "the client reports nothing at {pointer}"),
            Hidden::TookLonger(limit) => write!(formatter, "it took longer than {} ms", limit.as_millis()),
            Hidden::NotRun(trouble) => formatter.write_str(trouble),
            Hidden::Exited(code) => write!(formatter, "it exited with {code}"),
            Hidden::Signalled => formatter.write_str("a signal ended it"),
        }
    }
}
