//! The editor's screen: the line, the segments, the fields of the current one, and the keys.

use super::editor::{Editor, Field, Row};
use super::paint::painted;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_policy::statusline::{View, explain, render};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Wrap};

const KEYS: &str = "↑↓ choose · ←→ move · space show/hide · n new line · f format · c colour · r reset · t theme · b background · w width · s save · q quit";

pub(super) fn draw(desk: &Editor, frame: &mut Frame<'_>) {
    let area = frame.area();
    let columns = desk.columns.unwrap_or_else(|| usize::from(area.width.saturating_sub(2)));
    let view = View { columns: Some(columns), ..desk.view.clone() };
    let preview: Vec<Line<'_>> = render(&view, desk.look()).lines().map(painted).collect();
    let top = preview.len() as u16 + 2;
    let keys = keys(usize::from(area.width));
    let key_lines = keys.len() as u16;
    let parts = [
        Constraint::Length(top),
        Constraint::Min(3),
        Constraint::Length(6),
        Constraint::Length(1 + key_lines),
    ];
    let [above, list, about, below] = Layout::vertical(parts).areas(area);
    let theme = format!("{:?}, {:?}, {columns} columns", desk.look().theme, desk.look().background);
    let title =
        format!(" status line: {} {}", theme.to_lowercase(), if desk.is_changed() { "* " } else { "" });
    frame.render_widget(Paragraph::new(preview).block(Block::bordered().title(title)), above);
    let rows = desk.rows();
    frame.render_widget(Paragraph::new(listed(desk, &rows, list)), list);
    let at = desk.at.min(rows.len().saturating_sub(1));
    let words = description(desk, &view, &rows[at]);
    frame.render_widget(
        Paragraph::new(words)
            .wrap(Wrap { trim: true })
            .block(Block::bordered().title(format!(" {} ", rows[at].name))),
        about,
    );
    let said = match &desk.typing {
        Some(typing) => {
            format!("{}: {}▏  (Enter accepts, Esc cancels) {}", label(typing.what), typing.text, desk.word)
        }
        None => desk.word.clone(),
    };
    let lines: Vec<Line<'_>> = std::iter::once(said).chain(keys).map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), below);
}

/// All keys, in as many lines as this width needs: the last one says how to leave.
fn keys(width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for key in KEYS.split(" · ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + key.chars().count() <= width => {
                line.push_str(" · ");
                line.push_str(key);
            }
            _ => lines.push(key.to_owned()),
        }
    }
    lines
}

/// As many rows as fit around the cursor.
fn listed(desk: &Editor, rows: &[Row], area: Rect) -> Vec<Line<'static>> {
    let height = usize::from(area.height).max(1);
    let first = desk.at.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let row = |(number, row): (usize, &Row)| {
        let place = row.line.map_or("hidden".to_owned(), |line| format!("line {}", line + 1));
        let words = SegmentKind::named(&row.name).map_or("of your own", SegmentKind::words);
        let style = if number == desk.at {
            Style::default().add_modifier(Modifier::REVERSED)
        } else if row.line.is_none() {
            Style::default().add_modifier(Modifier::DIM)
        } else {
            Style::default()
        };
        Line::styled(format!(" {place:<7} {:<10} {words}", row.name), style)
    };
    rows.iter().enumerate().skip(first).take(height).map(row).collect()
}

fn description(desk: &Editor, view: &View, row: &Row) -> Vec<Line<'static>> {
    let explained = explain(view, desk.look()).into_iter().find(|one| one.name == row.name);
    let shown = explained.as_ref().map(|one| match &one.shown {
        Ok(text) => format!("shown: {text}"),
        Err(why) => format!("hidden: {why}"),
    });
    let fields = explained.map(|one| {
        one.fields.iter().map(|(field, value)| format!("{{{field}}} {value}")).collect::<Vec<_>>().join("  ")
    });
    let colour = desk.setting(&row.name, Field::Colour);
    let colour = if colour.is_empty() { "the theme's".to_owned() } else { colour };
    vec![
        Line::from(shown.unwrap_or_default()),
        Line::from(format!("format: {}   colour: {colour}", desk.setting(&row.name, Field::Format))),
        Line::from(fields.unwrap_or_default()),
    ]
}

fn label(field: Field) -> &'static str {
    match field {
        Field::Format => "format",
        Field::Colour => "colour",
    }
}
