//! The live progress bar of a run: the session or the workers, then the elapsed time and the estimate of the remaining work.

use crate::columns::clip_to_columns;
use crate::console;
use crate::run_figure_text::{render_api_retry, render_worker_and_total_lines};
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::text::format_tokens;
use plimsoll_domain::{RunState, SessionRecord};
use plimsoll_policy::statusline::{ContextUsageView, StatusLineView, render_bar_and_percent_in_level_color};
use std::time::Duration;

/// The width that is assumed if the terminal does not report its own.
const DEFAULT_COLUMNS: usize = 80;
/// Below this width, bars are half as long.
const MIN_COLUMNS_FOR_LONG_BARS: usize = 100;
/// The columns of the elapsed time before the estimate of the remaining work.
const ELAPSED_COLUMNS: usize = 20;

const SESSION_TEMPLATE: &str = "{spinner} {wide_msg}\n  {elapsed} elapsed{prefix}";
const WORKERS_TEMPLATE: &str = "{msg}\n{spinner} {elapsed} elapsed{prefix}";

/// Creates the bar and starts its clock.
pub(super) fn new_progress_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_style(bar_style(SESSION_TEMPLATE));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Gives the bar a line for each worker.
pub(super) fn use_worker_lines(bar: &ProgressBar) {
    bar.set_style(bar_style(WORKERS_TEMPLATE));
}

fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Shows a running session.
pub(super) fn show_session(
    bar: &ProgressBar,
    state: &RunState,
    record: &SessionRecord,
    figures: &RunFigures,
) {
    let columns = terminal_columns();
    // The spinner and a space come first.
    let message = render_running_session(state, record, figures, columns);
    console::set_bar_message(bar, &clip_to_columns(&message, columns.saturating_sub(3)));
    show_remaining_work(bar, figures, columns);
}

/// Shows the workers of a parallel run.
pub(super) fn show_workers(bar: &ProgressBar, figures: &RunFigures) {
    let columns = terminal_columns();
    console::set_bar_lines(bar, &render_worker_and_total_lines(figures, columns.saturating_sub(1)));
    show_remaining_work(bar, figures, columns);
}

fn show_remaining_work(bar: &ProgressBar, figures: &RunFigures, columns: usize) {
    let text = figures.render_remaining_work().map(|estimate| format!(" · {estimate}")).unwrap_or_default();
    console::set_bar_prefix(bar, &clip_to_columns(&text, columns.saturating_sub(ELAPSED_COLUMNS)));
}

fn terminal_columns() -> usize {
    console::terminal_columns().unwrap_or(DEFAULT_COLUMNS)
}

/// Renders a running session: its number, items, context usage and cost.
fn render_running_session(
    state: &RunState,
    record: &SessionRecord,
    figures: &RunFigures,
    columns: usize,
) -> String {
    let cell_count = if columns < MIN_COLUMNS_FOR_LONG_BARS { 10 } else { 20 };
    let (done_count, total_count) = (figures.items.done, figures.items.total);
    let item_bar = if total_count > 0 {
        let cells = total_count.min(cell_count);
        let done_cells = done_count * cells / total_count;
        format!(
            "  [{}{}] {done_count}/{total_count} items",
            "■".repeat(done_cells),
            "·".repeat(cells - done_cells)
        )
    } else {
        String::new()
    };
    let reading = record.usage.last_reading.as_ref();
    let usage_view = ContextUsageView {
        used_percent: record.usage.percent_used_by_client,
        used_tokens: reading.map(|reading| reading.used_tokens),
        ..ContextUsageView::default()
    };
    let used_tokens_text =
        reading.map(|reading| format!(" {}", format_tokens(reading.used_tokens))).unwrap_or_default();
    let stop_suffix =
        if state.iteration_record.stops_run_after_session { ", stops after this session" } else { "" };
    let api_retry = state.iteration_record.api_retry.as_ref();
    let retry_suffix = api_retry
        .map(|retry| format!("; {}", render_api_retry(retry.http_status, &retry.failing_since)))
        .unwrap_or_default();
    format!(
        "session {}{item_bar}  {}{used_tokens_text}  {}{stop_suffix}{retry_suffix}",
        figures.sessions_started,
        render_bar_and_percent_in_level_color(
            &StatusLineView { context_usage: usage_view, ..StatusLineView::default() },
            cell_count as u64
        ),
        figures.render_cost_without_title()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::run_figures::ItemCounts;

    #[test]
    fn a_running_session_fits_a_narrow_terminal() {
        let figures = RunFigures {
            sessions_started: 3,
            cost_usd: 0.12,
            items: ItemCounts { total: 40, done: 10, open: 30, ..ItemCounts::default() },
            ..RunFigures::default()
        };
        let render = |figures: &RunFigures, columns| {
            render_running_session(&RunState::default(), &SessionRecord::default(), figures, columns)
        };
        assert_eq!(render(&figures, 60), "session 3  [■■········] 10/40 items  ▕░░░░░░░░░░▏ ?  $0.12");
        assert_eq!(
            render(&figures, 120),
            "session 3  [■■■■■···············] 10/40 items  ▕░░░░░░░░░░░░░░░░░░░░▏ ?  $0.12"
        );
        let unknown = RunFigures { cost_usd: 0.0, items: ItemCounts::default(), ..figures };
        assert_eq!(render(&unknown, 60), "session 3  ▕░░░░░░░░░░▏ ?  cost unknown");
    }
}
