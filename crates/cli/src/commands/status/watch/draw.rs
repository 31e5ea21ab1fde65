//! Draws the watch screen: renders the content and the view state into terminal cells, without any I/O.

use super::keys::{KEY_HELP, WatchViewState};
use super::screen_content::{LastText, ScreenContent};
use crate::commands::status::screen::INDENT;
use crate::journal_lines::LineStyle;
use crate::run_status::RunStatusView;
use crate::run_status::status_text::{
    breaker_counts_and_problems_text, next_step_text, status_for_title, summarize_status,
};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_domain::{RunStatus, UsageReading};
use plimsoll_store::clock;
use plimsoll_terminal::columns::{clip_to_columns, wrap_line};
use plimsoll_terminal::duration::format_seconds;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// Maximum width of the usage bar.
const MAX_BAR_CELLS: usize = 60;
/// Maximum number of lines of the session's own text.
const MAX_SESSION_TEXT_LINES: usize = 5;
/// Minimum width of the usage bar.
const MIN_BAR_CELLS: usize = 8;
/// Minimum height at which rows are reserved for the log.
const MIN_ROWS_WITH_LOG: usize = 9;

type StyledRow = (String, Style);

/// Draws the screen; writes nothing outside of `area`.
pub(super) fn draw_screen(
    content: &ScreenContent,
    view_state: &WatchViewState,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (rows, columns) = (usize::from(area.height), usize::from(area.width));
    let footer_rows = usize::from(rows > 3);
    let min_log_rows = if rows >= MIN_ROWS_WITH_LOG { rows / 3 } else { 0 };
    let mut screen_rows = run_status_rows_or_message(content, view_state, columns);
    screen_rows.truncate(rows.saturating_sub(footer_rows + min_log_rows));
    let log_rows_available = rows.saturating_sub(screen_rows.len() + footer_rows);
    screen_rows.extend(if view_state.shows_help {
        help_rows(view_state)
    } else {
        visible_log_rows(content, view_state, columns, log_rows_available)
    });
    screen_rows.resize(rows.saturating_sub(footer_rows), (String::new(), Style::new()));
    if footer_rows > 0 {
        screen_rows.push((" q quit   ↑↓ PgUp PgDn log   ? help".to_owned(), view_state.dim_style()));
    }
    for ((text, style), y) in screen_rows.into_iter().take(rows).zip(area.y..) {
        buffer.set_line(
            area.x,
            y,
            &Line::styled(clip_to_columns(&replace_control_characters(&text), columns), style),
            area.width,
        );
    }
}

/// Replaces control characters with spaces, so that file contents cannot control the terminal; keeps the
/// indentation.
fn replace_control_characters(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let cleaned =
        text[indent..].chars().map(|character| if character.is_control() { ' ' } else { character });
    " ".repeat(indent).chars().chain(cleaned).collect()
}

fn run_status_rows_or_message(
    content: &ScreenContent,
    view_state: &WatchViewState,
    columns: usize,
) -> Vec<StyledRow> {
    let Some(view) = &content.view else {
        let message = match &content.state_error {
            Some(error) => error.clone(),
            None => format!("There is no run in {}. Waiting for one: plimsoll run", content.root),
        };
        return vec![(message, Style::new())];
    };
    let view = RunStatusView { max_line_width: columns, ..view.clone() };
    let state = &view.state;
    let unstyled = |text: String| (text, Style::new());
    let mut rows = vec![task_session_count_and_status_row(&view, view_state)];
    rows.extend(usage_bar_and_threshold_rows(content, view_state, columns));
    rows.push((
        titled_text("Status", &summarize_status(&view).to_string()),
        view_state.ratatui_style(style_for_run_status(state.lifecycle.status())),
    ));
    rows.extend(pause_time_left_and_end_text(&view).map(|text| unstyled(titled_text("Pause", &text))));
    rows.extend(
        view.sequential_run_item_and_session_text().map(|text| unstyled(titled_text("Current item", &text))),
    );
    rows.extend(view.item_count_and_listed_item_lines().into_iter().map(unstyled));
    rows.extend(view.worker_and_pending_item_lines().into_iter().map(unstyled));
    rows.push(unstyled(titled_text("Cost", &view.cost_and_token_text())));
    rows.extend(
        view.checkpoint_session_count_and_last_text().map(|text| unstyled(titled_text("Handoff", &text))),
    );
    rows.extend(view.quota_text().map(|text| unstyled(titled_text("Quota", &text))));
    rows.extend(
        breaker_counts_and_problems_text(state)
            .map(|text| (titled_text("Problems", &text), view_state.ratatui_style(LineStyle::Bad))),
    );
    rows.push(unstyled(titled_text("Time", &view.start_end_and_deadline_text())));
    rows.extend(view.rest_text().map(|text| unstyled(titled_text("Left", &text))));
    if !view.activity.continues_by_itself() {
        rows.push(unstyled(titled_text("Next", &next_step_text(&view))));
    }
    rows.extend(last_text_rows(&content.last_texts, columns).into_iter().map(unstyled));
    rows
}

/// Returns the last lines of the session's own text, wrapped at spaces, or the last line of each worker's session.
fn last_text_rows(last_texts: &[LastText], columns: usize) -> Vec<String> {
    let text_columns = columns.saturating_sub(INDENT).max(1);
    let titles = std::iter::once("It says").chain(std::iter::repeat(""));
    let lines: Vec<String> = last_texts
        .iter()
        .flat_map(|words| {
            let mut text_lines = words.text.lines().map(to_safe_single_line).filter(|line| !line.is_empty());
            match words.worker_number {
                Some(number) => {
                    let last_line = text_lines.next_back().unwrap_or_default();
                    vec![clip_to_columns(&format!("worker {number}: {last_line}"), text_columns)]
                }
                None => {
                    let wrapped_lines: Vec<String> =
                        text_lines.flat_map(|line| wrap_line(&line, text_columns, 0)).collect();
                    wrapped_lines[wrapped_lines.len().saturating_sub(MAX_SESSION_TEXT_LINES)..].to_vec()
                }
            }
        })
        .collect();
    lines.into_iter().zip(titles).map(|(line, title)| format!("{title:<INDENT$}{line}")).collect()
}

fn titled_text(title: &str, text: &str) -> String {
    format!("{title:<INDENT$}{}", to_safe_single_line(text))
}

fn task_session_count_and_status_row(view: &RunStatusView, view_state: &WatchViewState) -> StyledRow {
    let state = &view.state;
    let name = to_safe_single_line(&state.options.task_name);
    let text = format!("{name} · session {} · {}", view.figures.sessions_started, status_for_title(view));
    (text, view_state.ratatui_style(LineStyle::Bold))
}

fn style_for_run_status(status: RunStatus) -> LineStyle {
    match status {
        RunStatus::Completed => LineStyle::Good,
        RunStatus::Running | RunStatus::Paused | RunStatus::Canceled => LineStyle::Plain,
        // Every other status means that the run ended before it was done.
        _ => LineStyle::Bad,
    }
}

/// Describes the remaining time of a pause and its end. Returns `None` if the run is not paused or the end is unknown.
fn pause_time_left_and_end_text(view: &RunStatusView) -> Option<String> {
    let paused_lifecycle =
        Some(&view.state.lifecycle).filter(|lifecycle| lifecycle.status() == RunStatus::Paused)?;
    let paused_until = clock::parse_timestamp(paused_lifecycle.paused_until()?)?;
    let seconds_left = (paused_until - view.now).num_seconds();
    let time_left = if seconds_left > 0 {
        format!("{} left", format_seconds(seconds_left))
    } else {
        "already over".to_owned()
    };
    Some(format!("{time_left}, until {}", clock::format_local_time_with_seconds(paused_until)))
}

/// Returns a row with the usage bar and the used tokens, then the thresholds and the forecast of the checkpoint if known.
fn usage_bar_and_threshold_rows(
    content: &ScreenContent,
    view_state: &WatchViewState,
    columns: usize,
) -> Vec<StyledRow> {
    let Some(reading) = &content.reading else {
        return vec![(titled_text("Load", "? (nothing has been measured yet)"), view_state.dim_style())];
    };
    let thresholds = content.thresholds.as_ref();
    let level = thresholds.map(|thresholds| thresholds.level_at(reading.projected_tokens()));
    let usage = match (reading.percent_shown_by_client(), level) {
        (Some(percent), Some(level)) => {
            format!(
                "{percent}% {} {level} ({})",
                format_tokens(reading.used_tokens),
                level.descriptive_name()
            )
        }
        (Some(percent), None) => format!("{percent}% {}", format_tokens(reading.used_tokens)),
        (None, _) => format!("? {}", format_tokens(reading.used_tokens)),
    };
    let bar_cells = columns.saturating_sub(INDENT + usage.len() + 3).clamp(MIN_BAR_CELLS, MAX_BAR_CELLS);
    let line =
        titled_text("Load", &format!("▕{}▏ {usage}", render_usage_bar(reading, thresholds, bar_cells)));
    let legend =
        thresholds.map(|thresholds| (titled_text("", &threshold_legend(thresholds)), view_state.dim_style()));
    let checkpoint_row = content
        .checkpoint_forecast
        .map(|forecast| (titled_text("", &format!("L2 in {}", forecast.render())), view_state.dim_style()));
    [(line, view_state.level_style(level))].into_iter().chain(legend).chain(checkpoint_row).collect()
}

fn render_usage_bar(reading: &UsageReading, thresholds: Option<&Thresholds>, cell_count: usize) -> String {
    let window = reading.window.as_ref().map_or(u64::MAX, |window| window.tokens.max(1));
    let cell_at_tokens =
        |tokens: u64| (u128::from(tokens) * cell_count as u128 / u128::from(window)) as usize;
    let filled_cells = cell_at_tokens(reading.used_tokens)
        .min(cell_count)
        .max(usize::from(reading.used_tokens > 0 && window < u64::MAX));
    let cell_symbol = |index: usize| {
        let is_threshold_cell = |tokens: u64| cell_at_tokens(tokens).min(cell_count - 1) == index;
        match thresholds {
            Some(thresholds) if is_threshold_cell(thresholds.auto_compact.tokens) => '┃',
            _ if index < filled_cells => '█',
            Some(thresholds)
                if [thresholds.l1, thresholds.l2, thresholds.l3].into_iter().any(is_threshold_cell) =>
            {
                '┆'
            }
            _ => '░',
        }
    };
    (0..cell_count).map(cell_symbol).collect()
}

fn threshold_legend(thresholds: &Thresholds) -> String {
    let [l1, l2, l3, auto_compact] =
        [thresholds.l1, thresholds.l2, thresholds.l3, thresholds.auto_compact.tokens]
            .map(|threshold| thresholds.percent_of_window(threshold));
    format!("L1 {l1}% · L2 {l2}% · L3 {l3}% · auto-compact {auto_compact}%")
}

fn help_rows(view_state: &WatchViewState) -> Vec<StyledRow> {
    let keys = KEY_HELP.map(|(key, description)| (format!(" {key:<16}{description}"), Style::new()));
    [(render_rule("keys", 0), view_state.dim_style())].into_iter().chain(keys).collect()
}

/// Returns a heading and the part of the log that is scrolled into view. Empty if there is no room for a log line.
fn visible_log_rows(
    content: &ScreenContent,
    view_state: &WatchViewState,
    columns: usize,
    max_rows: usize,
) -> Vec<StyledRow> {
    let Some(line_count) = max_rows.checked_sub(1).filter(|lines| *lines > 0) else { return Vec::new() };
    let log_lines = &content.log;
    let end = log_lines.len().saturating_sub(view_state.lines_below).max(line_count.min(log_lines.len()));
    let start = end.saturating_sub(line_count);
    let lines_below = log_lines.len() - end;
    let title = if lines_below > 0 { format!("log, {lines_below} more below") } else { "log".to_owned() };
    let shown_rows = log_lines[start..end]
        .iter()
        .map(|(text, line_style)| (text.clone(), view_state.ratatui_style(*line_style)));
    [(render_rule(&title, columns), view_state.dim_style())].into_iter().chain(shown_rows).collect()
}

fn render_rule(title: &str, columns: usize) -> String {
    let heading = format!("── {title} ");
    let remaining_columns = columns.saturating_sub(heading.chars().count());
    format!("{heading}{}", "─".repeat(remaining_columns))
}

impl WatchViewState {
    fn dim_style(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn with_color_if_enabled(&self, style: Style, color: Color) -> Style {
        if self.use_colors { style.fg(color) } else { style }
    }

    fn ratatui_style(&self, line_style: LineStyle) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        match line_style {
            LineStyle::Plain => Style::new(),
            LineStyle::Bold => bold,
            LineStyle::Good => self.with_color_if_enabled(bold, Color::Green),
            LineStyle::Bad => self.with_color_if_enabled(bold, Color::Red),
        }
    }

    /// Returns the style of a level, with the same color as in the status line.
    fn level_style(&self, level: Option<Level>) -> Style {
        match level {
            None => self.dim_style(),
            Some(Level::L0) => self.with_color_if_enabled(Style::new(), Color::Green),
            Some(Level::L1) => self.with_color_if_enabled(Style::new(), Color::Yellow),
            Some(Level::L2) => self.with_color_if_enabled(Style::new(), Color::Magenta),
            Some(Level::L3) => {
                self.with_color_if_enabled(Style::new().add_modifier(Modifier::BOLD), Color::Red)
            }
        }
    }
}
