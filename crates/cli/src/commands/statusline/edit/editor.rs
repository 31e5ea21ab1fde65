//! The state of the status line editor: the edited status line, and the handling of keys.

use plimsoll_domain::statusline::{Background, Segment, SegmentKind, StatusLine, Theme};
use plimsoll_policy::statusline::StatusLineView;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::borrow::Cow;

/// Settings of a segment that can be typed, by their names in the settings file.
pub(super) const FORMAT_SETTING: &str = "format";
pub(super) const COLOR_SETTING: &str = "colour";

const UNSAVED_MESSAGE: &str = "not saved: s saves, q again quits without saving";

pub(super) struct Editor {
    status_line: StatusLine,
    /// The status line as it was last saved.
    saved_status_line: StatusLine,
    pub(super) view: StatusLineView,
    /// Index of the selected row.
    pub(super) cursor: usize,
    pub(super) text_input: Option<TextInput>,
    /// Message to the user about the last key.
    pub(super) message: String,
}

/// The text being typed for one setting of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextInput {
    /// [`FORMAT_SETTING`] or [`COLOR_SETTING`].
    pub(super) setting: &'static str,
    pub(super) text: String,
}

/// The action that the caller takes after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditorAction {
    Continue,
    Save,
    Quit,
}

/// A row of the list: a segment and its line; `None` if it is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentRow {
    pub(super) name: String,
    pub(super) line: Option<usize>,
}

/// A segment of the status line; `None` is the gap between two lines.
type SegmentOrGap = Option<Cow<'static, str>>;

impl Editor {
    pub(super) fn new(status_line: StatusLine, view: StatusLineView) -> Editor {
        let saved_status_line = status_line.clone();
        Editor { status_line, saved_status_line, view, cursor: 0, text_input: None, message: String::new() }
    }

    pub(super) fn status_line(&self) -> &StatusLine {
        &self.status_line
    }

    pub(super) fn has_unsaved_changes(&self) -> bool {
        self.status_line != self.saved_status_line
    }

    pub(super) fn mark_saved(&mut self) {
        self.saved_status_line = self.status_line.clone();
        self.message = "written".to_owned();
    }

    /// Returns the shown segments, line by line, and then the hidden ones.
    pub(super) fn shown_then_hidden_segment_rows(&self) -> Vec<SegmentRow> {
        let rows_of_line = |(line, names): (usize, &Vec<Cow<'static, str>>)| {
            names
                .iter()
                .map(|name| SegmentRow { name: name.to_string(), line: Some(line) })
                .collect::<Vec<_>>()
        };
        let mut rows: Vec<SegmentRow> =
            self.status_line.lines.iter().enumerate().flat_map(rows_of_line).collect();
        let built_in_names = SegmentKind::ALL.iter().map(|kind| kind.name());
        for name in built_in_names.chain(self.status_line.segments.keys().map(String::as_str)) {
            if !rows.iter().any(|row| row.name == name) {
                rows.push(SegmentRow { name: name.to_owned(), line: None });
            }
        }
        rows
    }

    /// Returns the text of a segment's setting, or the default if it is not set.
    pub(super) fn setting_text_or_default(&self, segment_name: &str, setting_name: &str) -> String {
        let fields =
            serde_json::to_value(self.status_line.segment_settings(segment_name)).unwrap_or_default();
        let default_text = || match SegmentKind::from_name(segment_name) {
            _ if setting_name == COLOR_SETTING => "",
            Some(kind) => kind.default_format(),
            None => "{value}",
        };
        fields[setting_name].as_str().unwrap_or_else(default_text).to_owned()
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> EditorAction {
        if key.kind == KeyEventKind::Release {
            return EditorAction::Continue;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return EditorAction::Quit;
        }
        match self.text_input.take() {
            Some(input) => self.handle_input_key(input, key.code),
            None => return self.handle_list_key(key.code),
        }
        EditorAction::Continue
    }

    fn handle_list_key(&mut self, code: KeyCode) -> EditorAction {
        let last_message = std::mem::take(&mut self.message);
        let rows = self.shown_then_hidden_segment_rows();
        self.cursor = self.cursor.min(rows.len() - 1);
        let row = &rows[self.cursor];
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.cursor = (self.cursor + 1).min(rows.len() - 1),
            KeyCode::Left | KeyCode::Char('h') => self.rearrange_shown_segments(row, |segments, index| {
                index
                    .filter(|index| *index > 0)
                    .into_iter()
                    .for_each(|position| segments.swap(position - 1, position));
            }),
            KeyCode::Right | KeyCode::Char('l') => self.rearrange_shown_segments(row, |segments, index| {
                index
                    .filter(|index| index + 1 < segments.len())
                    .into_iter()
                    .for_each(|position| segments.swap(position, position + 1));
            }),
            KeyCode::Char(' ') | KeyCode::Enter => {
                self.rearrange_shown_segments(row, |segments, index| match index {
                    Some(index) => drop(segments.remove(index)),
                    None => segments.push(Some(Cow::Owned(row.name.clone()))),
                });
            }
            KeyCode::Char('n') => self.rearrange_shown_segments(row, |segments, index| {
                index.into_iter().for_each(|index| segments.insert(index, None));
            }),
            KeyCode::Char('f') => self.begin_text_input(row, FORMAT_SETTING),
            KeyCode::Char('c') => self.begin_text_input(row, COLOR_SETTING),
            KeyCode::Char('r') => self.reset_settings_or_custom_format_and_color(&row.name),
            KeyCode::Char('t') => self.status_line.theme = next_theme(self.status_line.theme),
            KeyCode::Char('b') => self.status_line.background = other_background(self.status_line.background),
            KeyCode::Char('s') => return EditorAction::Save,
            KeyCode::Char('q') | KeyCode::Esc
                if !self.has_unsaved_changes() || last_message == UNSAVED_MESSAGE =>
            {
                return EditorAction::Quit;
            }
            KeyCode::Char('q') | KeyCode::Esc => self.message = UNSAVED_MESSAGE.to_owned(),
            _ => {}
        }
        EditorAction::Continue
    }

    /// Changes the shown segments. `edit` gets all of them, with a gap (`None`) between two lines, and the index
    /// of the row among them, or `None` if it is hidden. Removes empty lines, and keeps the cursor on its segment.
    fn rearrange_shown_segments(
        &mut self,
        row: &SegmentRow,
        edit: impl FnOnce(&mut Vec<SegmentOrGap>, Option<usize>),
    ) {
        let lines = self.status_line.lines.iter().map(|names| names.iter().cloned().map(Some).collect());
        let mut segments_and_gaps: Vec<SegmentOrGap> = lines.collect::<Vec<Vec<SegmentOrGap>>>().join(&None);
        // The list of rows has no gaps, so the index grows by one for each earlier line.
        edit(&mut segments_and_gaps, row.line.map(|line| self.cursor + line));
        let lines =
            segments_and_gaps.split(Option::is_none).map(|names| names.iter().flatten().cloned().collect());
        self.status_line.lines = lines.filter(|names: &Vec<_>| !names.is_empty()).collect();
        self.cursor = self
            .shown_then_hidden_segment_rows()
            .iter()
            .position(|candidate| candidate.name == row.name)
            .unwrap_or(0);
    }

    fn reset_settings_or_custom_format_and_color(&mut self, segment_name: &str) {
        if SegmentKind::from_name(segment_name).is_some() {
            self.status_line.segments.remove(segment_name);
        } else if let Some(segment) = self.status_line.segments.get_mut(segment_name) {
            (segment.format, segment.color) = (None, None);
        }
    }

    fn begin_text_input(&mut self, row: &SegmentRow, setting: &'static str) {
        self.text_input = Some(TextInput { setting, text: self.setting_text_or_default(&row.name, setting) });
    }

    fn handle_input_key(&mut self, mut input: TextInput, code: KeyCode) {
        match code {
            KeyCode::Esc => return self.message.clear(),
            KeyCode::Enter => match self.apply_text_input_or_return_error(&input) {
                None => return self.message = "taken".to_owned(),
                Some(error) => self.message = error,
            },
            KeyCode::Backspace => drop(input.text.pop()),
            KeyCode::Char(character) => input.text.push(character),
            _ => {}
        }
        self.text_input = Some(input);
    }

    /// Applies the typed text as if it came from the settings file; an empty text resets the setting. If the text
    /// is invalid, changes nothing and returns the error message.
    fn apply_text_input_or_return_error(&mut self, input: &TextInput) -> Option<String> {
        let name = self.shown_then_hidden_segment_rows()[self.cursor].name.clone();
        let mut segment = serde_json::to_value(self.status_line.segment_settings(&name)).unwrap_or_default();
        segment[input.setting] = Some(input.text.trim()).filter(|text| !text.is_empty()).into();
        let mut status_line = self.status_line.clone();
        match serde_json::from_value::<Segment>(segment) {
            Ok(default_segment) if default_segment == Segment::default() => {
                drop(status_line.segments.remove(&name));
            }
            Ok(segment) => drop(status_line.segments.insert(name, segment)),
            Err(error) => return Some(error.to_string()),
        }
        let error = status_line.find_validation_error();
        if error.is_none() {
            self.status_line = status_line;
        }
        error
    }
}

fn next_theme(theme: Theme) -> Theme {
    match theme {
        Theme::Plain => Theme::Colour,
        Theme::Colour => Theme::Powerline,
        Theme::Powerline => Theme::Plain,
    }
}

fn other_background(background: Background) -> Background {
    match background {
        Background::Dark => Background::Light,
        Background::Light => Background::Dark,
    }
}
