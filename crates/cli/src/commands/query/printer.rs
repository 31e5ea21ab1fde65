//! Prints outputs of a filter to standard output, as jq does.

use jaq_json::Val;
use jaq_json::write::{Pp, Styles, write};
use plimsoll_terminal::console::OutputWriter;
use plimsoll_terminal::console::has_colors;
use std::io;
use std::ops::ControlFlow;

/// The options for printing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// Print strings without quotes.
    pub(super) raw: bool,
    /// Print each value on one line.
    pub(super) compact: bool,
}

/// Prints values to standard output, and remembers the first write error.
pub(super) struct Printer {
    output: OutputWriter,
    format: Pp,
    raw: bool,
    write_error: Option<io::Error>,
}

impl Printer {
    /// Creates a printer to standard output.
    pub(super) fn new(style: Style) -> Printer {
        let styles = if has_colors() { Styles::ansi() } else { Styles::default() };
        let indent = (!style.compact).then(|| "  ".to_owned());
        let format = Pp { sep_space: indent.is_some(), indent, sort_keys: false, styles };
        Printer { output: OutputWriter::for_standard_output(), format, raw: style.raw, write_error: None }
    }

    /// Prints a value. Returns `Break` if it cannot be written, for example because a pipe was closed.
    pub(super) fn print(&mut self, value: &Val) -> ControlFlow<()> {
        match self.try_print(value) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.write_error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn try_print(&mut self, value: &Val) -> io::Result<()> {
        match value {
            Val::TStr(text) if self.raw => self.output.write_raw(text),
            value => {
                let mut json = Vec::new();
                write(&mut json, &self.format, 0, value)?;
                self.output.write_json(&json)
            }
        }
    }

    /// Flushes the buffered output. If an earlier write failed, discards the buffer and returns that error.
    pub(super) fn flush_or_return_earlier_write_error(mut self) -> io::Result<()> {
        match self.write_error.take() {
            Some(error) => {
                self.output.discard_buffer();
                Err(error)
            }
            None => self.output.finish(),
        }
    }
}
