//! Answers on standard output, as jq prints them.

use crate::log::has_colours;
use jaq_json::Val;
use jaq_json::write::{Pp, Styles, write};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::ops::ControlFlow;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// Strings as they are.
    pub(super) raw: bool,
    /// One line each.
    pub(super) compact: bool,
}

/// Prints answers until its reader has had enough.
pub(super) struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    look: Pp,
    raw: bool,
    is_watched: bool,
    ended: Option<io::Error>,
}

impl Printer {
    /// Nothing has been printed yet.
    pub(super) fn new(style: Style) -> Printer {
        let stdout = io::stdout();
        let is_watched = stdout.is_terminal();
        let styles = if has_colours() { Styles::ansi() } else { Styles::default() };
        let indent = (!style.compact).then(|| "  ".to_owned());
        let look = Pp { sep_space: indent.is_some(), indent, sort_keys: false, styles };
        Printer { out: BufWriter::new(stdout.lock()), look, raw: style.raw, is_watched, ended: None }
    }

    /// Prints an answer; breaks off when nobody reads it.
    pub(super) fn print(&mut self, value: &Val) -> ControlFlow<()> {
        match self.try_print(value) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.ended = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn try_print(&mut self, value: &Val) -> io::Result<()> {
        match value {
            Val::TStr(text) if self.raw => self.out.write_all(text)?,
            value => write(&mut self.out, &self.look, 0, value)?,
        }
        self.out.write_all(b"\n")?;
        if self.is_watched { self.out.flush() } else { Ok(()) }
    }

    /// What is left, and whether all of it could be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.ended.take() {
            Some(error) => {
                // What was not written would be tried once more otherwise.
                let _ = self.out.into_parts();
                Err(error)
            }
            None => self.out.flush(),
        }
    }
}
