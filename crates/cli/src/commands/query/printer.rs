//! Answers on standard output, as jq prints them.

use jaq_json::Val;
use jaq_json::write::{Pp, Styles, write};
use plimsoll_terminal::console::Answers;
use plimsoll_terminal::console::has_colours;
use std::io;
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
    out: Answers,
    look: Pp,
    raw: bool,
    ended: Option<io::Error>,
}

impl Printer {
    /// Nothing has been printed yet.
    pub(super) fn new(style: Style) -> Printer {
        let styles = if has_colours() { Styles::ansi() } else { Styles::default() };
        let indent = (!style.compact).then(|| "  ".to_owned());
        let look = Pp { sep_space: indent.is_some(), indent, sort_keys: false, styles };
        Printer { out: Answers::to_standard_output(), look, raw: style.raw, ended: None }
    }

    /// Prints an answer; stops when the reader is gone.
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
            Val::TStr(text) if self.raw => self.out.raw(text),
            value => {
                let mut json = Vec::new();
                write(&mut json, &self.look, 0, value)?;
                self.out.json(&json)
            }
        }
    }

    /// What is left, and whether all of it could be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.ended.take() {
            Some(error) => {
                self.out.give_up();
                Err(error)
            }
            None => self.out.finish(),
        }
    }
}
