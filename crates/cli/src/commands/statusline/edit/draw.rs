//! The editor's screen: the line, the segments, the settings of the current one, and the keys.

use super::editor::{COLOUR, Editor, FORMAT, Row};
use super::paint::painted;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_policy::statusline::{View, explain, render};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Wrap};

/// How to leave comes first: a terminal may be too small for all of them.
const KEYS: &str = "s save · q quit · ↑↓ choose · ←→ move · space show/hide · n new line · f format · c colour · r reset · t theme · b background";

pub(super) fn draw(desk: &Editor, frame: &mut Frame<'_>) {
    let area = frame.area();
    let view = View { columns: Some(usize::from(area.width.saturating_sub(2))), ..desk.view.clone() };
    let preview: Vec<Line<'_>> = render(&view, desk.look()).lines().map(painted).collect();
    let key_lines = KEYS.chars().count() as u16 / area.width.max(1) + 1;
    let parts = [
        Constraint::Length(preview.len() as u16 + 2),
        Constraint::Min(3),
        Constraint::Length(6),
        Constraint::Length(1),
        Constraint::Length(key_lines),
    ];
    let [above, list, about, said, keys] = Layout::vertical(parts).areas(area);
    let theme = format!("{:?}, {:?}", desk.look().theme, desk.look().background).to_lowercase();
    let title = format!(" status line: {theme} {}", if desk.is_changed() { "* " } else { "" });
    frame.render_widget(Paragraph::new(preview).block(Block::bordered().title(title)), above);
    let rows = desk.rows();
    frame.render_widget(Paragraph::new(listed(desk, &rows, list)), list);
    let row = &rows[desk.at.min(rows.len() - 1)];
    let block = Block::bordered().title(format!(" {} ", row.name));
    let wrapped = |words: Vec<Line<'static>>| Paragraph::new(words).wrap(Wrap { trim: true });
    frame.render_widget(wrapped(description(desk, &view, row)).block(block), about);
    let typed = desk.typing.as_ref().map(|typing| {
        format!("{}: {}▏  (Enter accepts, Esc cancels) {}", typing.what, typing.text, desk.word)
    });
    frame.render_widget(Line::from(typed.unwrap_or_else(|| desk.word.clone())), said);
    frame.render_widget(wrapped(vec![Line::from(KEYS)]), keys);
}

/// As many rows as fit around the cursor.
fn listed(desk: &Editor, rows: &[Row], area: Rect) -> Vec<Line<'static>> {
    let height = usize::from(area.height).max(1);
    let first = desk.at.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let row = |(number, row): (usize, &Row)| {
        let place = row.line.map_or("hidden".to_owned(), |line| format!("line {}", line + 1));
        let words = SegmentKind::named(&row.name).map_or("of your own", SegmentKind::words);
        let modifier = match row.line {
            _ if number == desk.at => Modifier::REVERSED,
            None => Modifier::DIM,
            Some(_) => Modifier::empty(),
        };
        Line::styled(format!(" {place:<7} {:<10} {words}", row.name), Style::default().add_modifier(modifier))
    };
    rows.iter().enumerate().skip(first).take(height).map(row).collect()
}

fn description(desk: &Editor, view: &View, row: &Row) -> Vec<Line<'static>> {
    let explained = explain(view, desk.look()).into_iter().find(|one| one.name == row.name);
    let shown_and_fields = explained.map(|one| {
        let shown = match &one.shown {
            Ok(text) => format!("shown: {text}"),
            Err(why) => format!("hidden: {why}"),
        };
        let fields = one.fields.iter().map(|(field, value)| format!("{{{field}}} {value}"));
        (shown, fields.collect::<Vec<_>>().join("  "))
    });
    let (shown, fields) = shown_and_fields.unwrap_or_default();
    let colour = Some(desk.setting(&row.name, COLOUR)).filter(|colour| !colour.is_empty());
    let colour = colour.unwrap_or_else(|| "the theme's".to_owned());
    let written = format!("format: {}   colour: {colour}", desk.setting(&row.name, FORMAT));
    [shown, written, fields].map(Line::from).to_vec()
}
