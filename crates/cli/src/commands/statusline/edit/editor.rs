//! The state of the status line editor: the appearance chosen so far, and what each key does.

use plimsoll_domain::statusline::{Background, Segment, SegmentKind, StatusLine, Theme};
use plimsoll_policy::statusline::View;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::borrow::Cow;

/// What can be typed of a segment, under its name in the settings.
pub(super) const FORMAT: &str = "format";
pub(super) const COLOUR: &str = "colour";

const UNWRITTEN: &str = "not saved: s saves, q again quits without saving";

pub(super) struct Editor {
    look: StatusLine,
    /// As it was when it was last written.
    written: StatusLine,
    pub(super) view: View,
    /// The row of the cursor.
    pub(super) at: usize,
    pub(super) typing: Option<Typing>,
    /// What the last key came to, for the user.
    pub(super) word: String,
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typing {
    /// [`FORMAT`] or [`COLOUR`].
    pub(super) what: &'static str,
    pub(super) text: String,
}

/// What the user wants after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Stay,
    Save,
    Leave,
}

/// A row of the list: a segment, and the line it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) line: Option<usize>,
}

/// A segment of the status line, or the gap between two lines.
type Place = Option<Cow<'static, str>>;

impl Editor {
    pub(super) fn new(look: StatusLine, view: View) -> Editor {
        let written = look.clone();
        Editor { look, written, view, at: 0, typing: None, word: String::new() }
    }

    pub(super) fn look(&self) -> &StatusLine {
        &self.look
    }

    pub(super) fn is_changed(&self) -> bool {
        self.look != self.written
    }

    pub(super) fn saved(&mut self) {
        self.written = self.look.clone();
        self.word = "written".to_owned();
    }

    /// First those that are shown, line by line, then the others.
    pub(super) fn rows(&self) -> Vec<Row> {
        let in_line = |(line, names): (usize, &Vec<Cow<'static, str>>)| {
            names.iter().map(|name| Row { name: name.to_string(), line: Some(line) }).collect::<Vec<_>>()
        };
        let mut rows: Vec<Row> = self.look.lines.iter().enumerate().flat_map(in_line).collect();
        let ours = SegmentKind::ALL.iter().map(|kind| kind.name());
        for name in ours.chain(self.look.segments.keys().map(String::as_str)) {
            if !rows.iter().any(|row| row.name == name) {
                rows.push(Row { name: name.to_owned(), line: None });
            }
        }
        rows
    }

    /// The current setting of a segment.
    pub(super) fn setting(&self, name: &str, what: &str) -> String {
        let own = serde_json::to_value(self.look.of(name)).unwrap_or_default();
        let usual = || match SegmentKind::named(name) {
            _ if what == COLOUR => "",
            Some(kind) => kind.writing(),
            None => "{value}",
        };
        own[what].as_str().unwrap_or_else(usual).to_owned()
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Leave;
        }
        match self.typing.take() {
            Some(typing) => self.type_on(typing, key.code),
            None => return self.choose(key.code),
        }
        Action::Stay
    }

    fn choose(&mut self, code: KeyCode) -> Action {
        let word = std::mem::take(&mut self.word);
        let rows = self.rows();
        self.at = self.at.min(rows.len() - 1);
        let row = &rows[self.at];
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.at = (self.at + 1).min(rows.len() - 1),
            KeyCode::Left | KeyCode::Char('h') => self.arrange(row, |places, at| {
                at.filter(|at| *at > 0).into_iter().for_each(|at| places.swap(at - 1, at));
            }),
            KeyCode::Right | KeyCode::Char('l') => self.arrange(row, |places, at| {
                at.filter(|at| at + 1 < places.len()).into_iter().for_each(|at| places.swap(at, at + 1));
            }),
            KeyCode::Char(' ') | KeyCode::Enter => self.arrange(row, |places, at| match at {
                Some(at) => drop(places.remove(at)),
                None => places.push(Some(Cow::Owned(row.name.clone()))),
            }),
            KeyCode::Char('n') => self.arrange(row, |places, at| {
                at.into_iter().for_each(|at| places.insert(at, None));
            }),
            KeyCode::Char('f') => self.begin(row, FORMAT),
            KeyCode::Char('c') => self.begin(row, COLOUR),
            KeyCode::Char('r') => self.reset(&row.name),
            KeyCode::Char('t') => self.look.theme = next_theme(self.look.theme),
            KeyCode::Char('b') => self.look.background = other(self.look.background),
            KeyCode::Char('s') => return Action::Save,
            KeyCode::Char('q') | KeyCode::Esc if !self.is_changed() || word == UNWRITTEN => {
                return Action::Leave;
            }
            KeyCode::Char('q') | KeyCode::Esc => self.word = UNWRITTEN.to_owned(),
            _ => {}
        }
        Action::Stay
    }

    /// Changes the order of what is shown: all of it, with a gap between two lines, and where in it the row is. No empty
    /// lines stay, and the cursor stays with its segment.
    fn arrange(&mut self, row: &Row, change: impl FnOnce(&mut Vec<Place>, Option<usize>)) {
        let lines = self.look.lines.iter().map(|names| names.iter().cloned().map(Some).collect());
        let mut places: Vec<Place> = lines.collect::<Vec<Vec<Place>>>().join(&None);
        // Rows have no gaps: there is one before each line but the first.
        change(&mut places, row.line.map(|line| self.at + line));
        let lines = places.split(Option::is_none).map(|names| names.iter().flatten().cloned().collect());
        self.look.lines = lines.filter(|names: &Vec<_>| !names.is_empty()).collect();
        self.at = self.rows().iter().position(|other| other.name == row.name).unwrap_or(0);
    }

    fn reset(&mut self, name: &str) {
        if SegmentKind::named(name).is_some() {
            self.look.segments.remove(name);
        } else if let Some(own) = self.look.segments.get_mut(name) {
            (own.format, own.colour) = (None, None);
        }
    }

    fn begin(&mut self, row: &Row, what: &'static str) {
        self.typing = Some(Typing { what, text: self.setting(&row.name, what) });
    }

    fn type_on(&mut self, mut typing: Typing, code: KeyCode) {
        match code {
            KeyCode::Esc => return self.word.clear(),
            KeyCode::Enter => match self.take(&typing) {
                None => return self.word = "taken".to_owned(),
                Some(why_not) => self.word = why_not,
            },
            KeyCode::Backspace => drop(typing.text.pop()),
            KeyCode::Char(letter) => typing.text.push(letter),
            _ => {}
        }
        self.typing = Some(typing);
    }

    /// Takes what was typed as if it stood in the settings; nothing typed is the usual. Says why it makes no sense there, and
    /// takes nothing then.
    fn take(&mut self, typing: &Typing) -> Option<String> {
        let name = self.rows()[self.at].name.clone();
        let mut segment = serde_json::to_value(self.look.of(&name)).unwrap_or_default();
        segment[typing.what] = Some(typing.text.trim()).filter(|text| !text.is_empty()).into();
        let mut look = self.look.clone();
        match serde_json::from_value::<Segment>(segment) {
            Ok(usual) if usual == Segment::default() => drop(look.segments.remove(&name)),
            Ok(segment) => drop(look.segments.insert(name, segment)),
            Err(why) => return Some(why.to_string()),
        }
        let problem = look.problem();
        if problem.is_none() {
            self.look = look;
        }
        problem
    }
}

fn next_theme(theme: Theme) -> Theme {
    match theme {
        Theme::Plain => Theme::Colour,
        Theme::Colour => Theme::Powerline,
        Theme::Powerline => Theme::Plain,
    }
}

fn other(background: Background) -> Background {
    match background {
        Background::Dark => Background::Light,
        Background::Light => Background::Dark,
    }
}
