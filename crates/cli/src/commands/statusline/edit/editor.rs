//! The state of the status line editor: the appearance chosen so far, and what each key does.

use plimsoll_domain::statusline::{
    Background, Colour, Format, FormatError, Segment, SegmentKind, StatusLine, Theme, UnknownColour,
};
use plimsoll_policy::statusline::View;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::borrow::Cow;

/// The desk.
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
    /// How wide the preview is; none: as the terminal.
    pub(super) columns: Option<usize>,
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typing {
    pub(super) what: Field,
    pub(super) text: String,
}

/// A setting of a segment that is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Format,
    Colour,
}

/// Why what was typed is not taken.
#[derive(Debug, thiserror::Error)]
enum TypedError {
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    Colour(#[from] UnknownColour),
    /// The whole look makes no sense with it, in the words of `StatusLine::problem`.
    #[error("{0}")]
    Look(String),
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

impl Editor {
    pub(super) fn new(look: StatusLine, view: View) -> Editor {
        let written = look.clone();
        let word = "? the keys are below".to_owned();
        Editor { look, written, view, at: 0, typing: None, word, columns: None }
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
        let shown = self.look.lines.iter().enumerate();
        let mut rows: Vec<Row> = shown
            .flat_map(|(line, names)| {
                names.iter().map(move |name| Row { name: name.to_string(), line: Some(line) })
            })
            .collect();
        let ours = SegmentKind::ALL.iter().map(|kind| kind.name());
        let own =
            self.look.segments.keys().map(String::as_str).filter(|name| SegmentKind::named(name).is_none());
        for name in ours.chain(own) {
            if !rows.iter().any(|row| row.name == name) {
                rows.push(Row { name: name.to_owned(), line: None });
            }
        }
        rows
    }

    /// The current setting of a segment.
    pub(super) fn setting(&self, name: &str, field: Field) -> String {
        let segment_settings = self.look.of(name);
        match field {
            Field::Format => segment_settings
                .and_then(|segment| segment.format.clone())
                .map(String::from)
                .or_else(|| SegmentKind::named(name).map(|kind| kind.writing().to_owned()))
                .unwrap_or_else(|| "{value}".to_owned()),
            Field::Colour => {
                segment_settings.and_then(|segment| segment.colour).map(String::from).unwrap_or_default()
            }
        }
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
        let row = rows[self.at.min(rows.len() - 1)].clone();
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.at = (self.at + 1).min(rows.len() - 1),
            KeyCode::Left | KeyCode::Char('h') => self.shift(&row, false),
            KeyCode::Right | KeyCode::Char('l') => self.shift(&row, true),
            KeyCode::Char(' ') | KeyCode::Enter => self.toggle(&row),
            KeyCode::Char('n') => self.break_line(&row),
            KeyCode::Char('f') => self.begin(&row, Field::Format),
            KeyCode::Char('c') => self.begin(&row, Field::Colour),
            KeyCode::Char('r') => self.reset(&row),
            KeyCode::Char('t') => self.look.theme = next_theme(self.look.theme),
            KeyCode::Char('b') => self.look.background = other(self.look.background),
            KeyCode::Char('w') => self.columns = next_width(self.columns),
            KeyCode::Char('s') => return Action::Save,
            KeyCode::Char('q') | KeyCode::Esc if !self.is_changed() || word == UNWRITTEN => {
                return Action::Leave;
            }
            KeyCode::Char('q') | KeyCode::Esc => self.word = UNWRITTEN.to_owned(),
            _ => {}
        }
        Action::Stay
    }

    /// Shown becomes hidden, hidden comes to the end of the last line.
    fn toggle(&mut self, row: &Row) {
        match row.line {
            Some(line) => self.look.lines[line].retain(|name| *name != row.name),
            None => {
                if self.look.lines.is_empty() {
                    self.look.lines.push(Vec::new());
                }
                let last = self.look.lines.len() - 1;
                self.look.lines[last].push(Cow::Owned(row.name.clone()));
            }
        }
        self.tidy(row);
    }

    /// One place towards the end (or the beginning), into the next line (or the one before) at its edge.
    fn shift(&mut self, row: &Row, forward: bool) {
        let Some(line) = row.line else { return };
        let Some(place) = self.look.lines[line].iter().position(|name| *name == row.name) else { return };
        let lines = &mut self.look.lines;
        let (first_line, last_line) = (line == 0, line + 1 == lines.len());
        let (first, last) = (place == 0, place + 1 == lines[line].len());
        if forward && !last {
            lines[line].swap(place, place + 1);
        } else if forward && !last_line {
            let name = lines[line].remove(place);
            lines[line + 1].insert(0, name);
        } else if !forward && !first {
            lines[line].swap(place, place - 1);
        } else if !forward && !first_line {
            let name = lines[line].remove(place);
            lines[line - 1].push(name);
        }
        self.tidy(row);
    }

    /// This segment and those behind it go to a line of their own.
    fn break_line(&mut self, row: &Row) {
        let Some(line) = row.line else { return };
        let place = self.look.lines[line].iter().position(|name| *name == row.name).unwrap_or(0);
        if place > 0 {
            let rest = self.look.lines[line].split_off(place);
            self.look.lines.insert(line + 1, rest);
        }
        self.tidy(row);
    }

    /// No empty lines, and the cursor stays with its segment.
    fn tidy(&mut self, row: &Row) {
        self.look.lines.retain(|names| !names.is_empty());
        self.at = self.rows().iter().position(|other| other.name == row.name).unwrap_or(0);
    }

    fn reset(&mut self, row: &Row) {
        if SegmentKind::named(&row.name).is_some() {
            self.look.segments.remove(&row.name);
        } else if let Some(own) = self.look.segments.get_mut(&row.name) {
            (own.format, own.colour) = (None, None);
        }
    }

    fn begin(&mut self, row: &Row, what: Field) {
        self.typing = Some(Typing { what, text: self.setting(&row.name, what) });
    }

    fn type_on(&mut self, mut typing: Typing, code: KeyCode) {
        match code {
            KeyCode::Esc => return self.word.clear(),
            KeyCode::Enter => match self.take(&typing) {
                Ok(()) => return self.word = "taken".to_owned(),
                Err(why) => self.word = why.to_string(),
            },
            KeyCode::Backspace => drop(typing.text.pop()),
            KeyCode::Char(letter) => typing.text.push(letter),
            _ => {}
        }
        self.typing = Some(typing);
    }

    /// Takes what was typed; what makes no sense stays on the desk, with the reason.
    fn take(&mut self, typing: &Typing) -> Result<(), TypedError> {
        let name = self.rows()[self.at].name.clone();
        let mut segment = self.look.of(&name).cloned().unwrap_or_default();
        match typing.what {
            Field::Format => segment.format = Some(Format::try_from(typing.text.clone())?),
            Field::Colour if typing.text.trim().is_empty() => segment.colour = None,
            Field::Colour => segment.colour = Some(Colour::try_from(typing.text.trim().to_owned())?),
        }
        let mut look = self.look.clone();
        if segment == Segment::default() {
            look.segments.remove(&name);
        } else {
            look.segments.insert(name, segment);
        }
        look.problem().map_or(Ok(()), |problem| Err(TypedError::Look(problem)))?;
        self.look = look;
        Ok(())
    }
}

const UNWRITTEN: &str = "not saved: s saves, q again quits without saving";

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

fn next_width(columns: Option<usize>) -> Option<usize> {
    match columns {
        None => Some(120),
        Some(120) => Some(80),
        Some(80) => Some(60),
        Some(_) => None,
    }
}
