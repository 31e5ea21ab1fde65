//! An estimate of the remaining work of a run: items, sessions, time and money.

use crate::cost::format_usd;
use crate::text::count_with_noun;
use serde::Serialize;

/// From this many minutes on, a range of minutes is shown in hours.
const MIN_MINUTES_SHOWN_AS_HOURS: u64 = 180;

/// The lowest and the highest of the expected values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EstimateRange<T> {
    pub low: T,
    pub high: T,
}

/// The expected work of a run that has not ended, estimated from the items that it has finished.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RemainingWork {
    /// The open items that sessions can work on.
    pub items: usize,
    pub sessions: EstimateRange<u64>,
    /// Minutes of work, without pauses; `None` if no durations were measured.
    pub minutes: Option<EstimateRange<u64>>,
    /// US dollars; `None` if no costs are known.
    pub cost_usd: Option<EstimateRange<f64>>,
}

impl RemainingWork {
    /// Renders the estimate: `about 3 items, 3–4 sessions, 15–25 min, $1.20–$2.00 left`.
    pub fn render(&self) -> String {
        let items = count_with_noun(self.items, "item");
        let sessions = match (self.sessions.low, self.sessions.high) {
            (low, high) if low == high => count_with_noun(low as usize, "session"),
            (low, high) => format!("{low}–{high} sessions"),
        };
        let minutes = self.minutes.map(|minutes| format!(", {}", render_minutes(minutes)));
        let cost = self.cost_usd.map(|cost| {
            let (low, high) = (format_usd(cost.low), format_usd(cost.high));
            if low == high { format!(", {low}") } else { format!(", {low}–{high}") }
        });
        format!("about {items}, {sessions}{}{} left", minutes.unwrap_or_default(), cost.unwrap_or_default())
    }
}

fn render_minutes(minutes: EstimateRange<u64>) -> String {
    match (minutes.low, minutes.high) {
        (_, 0) => "under a minute".to_owned(),
        (0, high) => format!("up to {high} min"),
        (low, high) if high < MIN_MINUTES_SHOWN_AS_HOURS && low == high => format!("{low} min"),
        (low, high) if high < MIN_MINUTES_SHOWN_AS_HOURS => format!("{low}–{high} min"),
        (low, high) => match (low / 60, high.div_ceil(60)) {
            (0, high_hours) => format!("up to {high_hours} h"),
            (low_hours, high_hours) if low_hours == high_hours => format!("{low_hours} h"),
            (low_hours, high_hours) => format!("{low_hours}–{high_hours} h"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_names_what_is_known_as_ranges() {
        let estimate =
            |items, (low, high), minutes: Option<(u64, u64)>, usd: Option<(f64, f64)>| RemainingWork {
                items,
                sessions: EstimateRange { low, high },
                minutes: minutes.map(|(low, high)| EstimateRange { low, high }),
                cost_usd: usd.map(|(low, high)| EstimateRange { low, high }),
            };
        for (estimate, expected) in [
            (
                estimate(3, (3, 4), Some((15, 25)), Some((1.2, 2.0))),
                "about 3 items, 3–4 sessions, 15–25 min, $1.20–$2.00 left",
            ),
            (
                estimate(1, (1, 1), Some((0, 0)), Some((0.01, 0.01))),
                "about 1 item, 1 session, under a minute, $0.01 left",
            ),
            (
                estimate(2, (2, 2), Some((0, 3)), Some((0.002, 0.02))),
                "about 2 items, 2 sessions, up to 3 min, <$0.01–$0.02 left",
            ),
            (estimate(9, (9, 12), Some((170, 400)), None), "about 9 items, 9–12 sessions, 2–7 h left"),
            (estimate(9, (9, 12), Some((30, 200)), None), "about 9 items, 9–12 sessions, up to 4 h left"),
            (estimate(2, (2, 3), None, None), "about 2 items, 2–3 sessions left"),
        ] {
            assert_eq!(estimate.render(), expected);
        }
    }
}
