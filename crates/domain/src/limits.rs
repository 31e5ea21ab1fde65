//! The limits of a run: money, tokens, time, and the user's share of the client's own quotas.

use crate::cost::{Cost, CostBasis};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The limits at which a run ends even with open items. A missing value means no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// The maximum cost in US dollars.
    pub max_cost_usd: Option<f64>,
    /// The maximum cost in US dollars of all runs of the user together on one calendar day of this machine. At the
    /// limit the run waits for the next day.
    pub max_cost_per_day_usd: Option<f64>,
    /// The maximum tokens of all sessions, as the client counts them: input, output, cache writes and cache reads.
    pub max_tokens: Option<u64>,
    /// When the run must end, RFC 3339, UTC, whole seconds.
    pub deadline: Option<Timestamp>,
    /// Percentage of the five-hour or weekly quota at which the run waits for the reset.
    pub stop_at_limit_percent: Option<u8>,
}

/// The cost of a run on one day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayCost {
    /// The calendar day on this machine: `2026-01-07`.
    pub day: String,
    pub usd: f64,
    /// How reliable the figure is.
    pub basis: CostBasis,
}

impl DayCost {
    /// Returns the cost on this day; zero if the record is about another day.
    pub fn cost_on_day(&self, day: &str) -> Cost {
        if self.day == day { Cost { usd: self.usd, basis: self.basis } } else { Cost::default() }
    }

    /// Adds a cost on this day. The cost of any other day is discarded.
    pub fn add_cost(&mut self, day: &str, cost: Cost) {
        let Cost { usd, basis } = self.cost_on_day(day) + cost;
        *self = DayCost { day: day.to_owned(), usd, basis };
    }
}

/// The cost of all runs of the user today, as last calculated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TodaysSpending {
    pub usd: f64,
    /// How reliable the figure is.
    pub basis: CostBasis,
    /// When the day ends, RFC 3339, UTC.
    #[serde(rename = "ends_at")]
    pub day_ends_at: Timestamp,
}

/// The quotas of a subscription, as last reported by the client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriptionQuotas {
    /// The five-hour window.
    pub five_hour: Option<QuotaWindow>,
    /// The weekly window.
    pub seven_day: Option<QuotaWindow>,
}

impl SubscriptionQuotas {
    /// Replaces each window that `newer` has. The client may report only one of them, so the other one is kept.
    pub fn update_from(&mut self, newer: &SubscriptionQuotas) {
        for (current_window, newer_window) in
            [(&mut self.five_hour, &newer.five_hour), (&mut self.seven_day, &newer.seven_day)]
        {
            if newer_window.is_some() {
                current_window.clone_from(newer_window);
            }
        }
    }

    /// Removes windows without a reset time, because they would never expire.
    pub fn remove_windows_without_reset(&mut self) {
        for window in [&mut self.five_hour, &mut self.seven_day] {
            window.take_if(|window| window.resets_at.is_none());
        }
    }
}

/// One quota window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaWindow {
    /// The used part, 0 to 100.
    #[serde(rename = "percent")]
    pub used_percent: f64,
    /// When the window resets, RFC 3339, UTC.
    pub resets_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota_window(percent: f64, resets_at: Option<&str>) -> Option<QuotaWindow> {
        Some(QuotaWindow {
            used_percent: percent,
            resets_at: resets_at.map(str::to_owned).map(Timestamp::from),
        })
    }

    #[test]
    fn an_update_of_one_window_changes_no_other() {
        let mut quotas = SubscriptionQuotas {
            five_hour: None,
            seven_day: quota_window(85.0, Some("2026-01-09T00:00:00Z")),
        };
        quotas.update_from(&SubscriptionQuotas { five_hour: quota_window(10.0, None), seven_day: None });
        assert_eq!(quotas.seven_day, quota_window(85.0, Some("2026-01-09T00:00:00Z")));
        quotas.update_from(&SubscriptionQuotas {
            five_hour: quota_window(12.0, None),
            seven_day: quota_window(86.0, None),
        });
        assert_eq!(
            (&quotas.five_hour, &quotas.seven_day),
            (&quota_window(12.0, None), &quota_window(86.0, None))
        );
        quotas.update_from(&SubscriptionQuotas {
            five_hour: quota_window(1.0, Some("2026-01-07T00:00:00Z")),
            seven_day: None,
        });
        quotas.remove_windows_without_reset();
        assert_eq!(
            quotas,
            SubscriptionQuotas {
                five_hour: quota_window(1.0, Some("2026-01-07T00:00:00Z")),
                seven_day: None
            }
        );
    }
}
