//! What a run may use: money, tokens, time, and the user's share of the client's own quotas.

use crate::cost::{Cost, CostBasis};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a run ends whatever is open. What is absent does not limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// US dollars.
    pub max_cost_usd: Option<f64>,
    /// US dollars that all runs of the user together may spend on one day of this machine's calendar: from there the run waits for
    /// the next.
    pub max_cost_per_day_usd: Option<f64>,
    /// Tokens of all sessions, as the client counts them: input, output, cache written and cache read.
    pub max_tokens: Option<u64>,
    /// RFC 3339 UTC, whole seconds.
    pub deadline: Option<Timestamp>,
    /// Of the five-hour or weekly quota: from there the run waits for the reset.
    pub stop_at_limit_percent: Option<u8>,
}

/// What a run has spent on a day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayCost {
    /// On this machine's calendar: `2026-01-07`.
    pub day: String,
    /// US dollars.
    pub usd: f64,
    /// How far that can be relied on.
    pub basis: CostBasis,
}

impl DayCost {
    /// Returns what was spent on this day.
    pub fn on(&self, day: &str) -> Cost {
        if self.day == day { Cost { usd: self.usd, basis: self.basis } } else { Cost::default() }
    }

    /// Adds what was spent on this day; of an earlier one nothing is kept.
    pub fn add(&mut self, day: &str, cost: Cost) {
        let Cost { usd, basis } = self.on(day) + cost;
        *self = DayCost { day: day.to_owned(), usd, basis };
    }
}

/// What all runs of the user have spent on a day, as it was last added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpentToday {
    /// US dollars.
    pub usd: f64,
    /// How far that can be relied on.
    pub basis: CostBasis,
    /// When that day ends, RFC 3339 UTC.
    pub ends_at: Timestamp,
}

/// The quotas of a subscription, as last reported by the client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// The five-hour window.
    pub five_hour: Option<QuotaWindow>,
    /// The weekly window.
    pub seven_day: Option<QuotaWindow>,
}

impl Quota {
    /// Takes what is newer, window by window: about the others the client said nothing.
    pub fn merge(&mut self, newer: &Quota) {
        for (known, newer) in
            [(&mut self.five_hour, &newer.five_hour), (&mut self.seven_day, &newer.seven_day)]
        {
            if newer.is_some() {
                known.clone_from(newer);
            }
        }
    }

    /// Forgets figures without a reset: they would never expire.
    pub fn forget_undated(&mut self) {
        for window in [&mut self.five_hour, &mut self.seven_day] {
            window.take_if(|window| window.resets_at.is_none());
        }
    }
}

/// One quota.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaWindow {
    /// How much of it is used, 0 to 100.
    pub percent: f64,
    /// When it starts again, RFC 3339 UTC.
    pub resets_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(percent: f64, resets_at: Option<&str>) -> Option<QuotaWindow> {
        Some(QuotaWindow { percent, resets_at: resets_at.map(str::to_owned).map(Timestamp::from) })
    }

    #[test]
    fn what_is_said_of_one_window_changes_no_other() {
        let mut quota = Quota { five_hour: None, seven_day: window(85.0, Some("2026-01-09T00:00:00Z")) };
        quota.merge(&Quota { five_hour: window(10.0, None), seven_day: None });
        assert_eq!(quota.seven_day, window(85.0, Some("2026-01-09T00:00:00Z")));
        quota.merge(&Quota { five_hour: window(12.0, None), seven_day: window(86.0, None) });
        assert_eq!((&quota.five_hour, &quota.seven_day), (&window(12.0, None), &window(86.0, None)));
        quota.merge(&Quota { five_hour: window(1.0, Some("2026-01-07T00:00:00Z")), seven_day: None });
        quota.forget_undated();
        assert_eq!(quota, Quota { five_hour: window(1.0, Some("2026-01-07T00:00:00Z")), seven_day: None });
    }
}
