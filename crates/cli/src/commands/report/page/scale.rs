//! Where a moment and a share are in the picture: moments in percent of its width, so that it fits any screen, shares in
//! pixels of its height.

use crate::commands::report::contents::{At, Report};
use chrono::{Duration, DurationRound, Local};

/// How high the window is drawn.
pub(super) const HEIGHT: f64 = 220.0;

/// The wall clock from left to right.
pub(super) struct Scale {
    from: At,
    to: At,
}

impl Scale {
    /// From the start of the run, or of what is known of it, to its end. None if nothing has a time.
    pub(super) fn of(report: &Report) -> Option<Scale> {
        let begun = report.sessions.iter().filter_map(|session| session.began);
        let from = report.started.into_iter().chain(begun).min()?;
        let marks = report.moments.iter().map(|moment| moment.at);
        let to = marks.chain([report.until()]).max()?;
        Some(Scale { from, to: to.max(from + Duration::seconds(1)) })
    }

    /// In percent of the width.
    pub(super) fn x(&self, at: At) -> f64 {
        let all = (self.to - self.from).num_milliseconds().max(1) as f64;
        ((at - self.from).num_milliseconds() as f64 * 100.0 / all).clamp(0.0, 100.0)
    }

    /// In pixels from above.
    pub(super) fn y(percent: f64) -> f64 {
        HEIGHT * (1.0 - percent.clamp(0.0, 100.0) / 100.0)
    }

    pub(super) fn end(&self) -> At {
        self.to
    }

    /// Round moments for the axis, at most five, with what is written there.
    pub(super) fn ticks(&self) -> Vec<(At, String)> {
        let all = self.to - self.from;
        let step = STEPS.iter().map(|seconds| Duration::seconds(*seconds)).find(|step| all < *step * 5);
        let step = step.unwrap_or_else(|| Duration::days(all.num_days() / 4 + 1));
        let form = match step.num_seconds() {
            ..60 => "%H:%M:%S",
            60..86_400 => "%H:%M",
            _ => "%-d %b",
        };
        let first = self.from.with_timezone(&Local).duration_trunc(step).ok();
        let ticks = (0..6).filter_map(|number| Some(first? + step * number));
        ticks
            .filter(|at| (self.from..=self.to).contains(&at.to_utc()))
            .map(|at| (at.to_utc(), at.format(form).to_string()))
            .collect()
    }
}

/// Steps of the axis, in seconds.
const STEPS: [i64; 16] =
    [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_of_any_length_has_a_few_round_times_on_its_axis() {
        let from: At = "2026-01-06T21:04:11Z".parse().unwrap();
        for seconds in [1, 7, 40, 100, 3_000, 9_000, 28_800, 90_000, 700_000, 9_000_000] {
            let scale = Scale { from, to: from + Duration::seconds(seconds) };
            let ticks = scale.ticks();
            assert!((1..=6).contains(&ticks.len()), "{seconds}: {ticks:?}");
            assert!(ticks.iter().all(|(at, _)| (0.0..=100.0).contains(&scale.x(*at))), "{seconds}");
        }
    }
}
