//! Renders one turn on one line.

use plimsoll_domain::log_line::TokenUsage;
use plimsoll_domain::text::format_tokens;
use plimsoll_flows::turns::LoggedRecord;
use plimsoll_flows::turns::rendering::{ok_or_failure_reason, render_summary};
use plimsoll_store::clock;
use plimsoll_terminal::columns::clip_to_columns;
use plimsoll_terminal::console::PaintedLine;

/// Returns the column headings of [`render_turn_row`].
pub(super) fn header_row() -> PaintedLine {
    let time_width = clock::format_local_time_with_seconds(clock::now()).chars().count();
    let header = format!("{:<13} {:<time_width$}  {:>5}  {:<12} WHAT", "TURN", "TIME", "SENT", "OUTCOME");
    PaintedLine::default().with_text(Some("1"), &header)
}

/// Renders name, time, input tokens, outcome and summary of a turn, clipped to `width` columns.
pub(super) fn render_turn_row(record: &LoggedRecord, width: usize) -> String {
    let header = &record.header;
    let time = clock::parse_timestamp(&header.recorded_at)
        .map(clock::format_local_time_with_seconds)
        .unwrap_or_default();
    let input_tokens =
        header.usage.map(TokenUsage::total_input).filter(|tokens| *tokens > 0).map(format_tokens);
    let outcome = ok_or_failure_reason(record);
    let row_start = format!(
        "{:<13} {time}  {:>5}  {outcome:<12} ",
        record.short_session_id_and_number(),
        input_tokens.unwrap_or_default()
    );
    let text_width = width.saturating_sub(row_start.chars().count()).max(20);
    format!("{row_start}{}", clip_to_columns(&render_summary(record), text_width))
}
