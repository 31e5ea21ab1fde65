//! Forecasts when the context window's usage reaches a threshold.

use crate::text::count_with_noun;
use serde::Serialize;

/// The maximum number of turns that a forecast covers.
pub const MAX_FORECAST_TURNS: u64 = 200;

/// The window's usage after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageSample {
    /// Tokens of the request.
    pub used_tokens: u64,
    /// When it was measured, in seconds since 1970.
    pub unix_seconds: Option<i64>,
}

/// The lowest, the median and the highest result of the simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ForecastRange {
    /// The lowest result.
    #[serde(rename = "soonest")]
    pub earliest: u64,
    /// The median.
    #[serde(rename = "likely")]
    pub median: u64,
    /// The highest result.
    pub latest: u64,
}

/// A forecast of when a threshold will be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ThresholdForecast {
    /// Responses of the model until then; at most [`MAX_FORECAST_TURNS`].
    pub turns: ForecastRange,
    /// Minutes until then, rounded half up; `None` if times are unknown or the threshold is too far away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<ForecastRange>,
}

/// The forecasts for the thresholds that are not reached yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The number of responses that the forecast is based on.
    #[serde(rename = "samples")]
    pub sample_count: usize,
    /// The warning threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1: Option<ThresholdForecast>,
    /// The checkpoint threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2: Option<ThresholdForecast>,
    /// The client's auto-compact threshold.
    #[serde(rename = "ceiling", skip_serializing_if = "Option::is_none")]
    pub auto_compact: Option<ThresholdForecast>,
}

impl ForecastRange {
    /// Renders the range in parentheses; nothing if both ends are equal and not capped. If the forecast was
    /// capped, the upper end is shown as a lower bound (`over 200`).
    fn render_in_parentheses_unless_exact(&self, is_capped: bool) -> String {
        let over_prefix = if is_capped { "over " } else { "" };
        if self.earliest == self.latest && !is_capped {
            return String::new();
        }
        format!(" ({} to {over_prefix}{})", self.earliest, self.latest)
    }
}

impl ThresholdForecast {
    /// Renders the forecast, for example `about 14 turns (9 to 22), 25 min (15 to 40)`.
    pub fn render(&self) -> String {
        let turns = &self.turns;
        // Minutes are derived from turns, so they are capped at the same point.
        let (is_median_capped, is_latest_capped) =
            (turns.median >= MAX_FORECAST_TURNS, turns.latest >= MAX_FORECAST_TURNS);
        let turns_text = if is_median_capped {
            format!("over {MAX_FORECAST_TURNS} turns")
        } else {
            format!(
                "about {}{}",
                count_with_noun(turns.median as usize, "turn"),
                turns.render_in_parentheses_unless_exact(is_latest_capped)
            )
        };
        let minutes_text = self.minutes.map(|minutes| match minutes.median {
            median if is_median_capped => format!(", over {median} min"),
            0 => ", under a minute".to_owned(),
            median => {
                format!(", {median} min{}", minutes.render_in_parentheses_unless_exact(is_latest_capped))
            }
        });
        turns_text + &minutes_text.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_forecast_has_no_range_and_a_capped_one_no_figure() {
        let range = |earliest, median, latest| ForecastRange { earliest, median, latest };
        let render = |turns, minutes| ThresholdForecast { turns, minutes }.render();
        assert_eq!(
            render(range(9, 14, 22), Some(range(15, 25, 40))),
            "about 14 turns (9 to 22), 25 min (15 to 40)"
        );
        assert_eq!(render(range(1, 1, 1), Some(range(0, 0, 1))), "about 1 turn, under a minute");
        assert_eq!(render(range(90, 150, 200), None), "about 150 turns (90 to over 200)");
        assert_eq!(render(range(120, 200, 200), None), "over 200 turns");
    }

    #[test]
    fn minutes_are_capped_together_with_turns() {
        let range = |earliest, median, latest| ForecastRange { earliest, median, latest };
        let render = |turns, minutes| ThresholdForecast { turns, minutes: Some(minutes) }.render();
        assert_eq!(
            render(range(84, 130, 200), range(28, 43, 68)),
            "about 130 turns (84 to over 200), 43 min (28 to over 68)"
        );
        assert_eq!(
            render(range(84, 130, 199), range(28, 43, 68)),
            "about 130 turns (84 to 199), 43 min (28 to 68)"
        );
        assert_eq!(
            render(range(180, 190, 200), range(2, 2, 2)),
            "about 190 turns (180 to over 200), 2 min (2 to over 2)"
        );
        assert_eq!(render(range(120, 200, 200), range(40, 68, 68)), "over 200 turns, over 68 min");
    }
}
