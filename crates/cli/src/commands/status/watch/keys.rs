//! Handles the keys of the watch screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The view options of the watch screen: the scroll position, the help and the colors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WatchViewState {
    /// Number of log lines below the visible part; 0 follows the end of the log.
    pub(super) lines_below: usize,
    /// Whether the key help replaces the log.
    pub(super) shows_help: bool,
    /// Whether colors are used; false with `NO_COLOR`.
    pub(super) use_colors: bool,
}

/// Lines scrolled by PgUp and PgDn. Fixed, and smaller than most windows, so that some lines of the last page
/// stay visible.
const PAGE_LINES: usize = 10;

/// The keys and their descriptions, for the help.
pub(super) const KEY_HELP: [(&str, &str); 4] = [
    ("q, Esc, Ctrl-C", "quit; the run continues"),
    ("Up, Down", "scroll the log by one line"),
    ("PgUp, PgDn", "scroll by ten lines"),
    ("Home, End", "to the beginning of the log; to its end, and follow it"),
];

impl WatchViewState {
    /// Handles a key; returns true if the user quits. `log_line_count` is the length of the log.
    pub(super) fn handle_key_and_check_quit(&mut self, key: KeyEvent, log_line_count: usize) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let is_control_pressed = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control_pressed => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Esc if !self.shows_help => return true,
            KeyCode::Esc => self.shows_help = false,
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Up | KeyCode::Char('k') => self.lines_below += 1,
            KeyCode::Down | KeyCode::Char('j') => self.lines_below = self.lines_below.saturating_sub(1),
            KeyCode::PageUp => self.lines_below += PAGE_LINES,
            KeyCode::PageDown => self.lines_below = self.lines_below.saturating_sub(PAGE_LINES),
            KeyCode::Home => self.lines_below = log_line_count,
            KeyCode::End => self.lines_below = 0,
            _ => {}
        }
        self.lines_below = self.lines_below.min(log_line_count.saturating_sub(1));
        false
    }

    /// Keeps the visible lines in place when new lines arrive, if the user has scrolled up.
    pub(super) fn keep_scroll_position(&mut self, new_line_count: usize) {
        if self.lines_below > 0 {
            self.lines_below += new_line_count;
        }
    }
}
