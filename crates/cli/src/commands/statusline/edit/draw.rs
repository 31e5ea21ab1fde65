//! Draws the editor's screen: a preview, the segments, the details of the selected segment, and the keys.

use super::editor::{COLOR_SETTING, Editor, FORMAT_SETTING, SegmentRow};
use super::paint::to_ratatui_line;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_policy::statusline::{StatusLineView, explain_segments, render_lines_or_program_name};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Wrap};

/// Saving and quitting come first, because a terminal may be too small for all keys.
const KEY_LEGEND: &str = "s save · q quit · ↑↓ choose · ←→ move · space show/hide · n new line · f format · c color · r reset · t theme · b background";

pub(super) fn draw_editor(editor: &Editor, frame: &mut Frame<'_>) {
    let area = frame.area();
    let view =
        StatusLineView { columns: Some(usize::from(area.width.saturating_sub(2))), ..editor.view.clone() };
    let preview: Vec<Line<'_>> =
        render_lines_or_program_name(&view, editor.status_line()).lines().map(to_ratatui_line).collect();
    let key_lines = KEY_LEGEND.chars().count() as u16 / area.width.max(1) + 1;
    let constraints = [
        Constraint::Length(preview.len() as u16 + 2),
        Constraint::Min(3),
        Constraint::Length(6),
        Constraint::Length(1),
        Constraint::Length(key_lines),
    ];
    let [preview_area, list_area, details_area, message_area, keys_area] =
        Layout::vertical(constraints).areas(area);
    let theme =
        format!("{:?}, {:?}", editor.status_line().theme, editor.status_line().background).to_lowercase();
    let title = format!(" status line: {theme} {}", if editor.has_unsaved_changes() { "* " } else { "" });
    frame.render_widget(Paragraph::new(preview).block(Block::bordered().title(title)), preview_area);
    let rows = editor.shown_then_hidden_segment_rows();
    frame.render_widget(Paragraph::new(segment_lines_around_cursor(editor, &rows, list_area)), list_area);
    let row = &rows[editor.cursor.min(rows.len() - 1)];
    let block = Block::bordered().title(format!(" {} ", row.name));
    let to_wrapped_paragraph = |lines: Vec<Line<'static>>| Paragraph::new(lines).wrap(Wrap { trim: true });
    frame.render_widget(to_wrapped_paragraph(segment_details(editor, &view, row)).block(block), details_area);
    let input_line = editor.text_input.as_ref().map(|input| {
        format!("{}: {}▏  (Enter accepts, Esc cancels) {}", input.setting, input.text, editor.message)
    });
    frame.render_widget(Line::from(input_line.unwrap_or_else(|| editor.message.clone())), message_area);
    frame.render_widget(to_wrapped_paragraph(vec![Line::from(KEY_LEGEND)]), keys_area);
}

/// Renders as many rows as the area has lines, centered on the cursor.
fn segment_lines_around_cursor(editor: &Editor, rows: &[SegmentRow], area: Rect) -> Vec<Line<'static>> {
    let height = usize::from(area.height).max(1);
    let first_row = editor.cursor.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let to_styled_line = |(row_index, row): (usize, &SegmentRow)| {
        let placement = row.line.map_or("hidden".to_owned(), |line| format!("line {}", line + 1));
        let description = SegmentKind::from_name(&row.name).map_or("of your own", SegmentKind::description);
        let modifier = match row.line {
            _ if row_index == editor.cursor => Modifier::REVERSED,
            None => Modifier::DIM,
            Some(_) => Modifier::empty(),
        };
        Line::styled(
            format!(" {placement:<7} {:<10} {description}", row.name),
            Style::default().add_modifier(modifier),
        )
    };
    rows.iter().enumerate().skip(first_row).take(height).map(to_styled_line).collect()
}

fn segment_details(editor: &Editor, view: &StatusLineView, row: &SegmentRow) -> Vec<Line<'static>> {
    let explanation =
        explain_segments(view, editor.status_line()).into_iter().find(|segment| segment.name == row.name);
    let visibility_and_fields = explanation.map(|explanation| {
        let visibility_text = match &explanation.rendered {
            Ok(text) => format!("shown: {text}"),
            Err(reason) => format!("hidden: {reason}"),
        };
        let fields = explanation.fields.iter().map(|(field, value)| format!("{{{field}}} {value}"));
        (visibility_text, fields.collect::<Vec<_>>().join("  "))
    });
    let (visibility_text, fields) = visibility_and_fields.unwrap_or_default();
    let color =
        Some(editor.setting_text_or_default(&row.name, COLOR_SETTING)).filter(|color| !color.is_empty());
    let color = color.unwrap_or_else(|| "the theme's".to_owned());
    let settings_line =
        format!("format: {}   color: {color}", editor.setting_text_or_default(&row.name, FORMAT_SETTING));
    [visibility_text, settings_line, fields].map(Line::from).to_vec()
}
