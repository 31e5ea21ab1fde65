//! The context usage bar, and forecasts from the growth of the last responses.

use super::ContextUsageView;
use crate::forecast::{MIN_GAINS, forecast_until_tokens_added, gains_since_last_reset, upper_median};
use plimsoll_domain::forecast::{MAX_FORECAST_TURNS, ThresholdForecast, UsageSample};
use plimsoll_domain::level::Thresholds;

/// Renders the context usage bar with `cell_count` cells: the used part, the thresholds of L1 and L2 (`┆`) and the auto-compact
/// threshold (`┃`).
pub fn render_usage_bar_with_thresholds(usage: &ContextUsageView, cell_count: u64) -> String {
    let filled_cells = usage.used_percent.map_or(0, |percent| (percent.min(100) * cell_count).div_ceil(100));
    let is_threshold_cell = |cell: u64, threshold_tokens: fn(&Thresholds) -> u64| {
        usage.thresholds.is_some_and(|thresholds| {
            // The used part is drawn from its rounded percent, so the thresholds are as well.
            (thresholds.percent_of_window(threshold_tokens(&thresholds)).min(100) * cell_count / 100)
                .min(cell_count.saturating_sub(1))
                == cell
        })
    };
    let glyph_at = |cell| match cell {
        _ if is_threshold_cell(cell, |thresholds| thresholds.auto_compact.tokens) => '┃',
        cell if cell < filled_cells => '█',
        _ if is_threshold_cell(cell, |thresholds| thresholds.l1)
            || is_threshold_cell(cell, |thresholds| thresholds.l2) =>
        {
            '┆'
        }
        _ => '░',
    };
    format!("▕{}▏", (0..cell_count).map(glyph_at).collect::<String>())
}

/// Returns the used percent, or `?` if it is unknown.
pub(super) fn format_used_percent(usage: &ContextUsageView) -> String {
    usage.used_percent.map_or("?".to_owned(), |percent| format!("{percent}%"))
}

/// Returns the tokens that each response added since the window was last emptied, oldest first.
pub fn tokens_added_per_response(usage_samples: &[UsageSample]) -> Vec<u64> {
    gains_since_last_reset(usage_samples).iter().map(|gain| gain.tokens).collect()
}

/// Returns the median, or `None` if there are too few responses for one.
pub fn median_growth(growths: &[u64]) -> Option<u64> {
    if growths.len() >= MIN_GAINS { upper_median(growths.to_vec()) } else { None }
}

/// Forecasts the turns and minutes until the usage reaches a threshold. Returns `None` if it is already reached, if the usage or
/// the thresholds are unknown, or if the samples allow no forecast.
pub(super) fn forecast_until_threshold(
    usage: &ContextUsageView,
    threshold_tokens: fn(&Thresholds) -> u64,
) -> Option<ThresholdForecast> {
    let tokens_left =
        threshold_tokens(&usage.thresholds?).checked_sub(usage.used_tokens?).filter(|tokens| *tokens > 0)?;
    forecast_until_tokens_added(&gains_since_last_reset(&usage.usage_samples), tokens_left)
}

/// Formats the median number of turns, such as `~13` or `>200`.
pub(super) fn format_median_turns_up_to_max(forecast: &ThresholdForecast) -> String {
    let median_turns = forecast.turns.median;
    if median_turns < MAX_FORECAST_TURNS {
        format!("~{median_turns}")
    } else {
        format!(">{MAX_FORECAST_TURNS}")
    }
}

/// Returns the tokens that are left before the auto-compact threshold; 0 above it.
pub(super) fn tokens_left_before_auto_compact(usage: &ContextUsageView) -> Option<u64> {
    Some(usage.thresholds?.auto_compact.tokens.saturating_sub(usage.used_tokens?))
}

/// Renders the last eight growths as bars whose heights are relative to the largest of them.
pub(super) fn render_sparkline(growths: &[u64]) -> String {
    const BAR_GLYPHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let growths = &growths[growths.len().saturating_sub(BAR_GLYPHS.len())..];
    let largest_growth = u128::from(growths.iter().copied().max().unwrap_or(0).max(1));
    growths.iter().map(|growth| BAR_GLYPHS[(u128::from(*growth) * 7 / largest_growth) as usize]).collect()
}
