//! The scale of a chart. It converts times to x coordinates in percent of the width, so that the chart fits any screen,
//! and percentages to y coordinates in pixels.

use crate::commands::report::contents::{Report, UtcTime};
use chrono::{Duration, DurationRound, Local};

/// Height of the chart area, in pixels.
pub(super) const CHART_HEIGHT: f64 = 220.0;

/// The time range of a chart.
pub(super) struct ChartScale {
    start: UtcTime,
    end: UtcTime,
}

impl ChartScale {
    /// Creates the scale from the start of the run, or of its first session, to its end. Returns `None` if neither has a time.
    pub(super) fn for_report(report: &Report) -> Option<ChartScale> {
        let session_starts = report.sessions.iter().filter_map(|session| session.started_at);
        let start = report.started_at.into_iter().chain(session_starts).min()?;
        let mark_times = report.marks.iter().map(|mark| mark.occurred_at);
        let end = mark_times.chain([report.end_or_now()]).max()?;
        Some(ChartScale { start, end: end.max(start + Duration::seconds(1)) })
    }

    /// Returns the x coordinate of a time, in percent of the width.
    pub(super) fn x_percent(&self, time: UtcTime) -> f64 {
        let total = (self.end - self.start).num_milliseconds().max(1) as f64;
        ((time - self.start).num_milliseconds() as f64 * 100.0 / total).clamp(0.0, 100.0)
    }

    /// Returns the y coordinate of a percentage, in pixels from the top.
    pub(super) fn y_pixels(percent: f64) -> f64 {
        CHART_HEIGHT * (1.0 - percent.clamp(0.0, 100.0) / 100.0)
    }

    pub(super) fn end_time(&self) -> UtcTime {
        self.end
    }

    /// Returns round times for the axis, at most six, with their labels.
    pub(super) fn ticks(&self) -> Vec<(UtcTime, String)> {
        let duration = self.end - self.start;
        let step = TICK_STEPS_SECONDS
            .iter()
            .map(|seconds| Duration::seconds(*seconds))
            .find(|step| duration < *step * 5);
        let step = step.unwrap_or_else(|| Duration::days(duration.num_days() / 4 + 1));
        let format = match step.num_seconds() {
            ..60 => "%H:%M:%S",
            60..86_400 => "%H:%M",
            _ => "%-d %b",
        };
        let first_tick = self.start.with_timezone(&Local).duration_trunc(step).ok();
        let ticks = (0..6).filter_map(|number| Some(first_tick? + step * number));
        ticks
            .filter(|tick_time| (self.start..=self.end).contains(&tick_time.to_utc()))
            .map(|tick_time| (tick_time.to_utc(), tick_time.format(format).to_string()))
            .collect()
    }
}

/// Possible steps between two ticks of the axis.
const TICK_STEPS_SECONDS: [i64; 16] =
    [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_any_length_has_a_few_round_times_on_its_axis() {
        let start: UtcTime = "2026-01-06T21:04:11Z".parse().unwrap();
        for seconds in [1, 7, 40, 100, 3_000, 9_000, 28_800, 90_000, 700_000, 9_000_000] {
            let scale = ChartScale { start, end: start + Duration::seconds(seconds) };
            let ticks = scale.ticks();
            assert!((1..=6).contains(&ticks.len()), "{seconds}: {ticks:?}");
            assert!(ticks.iter().all(|(at, _)| (0.0..=100.0).contains(&scale.x_percent(*at))), "{seconds}");
        }
    }
}
