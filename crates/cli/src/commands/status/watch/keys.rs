//! What the keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// How the user looks at the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// How many lines of the log are below what is shown; 0 follows it.
    pub(super) above: usize,
    /// The keys are explained.
    pub(super) help: bool,
    /// False with `NO_COLOR`.
    pub(super) colours: bool,
}

/// So many lines a page is, whatever the window: some of the last page stays in sight.
const PAGE: usize = 10;

/// What the keys do, for people.
pub(super) const KEYS: [(&str, &str); 4] = [
    ("q, Esc, Ctrl-C", "quit; the run continues"),
    ("Up, Down", "scroll the log by one line"),
    ("PgUp, PgDn", "scroll by ten lines"),
    ("Home, End", "to the beginning of the log; to its end, and follow it"),
];

impl Look {
    /// Takes a key; true when the user leaves. The log has so many lines.
    pub(super) fn press(&mut self, key: KeyEvent, lines: usize) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if with_control => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Esc if !self.help => return true,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Up | KeyCode::Char('k') => self.above += 1,
            KeyCode::Down | KeyCode::Char('j') => self.above = self.above.saturating_sub(1),
            KeyCode::PageUp => self.above += PAGE,
            KeyCode::PageDown => self.above = self.above.saturating_sub(PAGE),
            KeyCode::Home => self.above = lines,
            KeyCode::End => self.above = 0,
            _ => {}
        }
        self.above = self.above.min(lines.saturating_sub(1));
        false
    }

    /// New lines do not scroll a reader who is further up.
    pub(super) fn keep_place(&mut self, news: usize) {
        if self.above > 0 {
            self.above += news;
        }
    }
}
